-- case: three streams on one key
SELECT A.src, C.n FROM packets A, packets B, readings C WHERE A.src = B.src AND B.src = C.n AND A.length > 10 WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, n@2 AS n: INT
-- FROM packets, packets, readings
-- PAIRS src = src@1
--   AND src = n@2
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE length > 10

-- case: equalities that follow from others are left out
SELECT A.src FROM packets A, packets B, packets C WHERE C.src = B.src AND A.src = C.src AND B.src = A.src WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets, packets
-- PAIRS src = src@1
--   AND src = src@2
--   FROM apart -59999999 us TO apart 59999999 us

-- case: a star with a key for each point
SELECT A.src FROM packets A, packets B, packets C, packets D WHERE A.src = B.src AND A.dst = C.dst AND A.port = D.port WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets, packets, packets
-- PAIRS src = src@1
--   AND dst = dst@2
--   AND port = port@3
--   FROM apart -59999999 us TO apart 59999999 us

-- case: a chain in standard SQL
SELECT A.src FROM packets A JOIN packets B ON A.src = B.dst JOIN packets C ON B.src = C.dst AND C.length > B.length WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets, packets
-- PAIRS src = dst@1
--   AND src@1 = dst@2
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE length@2 > length@1

-- case: a cycle
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.dst AND B.src = C.dst AND C.src = A.dst WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets, packets
-- PAIRS src = dst@1
--   AND src@1 = dst@2
--   AND dst = src@2
--   FROM apart -59999999 us TO apart 59999999 us

-- case: an equality on one side follows from two others
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND A.dst = B.src AND A.src = C.src WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets, packets
-- PAIRS src = src@1
--   AND src = src@2
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE src = dst

-- case: relations after three streams
SELECT A.src, h.site FROM packets A JOIN packets B ON A.src = B.src JOIN packets C ON B.src = C.src JOIN hosts h ON A.src = h.id WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@3 AS site: STRING
-- FROM packets, packets, packets
-- PAIRS src = src@1
--   AND src = src@2
--   FROM apart -59999999 us TO apart 59999999 us
-- JOIN hosts@3 ON src = id@3

-- case: times are compared beside the window
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.src = C.src AND B.ts > A.ts WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets, packets
-- PAIRS src = src@1
--   AND src = src@2
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE ts@1 > ts

-- case: an aggregate over three streams
SELECT SUM(A.length) FROM packets A, packets B, packets C WHERE A.src = B.src AND B.src = C.src WINDOW 10 MIN SLIDE 2 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS sum: BIGINT
-- FROM packets [WINDOW 10 min SLIDE 2 min], packets [WINDOW 10 min SLIDE 2 min], packets [WINDOW 10 min SLIDE 2 min]
-- PAIRS src = src@1
--   AND src = src@2
--   FROM apart -599999999 us TO apart 599999999 us
-- AGGREGATE SUM(length) AS agg0: BIGINT

-- case: a window is needed
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.src = C.src
-- gives:
-- TypeFault: query q1, line 1, column 41: a join of three or more streams needs a window; write WINDOW 1 MIN at the end: all rows of a result are less than that apart
--   SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.src = C.src
--                                           ^^^^^^^^^

-- case: bounds in ON are no window
SELECT A.src FROM packets A JOIN packets B ON A.src = B.src AND B.ts BETWEEN A.ts AND A.ts + INTERVAL '5' MINUTE JOIN packets C ON C.src = B.src
-- gives:
-- TypeFault: query q1, line 1, column 119: a join of three or more streams needs a window; write WINDOW 1 MIN at the end: all rows of a result are less than that apart
--   s A JOIN packets B ON A.src = B.src AND B.ts BETWEEN A.ts AND A.ts + INTERVAL '5' MINUTE JOIN packets C ON C.src = B.src
--                                                                                                 ^^^^^^^^^

-- case: a stream that nothing joins
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND C.src > A.src WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 41: no equality joins C to A; write WHERE A.id = C.id, or join it through another
--   SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND C.src > A.src WINDOW 1 MIN
--                                           ^^^^^^^^^

-- case: a stream in the middle that nothing joins
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = C.src WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 30: no equality joins B to A; write WHERE A.id = B.id, or join it through another
--   SELECT A.src FROM packets A, packets B, packets C WHERE A.src = C.src WINDOW 1 MIN
--                                ^^^^^^^^^

-- case: a third stream after a relation
SELECT A.src FROM packets A JOIN packets B ON A.src = B.src JOIN hosts h ON A.src = h.id JOIN packets C ON C.src = A.src WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 95: a stream stands after a relation; write the streams first: FROM a JOIN b ON ... JOIN relation ON ...
--   FROM packets A JOIN packets B ON A.src = B.src JOIN hosts h ON A.src = h.id JOIN packets C ON C.src = A.src WINDOW 1 MIN
--                                                                                    ^^^^^^^^^

-- case: a left join of the third stream
SELECT A.src FROM packets A JOIN packets B ON A.src = B.src LEFT JOIN packets C ON C.src = A.src WINDOW 1 MIN
-- gives:
-- Refused: query q1, line 1, column 61: LEFT JOIN is not admitted; only inner joins of streams are
--   SELECT A.src FROM packets A JOIN packets B ON A.src = B.src LEFT JOIN packets C ON C.src = A.src WINDOW 1 MIN
--                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: Python in an aggregate over three streams
SELECT COUNT(*) FROM packets A, packets B, packets C WHERE A.src = B.src AND B.src = C.src AND is_botnet(A.src, C.dst) WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE 1 s], packets [WINDOW 1 min SLIDE 1 s], packets [WINDOW 1 min SLIDE 1 s]
-- PAIRS src = src@1
--   AND src = src@2
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE is_botnet(src, dst@2)
-- AGGREGATE COUNT(*) AS agg0: BIGINT

