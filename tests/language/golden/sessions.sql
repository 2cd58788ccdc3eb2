-- case: by a key
SELECT src, COUNT(*) FROM packets GROUP BY src, SESSION(ts, INTERVAL '30' MINUTE)
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 1800 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [SESSION 30 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: of all rows
SELECT SESSION_START(ts, INTERVAL '5' MINUTE) AS begun, MAX(length) FROM packets GROUP BY SESSION(ts, INTERVAL '5' MINUTE)
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg2 + INTERVAL 300 SECOND AS window_end: TIMESTAMP, agg1 AS begun: TIMESTAMP, agg0 AS max: INT
-- FROM packets [SESSION 5 min]
-- AGGREGATE MAX(length) AS agg0: INT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: in Spark's way, with HAVING
SELECT window_end, src, SUM(length) AS s FROM packets GROUP BY src, session_window(ts, '30 minutes') HAVING window_end > '2024-01-01'
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 1800 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS s: BIGINT
-- FROM packets [SESSION 30 min]
-- GROUP BY src AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP
-- HAVING (agg2 + INTERVAL 1800 SECOND) > TIMESTAMP '2024-01-01 00:00:00.000000'

-- case: in Flink's way
SELECT src, COUNT(*) AS n FROM TABLE(SESSION(TABLE packets PARTITION BY src, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY src, window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 300 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [SESSION 5 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: in ksqlDB's way
SELECT src, COUNT(*) FROM packets WINDOW SESSION (30 MINUTES) GROUP BY src EMIT CHANGES
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 1800 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [SESSION 30 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: in Flink's way, by two columns and of all rows
SELECT src, dst, MAX(length) AS most FROM TABLE(SESSION(TABLE packets PARTITION BY (src, dst), DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY src, dst, window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 300 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, key1 AS dst: INT, agg0 AS most: INT
-- FROM packets [SESSION 5 min]
-- GROUP BY src AS key0, dst AS key1
-- AGGREGATE MAX(length) AS agg0: INT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: of all rows in Flink's way
SELECT COUNT(*) AS n FROM TABLE(SESSION(TABLE packets, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 300 SECOND AS window_end: TIMESTAMP, agg0 AS n: BIGINT
-- FROM packets [SESSION 5 min]
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: partitioned by something else than grouped by
SELECT src, COUNT(*) AS n FROM TABLE(SESSION(TABLE packets, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY src, window_start, window_end
-- gives:
-- TypeFault: query q1, line 1, column 38: sessions are those of the groups, so PARTITION BY and GROUP BY name the same; write GROUP BY src, SESSION(ts, INTERVAL '30' MINUTE) for sessions of each src
--   SELECT src, COUNT(*) AS n FROM TABLE(SESSION(TABLE packets, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY src, window_
--                                        ^^^^^^^

-- case: without a time
SELECT n, COUNT(*) FROM readings GROUP BY n, SESSION(at, INTERVAL '30' MINUTE)
-- gives:
-- TypeFault: query q1, line 1, column 54: readings has no TIME for SESSION to look at; write [WINDOW ... SLIDE EXACTLY ...] for windows of the time of arrival
--   SELECT n, COUNT(*) FROM readings GROUP BY n, SESSION(at, INTERVAL '30' MINUTE)
--                                                        ^^

-- case: over a join
SELECT A.src, COUNT(*) FROM packets A, packets B WHERE A.src = B.src GROUP BY A.src, SESSION(A.ts, INTERVAL '30' MINUTE)
-- gives:
-- Refused: query q1, line 1, column 86: SESSION looks at the time of one stream, and a join has two; write WINDOW ... SLIDE EXACTLY ... at the end
--   SELECT A.src, COUNT(*) FROM packets A, packets B WHERE A.src = B.src GROUP BY A.src, SESSION(A.ts, INTERVAL '30' MINUTE)
--                                                                                        ^^^^^^^

-- case: two durations
SELECT COUNT(*) FROM packets GROUP BY SESSION(ts, INTERVAL '30' MINUTE, INTERVAL '1' HOUR)
-- gives:
-- TypeFault: query q1, line 1, column 39: SESSION takes the TIME of the stream and a gap
--   SELECT COUNT(*) FROM packets GROUP BY SESSION(ts, INTERVAL '30' MINUTE, INTERVAL '1' HOUR)
--                                         ^^^^^^^

-- case: a gap that depends on the row
SELECT src, COUNT(*) FROM packets GROUP BY src, session_window(ts, CASE WHEN src = 1 THEN '5 minutes' ELSE '1 minute' END)
-- gives:
-- SyntaxFault: query q1, line 1, column 49: SESSION: expected a duration such as INTERVAL '10' MINUTE
--   SELECT src, COUNT(*) FROM packets GROUP BY src, session_window(ts, CASE WHEN src = 1 THEN '5 minutes' ELSE '1 minute' EN
--                                                   ^^^^^^^^^^^^^^

-- case: two windows
SELECT COUNT(*) FROM packets GROUP BY SESSION(ts, INTERVAL '30' MINUTE), TUMBLE(ts, INTERVAL '1' HOUR)
-- gives:
-- SyntaxFault: query q1, line 1, column 74: a query has one window
--   SELECT COUNT(*) FROM packets GROUP BY SESSION(ts, INTERVAL '30' MINUTE), TUMBLE(ts, INTERVAL '1' HOUR)
--                                                                            ^^^^^^

-- case: over a query of WITH
WITH big AS (SELECT ts, src, length FROM packets WHERE length > 100) SELECT src, SUM(length) AS total FROM big GROUP BY src, SESSION(ts, INTERVAL '30' MINUTE)
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 1800 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS total: BIGINT
-- FROM packets [SESSION 30 min]
-- WHERE length > 100
-- GROUP BY src AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP

-- case: the ends in an expression and in a function
SELECT src, CAST(window_end AS STRING) AS done, COUNT(*) AS n FROM packets GROUP BY src, SESSION(ts, INTERVAL '10' SECOND) HAVING window_end > window_start
-- gives:
-- QUERY q1 INTO memory
-- SELECT agg1 AS window_start: TIMESTAMP, agg2 + INTERVAL 10 SECOND AS window_end: TIMESTAMP, key0 AS src: INT, CAST(agg2 + INTERVAL 10 SECOND AS STRING) AS done: STRING, agg0 AS n: BIGINT
-- FROM packets [SESSION 10 s]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MIN(ts) AS agg1: TIMESTAMP, MAX(ts) AS agg2: TIMESTAMP
-- HAVING (agg2 + INTERVAL 10 SECOND) > agg1

-- case: a column called session
SELECT src AS session FROM packets WHERE src > 3
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS session: INT
-- FROM packets
-- WHERE src > 3

