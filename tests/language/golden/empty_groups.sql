-- case: by a key
SELECT src, COUNT(*) AS n FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 1 HOUR
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min EMPTY GROUPS FOR 1 h]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: before HAVING
SELECT src FROM packets GROUP BY src, HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) EMPTY GROUPS FOR INTERVAL '90' SECOND HAVING COUNT(*) = 0
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT
-- FROM packets [WINDOW 5 min SLIDE EXACTLY 1 min EMPTY GROUPS FOR 90 s]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT
-- HAVING agg0 = 0::BIGINT

-- case: of all rows, with a slide
SELECT COUNT(*) AS n, MAX(length) AS most FROM packets [WINDOW 10 SECONDS SLIDE 2 SECONDS] WHERE port = 80 EMPTY GROUPS FOR '1 day'
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS n: BIGINT, agg1 AS most: INT
-- FROM packets [WINDOW 10 s SLIDE 2 s EMPTY GROUPS FOR 1 d]
-- WHERE port = 80
-- AGGREGATE COUNT(*) AS agg0: BIGINT, MAX(length) AS agg1: INT

-- case: before a window at the end
SELECT src, SUM(length) AS total FROM packets GROUP BY src EMPTY GROUPS FOR 10 MIN WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS total: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 1 min EMPTY GROUPS FOR 10 min]
-- GROUP BY src AS key0
-- AGGREGATE SUM(length) AS agg0: BIGINT

-- case: a column of that name
SELECT src AS empty, dst AS groups FROM packets WHERE src > 3
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS empty: INT, dst AS groups: INT
-- FROM packets
-- WHERE src > 3

-- case: without a time
SELECT src, COUNT(*) AS n FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS
-- gives:
-- SyntaxFault: query q1, line 1, column 92: expected FOR after this; say for how long a group without rows is known: EMPTY GROUPS FOR 1 HOUR
--   SELECT src, COUNT(*) AS n FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS
--                                                                                              ^^^^^^

-- case: for no time
SELECT src, COUNT(*) AS n FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 0 SECONDS
-- gives:
-- SyntaxFault: query q1, line 1, column 103: groups are known for longer than nothing
--   SELECT src, COUNT(*) AS n FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 0 SECONDS
--                                                                                                         ^^^^^^^^^

-- case: twice
SELECT src, COUNT(*) AS n FROM packets GROUP BY src EMPTY GROUPS FOR 1 HOUR EMPTY GROUPS FOR 1 HOUR WINDOW 1 MIN
-- gives:
-- SyntaxFault: query q1, line 1, column 53: EMPTY GROUPS does not stand here; it ends the query, or stands before HAVING
--   SELECT src, COUNT(*) AS n FROM packets GROUP BY src EMPTY GROUPS FOR 1 HOUR EMPTY GROUPS FOR 1 HOUR WINDOW 1 MIN
--                                                       ^^^^^^^^^^^^^^^^^^^^^^^

-- case: in the wrong place
SELECT src, COUNT(*) AS n FROM packets EMPTY GROUPS FOR 1 HOUR GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE)
-- gives:
-- SyntaxFault: query q1, line 1, column 40: EMPTY GROUPS does not stand here; it ends the query, or stands before HAVING
--   SELECT src, COUNT(*) AS n FROM packets EMPTY GROUPS FOR 1 HOUR GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE)
--                                          ^^^^^^^^^^^^^^^^^^^^^^^

-- case: of a filter
SELECT src FROM packets WHERE port = 80 EMPTY GROUPS FOR 1 HOUR
-- gives:
-- TypeFault: query q1, line 1, column 41: only a window aggregate over one stream has EMPTY GROUPS
--   SELECT src FROM packets WHERE port = 80 EMPTY GROUPS FOR 1 HOUR
--                                           ^^^^^^^^^^^^^^^^^^^^^^^

-- case: of a join
SELECT a.src, COUNT(*) AS n FROM packets a, packets b WHERE a.src = b.src GROUP BY a.src EMPTY GROUPS FOR 1 HOUR WINDOW 1 MIN
-- gives:
-- NotYet: query q1, line 1, column 90: only a window aggregate over one stream has EMPTY GROUPS; make the pairs a stream: CREATE STREAM name AS SELECT ..., and aggregate that
--   T a.src, COUNT(*) AS n FROM packets a, packets b WHERE a.src = b.src GROUP BY a.src EMPTY GROUPS FOR 1 HOUR WINDOW 1 MIN
--                                                                                       ^^^^^^^^^^^^^^^^^^^^^^^

-- case: of sessions
SELECT src, COUNT(*) AS n FROM packets GROUP BY src, SESSION(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 1 HOUR
-- gives:
-- TypeFault: query q1, line 1, column 87: a session begins with a row, so none has an empty group; leave EMPTY GROUPS out
--   SELECT src, COUNT(*) AS n FROM packets GROUP BY src, SESSION(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 1 HOUR
--                                                                                         ^^^^^^^^^^^^^^^^^^^^^^^

-- case: within a query
SELECT n FROM (SELECT COUNT(*) AS n FROM packets GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 1 HOUR) counted
-- gives:
-- NotYet: query q1, line 1, column 91: a window aggregate or join within a query is not supported yet; make it a stream: CREATE STREAM name AS SELECT ..., and read that
--   LECT n FROM (SELECT COUNT(*) AS n FROM packets GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 1 HOUR) counted
--                                                                                           ^^^^^^^^^^^^^^^^^^^^^^^

-- case: as other systems write it
SELECT src, COUNT(*) FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) FILL(0)
-- gives:
-- SyntaxFault: query q1, line 1, column 81: unexpected 'FILL'; write EMPTY GROUPS FOR 1 HOUR: groups known for so long have counts of 0
--   SELECT src, COUNT(*) FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) FILL(0)
--                                                                                   ^^^^

