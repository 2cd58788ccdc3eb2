-- case: filter and project
SELECT ts, src + 1 AS next, length FROM packets WHERE length > 1000 AND src = 5
-- gives:
-- QUERY q1 INTO memory
-- SELECT ts AS ts: TIMESTAMP, src + 1 AS next: INT, length AS length: INT
-- FROM packets
-- WHERE length > 1000
--   AND src = 5

-- case: star
SELECT * FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT ts AS ts: TIMESTAMP, src AS src: INT, dst AS dst: INT, port AS port: INT, length AS length: INT
-- FROM packets

-- case: star of one input
SELECT h.*, p.src FROM packets p JOIN hosts h ON p.src = h.id
-- gives:
-- QUERY q1 INTO memory
-- SELECT id@1 AS id: INT, site@1 AS site: STRING, src AS src: INT
-- FROM packets
-- JOIN hosts@1 ON src = id@1

-- case: names of columns that were given none
SELECT -n, h.site, length ( name )  /* x */ , 1L FROM readings JOIN hosts h ON n = id
-- gives:
-- QUERY q1 INTO memory
-- SELECT -n AS `-n`: INT, site@1 AS site: STRING, length(name) AS `length ( name )`: INT, 1::BIGINT AS `1L`: BIGINT
-- FROM readings
-- JOIN hosts@1 ON n = id@1

-- case: names of unnamed expressions
SELECT n + 1, nested.b.c, length( name ) /* x */, path[0], tags.k FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT n + 1 AS `n + 1`: INT, nested.b.c AS c: STRING, length(name) AS `length( name )`: INT, path[0] AS `path[0]`: INT, tags['k'] AS k: INT
-- FROM readings

-- case: constants take the type of the column and stand on the right
SELECT n FROM readings WHERE 5 < big AND tiny = 5 AND tiny < 300 AND real >= 1 AND single = 1.5 AND single = 0.1 AND price = 5 AND price > 5.555 AND n = 5.0 AND n > 1.5
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE big > 5::BIGINT
--   AND tiny = 5::TINYINT
--   AND CAST(tiny AS INT) < 300
--   AND real >= 1.0
--   AND single = 1.5::FLOAT
--   AND CAST(single AS DOUBLE) = 0.1
--   AND price = 5.00
--   AND CAST(price AS DECIMAL(11,3)) > 5.555
--   AND n = 5
--   AND CAST(n AS DECIMAL(11,1)) > 1.5

-- case: times
SELECT n FROM readings WHERE at > '2024-01-01' AND at <= '2024-01-01T10:00:00.5+02:00' AND day = '2024-02-29' AND day < at AND at >= DATE '2024-01-01' AND at <> TIMESTAMP '2024-01-01 00:00:00'
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE at > TIMESTAMP '2024-01-01 00:00:00.000000'
--   AND at <= TIMESTAMP '2024-01-01 08:00:00.500000'
--   AND day = DATE '2024-02-29'
--   AND CAST(day AS TIMESTAMP) < at
--   AND at >= TIMESTAMP '2024-01-01 00:00:00.000000'
--   AND at <> TIMESTAMP '2024-01-01 00:00:00.000000'

-- case: strings are read as numbers only when compared
SELECT n FROM readings WHERE name = 5 AND name > real AND n = '7' AND name = ok
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE CAST(name AS BIGINT) = 5::BIGINT
--   AND CAST(name AS DOUBLE) > real
--   AND n = 7
--   AND CAST(name AS BOOLEAN) = ok

-- case: BETWEEN is two conjuncts at the top
SELECT n FROM readings WHERE n BETWEEN 1 AND 10 AND real NOT BETWEEN 0 AND 1
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE n >= 1
--   AND n <= 10
--   AND NOT ((real >= 0.0) AND (real <= 1.0))

-- case: IN
SELECT n FROM readings WHERE n IN (1, 2, NULL) AND tiny IN (1, 300) AND name NOT IN ('a', 'b') AND n IN (big, 3) AND at IN ('2024-01-01')
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE n IN (1, 2, NULL::INT)
--   AND CAST(tiny AS INT) IN (1, 300)
--   AND NOT (name IN ('a', 'b'))
--   AND ((CAST(n AS BIGINT) = big) OR (n = 3))
--   AND at IN (TIMESTAMP '2024-01-01 00:00:00.000000')

-- case: conditions are flat
SELECT n FROM readings WHERE (n > 1 AND (n < 9 AND ok)) AND (n = 1 OR n = 2 OR (n = 3 OR NOT ok)) AND NOT (NOT ok) AND NOT (name IS NULL)
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE n > 1
--   AND n < 9
--   AND ok
--   AND ((n = 1) OR (n = 2) OR (n = 3) OR (NOT ok))
--   AND ok
--   AND name IS NOT NULL

-- case: NULL and truth
SELECT n FROM readings WHERE n <=> NULL AND n IS DISTINCT FROM big AND ok IS NOT TRUE AND ok IS FALSE AND name IS NOT NULL AND NULL
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE n <=> NULL::INT
--   AND NOT (CAST(n AS BIGINT) <=> big)
--   AND NOT (ok <=> TRUE)
--   AND ok <=> FALSE
--   AND name IS NOT NULL
--   AND NULL::BOOLEAN

-- case: arithmetic
SELECT tiny + small AS a, n * big AS b, n / 2 AS c, price + price AS d, price * n AS e, price / 3 AS f, n % 3 AS g, n DIV 2 AS h, real - single AS i, price + 1 AS j, single * n AS k, n + NULL AS l FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(tiny AS SMALLINT) + small AS a: SMALLINT, CAST(n AS BIGINT) * big AS b: BIGINT, CAST(n AS DOUBLE) / 2.0 AS c: DOUBLE, price + price AS d: DECIMAL(11,2), price * CAST(n AS DECIMAL(10,0)) AS e: DECIMAL(21,2), price / 3 AS f: DECIMAL(14,6), n % 3 AS g: INT, CAST(n AS BIGINT) DIV 2::BIGINT AS h: BIGINT, real - CAST(single AS DOUBLE) AS i: DOUBLE, price + 1 AS j: DECIMAL(11,2), CAST(single AS DOUBLE) * CAST(n AS DOUBLE) AS k: DOUBLE, n + NULL::INT AS l: INT
-- FROM readings

-- case: whole constants are computed
SELECT n FROM readings WHERE n > 60 * 60 + -5 AND big > -9223372036854775808 AND n < 2147483647 + 1
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE n > 3595
--   AND big > -9223372036854775808::BIGINT
--   AND n < (2147483647 + 1)

-- case: literals
SELECT 1 AS a, 3000000000 AS b, 99999999999999999999 AS c, 1.50 AS d, 1e3 AS e, .5 AS f, 5L AS g, 2Y AS h, 3S AS i, 1.5F AS j, 2D AS k, 1.25BD AS l, 7BD AS m, X'0aff' AS n, TRUE AS o, -1.5 AS p FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT 1 AS a: INT, 3000000000::BIGINT AS b: BIGINT, 99999999999999999999 AS c: DECIMAL(20,0), 1.50 AS d: DECIMAL(3,2), 1000.0 AS e: DOUBLE, 0.5 AS f: DECIMAL(1,1), 5::BIGINT AS g: BIGINT, 2::TINYINT AS h: TINYINT, 3::SMALLINT AS i: SMALLINT, 1.5::FLOAT AS j: FLOAT, 2.0 AS k: DOUBLE, 1.25 AS l: DECIMAL(3,2), 7 AS m: DECIMAL(1,0), X'0aff' AS n: BINARY, TRUE AS o: BOOLEAN, -1.5 AS p: DECIMAL(2,1)
-- FROM packets

-- case: intervals
SELECT at + INTERVAL '10' MINUTE AS a, at - INTERVAL 2 DAYS AS b, day + INTERVAL '1' DAY AS c, day + INTERVAL '1' HOUR AS d, INTERVAL '1.5 hours' + at AS e, at - -INTERVAL '1' SECOND AS f FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT at + INTERVAL 600 SECOND AS a: TIMESTAMP, at + INTERVAL -172800 SECOND AS b: TIMESTAMP, CAST(CAST(day AS TIMESTAMP) + INTERVAL 86400 SECOND AS DATE) AS c: DATE, CAST(day AS TIMESTAMP) + INTERVAL 3600 SECOND AS d: TIMESTAMP, at + INTERVAL 5400 SECOND AS e: TIMESTAMP, at + INTERVAL 1 SECOND AS f: TIMESTAMP
-- FROM readings

-- case: CASE, IF, COALESCE and their common type
SELECT CASE WHEN ok THEN 1 WHEN n > 5 THEN 2.5 END AS a, CASE n WHEN 1 THEN 'one' ELSE name END AS b, IF(ok, n, big) AS c, COALESCE(n, real, 0) AS d, COALESCE(at, '2024-01-01') AS e, NULLIF(n, 0) AS f, NULLIF(name, 5) AS g, GREATEST(day, at) AS h, LEAST(n, NULL) AS i, NVL(name, 'x') AS j FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CASE WHEN ok THEN 1.0 WHEN n > 5 THEN 2.5 END AS a: DECIMAL(11,1), CASE WHEN n = 1 THEN 'one' ELSE name END AS b: STRING, if(ok, CAST(n AS BIGINT), big) AS c: BIGINT, coalesce(CAST(n AS DOUBLE), real, 0.0) AS d: DOUBLE, coalesce(at, TIMESTAMP '2024-01-01 00:00:00.000000') AS e: TIMESTAMP, nullif(n, 0) AS f: INT, if(CAST(name AS BIGINT) = 5::BIGINT, NULL::STRING, name) AS g: STRING, greatest(CAST(day AS TIMESTAMP), at) AS h: TIMESTAMP, least(n, NULL::INT) AS i: INT, coalesce(name, 'x') AS j: STRING
-- FROM readings

-- case: casts
SELECT CAST(name AS INT) AS a, TRY_CAST(n AS STRING) AS b, real::DECIMAL(5, 1) AS c, CAST('5' AS BIGINT) AS d, CAST(path AS ARRAY<STRING>) AS e, CAST(NULL AS DATE) AS f, CAST(1.7 AS INT) AS g FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(name AS INT) AS a: INT, CAST(n AS STRING) AS b: STRING, CAST(real AS DECIMAL(5,1)) AS c: DECIMAL(5,1), 5::BIGINT AS d: BIGINT, CAST(path AS ARRAY<STRING>) AS e: ARRAY<STRING>, NULL::DATE AS f: DATE, CAST(1.7 AS INT) AS g: INT
-- FROM readings

-- case: structs, maps and arrays
SELECT nested.a AS a, nested['b'].c AS b, tags['x'] AS c, tags.x AS d, path[n] AS e, ARRAY(n, big, 1) AS f, ARRAY(1, 2)[0] AS g, FROM_JSON(name, 'a INT, b STRUCT<c: ARRAY<DOUBLE>>').b.c[0] AS h, readings.nested.b.c AS i FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT nested.a AS a: INT, nested.b.c AS b: STRING, tags['x'] AS c: INT, tags['x'] AS d: INT, path[n] AS e: INT, array(CAST(n AS BIGINT), big, 1::BIGINT) AS f: ARRAY<BIGINT>, array(1, 2)[0] AS g: INT, from_json(name, 'STRUCT<`a`: INT, `b`: STRUCT<`c`: ARRAY<DOUBLE>>>').b.c[0] AS h: DOUBLE, nested.b.c AS i: STRING
-- FROM readings

-- case: patterns
SELECT n FROM readings WHERE name LIKE 'a%' AND name NOT LIKE '50!%' ESCAPE '!' AND name ILIKE 'x\\_y' AND name RLIKE '^[a-z]+\\d{2,3}$' AND NOT name RLIKE '(?i)a|b' AND n LIKE '1%'
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT
-- FROM readings
-- WHERE name LIKE 'a%'
--   AND NOT (name LIKE '50!%' ESCAPE '!')
--   AND name ILIKE 'x\\_y'
--   AND name RLIKE '^[a-z]+\\d{2,3}$'
--   AND NOT (name RLIKE '(?i)a|b')
--   AND CAST(n AS STRING) LIKE '1%'

-- case: joins with relations
SELECT p.src, h.site, s.region FROM packets AS p INNER JOIN hosts h ON p.src = h.id AND h.id > 5 LEFT JOIN sites s ON s.site = h.site WHERE s.region IS NULL OR p.port = 80
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@1 AS site: STRING, region@2 AS region: STRING
-- FROM packets
-- JOIN hosts@1 ON (src = id@1) AND (id@1 > 5)
-- LEFT JOIN sites@2 ON site@2 = site@1
-- WHERE ((region@2 IS NULL) OR (port = 80))

-- case: a name that one input alone has needs no alias
SELECT src, region FROM packets JOIN hosts ON src = id JOIN sites ON sites.site = hosts.site
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, region@2 AS region: STRING
-- FROM packets
-- JOIN hosts@1 ON src = id@1
-- JOIN sites@2 ON site@2 = site@1

-- case: union in the widest types, under the first names
SELECT src AS who, 1 AS kind FROM packets UNION ALL SELECT big, 2.5 FROM readings UNION ALL SELECT n, NULL FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(src AS BIGINT) AS who: BIGINT, 1.0 AS kind: DECIMAL(11,1)
-- FROM packets
-- UNION ALL
-- SELECT big AS who: BIGINT, 2.5 AS kind: DECIMAL(11,1)
-- FROM readings
-- UNION ALL
-- SELECT CAST(n AS BIGINT) AS who: BIGINT, NULL::DECIMAL(11,1) AS kind: DECIMAL(11,1)
-- FROM readings

-- case: union with parentheses
(SELECT src FROM packets) UNION ALL (SELECT n FROM readings WHERE ok UNION ALL SELECT dst FROM packets)
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets
-- UNION ALL
-- SELECT n AS src: INT
-- FROM readings
-- WHERE ok
-- UNION ALL
-- SELECT dst AS src: INT
-- FROM packets

-- case: python functions
SELECT src, score(length, 'x') AS s FROM packets WHERE is_botnet(src, dst) AND score(length) > 0.5
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, score(length, 'x') AS s: DOUBLE
-- FROM packets
-- WHERE is_botnet(src, dst)
--   AND score(length) > 0.5

-- case: a column whose name is odd
CREATE STREAM odd (`a.b` INT, `c ``d` INT, `select` INT, timestamp TIMESTAMP, window INT) FROM rate; SELECT `a.b`, odd.`c ``d`, `select`, timestamp, window FROM odd WHERE window > 5
-- gives:
-- STREAM odd (a.b INT, c `d INT, select INT, timestamp TIMESTAMP, window INT) FROM rate None TIME None LATENESS 0
-- QUERY q1 INTO memory
-- SELECT `a.b` AS `a.b`: INT, `c ``d` AS `c ``d`: INT, select AS select: INT, timestamp AS timestamp: TIMESTAMP, window AS window: INT
-- FROM odd
-- WHERE window > 5

-- case: names of columns that are also functions or types
CREATE STREAM w (date DATE, day INT, count INT, first INT, value STRING, key STRING, left INT) FROM rate; SELECT date, day, count, value, key, w.left FROM w WHERE count > 1 AND date > '2020-01-01'
-- gives:
-- STREAM w (date DATE, day INT, count INT, first INT, value STRING, key STRING, left INT) FROM rate None TIME None LATENESS 0
-- QUERY q1 INTO memory
-- SELECT date AS date: DATE, day AS day: INT, count AS count: INT, value AS value: STRING, key AS key: STRING, left AS left: INT
-- FROM w
-- WHERE count > 1
--   AND date > DATE '2020-01-01'

-- case: several sinks
CREATE QUERY q INTO parquet 'out', csv '/lake/q', memory, callback 'alerts:tell'
  WITH (latency = '1 s') AS SELECT src FROM packets
-- gives:
-- QUERY q INTO parquet '/app/out', csv '/lake/q', memory, callback 'alerts:tell' WITH (latency = 1 s)
-- SELECT src AS src: INT
-- FROM packets

-- case: several sinks of INSERT INTO
INSERT INTO json 'a', json 'b' SELECT src FROM packets
-- gives:
-- QUERY q1 INTO json '/app/a', json '/app/b'
-- SELECT src AS src: INT
-- FROM packets

