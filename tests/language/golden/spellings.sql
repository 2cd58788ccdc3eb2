-- case: spark 1
SELECT date_format(ts, 'yyyy-MM-dd HH:mm') AS minute, src FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT date_format(ts, 'yyyy-MM-dd HH:mm') AS minute: STRING, src AS src: INT
-- FROM packets

-- case: spark 2
SELECT to_timestamp(name, 'yyyy-MM-dd HH:mm:ss') AS at_name FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT to_timestamp(name, 'yyyy-MM-dd HH:mm:ss') AS at_name: TIMESTAMP
-- FROM readings

-- case: spark 3
SELECT from_unixtime(big, 'yyyy-MM-dd') AS day_of FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT date_format(CAST(big AS TIMESTAMP), 'yyyy-MM-dd') AS day_of: STRING
-- FROM readings

-- case: spark 4
SELECT unix_timestamp(name, 'yyyy-MM-dd') AS seconds FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT unix_timestamp(to_timestamp(name, 'yyyy-MM-dd')) AS seconds: BIGINT
-- FROM readings

-- case: spark 5
SELECT from_utc_timestamp(ts, 'America/New_York') AS local FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT from_utc_timestamp(ts, 'America/New_York') AS local: TIMESTAMP
-- FROM packets

-- case: spark 6
SELECT to_utc_timestamp(ts, 'Europe/Lisbon') AS utc FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT to_utc_timestamp(ts, 'Europe/Lisbon') AS utc: TIMESTAMP
-- FROM packets

-- case: spark 7
SELECT date_add(ts, 7) AS next_week FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT date_add(CAST(ts AS DATE), 7) AS next_week: DATE
-- FROM packets

-- case: spark 8
SELECT date_add(day, 7) AS next_week, datediff(day, '2024-01-01') AS days, add_months(day, 3) AS quarter_on FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT date_add(day, 7) AS next_week: DATE, datediff(day, DATE '2024-01-01') AS days: INT, add_months(day, 3) AS quarter_on: DATE
-- FROM readings

-- case: spark 9
SELECT trunc(day, 'MM') AS month_of FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(date_trunc('MONTH', CAST(day AS TIMESTAMP)) AS DATE) AS month_of: DATE
-- FROM readings

-- case: spark 10
SELECT last_day(day) AS last, next_day(day, 'Mon') AS monday, dayname(day) AS called FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT last_day(day) AS last: DATE, next_day(day, 'MON') AS monday: DATE, dayname(day) AS called: STRING
-- FROM readings

-- case: spark 11
SELECT months_between(at, '2024-01-01') AS months FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT months_between(at, TIMESTAMP '2024-01-01 00:00:00.000000') AS months: DOUBLE
-- FROM readings

-- case: spark 12
SELECT make_date(2024, n, 1) AS first_of FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(make_timestamp(2024, n, 1, 0, 0, 0.0) AS DATE) AS first_of: DATE
-- FROM readings

-- case: spark 13
SELECT timestampdiff(MINUTE, '2024-01-01', ts) AS minutes FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT timestampdiff('MINUTE', TIMESTAMP '2024-01-01 00:00:00.000000', ts) AS minutes: BIGINT
-- FROM packets

-- case: spark 14
SELECT split(name, ',')[0] AS first_part, size(split(name, ',')) AS parts FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT split(name, ',', -1)[0] AS first_part: STRING, size(split(name, ',', -1)) AS parts: INT
-- FROM readings

-- case: spark 15
SELECT concat_ws('-', name, n) AS joined FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT concat_ws('-', name, CAST(n AS STRING)) AS joined: STRING
-- FROM readings

-- case: spark 16
SELECT get_json_object(name, '$.user.id') AS user_id FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT get_json_object(name, '$.user.id') AS user_id: STRING
-- FROM readings

-- case: spark 17
SELECT from_json(name, 'a INT, b STRING').a AS a FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT from_json(name, 'STRUCT<`a`: INT, `b`: STRING>').a AS a: INT
-- FROM readings

-- case: spark 18
SELECT to_json(nested) AS text FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT to_json(nested) AS text: STRING
-- FROM readings

-- case: spark 19
SELECT array_contains(path, 5) AS has_five, array_distinct(path) AS distinct_path, array_join(path, '/') AS joined FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT array_contains(path, 5) AS has_five: BOOLEAN, array_distinct(path) AS distinct_path: ARRAY<INT>, array_join(CAST(path AS ARRAY<STRING>), '/') AS joined: STRING
-- FROM readings

-- case: spark 20
SELECT element_at(path, -1) AS last, element_at(tags, 'a') AS tag FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT element_at(path, -1) AS last: INT, tags['a'] AS tag: INT
-- FROM readings

-- case: spark 21
SELECT map_keys(tags) AS keys, map_values(tags) AS held, cardinality(tags) AS number FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT map_keys(tags) AS keys: ARRAY<STRING>, map_values(tags) AS held: ARRAY<INT>, size(tags) AS number: INT
-- FROM readings

-- case: spark 22
SELECT slice(path, 1, 2) AS head, sort_array(path, false) AS falling, array_max(path) AS most FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT slice(path, 1, 2) AS head: ARRAY<INT>, sort_array(path, FALSE) AS falling: ARRAY<INT>, array_max(path) AS most: INT
-- FROM readings

-- case: spark 23
SELECT transform(path, x -> x + 1) AS more FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function transform is not admitted; a lambda is not admitted; CREATE FUNCTION declares one in Python
--   SELECT transform(path, x -> x + 1) AS more FROM readings
--          ^^^^^^^^^

-- case: spark 24
SELECT filter(path, x -> x > 0) AS positive FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function filter is not admitted; a lambda is not admitted; write ARRAY_REMOVE(a, x), or CREATE FUNCTION declares one in Python
--   SELECT filter(path, x -> x > 0) AS positive FROM readings
--          ^^^^^^

-- case: spark 25
SELECT regexp_extract(name, '([a-z]+)', 1) AS word, regexp_count(name, '[0-9]') AS digits FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT regexp_extract(name, '([a-z]+)', 1) AS word: STRING, regexp_count(name, '[0-9]') AS digits: INT
-- FROM readings

-- case: spark 26
SELECT initcap(name) AS a, lpad(name, 10, '0') AS b, reverse(name) AS c, translate(name, 'ab', 'AB') AS d FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT initcap(name) AS a: STRING, lpad(name, 10, '0') AS b: STRING, reverse(name) AS c: STRING, translate(name, 'ab', 'AB') AS d: STRING
-- FROM readings

-- case: spark 27
SELECT nvl(n, 0) AS a, nvl2(n, 1, 0) AS b, ifnull(n, 0) AS c, isnull(n) AS d FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT coalesce(n, 0) AS a: INT, if(n IS NOT NULL, 1, 0) AS b: INT, coalesce(n, 0) AS c: INT, n IS NULL AS d: BOOLEAN
-- FROM readings

-- case: spark 28
SELECT try_divide(length, port) AS ratio FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(length AS DOUBLE) / CAST(port AS DOUBLE) AS ratio: DOUBLE
-- FROM packets

-- case: spark 29
SELECT hash(src, dst) AS bucket, sha2(CAST(src AS STRING), 256) AS digest, md5('x') AS m FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT hash(src, dst) AS bucket: INT, sha2(CAST(CAST(src AS STRING) AS BINARY), 256) AS digest: STRING, md5('x') AS m: STRING
-- FROM packets

-- case: spark 30
SELECT port & 255 AS low, port | 1 AS odd, port ^ 3 AS flipped, ~port AS other FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT port & 255 AS low: INT, port | 1 AS odd: INT, port ^ 3 AS flipped: INT, bit_not(port) AS other: INT
-- FROM packets

-- case: spark 31
SELECT window.start, window.end, count(*) AS n FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: spark 32
SELECT src, count(*) FROM packets GROUP BY src, window(ts, '10 minutes', '5 minutes')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 5 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: spark 33
SELECT window, count(*) FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- Refused: query q1, line 1, column 8: window alone is not admitted; write window.start and window.end, or window_start and window_end
--   SELECT window, count(*) FROM packets GROUP BY window(ts, '1 minute')
--          ^^^^^^

-- case: spark 34
SELECT window(ts, '1 minute') AS w, count(*) FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- Refused: query q1, line 1, column 8: TUMBLE stands in GROUP BY or in FROM TABLE(TUMBLE(...)); window_start and window_end are the ends of the window
--   SELECT window(ts, '1 minute') AS w, count(*) FROM packets GROUP BY window(ts, '1 minute')
--          ^^^^^^

-- case: spark 35
SELECT count(*) FROM packets GROUP BY window(ts, '10 minutes', '5 minutes', '2 minutes')
-- gives:
-- TypeFault: query q1, line 1, column 39: window takes the time, and a duration or two; windows begin at multiples of the slide since 1970
--   SELECT count(*) FROM packets GROUP BY window(ts, '10 minutes', '5 minutes', '2 minutes')
--                                         ^^^^^^

-- case: spark 36
SELECT src, count(*) FROM packets GROUP BY src, session_window(ts, '30 minutes')
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 1800 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [SESSION 30 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: spark 37
SELECT src, count_if(port = 22) AS ssh, bool_or(port = 23) AS telnet, every(length > 0) AS whole FROM packets GROUP BY src, window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS ssh: BIGINT, agg1 AS telnet: BOOLEAN, agg2 AS whole: BOOLEAN
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(CASE WHEN port = 22 THEN 1 END) AS agg0: BIGINT, MAX(port = 23) AS agg1: BOOLEAN, MIN(length > 0) AS agg2: BOOLEAN

-- case: spark 38
SELECT src, first(port) AS opened, last(port) AS closed FROM packets GROUP BY src, window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS opened: INT, agg1 AS closed: INT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE MIN_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg0: INT, MAX_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg1: INT

-- case: spark 39
SELECT src, first(port, true) AS opened FROM packets GROUP BY src, window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS opened: INT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE MIN_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg0: INT

-- case: spark 40
SELECT max_by(src, length) AS loudest, min_by(src, length) AS quietest FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS loudest: INT, agg1 AS quietest: INT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE MAX_BY(CASE WHEN (src IS NOT NULL) AND (length IS NOT NULL) THEN struct(length, src) END) AS agg0: INT, MIN_BY(CASE WHEN (src IS NOT NULL) AND (length IS NOT NULL) THEN struct(length, src) END) AS agg1: INT

-- case: spark 41
SELECT collect_list(port) AS ports FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- TypeFault: query q1, line 1, column 8: COLLECT_LIST says how many values it lists; write COLLECT_LIST(port, 100), the first 100 by event time
--   SELECT collect_list(port) AS ports FROM packets GROUP BY window(ts, '1 minute')
--          ^^^^^^^^^^^^

-- case: spark 42
SELECT collect_set(port) AS ports FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- Refused: query q1, line 1, column 8: the function collect_set is not admitted; write ARRAY_DISTINCT(COLLECT_LIST(x, 100)), or TOPK(x, 100)
--   SELECT collect_set(port) AS ports FROM packets GROUP BY window(ts, '1 minute')
--          ^^^^^^^^^^^

-- case: spark 43
SELECT approx_count_distinct(src) AS sources, percentile_approx(length, 0.99) AS p99 FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS sources: BIGINT, agg1 AS p99: DOUBLE
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE APPROX_COUNT_DISTINCT(src, 'hll') AS agg0: BIGINT, APPROX_PERCENTILE(length, 0.99, 'kll') AS agg1: DOUBLE

-- case: spark 44
SELECT approx_percentile(length, 0.99) AS p99 FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS p99: DOUBLE
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE APPROX_PERCENTILE(length, 0.99, 'kll') AS agg0: DOUBLE

-- case: spark 45
SELECT mean(length) AS a, stddev_samp(length) AS b, var_pop(length) AS c FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS a: DOUBLE, agg1 AS b: DOUBLE, agg2 AS c: DOUBLE
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE AVG(length) AS agg0: DOUBLE, STDDEV(length) AS agg1: DOUBLE, VAR_POP(length) AS agg2: DOUBLE

-- case: spark 46
SELECT src, count(*) FROM packets GROUP BY src
-- gives:
-- TypeFault: query q1, line 1, column 13: an aggregate over a stream needs a window; write FROM packets [WINDOW 10 MIN SLIDE 2 MIN]
--   SELECT src, count(*) FROM packets GROUP BY src
--               ^^^^^

-- case: spark 47
SELECT DISTINCT src FROM packets
-- gives:
-- Refused: query q1, line 1, column 1: DISTINCT is not admitted; a stream has no end; only a question takes it
--   SELECT DISTINCT src FROM packets
--   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: spark 48
SELECT src, length FROM packets ORDER BY length DESC LIMIT 10
-- gives:
-- Refused: query q1, line 1, column 54: LIMIT is not admitted; a stream has no end; only a question takes it
--   SELECT src, length FROM packets ORDER BY length DESC LIMIT 10
--                                                        ^^^^^^^^

-- case: spark 49
SELECT src, rank() OVER (PARTITION BY src ORDER BY length) AS place FROM packets
-- gives:
-- Refused: query q1, line 1, column 13: a window function (OVER) is not admitted here; TOPK(x, 10), MAX_BY(x, y) and LAST(x) answer for windows of time
--   SELECT src, rank() OVER (PARTITION BY src ORDER BY length) AS place FROM packets
--               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: spark 50
SELECT p.src, h.site FROM packets p LEFT JOIN hosts h ON p.src = h.id
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@1 AS site: STRING
-- FROM packets
-- LEFT JOIN hosts@1 ON src = id@1

-- case: spark 51
SELECT p.src, h.site FROM packets p LEFT OUTER JOIN hosts h ON p.src = h.id
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@1 AS site: STRING
-- FROM packets
-- LEFT JOIN hosts@1 ON src = id@1

-- case: spark 52
SELECT a.src FROM packets a JOIN packets b ON a.src = b.dst AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = dst@1
--   FROM apart 0 d TO apart 5 min

-- case: spark 53
SELECT explode(path) AS step FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function explode is not admitted: it makes several rows of one; write FROM s LATERAL VIEW explode(x) t AS y, or FROM s CROSS JOIN UNNEST(x) AS t (y)
--   SELECT explode(path) AS step FROM readings
--          ^^^^^^^

-- case: spark 54
SELECT current_timestamp() AS now, src FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function current_timestamp is not admitted: its value changes from run to run; the time of a row is the stream's TIME column
--   SELECT current_timestamp() AS now, src FROM packets
--          ^^^^^^^^^^^^^^^^^

-- case: spark 55
SELECT rand() AS r FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function rand is not admitted: its value changes from run to run; XXHASH64(key) % 100 = 0 takes a hundredth of the rows
--   SELECT rand() AS r FROM packets
--          ^^^^

-- case: spark 56
SELECT input_file_name() AS f FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function input_file_name is not admitted: its value depends on the machine, not on the row; a column may stand in the names of folders, as in day=2025-01-01/
--   SELECT input_file_name() AS f FROM packets
--          ^^^^^^^^^^^^^^^

-- case: spark 57
SELECT CAST(port AS VARCHAR(10)) AS text FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(port AS STRING) AS text: STRING
-- FROM packets

-- case: spark 58
SELECT src::string AS text, length::double / 8 AS octets FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(src AS STRING) AS text: STRING, CAST(length AS DOUBLE) / 8.0 AS octets: DOUBLE
-- FROM packets

-- case: spark 59
CREATE TABLE t (a INT) USING parquet
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: expected STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE, not TABLE; a stream of rows is a STREAM, a table that is looked up a RELATION
--   CREATE TABLE t (a INT) USING parquet
--          ^^^^^

-- case: spark 60
CREATE OR REPLACE TEMPORARY VIEW v AS SELECT src FROM packets
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: expected STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE, not OR; DROP the query or view first, then CREATE it
--   CREATE OR REPLACE TEMPORARY VIEW v AS SELECT src FROM packets
--          ^^

-- case: spark 61
INSERT INTO parquet 'out/spark' SELECT src, length FROM packets WHERE length > 1000
-- gives:
-- QUERY q1 INTO parquet '/app/out/spark'
-- SELECT src AS src: INT, length AS length: INT
-- FROM packets
-- WHERE length > 1000

-- case: flink 1
SELECT window_start, window_end, SUM(length) AS octets FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS octets: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 10 min]
-- AGGREGATE SUM(length) AS agg0: BIGINT

-- case: flink 2
SELECT window_start, src, COUNT(*) AS n FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)) GROUP BY window_start, window_end, src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_end AS window_end: TIMESTAMP, window_start AS window_start: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 5 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: flink 3
SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(DATA => TABLE packets, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE)) GROUP BY window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_end AS window_end: TIMESTAMP, window_start AS window_start: TIMESTAMP, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: flink 4
SELECT window_start, COUNT(*) AS n FROM TABLE(HOP(DATA => TABLE packets, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '5' MINUTES)) GROUP BY window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_end AS window_end: TIMESTAMP, window_start AS window_start: TIMESTAMP, agg0 AS n: BIGINT
-- FROM packets [WINDOW 5 min SLIDE EXACTLY 1 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: flink 5
SELECT COUNT(*) FROM TABLE(TUMBLE(DATA => TABLE packets, TIME => DESCRIPTOR(ts), SIZE => 1 MIN))
-- gives:
-- TypeFault: query q1, line 1, column 58: TUMBLE has no argument TIME; it has DATA, TIMECOL, KEY, GAP, SLIDE, SIZE
--   SELECT COUNT(*) FROM TABLE(TUMBLE(DATA => TABLE packets, TIME => DESCRIPTOR(ts), SIZE => 1 MIN))
--                                                            ^^^^

-- case: flink 6
SELECT window_start, COUNT(*) AS n FROM TABLE(CUMULATE(TABLE packets, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES)) GROUP BY window_start, window_end
-- gives:
-- Refused: query q1, line 1, column 47: CUMULATE is not admitted; write HOP(...), whose windows have one size
--   SELECT window_start, COUNT(*) AS n FROM TABLE(CUMULATE(TABLE packets, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10
--                                                 ^^^^^^^^

-- case: flink 7
SELECT src, COUNT(*) AS n FROM TABLE(SESSION(TABLE packets PARTITION BY src, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY src, window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 300 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [SESSION 5 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: flink 8
SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS begun, src, COUNT(*) AS n FROM packets GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), src
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_end AS window_end: TIMESTAMP, window_start AS begun: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: flink 9
SELECT HOP_END(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) AS done, COUNT(*) AS n FROM packets GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS done: TIMESTAMP, agg0 AS n: BIGINT
-- FROM packets [WINDOW 5 min SLIDE EXACTLY 1 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: flink 10
SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE) AS t, COUNT(*) AS n FROM packets GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
-- gives:
-- Refused: query q1, line 1, column 8: the function TUMBLE_ROWTIME is not admitted; write window_end
--   SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE) AS t, COUNT(*) AS n FROM packets GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
--          ^^^^^^^^^^^^^^

-- case: flink 11
SELECT src, COUNT(*) FILTER (WHERE port = 22) AS ssh FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY src, window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS ssh: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(CASE WHEN port = 22 THEN 1 END) AS agg0: BIGINT

-- case: flink 12
SELECT src, FIRST_VALUE(port) AS opened, LAST_VALUE(port) AS closed FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY src, window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS opened: INT, agg1 AS closed: INT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE MIN_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg0: INT, MAX_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg1: INT

-- case: flink 13
SELECT src, LISTAGG(CAST(port AS STRING)) AS ports FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY src, window_start, window_end
-- gives:
-- Refused: query q1, line 1, column 13: the function LISTAGG is not admitted; write ARRAY_JOIN(COLLECT_LIST(x, 100), ',')
--   SELECT src, LISTAGG(CAST(port AS STRING)) AS ports FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
--               ^^^^^^^

-- case: flink 14
SELECT TO_TIMESTAMP_LTZ(big, 3) AS at_big FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT timestamp_millis(big) AS at_big: TIMESTAMP
-- FROM readings

-- case: flink 15
SELECT TO_TIMESTAMP(name) AS at_name, DATE_FORMAT(at, 'yyyy-MM-dd') AS day_of FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(name AS TIMESTAMP) AS at_name: TIMESTAMP, date_format(at, 'yyyy-MM-dd') AS day_of: STRING
-- FROM readings

-- case: flink 16
SELECT TIMESTAMPADD(HOUR, 1, ts) AS later FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT timestampadd('HOUR', 1::BIGINT, ts) AS later: TIMESTAMP
-- FROM packets

-- case: flink 17
SELECT JSON_VALUE(name, '$.a') AS a FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT get_json_object(name, '$.a') AS a: STRING
-- FROM readings

-- case: flink 18
SELECT JSON_QUERY(name, '$.a') AS a FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function JSON_QUERY is not admitted; write GET_JSON_OBJECT(text, '$.a')
--   SELECT JSON_QUERY(name, '$.a') AS a FROM readings
--          ^^^^^^^^^^

-- case: flink 19
SELECT SPLIT_INDEX(name, ',', 0) AS first_part FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function SPLIT_INDEX is not admitted; write SPLIT_PART(text, ',', 1), which counts from 1
--   SELECT SPLIT_INDEX(name, ',', 0) AS first_part FROM readings
--          ^^^^^^^^^^^

-- case: flink 20
SELECT CARDINALITY(path) AS steps, ELEMENT(path) AS only FROM readings
-- gives:
-- UnknownName: query q1, line 1, column 36: no function 'ELEMENT'; did you mean 'ELEMENT_AT'?
--   SELECT CARDINALITY(path) AS steps, ELEMENT(path) AS only FROM readings
--                                      ^^^^^^^

-- case: flink 21
SELECT CARDINALITY(path) AS steps FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT size(path) AS steps: INT
-- FROM readings

-- case: flink 22
SELECT CHAR_LENGTH(name) AS n, POSITION('a' IN name) AS p, OVERLAY(name PLACING 'x' FROM 2) AS o FROM readings
-- gives:
-- SyntaxFault: query q1, line 1, column 73: expected ) at 'PLACING'; write CONCAT(LEFT(a, 1), 'x', SUBSTR(a, 3))
--   SELECT CHAR_LENGTH(name) AS n, POSITION('a' IN name) AS p, OVERLAY(name PLACING 'x' FROM 2) AS o FROM readings
--                                                                           ^^^^^^^

-- case: flink 23
SELECT CHAR_LENGTH(name) AS n, POSITION('a' IN name) AS p FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT length(name) AS n: INT, instr(name, 'a') AS p: INT
-- FROM readings

-- case: flink 24
SELECT REGEXP(name, '^a') AS hit, STARTSWITH(name, 'a') AS begins FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT name RLIKE '^a' AS hit: BOOLEAN, startswith(name, 'a') AS begins: BOOLEAN
-- FROM readings

-- case: flink 25
SELECT PROCTIME() AS p, src FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function PROCTIME is not admitted; a stream without TIME has the time of its arrival
--   SELECT PROCTIME() AS p, src FROM packets
--          ^^^^^^^^

-- case: flink 26
SELECT CURRENT_WATERMARK(ts) AS w FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function CURRENT_WATERMARK is not admitted; the watermark is the largest time seen less LATENESS
--   SELECT CURRENT_WATERMARK(ts) AS w FROM packets
--          ^^^^^^^^^^^^^^^^^

-- case: flink 27
SELECT EXTRACT(DAY FROM ts) AS d, FLOOR(length / 2) AS half, TRUNCATE(length, -1) AS tens FROM packets
-- gives:
-- Refused: query q1, line 1, column 62: the function TRUNCATE is not admitted; write FLOOR(x) or ROUND(x, 2)
--   SELECT EXTRACT(DAY FROM ts) AS d, FLOOR(length / 2) AS half, TRUNCATE(length, -1) AS tens FROM packets
--                                                                ^^^^^^^^

-- case: flink 28
SELECT ts, src FROM packets WHERE ts > TIMESTAMP '2024-01-01 00:00:00' AND port IN (22, 23)
-- gives:
-- QUERY q1 INTO memory
-- SELECT ts AS ts: TIMESTAMP, src AS src: INT
-- FROM packets
-- WHERE ts > TIMESTAMP '2024-01-01 00:00:00.000000'
--   AND port IN (22, 23)

-- case: flink 29
SELECT IFNULL(n, 0) AS a, COALESCE(n, 1) AS b, IF(n > 1, 'x', 'y') AS c, NULLIF(n, 0) AS d FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT coalesce(n, 0) AS a: INT, coalesce(n, 1) AS b: INT, if(n > 1, 'x', 'y') AS c: STRING, nullif(n, 0) AS d: INT
-- FROM readings

-- case: flink 30
SELECT * FROM (SELECT src, ROW_NUMBER() OVER (PARTITION BY src ORDER BY ts) AS r FROM packets) WHERE r = 1
-- gives:
-- TypeFault: query q1, line 1, column 23: a query in FROM needs a name; write (SELECT ...) AS name
--   SELECT * FROM (SELECT src, ROW_NUMBER() OVER (PARTITION BY src ORDER BY ts) AS r FROM packets) WHERE r = 1
--                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: flink 31
SELECT a.src FROM packets a, packets b WHERE a.src = b.dst AND a.ts BETWEEN b.ts - INTERVAL '5' MINUTE AND b.ts
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = dst@1
--   FROM apart 0 d TO apart 5 min

-- case: flink 32
SELECT p.src, h.site FROM packets AS p JOIN hosts FOR SYSTEM_TIME AS OF p.ts AS h ON p.src = h.id
-- gives:
-- SyntaxFault: query q1, line 1, column 55: unexpected 'SYSTEM_TIME'; leave FOR SYSTEM_TIME AS OF out: a relation is read when the run begins
--   SELECT p.src, h.site FROM packets AS p JOIN hosts FOR SYSTEM_TIME AS OF p.ts AS h ON p.src = h.id
--                                                         ^^^^^^^^^^^

-- case: flink 33
CREATE TABLE clicks (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka')
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: expected STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE, not TABLE; a stream of rows is a STREAM, a table that is looked up a RELATION
--   CREATE TABLE clicks (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka')
--          ^^^^^

-- case: flink 34
CREATE STREAM clicks (ts TIMESTAMP, page STRING, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) FROM json 'data/clicks'
-- gives:
-- SyntaxFault: stream clicks, line 1, column 50: a watermark is declared elsewhere; write TIME ts LATENESS 5 SECONDS after FROM ...
--   CREATE STREAM clicks (ts TIMESTAMP, page STRING, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) FROM json 'data/clicks'
--                                                    ^^^^^^^^^

-- case: flink 35
CREATE STREAM IF NOT EXISTS packets (ts TIMESTAMP, src INT) FROM parquet 'elsewhere'
-- gives:
-- nothing new

-- case: flink 36
INSERT INTO alerts SELECT src, length FROM packets WHERE length > 1000
-- gives:
-- TypeFault: statement 1, line 1, column 8: answers go to a sink by its kind, and alerts is none; write CREATE QUERY alerts INTO parquet 'out/alerts' AS SELECT ...
--   INSERT INTO alerts SELECT src, length FROM packets WHERE length > 1000
--          ^^^^^^^^^^^

-- case: flink 37
EXECUTE STATEMENT SET BEGIN
-- gives:
-- SyntaxFault: statement 1, line 1, column 1: expected CREATE, DROP, SET, SELECT, SHOW or DESCRIBE, not EXECUTE; statements separated by ; are an application
--   EXECUTE STATEMENT SET BEGIN
--   ^^^^^^^

-- case: ksqldb 1
SELECT src, COUNT(*) AS n FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: ksqldb 2
SELECT src, COUNT(*) AS n FROM packets WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 5 MINUTES) WHERE port = 22 GROUP BY src EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 10 min SLIDE EXACTLY 5 min]
-- WHERE port = 22
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: ksqldb 3
SELECT src, WINDOWSTART AS begun, WINDOWEND AS done, SUM(length) AS octets FROM packets WINDOW TUMBLING (SIZE 30 SECONDS) GROUP BY src EMIT FINAL
-- gives:
-- QUERY q1 INTO memory
-- SELECT key0 AS src: INT, window_start AS begun: TIMESTAMP, window_end AS done: TIMESTAMP, agg0 AS octets: BIGINT
-- FROM packets [WINDOW 30 s SLIDE EXACTLY 30 s]
-- GROUP BY src AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT

-- case: ksqldb 4
SELECT src, COUNT(*) AS n FROM packets WINDOW SESSION (30 MINUTES) GROUP BY src EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 1800 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [SESSION 30 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: ksqldb 5
SELECT src, COUNT(*) AS n FROM packets WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 5 SECONDS) GROUP BY src EMIT CHANGES
-- gives:
-- SyntaxFault: query q1, line 1, column 72: expected ), not GRACE; LATENESS in CREATE STREAM says how late a row may be, SET retention what is kept
--   SELECT src, COUNT(*) AS n FROM packets WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 5 SECONDS) GROUP BY src EMIT CHANGES
--                                                                          ^^^^^

-- case: ksqldb 6
SELECT src, port FROM packets WHERE port = 22 EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, port AS port: INT
-- FROM packets
-- WHERE port = 22

-- case: ksqldb 7
SELECT src, LATEST_BY_OFFSET(port) AS last_port, EARLIEST_BY_OFFSET(port) AS first_port FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS last_port: INT, agg1 AS first_port: INT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE MAX_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg0: INT, MIN_BY(CASE WHEN (port IS NOT NULL) AND (ts IS NOT NULL) THEN struct(ts, port) END) AS agg1: INT

-- case: ksqldb 8
SELECT src, COLLECT_LIST(port) AS ports FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- TypeFault: query q1, line 1, column 13: COLLECT_LIST says how many values it lists; write COLLECT_LIST(port, 100), the first 100 by event time
--   SELECT src, COLLECT_LIST(port) AS ports FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
--               ^^^^^^^^^^^^

-- case: ksqldb 9
SELECT src, COUNT_DISTINCT(port) AS ports FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- Refused: query q1, line 1, column 13: the function COUNT_DISTINCT is not admitted; write COUNT(DISTINCT x)
--   SELECT src, COUNT_DISTINCT(port) AS ports FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
--               ^^^^^^^^^^^^^^

-- case: ksqldb 10
SELECT src, TOPK(port, 3) AS most FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS most: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE TOPK(port, 3) AS agg0: ARRAY<STRUCT<`value`: INT, `count`: BIGINT>>

-- case: ksqldb 11
SELECT src, TOPKDISTINCT(port, 3) AS most FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- Refused: query q1, line 1, column 13: the function TOPKDISTINCT is not admitted; write TOPK(x, 10)
--   SELECT src, TOPKDISTINCT(port, 3) AS most FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
--               ^^^^^^^^^^^^

-- case: ksqldb 12
SELECT src, HISTOGRAM(port) AS ports FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
-- gives:
-- Refused: query q1, line 1, column 13: the function HISTOGRAM is not admitted; write TOPK(x, 100)
--   SELECT src, HISTOGRAM(port) AS ports FROM packets WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY src EMIT CHANGES
--               ^^^^^^^^^

-- case: ksqldb 13
SELECT UCASE(name) AS a, LCASE(name) AS b, LEN(name) AS c, INSTR(name, 'x') AS d, TRIM(name) AS e FROM readings EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT upper(name) AS a: STRING, lower(name) AS b: STRING, length(name) AS c: INT, instr(name, 'x') AS d: INT, trim(name) AS e: STRING
-- FROM readings

-- case: ksqldb 14
SELECT EXTRACTJSONFIELD(name, '$.a') AS a FROM readings EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT get_json_object(name, '$.a') AS a: STRING
-- FROM readings

-- case: ksqldb 15
SELECT FORMAT_TIMESTAMP(ts, 'yyyy-MM-dd') AS day_of, PARSE_TIMESTAMP('2024-01-01', 'yyyy-MM-dd') AS fixed FROM packets EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT date_format(ts, 'yyyy-MM-dd') AS day_of: STRING, to_timestamp('2024-01-01', 'yyyy-MM-dd') AS fixed: TIMESTAMP
-- FROM packets

-- case: ksqldb 16
SELECT TIMESTAMPTOSTRING(big, 'yyyy-MM-dd') AS day_of FROM readings EMIT CHANGES
-- gives:
-- Refused: query q1, line 1, column 8: the function TIMESTAMPTOSTRING is not admitted; write DATE_FORMAT(TIMESTAMP_MILLIS(n), 'yyyy-MM-dd HH:mm:ss')
--   SELECT TIMESTAMPTOSTRING(big, 'yyyy-MM-dd') AS day_of FROM readings EMIT CHANGES
--          ^^^^^^^^^^^^^^^^^

-- case: ksqldb 17
SELECT STRINGTOTIMESTAMP(name, 'yyyy-MM-dd') AS millis FROM readings EMIT CHANGES
-- gives:
-- Refused: query q1, line 1, column 8: the function STRINGTOTIMESTAMP is not admitted; write UNIX_MILLIS(TO_TIMESTAMP(text, 'yyyy-MM-dd HH:mm:ss'))
--   SELECT STRINGTOTIMESTAMP(name, 'yyyy-MM-dd') AS millis FROM readings EMIT CHANGES
--          ^^^^^^^^^^^^^^^^^

-- case: ksqldb 18
SELECT ROWTIME, src FROM packets EMIT CHANGES
-- gives:
-- UnknownName: query q1, line 1, column 8: no column 'ROWTIME'; write the stream's TIME column
--   SELECT ROWTIME, src FROM packets EMIT CHANGES
--          ^^^^^^^

-- case: ksqldb 19
SELECT ARRAY_LENGTH(path) AS steps, ARRAY_CONTAINS(path, 1) AS one, ARRAY_JOIN(path, ',') AS joined FROM readings EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT size(path) AS steps: INT, array_contains(path, 1) AS one: BOOLEAN, array_join(CAST(path AS ARRAY<STRING>), ',') AS joined: STRING
-- FROM readings

-- case: ksqldb 20
SELECT EXPLODE(path) AS step FROM readings EMIT CHANGES
-- gives:
-- Refused: query q1, line 1, column 8: the function EXPLODE is not admitted: it makes several rows of one; write FROM s LATERAL VIEW explode(x) t AS y, or FROM s CROSS JOIN UNNEST(x) AS t (y)
--   SELECT EXPLODE(path) AS step FROM readings EMIT CHANGES
--          ^^^^^^^

-- case: ksqldb 21
SELECT REGEXP_EXTRACT(name, 'a(.*)', 1) AS rest, SPLIT(name, ',') AS parts FROM readings EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT regexp_extract(name, 'a(.*)', 1) AS rest: STRING, split(name, ',', -1) AS parts: ARRAY<STRING>
-- FROM readings

-- case: ksqldb 22
SELECT GEO_DISTANCE(real, real, real, real) AS far FROM readings EMIT CHANGES
-- gives:
-- UnknownName: query q1, line 1, column 8: no function 'GEO_DISTANCE'; CREATE FUNCTION declares one in Python
--   SELECT GEO_DISTANCE(real, real, real, real) AS far FROM readings EMIT CHANGES
--          ^^^^^^^^^^^^

-- case: ksqldb 23
SELECT p.src, h.site FROM packets p INNER JOIN hosts h ON p.src = h.id EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@1 AS site: STRING
-- FROM packets
-- JOIN hosts@1 ON src = id@1

-- case: ksqldb 24
SELECT a.src FROM packets a INNER JOIN packets b WITHIN 1 HOUR ON a.src = b.dst EMIT CHANGES
-- gives:
-- SyntaxFault: query q1, line 1, column 50: unexpected 'WITHIN'; write WINDOW 1 HOUR at the end of the query
--   SELECT a.src FROM packets a INNER JOIN packets b WITHIN 1 HOUR ON a.src = b.dst EMIT CHANGES
--                                                    ^^^^^^

-- case: ksqldb 25
SELECT src FROM packets PARTITION BY src EMIT CHANGES
-- gives:
-- SyntaxFault: query q1, line 1, column 25: unexpected 'PARTITION BY'; leave it out: Spark deals the rows out as it needs
--   SELECT src FROM packets PARTITION BY src EMIT CHANGES
--                           ^^^^^^^^^^^^

-- case: ksqldb 26
CREATE STREAM pageviews (user_id VARCHAR KEY, page VARCHAR) WITH (kafka_topic = 'pageviews', value_format = 'JSON')
-- gives:
-- SyntaxFault: stream pageviews, line 1, column 34: expected a type such as INT, STRING or TIMESTAMP, not VARCHAR; write STRING
--   CREATE STREAM pageviews (user_id VARCHAR KEY, page VARCHAR) WITH (kafka_topic = 'pageviews', value_format = 'JSON')
--                                    ^^^^^^^

-- case: ksqldb 27
CREATE TABLE per_user AS SELECT src, COUNT(*) FROM packets GROUP BY src
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: expected STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE, not TABLE; a stream of rows is a STREAM, a table that is looked up a RELATION
--   CREATE TABLE per_user AS SELECT src, COUNT(*) FROM packets GROUP BY src
--          ^^^^^

-- case: ksqldb 28
TERMINATE per_user
-- gives:
-- SyntaxFault: statement 1, line 1, column 1: expected CREATE, DROP, SET, SELECT, SHOW or DESCRIBE, not TERMINATE; write DROP QUERY q
--   TERMINATE per_user
--   ^^^^^^^^^

-- case: ksqldb 29
DROP QUERY IF EXISTS per_user
-- gives:
-- nothing new

-- case: postgres 1
SELECT date_trunc('hour', ts) AS hour, src FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT date_trunc('HOUR', ts) AS hour: TIMESTAMP, src AS src: INT
-- FROM packets

-- case: postgres 2
SELECT ts AT TIME ZONE 'Europe/Lisbon' AS local FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT from_utc_timestamp(ts, 'Europe/Lisbon') AS local: TIMESTAMP
-- FROM packets

-- case: postgres 3
SELECT to_char(ts, 'YYYY-MM-DD') AS day_of FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function to_char is not admitted; write DATE_FORMAT(ts, 'yyyy-MM-dd') or FORMAT_NUMBER(x, 2)
--   SELECT to_char(ts, 'YYYY-MM-DD') AS day_of FROM packets
--          ^^^^^^^

-- case: postgres 4
SELECT to_timestamp(real) AS at_real FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(real AS TIMESTAMP) AS at_real: TIMESTAMP
-- FROM readings

-- case: postgres 5
SELECT extract(epoch FROM ts) AS seconds FROM packets
-- gives:
-- TypeFault: query q1, line 1, column 8: EXTRACT knows no part 'EPOCH'; write UNIX_TIMESTAMP(ts)
--   SELECT extract(epoch FROM ts) AS seconds FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^

-- case: postgres 6
SELECT date_part('hour', ts) AS hour FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT hour(ts) AS hour: INT
-- FROM packets

-- case: postgres 7
SELECT date_bin('5 minutes', ts, TIMESTAMP '2024-01-01') AS bucket FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function date_bin is not admitted; write TIME_BUCKET(INTERVAL '5' MINUTE, ts)
--   SELECT date_bin('5 minutes', ts, TIMESTAMP '2024-01-01') AS bucket FROM packets
--          ^^^^^^^^

-- case: postgres 8
SELECT time_bucket(INTERVAL '5' MINUTE, ts) AS bucket, src FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT time_bucket(INTERVAL 300 SECOND, ts) AS bucket: TIMESTAMP, src AS src: INT
-- FROM packets

-- case: postgres 9
SELECT split_part(name, ',', 1) AS a, strpos(name, 'x') AS b, left(name, 2) AS c, btrim(name) AS d FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT split_part(name, ',', 1) AS a: STRING, instr(name, 'x') AS b: INT, left(name, 2) AS c: STRING, trim(name) AS d: STRING
-- FROM readings

-- case: postgres 10
SELECT string_to_array(name, ',') AS parts, array_to_string(path, ',') AS joined, array_position(path, 3) AS at_three FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT split(name, ',', -1) AS parts: ARRAY<STRING>, array_join(CAST(path AS ARRAY<STRING>), ',') AS joined: STRING, array_position(path, 3) AS at_three: BIGINT
-- FROM readings

-- case: postgres 11
SELECT name || '-' || n AS joined, name ILIKE 'a%' AS hit FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT concat(name, '-', CAST(n AS STRING)) AS joined: STRING, name ILIKE 'a%' AS hit: BOOLEAN
-- FROM readings

-- case: postgres 12
SELECT name ~ '^a' AS hit FROM readings
-- gives:
-- SyntaxFault: query q1, line 1, column 13: unexpected '~'; write RLIKE '^a' for a regular expression
--   SELECT name ~ '^a' AS hit FROM readings
--               ^

-- case: postgres 13
SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY length) AS p95 FROM packets GROUP BY window(ts, '1 minute')
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS p95: DOUBLE
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- AGGREGATE PERCENTILE(length, 0.95) AS agg0: DOUBLE

-- case: postgres 14
SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY length) AS p95 FROM packets [WINDOW 1 MIN]
-- gives:
-- SyntaxFault: query q1, line 1, column 30: unexpected 'WITHIN'; WITHIN GROUP follows PERCENTILE_CONT(p) alone; write TOPK(x, 1) for MODE()
--   SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY length) AS p95 FROM packets [WINDOW 1 MIN]
--                                ^^^^^^

-- case: postgres 15
SELECT mode() WITHIN GROUP (ORDER BY port) AS m FROM packets [WINDOW 1 MIN]
-- gives:
-- SyntaxFault: query q1, line 1, column 15: unexpected 'WITHIN'; WITHIN GROUP follows PERCENTILE_CONT(p) alone; write TOPK(x, 1) for MODE()
--   SELECT mode() WITHIN GROUP (ORDER BY port) AS m FROM packets [WINDOW 1 MIN]
--                 ^^^^^^

-- case: postgres 16
SELECT count(*) FILTER (WHERE port = 22) AS ssh, bool_and(length > 0) AS whole FROM packets [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS ssh: BIGINT, agg1 AS whole: BOOLEAN
-- FROM packets [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE COUNT(CASE WHEN port = 22 THEN 1 END) AS agg0: BIGINT, MIN(length > 0) AS agg1: BOOLEAN

-- case: postgres 17
SELECT string_agg(name, ',') AS names FROM readings [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 8: the function string_agg is not admitted; write ARRAY_JOIN(COLLECT_LIST(x, 100), ',')
--   SELECT string_agg(name, ',') AS names FROM readings [WINDOW 1 MIN]
--          ^^^^^^^^^^

-- case: postgres 18
SELECT array_agg(port ORDER BY ts) AS ports FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 8: the function array_agg is not admitted; write COLLECT_LIST(x, 100), the first 100 by event time
--   SELECT array_agg(port ORDER BY ts) AS ports FROM packets [WINDOW 1 MIN]
--          ^^^^^^^^^

-- case: postgres 19
SELECT port::text AS p FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT CAST(port AS STRING) AS p: STRING
-- FROM packets

-- case: postgres 20
SELECT age(ts) AS old FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function age is not admitted; write TIMESTAMPDIFF(DAY, a, b)
--   SELECT age(ts) AS old FROM packets
--          ^^^

-- case: postgres 21
SELECT name::json->>'a' AS a FROM readings
-- gives:
-- SyntaxFault: query q1, line 1, column 21: unexpected ''a''; write GET_JSON_OBJECT(text, '$.a')
--   SELECT name::json->>'a' AS a FROM readings
--                       ^^^

-- case: postgres 22
SELECT generate_series(1, 3) AS n FROM packets
-- gives:
-- UnknownName: query q1, line 1, column 8: no function 'generate_series'; CREATE FUNCTION declares one in Python
--   SELECT generate_series(1, 3) AS n FROM packets
--          ^^^^^^^^^^^^^^^

-- case: postgres 23
SELECT DISTINCT ON (src) src, length FROM packets
-- gives:
-- Refused: query q1, line 1, column 21: DISTINCT is not admitted; a stream has no end; only a question takes it
--   SELECT DISTINCT ON (src) src, length FROM packets
--                       ^^^

-- case: postgres 24
SELECT src FROM packets WHERE src IN (SELECT id FROM hosts)
-- gives:
-- Refused: query q1, line 1, column 31: IN with a subquery is not admitted; JOIN the relation
--   SELECT src FROM packets WHERE src IN (SELECT id FROM hosts)
--                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: postgres 25
SELECT degrees(real) AS a, cbrt(real) AS b, pi() AS c, atan2(real, 1) AS d, sign(real) AS e FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT degrees(real) AS a: DOUBLE, cbrt(real) AS b: DOUBLE, pi() AS c: DOUBLE, atan2(real, 1.0) AS d: DOUBLE, sign(real) AS e: DOUBLE
-- FROM readings

-- case: postgres 26
SELECT greatest(n, 1) AS a, least(n, 1) AS b, mod(n, 7) AS c, power(n, 2) AS d, width_bucket(real, 0, 10, 5) AS e FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT greatest(n, 1) AS a: INT, least(n, 1) AS b: INT, n % 7 AS c: INT, power(CAST(n AS DOUBLE), 2.0) AS d: DOUBLE, width_bucket(real, 0.0, 10.0, 5::BIGINT) AS e: BIGINT
-- FROM readings

-- case: postgres 27
SELECT now() AS t FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function now is not admitted: its value changes from run to run; the time of a row is the stream's TIME column
--   SELECT now() AS t FROM packets
--          ^^^

-- case: postgres 28
SELECT src FROM packets FETCH FIRST 10 ROWS ONLY
-- gives:
-- SyntaxFault: query q1, line 1, column 45: unexpected 'ONLY'; expected an operator, a comma, or a clause such as FROM, JOIN or WHERE
--   SELECT src FROM packets FETCH FIRST 10 ROWS ONLY
--                                               ^^^^

-- case: postgres 29
SELECT strftime(ts, '%Y-%m-%d') AS day_of FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function strftime is not admitted; write DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss')
--   SELECT strftime(ts, '%Y-%m-%d') AS day_of FROM packets
--          ^^^^^^^^

-- case: postgres 30
SELECT list_contains(path, 3) AS has_three, list_distinct(path) AS steps FROM readings
-- gives:
-- QUERY q1 INTO memory
-- SELECT array_contains(path, 3) AS has_three: BOOLEAN, array_distinct(path) AS steps: ARRAY<INT>
-- FROM readings

-- case: postgres 31
SELECT arg_max(src, length) AS top, any_value(port) AS some_port FROM packets [WINDOW 1 MIN]
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS top: INT, agg1 AS some_port: INT
-- FROM packets [WINDOW 1 min SLIDE 1 min]
-- AGGREGATE MAX_BY(CASE WHEN (src IS NOT NULL) AND (length IS NOT NULL) THEN struct(length, src) END) AS agg0: INT, MIN(port) AS agg1: INT

