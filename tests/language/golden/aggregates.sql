-- case: the aggregates paper, word for word
CREATE STREAM S (ts TIMESTAMP, length INT) FROM rate TIME ts;
SELECT MEDIAN(length) FROM S [WINDOW 14 min SLIDE 3 min];
-- gives:
-- STREAM S (ts TIMESTAMP, length INT) FROM rate None TIME ts LATENESS 0
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS median: DOUBLE
-- FROM S [WINDOW 14 min SLIDE 3 min]
-- AGGREGATE PERCENTILE(length, 0.5) AS agg0: DOUBLE

-- case: groups
SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN] WHERE port = 80 AND dst > 1 GROUP BY src HAVING COUNT(*) > 3
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS median: DOUBLE
-- FROM packets [WINDOW 10 min SLIDE 2 min]
-- WHERE port = 80
--   AND dst > 1
-- GROUP BY src AS key0
-- AGGREGATE PERCENTILE(length, 0.5) AS agg0: DOUBLE, COUNT(*) AS agg1: BIGINT
-- HAVING agg1 > 3::BIGINT

-- case: exactly
CREATE QUERY q INTO parquet 'x' WITH (latency = '2 s', lifetime = '1 hour', priority = 3, start = 'earliest') AS SELECT src, SUM(length) AS total FROM packets [WINDOW INTERVAL '10' MINUTE SLIDE EXACTLY 2 MIN] GROUP BY src
-- gives:
-- QUERY q INTO parquet '/app/x' WITH (start = 'earliest', latency = 2 s, lifetime = 3600 s, priority = 3)
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS total: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 2 min]
-- GROUP BY src AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT

-- case: the slide of a tumbling window is the window
SELECT COUNT(*) FROM packets [WINDOW 1 HOUR]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: a window at the end
SELECT src, COUNT(*) AS n FROM packets WHERE port = 80 GROUP BY src HAVING n > 3 WINDOW 1 min SLIDE 10 s;
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 10 s]
-- WHERE port = 80
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT
-- HAVING agg0 > 3::BIGINT

-- case: a window before GROUP BY
SELECT COUNT(*) FROM packets WINDOW 1 min GROUP BY src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: a window before the alias
SELECT COUNT(p.src) FROM packets [WINDOW 1 min] AS p
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE COUNT(src) AS agg0: BIGINT

-- case: a window after the alias and before relations
SELECT h.site, SUM(p.length) FROM packets p [WINDOW 1 min] JOIN hosts h ON p.src = h.id LEFT JOIN sites s ON s.site = h.site GROUP BY h.site
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS site: STRING, agg0 AS sum: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 1 min]
-- JOIN hosts@1 ON src = id@1
-- LEFT JOIN sites@2 ON site@2 = site@1
-- GROUP BY site@1 AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT

-- case: a slide longer than the window leaves gaps
SELECT COUNT(*) FROM packets [WINDOW 1 MIN SLIDE 1 HOUR]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 1 h]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: windows of fractions
SELECT COUNT(*) FROM packets [WINDOW 7 s SLIDE 2.5 s]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 7 s SLIDE 2500 ms]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: arrival time
SELECT MAX(n) FROM readings [WINDOW 1 DAY SLIDE EXACTLY 1 ms]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS max: INT
-- FROM readings [WINDOW 1 d SLIDE EXACTLY 1 ms]
-- AGGREGATE MAX(n) AS agg0: INT

-- case: TUMBLE
SELECT src, COUNT(*) FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE)
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: HOP has its slide first
SELECT COUNT(*) FROM packets p GROUP BY hop(p.ts, 2 MIN, '10 minutes')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 2 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: HOP in small steps
SELECT COUNT(*) FROM packets GROUP BY HOP(ts, INTERVAL '500' MILLISECONDS, INTERVAL 1 HOUR)
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE EXACTLY 500 ms]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: HOP as a table
SELECT COUNT(*) FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '10' MINUTE))
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 2 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: TUMBLE as a table with an alias, a relation and the window's columns
SELECT p.window_end, window_start, site, COUNT(*) FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), 10 MIN)) p JOIN hosts ON p.src = hosts.id GROUP BY window_start, p.window_end, site
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_end AS window_end: TIMESTAMP, window_start AS window_start: TIMESTAMP, key0 AS site: STRING, agg0 AS count: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 10 min]
-- JOIN hosts@1 ON src = id@1
-- GROUP BY site@1 AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: HOP without the word TABLE
SELECT COUNT(*) FROM HOP(packets, DESCRIPTOR(TS), INTERVAL '2' MINUTE, INTERVAL '10' MINUTE) AS p
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 2 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: sums and means have the types of Spark
SELECT SUM(tiny), SUM(n), SUM(big), SUM(single), SUM(real), SUM(price), AVG(n), AVG(price), SUM(CAST(price AS DECIMAL(38,2))), AVG(CAST(price AS DECIMAL(38,36))) FROM readings [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS sum: BIGINT, agg1 AS sum_2: BIGINT, agg2 AS sum_3: BIGINT, agg3 AS sum_4: DOUBLE, agg4 AS sum_5: DOUBLE, agg5 AS sum_6: DECIMAL(20,2), agg6 AS avg: DOUBLE, agg7 AS avg_2: DECIMAL(14,6), agg8 AS sum_7: DECIMAL(38,2), agg9 AS avg_3: DECIMAL(38,38)
-- FROM readings [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE SUM(tiny) AS agg0: BIGINT, SUM(n) AS agg1: BIGINT, SUM(big) AS agg2: BIGINT, SUM(single) AS agg3: DOUBLE, SUM(real) AS agg4: DOUBLE, SUM(price) AS agg5: DECIMAL(20,2), AVG(n) AS agg6: DOUBLE, AVG(price) AS agg7: DECIMAL(14,6), SUM(CAST(price AS DECIMAL(38,2))) AS agg8: DECIMAL(38,2), AVG(CAST(price AS DECIMAL(38,36))) AS agg9: DECIMAL(38,38)

-- case: extremes have the type of their argument
SELECT MIN(name), MAX(price), MIN(at), MAX(ok), MIN(day), MAX(path), MIN(nested), MAX(raw) FROM readings [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS min: STRING, agg1 AS max: DECIMAL(10,2), agg2 AS min_2: TIMESTAMP, agg3 AS max_2: BOOLEAN, agg4 AS min_3: DATE, agg5 AS max_3: ARRAY<INT>, agg6 AS min_4: STRUCT<`a`: INT, `b`: STRUCT<`c`: STRING>>, agg7 AS max_4: BINARY
-- FROM readings [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE MIN(name) AS agg0: STRING, MAX(price) AS agg1: DECIMAL(10,2), MIN(at) AS agg2: TIMESTAMP, MAX(ok) AS agg3: BOOLEAN, MIN(day) AS agg4: DATE, MAX(path) AS agg5: ARRAY<INT>, MIN(nested) AS agg6: STRUCT<`a`: INT, `b`: STRUCT<`c`: STRING>>, MAX(raw) AS agg7: BINARY

-- case: deviations of a sample and of a population
SELECT STDDEV(n), STD(n), STDDEV_SAMP(n), VARIANCE(n), VAR_SAMP(n), STDDEV_POP(n), VAR_POP(n) FROM readings [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS stddev: DOUBLE, agg0 AS std: DOUBLE, agg0 AS stddev_samp: DOUBLE, agg1 AS variance: DOUBLE, agg1 AS var_samp: DOUBLE, agg2 AS stddev_pop: DOUBLE, agg3 AS var_pop: DOUBLE
-- FROM readings [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE STDDEV(n) AS agg0: DOUBLE, VARIANCE(n) AS agg1: DOUBLE, STDDEV_POP(n) AS agg2: DOUBLE, VAR_POP(n) AS agg3: DOUBLE

-- case: counts
SELECT COUNT(*), COUNT(1), COUNT(name), COUNT(NULL), COUNT(DISTINCT name) FROM readings [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT, agg0 AS count_2: BIGINT, agg1 AS count_3: BIGINT, agg2 AS count_4: BIGINT, agg3 AS count_5: BIGINT
-- FROM readings [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT, COUNT(name) AS agg1: BIGINT, COUNT(NULL::STRING) AS agg2: BIGINT, COUNT_DISTINCT(name) AS agg3: BIGINT

-- case: percentiles
SELECT MEDIAN(price), PERCENTILE(n, 0.99), PERCENTILE(n, 1), PERCENTILE(n, 0.5), APPROX_PERCENTILE(n, 5e-1) FROM readings [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS median: DOUBLE, agg1 AS percentile: DOUBLE, agg2 AS percentile_2: DOUBLE, agg3 AS percentile_3: DOUBLE, agg4 AS approx_percentile: DOUBLE
-- FROM readings [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE PERCENTILE(price, 0.5) AS agg0: DOUBLE, PERCENTILE(n, 0.99) AS agg1: DOUBLE, PERCENTILE(n, 1.0) AS agg2: DOUBLE, PERCENTILE(n, 0.5) AS agg3: DOUBLE, APPROX_PERCENTILE(n, 0.5, 'kll') AS agg4: DOUBLE

-- case: the most frequent
SELECT TOPK(src, 10), TOPK(src, 10, length), APPROX_TOPK(src, 10) FROM packets [WINDOW 1 HOUR]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS topk: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>, agg1 AS topk_2: ARRAY<STRUCT<`value`: INT, `sum`: BIGINT>>, agg2 AS approx_topk: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- AGGREGATE TOPK(src, 10) AS agg0: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>, TOPK(src, 10, length) AS agg1: ARRAY<STRUCT<`value`: INT, `sum`: BIGINT>>, APPROX_TOPK(src, 10, 'count_min') AS agg2: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>

-- case: sketches
SELECT APPROX_COUNT_DISTINCT(src), APPROX_COUNT_DISTINCT(src, 'hll'), APPROX_COUNT_DISTINCT(src, 'FM'), APPROX_F2(src) FROM packets [WINDOW 1 HOUR]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS approx_count_distinct: BIGINT, agg0 AS approx_count_distinct_2: BIGINT, agg1 AS approx_count_distinct_3: BIGINT, agg2 AS approx_f2: DOUBLE
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- AGGREGATE APPROX_COUNT_DISTINCT(src, 'hll') AS agg0: BIGINT, APPROX_COUNT_DISTINCT(src, 'fm') AS agg1: BIGINT, APPROX_F2(src, 'ams') AS agg2: DOUBLE

-- case: FILTER is a CASE
SELECT COUNT(*) FILTER (WHERE port = 80) AS web, SUM(length) FILTER (WHERE port = 80), TOPK(src, 3, length) FILTER (WHERE length > 9) AS top FROM packets [WINDOW 1 HOUR]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS web: BIGINT, agg1 AS sum: BIGINT, agg2 AS top: ARRAY<STRUCT<`value`: INT, `sum`: BIGINT>>
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- AGGREGATE COUNT(CASE WHEN port = 80 THEN 1 END) AS agg0: BIGINT, SUM(CASE WHEN port = 80 THEN length END) AS agg1: BIGINT, TOPK(CASE WHEN length > 9 THEN src END, 3, length) AS agg2: ARRAY<STRUCT<`value`: INT, `sum`: BIGINT>>

-- case: expressions over aggregates
SELECT SUM(length) / COUNT(*) AS mean, ROUND(AVG(length), 2) AS rounded, TOPK(src, 3)[0].value AS first, src % 16 + 1, CASE WHEN MAX(port) > 1024 THEN 'high' ELSE 'low' END AS kind, 'x' AS constant FROM packets [WINDOW 1 HOUR] GROUP BY src % 16
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, CAST(agg0 AS DOUBLE) / CAST(agg1 AS DOUBLE) AS mean: DOUBLE, round(agg2, 2) AS rounded: DOUBLE, agg3[0].value AS first: INT, key0 + 1 AS `src % 16 + 1`: INT, CASE WHEN agg4 > 1024 THEN 'high' ELSE 'low' END AS kind: STRING, 'x' AS constant: STRING
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src % 16 AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT, COUNT(*) AS agg1: BIGINT, AVG(length) AS agg2: DOUBLE, TOPK(src, 3) AS agg3: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>, MAX(port) AS agg4: INT

-- case: an aggregate is computed once
SELECT AVG(length), avg(packets.length) AS again, MEAN(length) * 8 AS bits FROM packets [WINDOW 1 HOUR] HAVING AVG(length) > 3 AND COUNT(*) > 1
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS avg: DOUBLE, agg0 AS again: DOUBLE, agg0 * 8.0 AS bits: DOUBLE
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- AGGREGATE AVG(length) AS agg0: DOUBLE, COUNT(*) AS agg1: BIGINT
-- HAVING agg0 > 3.0
--    AND agg1 > 1::BIGINT

-- case: aggregates without names are numbered
SELECT COUNT(*), COUNT(src), src AS count_2, COUNT(dst) FROM packets [WINDOW 1 HOUR] GROUP BY src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT, agg1 AS count_3: BIGINT, key0 AS count_2: INT, agg2 AS count_4: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, COUNT(src) AS agg1: BIGINT, COUNT(dst) AS agg2: BIGINT

-- case: grouped by numbers, names and expressions
SELECT src % 4 AS bucket, port, LENGTH(CAST(dst AS STRING)) AS digits, COUNT(*) FROM packets [WINDOW 1 HOUR] GROUP BY bucket, 2, LENGTH(CAST(dst AS STRING)), (src), src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS bucket: INT, key1 AS port: INT, key2 AS digits: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src % 4 AS key0, port AS key1, length(CAST(dst AS STRING)) AS key2, src AS key3
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: the order of GROUP BY is that of the keys
SELECT COUNT(*), SRC, dst FROM packets [WINDOW 1 HOUR] GROUP BY dst, src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT, key1 AS src: INT, key0 AS dst: INT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY dst AS key0, src AS key1
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: a column goes before an alias in GROUP BY
SELECT dst AS src, COUNT(*) FROM packets [WINDOW 1 HOUR] GROUP BY src, dst
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key1 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src AS key0, dst AS key1
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: an alias goes before a column that is not grouped by in HAVING
SELECT MAX(length) AS length FROM packets [WINDOW 1 HOUR] GROUP BY src HAVING length > 100 AND SUM(length) > 5
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS length: INT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src AS key0
-- AGGREGATE MAX(length) AS agg0: INT, SUM(length) AS agg1: BIGINT
-- HAVING agg0 > 100
--    AND agg1 > 5::BIGINT

-- case: what is grouped by goes before an alias in HAVING
SELECT dst AS src, COUNT(*) FROM packets [WINDOW 1 HOUR] GROUP BY src, dst HAVING src > 5
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key1 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src AS key0, dst AS key1
-- AGGREGATE COUNT(*) AS agg0: BIGINT
-- HAVING key0 > 5

-- case: groups without an aggregate
SELECT src FROM packets [WINDOW 1 HOUR] GROUP BY src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src AS key0

-- case: the star of what is grouped by
SELECT h.*, COUNT(*) FROM packets p [WINDOW 1 HOUR] JOIN hosts h ON p.src = h.id GROUP BY h.id, h.site
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS id: INT, key1 AS site: STRING, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- JOIN hosts@1 ON src = id@1
-- GROUP BY id@1 AS key0, site@1 AS key1
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: a field of a struct that is grouped by
SELECT nested.a, nested.b.c, MAX(n) FROM readings [WINDOW 1 HOUR] GROUP BY nested
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0.a AS a: INT, key0.b.c AS c: STRING, agg0 AS max: INT
-- FROM readings [WINDOW 1 h SLIDE 1 h]
-- GROUP BY nested AS key0
-- AGGREGATE MAX(n) AS agg0: INT

-- case: the ends of the window
SELECT window_end AS t, src, COUNT(*) FROM packets [WINDOW 1 HOUR] GROUP BY 1, 2 HAVING window_start > TIMESTAMP '2024-01-01'
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS t: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT
-- HAVING window_start > TIMESTAMP '2024-01-01 00:00:00.000000'

-- case: the ends of the window may be computed with
SELECT UNIX_TIMESTAMP(window_end) - UNIX_TIMESTAMP(window_start) AS seconds, COUNT(*) FROM packets [WINDOW 1 HOUR]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, unix_timestamp(window_end) - unix_timestamp(window_start) AS seconds: BIGINT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: a stream's own column called window_start
CREATE STREAM w (window_start TIMESTAMP, a INT) FROM rate TIME window_start;
SELECT MAX(w.window_start) AS latest, w.window_start AS own FROM w [WINDOW 1 MIN] GROUP BY w.window_start
-- gives:
-- STREAM w (window_start TIMESTAMP, a INT) FROM rate None TIME window_start LATENESS 0
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS latest: TIMESTAMP, key0 AS own: TIMESTAMP
-- FROM w [WINDOW 1 min SLIDE 1 min]
-- GROUP BY window_start AS key0
-- AGGREGATE MAX(window_start) AS agg0: TIMESTAMP

-- case: a NULL is a group
SELECT COUNT(*) FROM packets [WINDOW 1 HOUR] GROUP BY NULL
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- GROUP BY NULL::STRING AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: Python in keys, arguments and conditions
SELECT score(src) AS s, SUM(score(dst)) FROM packets [WINDOW 1 HOUR] WHERE is_botnet(src, dst) GROUP BY score(src)
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS s: DOUBLE, agg0 AS sum: DOUBLE
-- FROM packets [WINDOW 1 h SLIDE 1 h]
-- WHERE is_botnet(src, dst)
-- GROUP BY score(src) AS key0
-- AGGREGATE SUM(score(dst)) AS agg0: DOUBLE

-- case: the policies of refreshing
SET refresh = 'hybrid+late_pending'
-- gives:
-- SET refresh = hybrid+late_pending

