-- case: an array in Spark's way
SELECT n, step FROM readings LATERAL VIEW explode(path) t AS step
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT, step@1 AS step: INT
-- FROM readings
-- JOIN UNNEST inner t (element step) of path

-- case: a map, with rows that hold nothing
SELECT n, t.k, v FROM readings LATERAL VIEW OUTER explode(tags) t AS k, v
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT, k@1 AS k: STRING, v@1 AS v: INT
-- FROM readings
-- LEFT UNNEST left t (key k, element v) of tags

-- case: places in Spark's way
SELECT p, step FROM readings LATERAL VIEW posexplode(path) t AS p, step WHERE step > 3
-- gives:
-- QUERY q1 INTO memory
-- SELECT p@1 AS p: INT, step@1 AS step: INT
-- FROM readings
-- JOIN UNNEST inner t (position p, element step) of path
-- WHERE step@1 > 3

-- case: Spark's own names
SELECT key, value FROM readings LATERAL VIEW explode(tags) t
-- gives:
-- QUERY q1 INTO memory
-- SELECT key@1 AS key: STRING, value@1 AS value: INT
-- FROM readings
-- JOIN UNNEST inner t (key key, element value) of tags

-- case: an array in the standard's way
SELECT n, step FROM readings CROSS JOIN UNNEST(path) AS t (step)
-- gives:
-- QUERY q1 INTO memory
-- SELECT n AS n: INT, step@1 AS step: INT
-- FROM readings
-- JOIN UNNEST inner t (element step) of path

-- case: places in the standard's way
SELECT step, place FROM readings, UNNEST(path) WITH ORDINALITY AS t (step, place)
-- gives:
-- QUERY q1 INTO memory
-- SELECT step@1 AS step: INT, place@1 AS place: INT
-- FROM readings
-- JOIN UNNEST inner t (element step, ordinal place) of path

-- case: a relation behind
SELECT step, site FROM readings LEFT JOIN UNNEST(path) AS t (step) ON TRUE JOIN hosts h ON h.id = step
-- gives:
-- QUERY q1 INTO memory
-- SELECT step@1 AS step: INT, site@2 AS site: STRING
-- FROM readings
-- LEFT UNNEST left t (element step) of path
-- JOIN hosts@2 ON id@2 = step@1

-- case: one of another
SELECT y FROM readings CROSS JOIN UNNEST(SPLIT(name, ',')) AS a (x) CROSS JOIN UNNEST(SPLIT(a.x, '-')) AS b (y)
-- gives:
-- QUERY q1 INTO memory
-- SELECT y@2 AS y: STRING
-- FROM readings
-- JOIN UNNEST inner a (element x) of split(name, ',', -1)
-- JOIN UNNEST inner b (element y) of split(x@1, '-', -1)

-- case: groups of elements
SELECT step, COUNT(*) FROM readings [WINDOW 1 MIN] CROSS JOIN UNNEST(path) AS t (step) GROUP BY step
-- gives:
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS step: INT, agg0 AS count: BIGINT
-- FROM readings [WINDOW 1 min SLIDE 1 min]
-- JOIN UNNEST inner t (element step) of path
-- GROUP BY step@1 AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: of a pair
SELECT x FROM packets A, packets B, UNNEST(ARRAY(A.dst, B.dst)) AS t (x) WHERE A.src = B.src WINDOW 1 MIN
-- gives:
-- QUERY q1 INTO memory
-- SELECT x@2 AS x: INT
-- FROM packets, packets
-- PAIRS src = src@1
--   FROM apart -59999999 us TO apart 59999999 us
-- JOIN UNNEST inner t (element x) of array(dst, dst@1)

-- case: no array
SELECT step FROM readings LATERAL VIEW explode(name) t AS step
-- gives:
-- TypeFault: query q1, line 1, column 48: expected an ARRAY or a MAP, not a STRING
--   SELECT step FROM readings LATERAL VIEW explode(name) t AS step
--                                                  ^^^^

-- case: another function
SELECT step FROM readings LATERAL VIEW inline(path) t AS step
-- gives:
-- Refused: query q1, line 1, column 40: LATERAL VIEW of INLINE is not admitted; it takes EXPLODE, EXPLODE_OUTER, POSEXPLODE, POSEXPLODE_OUTER of one array or map
--   SELECT step FROM readings LATERAL VIEW inline(path) t AS step
--                                          ^^^^^^^^^^^^^^^^^^^^^^

-- case: no name
SELECT step FROM readings CROSS JOIN UNNEST(path)
-- gives:
-- TypeFault: query q1, line 1, column 45: what is taken apart needs a name; write ... t AS y, or AS t (y)
--   SELECT step FROM readings CROSS JOIN UNNEST(path)
--                                               ^^^^

-- case: too many names
SELECT a FROM readings CROSS JOIN UNNEST(path) AS t (a, b)
-- gives:
-- TypeFault: query q1, line 1, column 42: t has 1 columns, not 2; they are col
--   SELECT a FROM readings CROSS JOIN UNNEST(path) AS t (a, b)
--                                            ^^^^^^^^^^^^^^^^

-- case: a condition
SELECT x FROM readings LEFT JOIN UNNEST(path) AS t (x) ON x > 1
-- gives:
-- Refused: query q1, line 1, column 41: this join with UNNEST is not admitted; write CROSS JOIN UNNEST(x) AS t (y), or LEFT JOIN ... ON TRUE
--   SELECT x FROM readings LEFT JOIN UNNEST(path) AS t (x) ON x > 1
--                                           ^^^^^^^^^^^^^

-- case: alone
SELECT x FROM UNNEST(ARRAY(1, 2)) AS t (x)
-- gives:
-- TypeFault: query q1, line 1, column 22: a query reads a stream; write FROM stream CROSS JOIN UNNEST(x) AS t (y)
--   SELECT x FROM UNNEST(ARRAY(1, 2)) AS t (x)
--                        ^^^^^^^^^^^^^^^^^^^^

-- case: a Python function
SELECT x FROM packets CROSS JOIN UNNEST(ARRAY(score(src))) AS t (x)
-- gives:
-- Refused: query q1, line 1, column 41: a Python function is not admitted in FROM; CREATE FUNCTION ... is called in SELECT and WHERE
--   SELECT x FROM packets CROSS JOIN UNNEST(ARRAY(score(src))) AS t (x)
--                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: twice one name
SELECT k FROM readings LATERAL VIEW explode(tags) t AS k, k
-- gives:
-- TypeFault: query q1, line 1, column 37: two columns of t have one name
--   SELECT k FROM readings LATERAL VIEW explode(tags) t AS k, k
--                                       ^^^^^^^^^^^^^^^^^^^^^^^

