-- case: a filter and a projection with a name
CREATE VIEW web AS SELECT ts, src, length * 8 AS bits FROM packets WHERE port IN (80, 443); SELECT src, BITS FROM Web w WHERE w.bits > 100
-- gives:
-- VIEW web
-- SELECT ts AS ts: TIMESTAMP, src AS src: INT, length * 8 AS bits: INT
-- FROM packets
-- WHERE port IN (80, 443)
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, length * 8 AS bits: INT
-- FROM packets
-- WHERE port IN (80, 443)
--   AND (length * 8) > 100

-- case: star of a view
CREATE VIEW web AS SELECT src, length * 8 AS bits FROM packets; SELECT * FROM web
-- gives:
-- VIEW web
-- SELECT src AS src: INT, length * 8 AS bits: INT
-- FROM packets
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, length * 8 AS bits: INT
-- FROM packets

-- case: the columns of a view by star and alias
CREATE VIEW web AS SELECT src, length * 8 AS bits FROM packets; SELECT w.* FROM web w
-- gives:
-- VIEW web
-- SELECT src AS src: INT, length * 8 AS bits: INT
-- FROM packets
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, length * 8 AS bits: INT
-- FROM packets

-- case: fields of a column of a view
CREATE VIEW v AS SELECT nested.b.c, nested, tags AS t FROM readings; SELECT c, nested.b.c AS again, v.nested.a, t.k FROM v
-- gives:
-- VIEW v
-- SELECT nested.b.c AS c: STRING, nested AS nested: STRUCT<`a`: INT, `b`: STRUCT<`c`: STRING>>, tags AS t: MAP<STRING, INT>
-- FROM readings
-- QUERY q1 INTO memory
-- SELECT nested.b.c AS c: STRING, nested.b.c AS again: STRING, nested.a AS a: INT, tags['k'] AS k: INT
-- FROM readings

-- case: a view over a view
CREATE VIEW web AS SELECT src, length * 8 AS bits FROM packets WHERE port = 80; CREATE VIEW loud AS SELECT src + 1 AS host, bits FROM web WHERE bits > 100; SELECT host FROM loud WHERE host < 7
-- gives:
-- VIEW web
-- SELECT src AS src: INT, length * 8 AS bits: INT
-- FROM packets
-- WHERE port = 80
-- VIEW loud
-- SELECT src + 1 AS host: INT, length * 8 AS bits: INT
-- FROM packets
-- WHERE port = 80
--   AND (length * 8) > 100
-- QUERY q1 INTO memory
-- SELECT src + 1 AS host: INT
-- FROM packets
-- WHERE port = 80
--   AND (length * 8) > 100
--   AND (src + 1) < 7

-- case: lookups in a view and beside it
CREATE VIEW placed AS SELECT p.ts, p.src, h.site AS place FROM packets p LEFT JOIN hosts h ON p.src = h.id WHERE h.site <> 'x'; SELECT v.src, v.place, s.region, o.site FROM placed v JOIN sites s ON s.site = v.place LEFT JOIN hosts o ON o.id = v.src + 1 WHERE o.id > 3
-- gives:
-- VIEW placed
-- SELECT ts AS ts: TIMESTAMP, src AS src: INT, site@1 AS place: STRING
-- FROM packets
-- LEFT JOIN hosts@1 ON src = id@1
-- WHERE site@1 <> 'x'
-- QUERY q1 INTO memory
-- SELECT src AS src: INT, site@1 AS place: STRING, region@2 AS region: STRING, site@3 AS site: STRING
-- FROM packets
-- LEFT JOIN hosts@1 ON src = id@1
-- JOIN sites@2 ON site@2 = site@1
-- LEFT JOIN hosts@3 ON id@3 = (src + 1)
-- WHERE site@1 <> 'x'
--   AND id@3 > 3

-- case: a union in a view, and around it
CREATE VIEW both AS SELECT src AS n, 'p' AS kind FROM packets WHERE src > 1 UNION ALL SELECT big, name FROM readings; SELECT n + 1 AS m, kind FROM both JOIN hosts h ON h.id = n UNION ALL SELECT port, 'x' FROM packets
-- gives:
-- VIEW both
-- SELECT CAST(src AS BIGINT) AS n: BIGINT, 'p' AS kind: STRING
-- FROM packets
-- WHERE src > 1
-- UNION ALL
-- SELECT big AS n: BIGINT, name AS kind: STRING
-- FROM readings
-- QUERY q1 INTO memory
-- SELECT CAST(src AS BIGINT) + 1::BIGINT AS m: BIGINT, 'p' AS kind: STRING
-- FROM packets
-- JOIN hosts@1 ON CAST(id@1 AS BIGINT) = CAST(src AS BIGINT)
-- WHERE src > 1
-- UNION ALL
-- SELECT big + 1::BIGINT AS m: BIGINT, name AS kind: STRING
-- FROM readings
-- JOIN hosts@1 ON CAST(id@1 AS BIGINT) = big
-- UNION ALL
-- SELECT CAST(port AS BIGINT) AS m: BIGINT, 'x' AS kind: STRING
-- FROM packets

-- case: a window aggregate over a view
CREATE VIEW web AS SELECT ts AS at, src, length * 8 AS bits FROM packets WHERE port = 80; SELECT src, MAX(bits), bits DIV 10 AS tens FROM web [WINDOW 10 MIN SLIDE 2 MIN] GROUP BY src, bits DIV 10 HAVING MAX(bits) > 3; SELECT src, COUNT(*) FROM web GROUP BY src, TUMBLE(at, INTERVAL '1' MINUTE)
-- gives:
-- VIEW web
-- SELECT ts AS at: TIMESTAMP, src AS src: INT, length * 8 AS bits: INT
-- FROM packets
-- WHERE port = 80
-- QUERY q1 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS max: INT, key1 AS tens: BIGINT
-- FROM packets [WINDOW 10 min SLIDE 2 min]
-- WHERE port = 80
-- GROUP BY src AS key0, CAST(length * 8 AS BIGINT) DIV 10::BIGINT AS key1
-- AGGREGATE MAX(length * 8) AS agg0: INT
-- HAVING agg0 > 3
-- QUERY q2 INTO memory
-- SELECT window_start AS window_start: TIMESTAMP, window_end AS window_end: TIMESTAMP, key0 AS src: INT, agg0 AS count: BIGINT
-- FROM packets [WINDOW 1 min SLIDE EXACTLY 1 min]
-- WHERE port = 80
-- GROUP BY src AS key0
-- AGGREGATE COUNT(*) AS agg0: BIGINT

-- case: joins of views
CREATE VIEW web AS SELECT ts AS t, src, dst FROM packets p JOIN hosts h ON h.id = p.src WHERE port = 80; SELECT a.src FROM web a JOIN web b ON a.src = b.dst AND b.t BETWEEN a.t AND a.t + INTERVAL '1' MINUTE
-- gives:
-- VIEW web
-- SELECT ts AS t: TIMESTAMP, src AS src: INT, dst AS dst: INT
-- FROM packets
-- JOIN hosts@1 ON id@1 = src
-- WHERE port = 80
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets, packets
-- PAIRS src = dst@1
--   FROM apart 0 d TO apart 1 min
-- JOIN hosts@2 ON id@2 = src
-- JOIN hosts@3 ON id@3 = src@1
-- WHERE port = 80
--   AND port@1 = 80

-- case: a window of rows over a projection
CREATE VIEW v AS SELECT src + 1 AS s FROM packets; SELECT a.s FROM v a, v b WHERE a.s = b.s WINDOW 10 ROWS
-- gives:
-- VIEW v
-- SELECT src + 1 AS s: INT
-- FROM packets
-- QUERY q1 INTO memory
-- SELECT src + 1 AS s: INT
-- FROM packets, packets
-- PAIRS (src + 1) = (src@1 + 1)
--   FROM row 0 TO row 9

-- case: a window of rows over a filter
CREATE VIEW v AS SELECT src FROM packets WHERE src > 1; SELECT a.src FROM v a, v b WHERE a.src = b.src WINDOW 10 ROWS
-- gives:
-- NotYet: query q1 over view v, line 1, column 104: a window of ROWS counts the rows of streams, and a query that filters or looks up stands between; write a window of time, such as WINDOW 1 MIN
--   CREATE VIEW v AS SELECT src FROM packets WHERE src > 1; SELECT a.src FROM v a, v b WHERE a.src = b.src WINDOW 10 ROWS
--                                                                                                          ^^^^^^^^^^^^^^

-- case: WITH
WITH web AS (SELECT src, port FROM packets WHERE port = 80), loud AS (SELECT src + 1 AS s FROM web) SELECT s FROM loud WHERE s > 5
-- gives:
-- QUERY q1 INTO memory
-- SELECT src + 1 AS s: INT
-- FROM packets
-- WHERE port = 80
--   AND (src + 1) > 5

-- case: a name of WITH that hides a stream
WITH packets AS (SELECT src AS host FROM packets) SELECT host FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS host: INT
-- FROM packets

-- case: WITH within a query and a view
CREATE VIEW v AS WITH x AS (SELECT src FROM packets) SELECT * FROM x UNION ALL SELECT n FROM readings; SELECT y.src FROM (WITH x AS (SELECT * FROM v) SELECT * FROM x) y
-- gives:
-- VIEW v
-- SELECT src AS src: INT
-- FROM packets
-- UNION ALL
-- SELECT n AS src: INT
-- FROM readings
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets
-- UNION ALL
-- SELECT n AS src: INT
-- FROM readings

-- case: WITH that hides a name of the WITH around it
WITH x AS (SELECT src AS a FROM packets) SELECT y.a, y.b FROM (WITH x AS (SELECT a, a + 1 AS b FROM x) SELECT * FROM x) y
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS a: INT, src + 1 AS b: INT
-- FROM packets

-- case: a query in FROM
SELECT t.m FROM (SELECT src AS m, port FROM packets WHERE port > 1) AS t JOIN hosts ON id = m WHERE t.port < 9
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS m: INT
-- FROM packets
-- JOIN hosts@1 ON id@1 = src
-- WHERE port > 1
--   AND port < 9

-- case: a query in FROM without a name
SELECT src FROM (SELECT src FROM packets)
-- gives:
-- TypeFault: query q1, line 1, column 25: a query in FROM needs a name; write (SELECT ...) AS name
--   SELECT src FROM (SELECT src FROM packets)
--                           ^^^^^^^^^^^^^^^^

-- case: names for the columns of a query in FROM
SELECT t.a FROM (SELECT src FROM packets) t(a)
-- gives:
-- Refused: query q1, line 1, column 25: names for the columns of a query are not admitted
--   SELECT t.a FROM (SELECT src FROM packets) t(a)
--                           ^^^^^^^^^^^^^^^^^^^^^

-- case: names for the columns of WITH
WITH t(a) AS (SELECT src FROM packets) SELECT a FROM t
-- gives:
-- Refused: query q1, line 1, column 6: names for the columns of WITH are not admitted; name them with AS in its SELECT
--   WITH t(a) AS (SELECT src FROM packets) SELECT a FROM t
--        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: WITH that is recursive
WITH RECURSIVE t AS (SELECT src FROM packets) SELECT src FROM t
-- gives:
-- Refused: query q1, line 1, column 6: RECURSIVE is not admitted
--   WITH RECURSIVE t AS (SELECT src FROM packets) SELECT src FROM t
--        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: WITH that names a query twice
WITH t AS (SELECT src FROM packets), T AS (SELECT src FROM packets) SELECT src FROM t
-- gives:
-- TypeFault: query q1, line 1, column 38: WITH names 'T' twice
--   WITH t AS (SELECT src FROM packets), T AS (SELECT src FROM packets) SELECT src FROM t
--                                        ^

-- case: WITH that reads itself
WITH t AS (SELECT src FROM t) SELECT src FROM t
-- gives:
-- Refused: query q1, line 1, column 28: 't' reads itself; it can read what is declared before it
--   WITH t AS (SELECT src FROM t) SELECT src FROM t
--                              ^

-- case: a view that reads itself
CREATE VIEW v AS SELECT * FROM v
-- gives:
-- Refused: view v, line 1, column 32: 'v' reads itself; it can read what is declared before it
--   CREATE VIEW v AS SELECT * FROM v
--                                  ^

-- case: a view that reads itself through WITH
CREATE VIEW v AS WITH x AS (SELECT * FROM v) SELECT * FROM x
-- gives:
-- Refused: view v, line 1, column 43: 'v' reads itself; it can read what is declared before it
--   CREATE VIEW v AS WITH x AS (SELECT * FROM v) SELECT * FROM x
--                                             ^

-- case: views that read each other
CREATE VIEW v AS SELECT * FROM w; CREATE VIEW w AS SELECT * FROM v
-- gives:
-- UnknownName: view v, line 1, column 32: no stream, relation or view 'w'; it is declared further down; a query reads what is declared before it
--   CREATE VIEW v AS SELECT * FROM w; CREATE VIEW w AS SELECT * FROM v
--                                  ^

-- case: a view of an unknown name
CREATE VIEW v AS SELECT * FROM packet
-- gives:
-- UnknownName: view v, line 1, column 32: no stream, relation or view 'packet'; did you mean 'packets'?
--   CREATE VIEW v AS SELECT * FROM packet
--                                  ^^^^^^

-- case: an error over a view names both
CREATE VIEW web AS SELECT src, length FROM packets; SELECT lenght FROM web
-- gives:
-- UnknownName: query q1 over view web, line 1, column 60: no column 'lenght' in web; did you mean 'length'?
--   CREATE VIEW web AS SELECT src, length FROM packets; SELECT lenght FROM web
--                                                              ^^^^^^

-- case: a column of the stream that the view lacks
CREATE VIEW web AS SELECT src FROM packets; CREATE VIEW loud AS SELECT src FROM web; SELECT a.src FROM loud a JOIN hosts h ON h.id = a.port
-- gives:
-- UnknownName: query q1 over view loud, line 1, column 134: no column 'port' in a; it has src
--   SELECT src FROM packets; CREATE VIEW loud AS SELECT src FROM web; SELECT a.src FROM loud a JOIN hosts h ON h.id = a.port
--                                                                                                                     ^^^^^^

-- case: a column of a view that is not grouped by
CREATE VIEW v AS SELECT src, score(length) AS s, length + 1 AS l FROM packets; SELECT src, l FROM v [WINDOW 1 MIN] GROUP BY src
-- gives:
-- TypeFault: query q1 over view v, line 1, column 92: v.l is neither grouped by nor inside an aggregate; add it to GROUP BY, or take an aggregate of it
--   VIEW v AS SELECT src, score(length) AS s, length + 1 AS l FROM packets; SELECT src, l FROM v [WINDOW 1 MIN] GROUP BY src
--                                                                                       ^

-- case: Python in a column of a view that is not grouped by
CREATE VIEW v AS SELECT src, score(5) AS s FROM packets; SELECT src, s FROM v [WINDOW 1 MIN] GROUP BY src
-- gives:
-- Refused: query q1 over view v, line 1, column 70: a Python function is not admitted over an aggregate; call it in WHERE, in GROUP BY or inside an aggregate
--   CREATE VIEW v AS SELECT src, score(5) AS s FROM packets; SELECT src, s FROM v [WINDOW 1 MIN] GROUP BY src
--                                                                        ^

-- case: a name that is taken
CREATE VIEW hosts AS SELECT src FROM packets
-- gives:
-- TypeFault: view hosts, line 1, column 13: there is a relation 'hosts' already
--   CREATE VIEW hosts AS SELECT src FROM packets
--               ^^^^^

-- case: a stream with the name of a view
CREATE VIEW v AS SELECT src FROM packets; CREATE STREAM v (a INT) FROM rate
-- gives:
-- TypeFault: stream v, line 1, column 57: there is a view 'v' already
--   CREATE VIEW v AS SELECT src FROM packets; CREATE STREAM v (a INT) FROM rate
--                                                           ^

-- case: the same view again
CREATE VIEW v AS SELECT src FROM packets; CREATE VIEW v AS  SELECT src FROM packets
-- gives:
-- VIEW v
-- SELECT src AS src: INT
-- FROM packets

-- case: another view of the name
CREATE VIEW v AS SELECT src FROM packets; CREATE VIEW v AS SELECT dst FROM packets
-- gives:
-- TypeFault: view v, line 1, column 55: view 'v' exists already and is declared differently; DROP it first
--   CREATE VIEW v AS SELECT src FROM packets; CREATE VIEW v AS SELECT dst FROM packets
--                                                         ^

-- case: a view of an aggregate
CREATE VIEW v AS SELECT MAX(src) AS m FROM packets WINDOW 1 MIN
-- gives:
-- NotYet: view v, line 1, column 18: view v aggregates, which only a query does so far; let it be a query of its own
--   CREATE VIEW v AS SELECT MAX(src) AS m FROM packets WINDOW 1 MIN
--                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a view of a join
CREATE VIEW v AS SELECT a.src FROM packets a, packets b WHERE a.src = b.src WINDOW 1 MIN
-- gives:
-- NotYet: view v, line 1, column 18: view v joins streams, which only a query does so far; let it be a query of its own
--   CREATE VIEW v AS SELECT a.src FROM packets a, packets b WHERE a.src = b.src WINDOW 1 MIN
--                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: an aggregate in FROM
SELECT m FROM (SELECT MAX(src) AS m FROM packets [WINDOW 1 MIN]) t
-- gives:
-- NotYet: query q1, line 1, column 50: a window aggregate or join within a query is not supported yet; let it be a query of its own
--   SELECT m FROM (SELECT MAX(src) AS m FROM packets [WINDOW 1 MIN]) t
--                                                    ^^^^^^^^^^^^^^

-- case: an aggregate in WITH
WITH t AS (SELECT MAX(src) AS m FROM packets WINDOW 1 MIN) SELECT m FROM t
-- gives:
-- NotYet: query q1, line 1, column 46: a window aggregate or join within a query is not supported yet; let it be a query of its own
--   WITH t AS (SELECT MAX(src) AS m FROM packets WINDOW 1 MIN) SELECT m FROM t
--                                                ^^^^^^^^^^^^

-- case: a view of a relation
CREATE VIEW v AS SELECT id FROM hosts
-- gives:
-- TypeFault: view v, line 1, column 33: 'hosts' is a relation, not a stream; a query reads one stream; join the relation to it
--   CREATE VIEW v AS SELECT id FROM hosts
--                                   ^^^^^

-- case: an aggregate over a union
CREATE VIEW both AS SELECT src FROM packets UNION ALL SELECT n FROM readings; SELECT COUNT(*) FROM both [WINDOW 1 MIN]
-- gives:
-- NotYet: query q1 over view both, line 1, column 100: 'both' is a UNION ALL, over which window aggregates are not supported yet; aggregate each part alone
--   CREATE VIEW both AS SELECT src FROM packets UNION ALL SELECT n FROM readings; SELECT COUNT(*) FROM both [WINDOW 1 MIN]
--                                                                                                      ^^^^

-- case: a join over a union
CREATE VIEW both AS SELECT src FROM packets UNION ALL SELECT n FROM readings; SELECT a.src FROM packets a JOIN both b ON a.src = b.src WINDOW 1 MIN
-- gives:
-- NotYet: query q1 over view both, line 1, column 112: 'b' is a UNION ALL, over which joins of streams are not supported yet; join each part alone
--   src FROM packets UNION ALL SELECT n FROM readings; SELECT a.src FROM packets a JOIN both b ON a.src = b.src WINDOW 1 MIN
--                                                                                       ^^^^^^

-- case: a column of a view without a type that can be stored
CREATE VIEW v AS SELECT NULL AS nothing FROM packets
-- gives:
-- TypeFault: view v, line 1, column 25: the column 'nothing' has no type that can be stored (VOID); write CAST(NULL AS type)
--   CREATE VIEW v AS SELECT NULL AS nothing FROM packets
--                           ^^^^^^^^^^^^^^^

-- case: a view that was dropped
CREATE VIEW v AS SELECT src FROM packets; DROP VIEW v; SELECT src FROM v
-- gives:
-- UnknownName: query q1, line 1, column 72: no stream, relation or view 'v'; CREATE STREAM declares one
--   CREATE VIEW v AS SELECT src FROM packets; DROP VIEW v; SELECT src FROM v
--                                                                          ^

-- case: a view that is read is not dropped
CREATE VIEW v AS SELECT src FROM packets; CREATE VIEW w AS SELECT * FROM v; CREATE QUERY q AS SELECT * FROM w; DROP VIEW V
-- gives:
-- TypeFault: statement 4, line 1, column 122: view 'V' is read by view 'w', query 'q'; DROP what reads it first
--   EATE VIEW v AS SELECT src FROM packets; CREATE VIEW w AS SELECT * FROM v; CREATE QUERY q AS SELECT * FROM w; DROP VIEW V
--                                                                                                                          ^

-- case: a view of which the readers were dropped
CREATE VIEW v AS SELECT src FROM packets; CREATE QUERY q AS SELECT * FROM v; DROP QUERY q; DROP VIEW v; CREATE VIEW v AS SELECT dst FROM packets; CREATE QUERY q AS SELECT * FROM v
-- gives:
-- VIEW v
-- SELECT dst AS dst: INT
-- FROM packets
-- QUERY q INTO memory
-- SELECT dst AS dst: INT
-- FROM packets

-- case: a view that is unknown is not dropped
CREATE VIEW web AS SELECT src FROM packets; DROP VIEW wed
-- gives:
-- UnknownName: statement 2, line 1, column 55: no view 'wed'
--   CREATE VIEW web AS SELECT src FROM packets; DROP VIEW wed
--                                                         ^^^

-- case: a stream is not dropped
DROP STREAM packets
-- gives:
-- SyntaxFault: statement 1, line 1, column 6: expected QUERY or VIEW after DROP, not STREAM; nothing else can be dropped
--   DROP STREAM packets
--        ^^^^^^

