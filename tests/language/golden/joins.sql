-- case: a window join
SELECT A.src, B.n FROM packets A, readings B WHERE A.src = B.n WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, n@1 AS n: INT
-- FROM packets, readings
-- PAIRS src = n@1
--   FROM apart -59999999 us TO apart 59999999 us

-- case: selections on either side and across both
SELECT A.src, B.n FROM packets A, readings B WHERE B.n = A.src AND A.length > 1000 AND B.real < 1.5 AND A.port < B.n + 1 WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, n@1 AS n: INT
-- FROM packets, readings
-- PAIRS src = n@1
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE port < (n@1 + 1)
--   AND length > 1000
--   AND real@1 < 1.5

-- case: a join in standard SQL
CREATE STREAM r (at TIMESTAMP, n INT) FROM rate TIME at;
SELECT a.src FROM packets a JOIN r b ON a.src = b.n AND b.at BETWEEN a.ts - INTERVAL '5' MINUTE AND a.ts + INTERVAL '5' MINUTE
-- gives:
-- STREAM r (at TIMESTAMP, n INT) FROM rate None TIME at LATENESS 0
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, r
-- PAIRS src = n@1
--   FROM apart -5 min TO apart 5 min

-- case: bounds on a column that is not the time
SELECT a.src FROM packets a JOIN readings b ON a.src = b.n AND b.at BETWEEN a.ts AND a.ts + INTERVAL '5' MINUTE
-- gives:
-- TypeFault: query q1, line 1, column 34: a join of streams needs a bound on how far apart its rows are; write WINDOW 1 MIN; other bounds compare the TIME of both streams, and one has none
--   SELECT a.src FROM packets a JOIN readings b ON a.src = b.n AND b.at BETWEEN a.ts AND a.ts + INTERVAL '5' MINUTE
--                                    ^^^^^^^^^^

-- case: unequal bounds
SELECT a.src FROM packets a JOIN packets b ON a.src = b.dst AND b.ts BETWEEN a.ts - INTERVAL '5' MINUTE AND a.ts + INTERVAL '1' HOUR WHERE a.port = 80
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = dst@1
--   FROM apart -5 min TO apart 1 h
-- WHERE port = 80

-- case: a bound on one side only
SELECT a.src FROM packets a INNER JOIN packets b ON a.src = b.src AND b.ts >= a.ts AND b.ts < a.ts + INTERVAL 10 SECONDS
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart 0 d TO apart 9999999 us

-- case: bounds with the times on either side
SELECT a.src FROM packets a, packets b WHERE a.src = b.src AND a.ts - INTERVAL 3 SECONDS <= b.ts AND a.ts > b.ts - INTERVAL 2 SECONDS
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart -3 s TO apart 1999999 us

-- case: equal times
SELECT a.src FROM packets a JOIN packets b ON a.src = b.src AND a.ts = b.ts
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart 0 d TO apart 0 d

-- case: a window and bounds
SELECT a.src FROM packets a JOIN packets b ON a.src = b.src AND b.ts >= a.ts WINDOW 10 SECONDS
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart 0 d TO apart 9999999 us

-- case: a stream with itself
SELECT A.ts AS earlier, B.ts AS later FROM packets A, packets B WHERE A.src = B.dst AND A.ts < B.ts WINDOW 30 s
-- gives:
-- QUERY q1 INTO memory
-- SELECT ts AS earlier: TIMESTAMP, ts@1 AS later: TIMESTAMP
-- FROM packets, packets
-- PAIRS src = dst@1
--   FROM apart 1 us TO apart 29999999 us

-- case: several keys, one of them computed
SELECT A.src FROM packets A, packets B WHERE A.src = B.src AND A.port % 10 = B.port % 10 WINDOW 30 s
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   AND (port % 10) = (port@1 % 10)
--   FROM apart -29999999 us TO apart 29999999 us

-- case: keys of other types
SELECT A.src FROM packets A, readings B WHERE A.src = B.big WINDOW 1 HOUR
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, readings
-- PAIRS CAST(src AS BIGINT) = big@1
--   FROM apart -3599999999 us TO apart 3599999999 us

-- case: a predicate that is no equality
SELECT A.src FROM packets A, packets B WHERE A.length < B.length AND A.port = 80 WINDOW 1 s
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS length < length@1
--   FROM apart -999999 us TO apart 999999 us
-- WHERE port = 80

-- case: relations looked up on pairs
SELECT A.src, h.site, g.site AS other FROM packets A JOIN packets B ON A.src = B.src JOIN hosts h ON A.src = h.id LEFT JOIN hosts g ON B.dst = g.id AND h.site = g.site WHERE h.site LIKE 'a%' WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@2 AS site: STRING, site@3 AS other: STRING
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart -59999999 us TO apart 59999999 us
-- JOIN hosts@2 ON src = id@2
-- LEFT JOIN hosts@3 ON (dst@1 = id@3) AND (site@2 = site@3)
-- WHERE site@2 LIKE 'a%'

-- case: a Python predicate over both sides
SELECT A.src FROM packets A, packets B WHERE A.src = B.src AND is_botnet(A.src, B.dst) WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE is_botnet(src, dst@1)

-- case: all columns of one side
SELECT A.* FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT ts AS ts: TIMESTAMP, src AS src: INT, dst AS dst: INT, port AS port: INT, length AS length: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart -59999999 us TO apart 59999999 us

-- case: a join without a window
SELECT A.src FROM packets A JOIN readings B ON A.src = B.n
-- gives:
-- TypeFault: query q1, line 1, column 34: a join of streams needs a bound on how far apart its rows are; write WINDOW 1 MIN; other bounds compare the TIME of both streams, and one has none
--   SELECT A.src FROM packets A JOIN readings B ON A.src = B.n
--                                    ^^^^^^^^^^

-- case: a join without a second bound
SELECT A.src FROM packets A JOIN packets B ON A.src = B.src AND B.ts >= A.ts
-- gives:
-- TypeFault: query q1, line 1, column 34: a join of streams needs a second bound on how far apart its rows are; write WINDOW 1 MIN, or ON ... AND b.ts BETWEEN a.ts - INTERVAL '1' MINUTE AND a.ts
--   SELECT A.src FROM packets A JOIN packets B ON A.src = B.src AND B.ts >= A.ts
--                                    ^^^^^^^^^

-- case: bounds that exclude each other
SELECT A.src FROM packets A JOIN packets B ON A.src = B.src AND B.ts > A.ts + INTERVAL 2 MINUTES WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 34: no two rows are that far apart: the bounds exclude each other
--   SELECT A.src FROM packets A JOIN packets B ON A.src = B.src AND B.ts > A.ts + INTERVAL 2 MINUTES WINDOW 1 MIN
--                                    ^^^^^^^^^

-- case: a join without a condition over both
SELECT A.src FROM packets A, packets B WHERE A.port = 80 WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 30: a join of streams needs a condition over both of them; write WHERE a.id = b.id
--   SELECT A.src FROM packets A, packets B WHERE A.port = 80 WINDOW 1 MIN
--                                ^^^^^^^^^

-- case: a Python predicate as the only condition over both sides
SELECT A.src FROM packets A, packets B WHERE is_botnet(A.src, B.src) AND A.port = 80 WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS every two rows
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE is_botnet(src, src@1)
--   AND port = 80

-- case: a Python predicate over one side is no condition over both
SELECT A.src FROM packets A, packets B WHERE is_botnet(A.src, A.dst) WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 30: a join of streams needs a condition over both of them; write WHERE a.id = b.id
--   SELECT A.src FROM packets A, packets B WHERE is_botnet(A.src, A.dst) WINDOW 1 MIN
--                                ^^^^^^^^^

-- case: a column of both sides
SELECT src FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN
-- gives:
-- UnknownName: query q1, line 1, column 8: 'src' is ambiguous; write A.src or B.src
--   SELECT src FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN
--          ^^^

-- case: a stream twice without aliases
SELECT src FROM packets, packets WHERE src = src WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 26: two inputs are called 'packets'; give one of them an alias
--   SELECT src FROM packets, packets WHERE src = src WINDOW 1 MIN
--                            ^^^^^^^

-- case: a column that neither side has
SELECT A.src FROM packets A, packets B WHERE A.scr = B.src WINDOW 1 MIN
-- gives:
-- UnknownName: query q1, line 1, column 46: no column 'scr' in A; it has ts, src, dst, port, length
--   SELECT A.src FROM packets A, packets B WHERE A.scr = B.src WINDOW 1 MIN
--                                                ^^^^^

-- case: an outer join of streams
SELECT A.src FROM packets A LEFT JOIN packets B ON A.src = B.src WINDOW 1 MIN
-- gives:
-- Refused: query q1, line 1, column 29: LEFT JOIN is not admitted; only inner joins of streams are
--   SELECT A.src FROM packets A LEFT JOIN packets B ON A.src = B.src WINDOW 1 MIN
--                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a slide of a join
SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN SLIDE 10 SECONDS
-- gives:
-- Refused: query q1, line 1, column 60: a join has no SLIDE; a pair is answered when its later row comes
--   SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN SLIDE 10 SECONDS
--                                                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a window of one side
SELECT A.src FROM packets A [WINDOW 1 MIN], packets B WHERE A.src = B.src
-- gives:
-- Refused: query q1, line 1, column 29: a stream of a join has no window of its own; write WINDOW ... at the end, without brackets
--   SELECT A.src FROM packets A [WINDOW 1 MIN], packets B WHERE A.src = B.src
--                               ^^^^^^^^^^^^^^

-- case: a stream after a relation
SELECT A.src FROM packets A JOIN hosts h ON A.src = h.id JOIN packets B ON A.src = B.src WINDOW 1 MIN
-- gives:
-- TypeFault: query q1, line 1, column 63: a stream stands after a relation; write the streams first: FROM a JOIN b ON ... JOIN relation ON ...
--   SELECT A.src FROM packets A JOIN hosts h ON A.src = h.id JOIN packets B ON A.src = B.src WINDOW 1 MIN
--                                                                 ^^^^^^^^^

-- case: a Python function in ON of streams
SELECT A.src FROM packets A JOIN packets B ON A.src = B.src AND is_botnet(A.src, B.dst) WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE is_botnet(src, dst@1)

-- case: the joins paper, word for word
CREATE STREAM Temperature (LocationId INT, Value DOUBLE) FROM rate;
CREATE STREAM Humidity (LocationId INT, Value DOUBLE) FROM rate;
SELECT COUNT(DISTINCT A.LocationId) FROM Temperature A, Humidity B WHERE A.LocationId = B.LocationId and A.Value > 30 and B.Value > 60 WINDOW 1 min;
-- gives:
-- STREAM Temperature (LocationId INT, Value DOUBLE) FROM rate None TIME None LATENESS 0
-- STREAM Humidity (LocationId INT, Value DOUBLE) FROM rate None TIME None LATENESS 0
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM Temperature [WINDOW 1 min SLIDE 1 s], Humidity [WINDOW 1 min SLIDE 1 s]
-- PAIRS LocationId = LocationId@1
--   FROM apart -59999999 us TO apart 59999999 us
-- WHERE Value > 30.0
--   AND Value@1 > 60.0
-- AGGREGATE COUNT_DISTINCT(LocationId) AS agg0: BIGINT

-- case: the second query of the joins paper, word for word
CREATE STREAM Temperature (LocationId INT, Value DOUBLE, TimeStamp TIMESTAMP) FROM rate TIME TimeStamp;
CREATE STREAM Humidity (LocationId INT, Value DOUBLE, TimeStamp TIMESTAMP) FROM rate TIME TimeStamp;
SELECT A.LocationId, MAX(A.Value), MAX(B.Value)
FROM Temperature A, Humidity B
WHERE A.LocationId = B.LocationId
GROUP BY A.LocationId
WINDOW 1 hour;
-- gives:
-- STREAM Temperature (LocationId INT, Value DOUBLE, TimeStamp TIMESTAMP) FROM rate None TIME TimeStamp LATENESS 0
-- STREAM Humidity (LocationId INT, Value DOUBLE, TimeStamp TIMESTAMP) FROM rate None TIME TimeStamp LATENESS 0
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS LocationId: INT, agg0 AS max: DOUBLE, agg1 AS max_2: DOUBLE
-- FROM Temperature [WINDOW 1 h SLIDE 1 min], Humidity [WINDOW 1 h SLIDE 1 min]
-- PAIRS LocationId = LocationId@1
--   FROM apart -3599999999 us TO apart 3599999999 us
-- GROUP BY LocationId AS key0
-- AGGREGATE MAX(Value) AS agg0: DOUBLE, MAX(Value@1) AS agg1: DOUBLE

-- case: the joins paper, with thresholds that nobody has given
CREATE STREAM Temperature (LocationId INT, Value DOUBLE) FROM rate;
CREATE STREAM Humidity (LocationId INT, Value DOUBLE) FROM rate;
SELECT COUNT(DISTINCT A.LocationId)
FROM Temperature A, Humidity B
WHERE A.LocationId = B.LocationId and
A.Value > Thresholdt and B.Value > Thresholdh
WINDOW 1 min;
-- gives:
-- UnknownName: query q1, line 6, column 11: no column 'Thresholdt' in A, B; they have LocationId, Value
--   A.Value > Thresholdt and B.Value > Thresholdh
--             ^^^^^^^^^^

-- case: an aggregate over a join, by groups
SELECT A.src, AVG(B.n) AS mean, window_end FROM packets A, readings B WHERE A.src = B.n AND A.length > 100 GROUP BY A.src HAVING COUNT(*) > 2 WINDOW 10 MIN SLIDE 2 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, key0 AS src: INT, agg0 AS mean: DOUBLE, window_end AS window_end: TIMESTAMP
-- FROM packets [WINDOW 10 min SLIDE 2 min], readings [WINDOW 10 min SLIDE 2 min]
-- PAIRS src = n@1
--   FROM apart -599999999 us TO apart 599999999 us
-- WHERE length > 100
-- GROUP BY src AS key0
-- AGGREGATE AVG(n@1) AS agg0: DOUBLE, COUNT(*) AS agg1: BIGINT
-- HAVING agg1 > 2::BIGINT

-- case: an aggregate over pairs within bounds
SELECT COUNT(*) FROM packets a JOIN packets b ON a.src = b.dst AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND WINDOW 1 MIN SLIDE EXACTLY 10 SECONDS
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 10 s], packets [WINDOW 1 min SLIDE EXACTLY 10 s]
-- PAIRS src = dst@1
--   FROM apart 0 d TO apart 5 s
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: an aggregate over a join whose window has no sixtieth
SELECT COUNT(*) FROM packets a, packets b WHERE a.src = b.dst WINDOW 7 SECONDS
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, agg0 AS count: BIGINT
-- FROM packets [WINDOW 7 s SLIDE 100 ms], packets [WINDOW 7 s SLIDE 100 ms]
-- PAIRS src = dst@1
--   FROM apart -6999999 us TO apart 6999999 us
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: an aggregate over a join without a window
SELECT COUNT(*) FROM packets a JOIN packets b ON a.src = b.dst AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND
-- gives:
-- TypeFault: query q1, line 1, column 8: an aggregate over a join needs a window; write WINDOW 10 MIN SLIDE 2 MIN at the end
--   SELECT COUNT(*) FROM packets a JOIN packets b ON a.src = b.dst AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND
--          ^^^^^

-- case: an aggregate over a join in too many panes
SELECT COUNT(*) FROM packets a, packets b WHERE a.src = b.dst WINDOW 1 HOUR SLIDE 7 MILLISECONDS
-- gives:
-- Refused: query q1, line 1, column 63: a window of 1 h with a slide of 7 ms is cut too finely for an aggregate over a join; write a SLIDE that divides the window, in whole milliseconds
--   SELECT COUNT(*) FROM packets a, packets b WHERE a.src = b.dst WINDOW 1 HOUR SLIDE 7 MILLISECONDS
--                                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: TUMBLE over a join
SELECT COUNT(*) FROM packets a, packets b WHERE a.src = b.dst GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
-- gives:
-- Refused: query q1, line 1, column 72: TUMBLE looks at the time of one stream, and a join has two; write WINDOW ... SLIDE EXACTLY ... at the end
--   SELECT COUNT(*) FROM packets a, packets b WHERE a.src = b.dst GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
--                                                                          ^^^^^^

-- case: a window of rows
SELECT A.src FROM packets A, packets B WHERE A.src = B.src AND A.ts <= B.ts WINDOW 1000 ROWS
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM row 0 TO row 999
-- WHERE ts <= ts@1

-- case: a window of rows with a slide
SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1000 ROWS SLIDE 1 MIN
-- gives:
-- Refused: query q1, line 1, column 60: a window of ROWS has no SLIDE; a pair is answered when its later row comes
--   SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1000 ROWS SLIDE 1 MIN
--                                                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a window of rows without a condition over both streams
SELECT A.src FROM packets A, packets B WHERE A.src = 1 WINDOW 1000 ROWS
-- gives:
-- TypeFault: query q1, line 1, column 30: a join of streams needs a condition over both of them; write WHERE a.id = b.id
--   SELECT A.src FROM packets A, packets B WHERE A.src = 1 WINDOW 1000 ROWS
--                                ^^^^^^^^^

-- case: an aggregate over a window of rows
SELECT COUNT(*) FROM packets A, packets B WHERE A.src = B.src WINDOW 1000 ROWS
-- gives:
-- Refused: query q1, line 1, column 63: an aggregate over a join answers for a stretch of time, and a window of ROWS has none; write a window of time, such as WINDOW 1 MIN
--   SELECT COUNT(*) FROM packets A, packets B WHERE A.src = B.src WINDOW 1000 ROWS
--                                                                 ^^^^^^^^^^^^^^^^

-- case: Python in an aggregate over a join
SELECT score(A.length) AS s, MAX(score(B.length)) AS hi FROM packets A, packets B WHERE A.src = B.src AND is_botnet(A.src, B.dst) GROUP BY score(A.length) WINDOW 10 MIN SLIDE 2 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS s: DOUBLE, agg0 AS hi: DOUBLE
-- FROM packets [WINDOW 10 min SLIDE 2 min], packets [WINDOW 10 min SLIDE 2 min]
-- PAIRS src = src@1
--   FROM apart -599999999 us TO apart 599999999 us
-- WHERE is_botnet(src, dst@1)
-- GROUP BY score(length) AS key0
-- AGGREGATE MAX(score(length@1)) AS agg0: DOUBLE

