-- case: a stream of the answers of windows, and a query over it
CREATE STREAM counts TIME window_end LATENESS 2 SECONDS AS SELECT src, COUNT(*) AS n FROM packets [WINDOW 1 MIN SLIDE EXACTLY 1 MIN] GROUP BY src; SELECT src, MAX(n) FROM counts [WINDOW 5 MIN] GROUP BY src
-- gives:
-- STREAM counts (window_start TIMESTAMP, window_end TIMESTAMP, src INT, n BIGINT) FROM query None TIME window_end LATENESS 2
-- QUERY counts INTO stream
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS n: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS max: BIGINT
-- FROM counts [WINDOW 5 min SLIDE 5 min]
-- GROUP BY src AS key0
-- AGGREGATE MAX(n) AS agg0: BIGINT

-- case: a stream of pairs, without a time of its own
CREATE STREAM pairs AS SELECT a.src, b.port FROM packets a, packets b WHERE a.src = b.dst WINDOW 1 MIN; SELECT * FROM pairs
-- gives:
-- STREAM pairs (src INT, port INT) FROM query None TIME None LATENESS 0
-- QUERY pairs INTO stream
-- SELECT src AS src: INT, port@1 AS port: INT
-- FROM packets, packets
-- PAIRS src = dst@1
--   FROM apart -59999999 us TO apart 59999999 us
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, port AS port: INT
-- FROM pairs

-- case: a time of a derived stream that is a number
CREATE STREAM few TIME big UNIT MILLISECONDS AS SELECT big, n FROM readings WHERE n > 1
-- gives:
-- STREAM few (big BIGINT, n INT) FROM query None TIME big LATENESS 0
-- QUERY few INTO stream
-- SELECT big AS big: BIGINT, n AS n: INT
-- FROM readings
-- WHERE n > 1

-- case: a derived stream that reads itself
CREATE STREAM d AS SELECT * FROM d
-- gives:
-- Refused: stream d, line 1, column 34: 'd' reads itself; it can read what is declared before it
--   CREATE STREAM d AS SELECT * FROM d
--                                    ^

-- case: a derived stream without that column
CREATE STREAM d TIME at AS SELECT src FROM packets
-- gives:
-- UnknownName: stream d, line 1, column 22: no column 'at'
--   CREATE STREAM d TIME at AS SELECT src FROM packets
--                        ^^

-- case: the lateness of a derived stream without time
CREATE STREAM d LATENESS 1 SECOND AS SELECT src FROM packets
-- gives:
-- TypeFault: stream d, line 1, column 17: LATENESS needs TIME; name the column that holds the time
--   CREATE STREAM d LATENESS 1 SECOND AS SELECT src FROM packets
--                   ^^^^^^^^

-- case: a derived stream of nothing
CREATE STREAM d TIME ts
-- gives:
-- SyntaxFault: stream d, line 1, column 22: expected AS SELECT ... after this
--   CREATE STREAM d TIME ts
--                        ^^

-- case: a clause that no derived stream has
CREATE STREAM d TIME ts OPTIONS (a = 1) AS SELECT ts FROM packets
-- gives:
-- SyntaxFault: stream d, line 1, column 25: expected TIME, LATENESS or AS, not OPTIONS
--   CREATE STREAM d TIME ts OPTIONS (a = 1) AS SELECT ts FROM packets
--                           ^^^^^^^

-- case: the query of a derived stream is not dropped
CREATE STREAM d AS SELECT src FROM packets; DROP QUERY d
-- gives:
-- Refused: statement 2, line 1, column 56: 'd' is a stream, and stays
--   CREATE STREAM d AS SELECT src FROM packets; DROP QUERY d
--                                                          ^

-- case: a query with the name of a derived stream
CREATE STREAM d AS SELECT src FROM packets; CREATE QUERY d AS SELECT dst FROM packets
-- gives:
-- TypeFault: query d, line 1, column 58: query 'd' exists already and is declared differently; DROP it first
--   CREATE STREAM d AS SELECT src FROM packets; CREATE QUERY d AS SELECT dst FROM packets
--                                                            ^

-- case: a derived stream with the name of a query
CREATE QUERY d AS SELECT dst FROM packets; CREATE STREAM d AS SELECT src FROM packets
-- gives:
-- TypeFault: stream d, line 1, column 58: there is a query 'd' already
--   CREATE QUERY d AS SELECT dst FROM packets; CREATE STREAM d AS SELECT src FROM packets
--                                                            ^

-- case: another derived stream of the name
CREATE STREAM d AS SELECT src FROM packets; CREATE STREAM d AS SELECT src FROM packets WHERE src > 1
-- gives:
-- TypeFault: stream d, line 1, column 59: there is a query 'd' already
--   CREATE STREAM d AS SELECT src FROM packets; CREATE STREAM d AS SELECT src FROM packets WHERE src > 1
--                                                             ^

-- case: the sink of derived streams
CREATE QUERY q INTO stream AS SELECT src FROM packets
-- gives:
-- UnknownName: query q, line 1, column 21: no sink 'stream'; write CREATE STREAM name AS SELECT ...
--   CREATE QUERY q INTO stream AS SELECT src FROM packets
--                       ^^^^^^

