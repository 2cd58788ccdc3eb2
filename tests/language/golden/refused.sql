-- case: java
SELECT REFLECT('java.lang.System', 'exit', 0) FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function REFLECT is not admitted: it would run any Java method
--   SELECT REFLECT('java.lang.System', 'exit', 0) FROM packets
--          ^^^^^^^

-- case: java by another name
SELECT src FROM packets WHERE java_method('a', 'b') = 'c'
-- gives:
-- Refused: query q1, line 1, column 31: the function java_method is not admitted: it would run any Java method
--   SELECT src FROM packets WHERE java_method('a', 'b') = 'c'
--                                 ^^^^^^^^^^^

-- case: java in backquotes
SELECT `reflect`('a', 'b') FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function reflect is not admitted: it would run any Java method
--   SELECT `reflect`('a', 'b') FROM packets
--          ^^^^^^^^^

-- case: the file
SELECT INPUT_FILE_NAME() FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function INPUT_FILE_NAME is not admitted: its value depends on the machine, not on the row; a column may stand in the names of folders, as in day=2025-01-01/
--   SELECT INPUT_FILE_NAME() FROM packets
--          ^^^^^^^^^^^^^^^

-- case: now
SELECT CURRENT_TIMESTAMP FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function CURRENT_TIMESTAMP is not admitted here
--   SELECT CURRENT_TIMESTAMP FROM packets
--          ^^^^^^^^^^^^^^^^^

-- case: now as a function
SELECT NOW() FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function NOW is not admitted: its value changes from run to run; the time of a row is the stream's TIME column
--   SELECT NOW() FROM packets
--          ^^^

-- case: chance
SELECT src FROM packets WHERE RAND() < 0.1
-- gives:
-- Refused: query q1, line 1, column 31: the function RAND is not admitted: its value changes from run to run; XXHASH64(key) % 100 = 0 takes a hundredth of the rows
--   SELECT src FROM packets WHERE RAND() < 0.1
--                                 ^^^^

-- case: the user
SELECT CURRENT_USER() FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the function CURRENT_USER is not admitted: its value depends on the machine, not on the row
--   SELECT CURRENT_USER() FROM packets
--          ^^^^^^^^^^^^

-- case: a function of Spark that is not admitted
SELECT AES_ENCRYPT(name, 'k') FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function AES_ENCRYPT is not admitted; CREATE FUNCTION declares one in Python
--   SELECT AES_ENCRYPT(name, 'k') FROM readings
--          ^^^^^^^^^^^

-- case: a function that nobody knows
SELECT frobnicate(src) FROM packets
-- gives:
-- UnknownName: query q1, line 1, column 8: no function 'frobnicate'; CREATE FUNCTION declares one in Python
--   SELECT frobnicate(src) FROM packets
--          ^^^^^^^^^^

-- case: a function misspelt
SELECT COALESC(src, 1) FROM packets
-- gives:
-- UnknownName: query q1, line 1, column 8: no function 'COALESC'; did you mean 'COALESCE'?
--   SELECT COALESC(src, 1) FROM packets
--          ^^^^^^^

-- case: rows out of one
SELECT EXPLODE(path) FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function EXPLODE is not admitted: it makes several rows of one; write FROM s LATERAL VIEW explode(x) t AS y, or FROM s CROSS JOIN UNNEST(x) AS t (y)
--   SELECT EXPLODE(path) FROM readings
--          ^^^^^^^

-- case: a subquery in WHERE
SELECT src FROM packets WHERE src IN (SELECT id FROM hosts)
-- gives:
-- Refused: query q1, line 1, column 31: IN with a subquery is not admitted; JOIN the relation
--   SELECT src FROM packets WHERE src IN (SELECT id FROM hosts)
--                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: EXISTS
SELECT src FROM packets WHERE EXISTS (SELECT 1 FROM hosts)
-- gives:
-- Refused: query q1, line 1, column 31: EXISTS is not admitted here; JOIN the relation
--   SELECT src FROM packets WHERE EXISTS (SELECT 1 FROM hosts)
--                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: DISTINCT
SELECT DISTINCT src FROM packets
-- gives:
-- Refused: query q1, line 1, column 1: DISTINCT is not admitted; a stream has no end; only a question takes it
--   SELECT DISTINCT src FROM packets
--   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: UNION
SELECT src FROM packets UNION SELECT dst FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: UNION without ALL is not admitted; write UNION ALL
--   SELECT src FROM packets UNION SELECT dst FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: EXCEPT
SELECT src FROM packets EXCEPT SELECT dst FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: EXCEPT is not admitted; only UNION ALL is
--   SELECT src FROM packets EXCEPT SELECT dst FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: ORDER BY
SELECT src FROM packets ORDER BY src
-- gives:
-- Refused: query q1, line 1, column 25: ORDER BY is not admitted; a stream has no end; only a question takes it
--   SELECT src FROM packets ORDER BY src
--                           ^^^^^^^^^^^^

-- case: LIMIT
SELECT src FROM packets LIMIT 10
-- gives:
-- Refused: query q1, line 1, column 25: LIMIT is not admitted; a stream has no end; only a question takes it
--   SELECT src FROM packets LIMIT 10
--                           ^^^^^^^^

-- case: a window function
SELECT ROW_NUMBER() OVER (PARTITION BY src ORDER BY ts) AS r FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: a window function (OVER) is not admitted here; TOPK(x, 10), MAX_BY(x, y) and LAST(x) answer for windows of time
--   SELECT ROW_NUMBER() OVER (PARTITION BY src ORDER BY ts) AS r FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: an aggregate over a window
SELECT SUM(length) OVER (PARTITION BY src) AS s FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: a window function (OVER) is not admitted here; TOPK(x, 10), MAX_BY(x, y) and LAST(x) answer for windows of time
--   SELECT SUM(length) OVER (PARTITION BY src) AS s FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a cross join
SELECT src FROM packets CROSS JOIN hosts
-- gives:
-- Refused: query q1, line 1, column 25: CROSS JOIN is not admitted; write JOIN hosts ON ...
--   SELECT src FROM packets CROSS JOIN hosts
--                           ^^^^^^^^^^^^^^^^

-- case: a comma with a relation
SELECT src FROM packets, hosts WHERE src = id
-- gives:
-- Refused: query q1, line 1, column 26: CROSS JOIN is not admitted; write JOIN hosts ON ...
--   SELECT src FROM packets, hosts WHERE src = id
--                            ^^^^^

-- case: USING
SELECT src FROM packets JOIN hosts USING (id)
-- gives:
-- Refused: query q1, line 1, column 36: USING is not admitted; write ON ...
--   SELECT src FROM packets JOIN hosts USING (id)
--                                      ^^^^^^^^^

-- case: a right join
SELECT src FROM packets RIGHT JOIN hosts ON src = id
-- gives:
-- Refused: query q1, line 1, column 25: RIGHT JOIN is not admitted; JOIN and LEFT JOIN are
--   SELECT src FROM packets RIGHT JOIN hosts ON src = id
--                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: an anti join
SELECT src FROM packets LEFT ANTI JOIN hosts ON src = id
-- gives:
-- Refused: query q1, line 1, column 25: LEFT ANTI JOIN is not admitted; JOIN and LEFT JOIN are
--   SELECT src FROM packets LEFT ANTI JOIN hosts ON src = id
--                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a python function in ON
SELECT src FROM packets JOIN hosts ON is_botnet(src, id)
-- gives:
-- Refused: query q1, line 1, column 39: a Python function is not admitted in ON; put it into WHERE
--   SELECT src FROM packets JOIN hosts ON is_botnet(src, id)
--                                         ^^^^^^^^^

-- case: a table function
SELECT id FROM RANGE(10)
-- gives:
-- Refused: query q1, line 1, column 16: a function is not admitted in FROM; name a stream or relation
--   SELECT id FROM RANGE(10)
--                  ^^^^^^^^

-- case: TABLESAMPLE
SELECT src FROM packets TABLESAMPLE (10 PERCENT)
-- gives:
-- Refused: query q1, line 1, column 25: TABLESAMPLE is not admitted
--   SELECT src FROM packets TABLESAMPLE (10 PERCENT)
--                           ^^^^^^^^^^^^^^^

-- case: a lambda
SELECT TRANSFORM(path, x -> x + 1) FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function TRANSFORM is not admitted; a lambda is not admitted; CREATE FUNCTION declares one in Python
--   SELECT TRANSFORM(path, x -> x + 1) FROM readings
--          ^^^^^^^^^

-- case: columns taken away
SELECT * EXCEPT (src) FROM packets
-- gives:
-- Refused: query q1, line 1, column 10: EXCEPT is not admitted
--   SELECT * EXCEPT (src) FROM packets
--            ^^^^^^^^^^^

-- case: a placeholder
SELECT src FROM packets WHERE src = ?
-- gives:
-- Refused: query q1, line 1, column 37: a placeholder is not admitted here
--   SELECT src FROM packets WHERE src = ?
--                                       ^

-- case: a qualified table
SELECT src FROM other.packets
-- gives:
-- UnknownName: query q1, line 1, column 17: streams and relations have plain names
--   SELECT src FROM other.packets
--                   ^^^^^^^^^^^^^

-- case: pipes
SELECT src FROM packets |> WHERE src > 1
-- gives:
-- SyntaxFault: query q1, line 1, column 25: unexpected '|>'; expected an operator, a comma, or a clause such as FROM, JOIN or WHERE
--   SELECT src FROM packets |> WHERE src > 1
--                           ^^

-- case: a join without its condition
SELECT p.src, h.site FROM packets p JOIN hosts h
-- gives:
-- TypeFault: query q1, line 1, column 37: a join needs its condition; write JOIN hosts ON ...
--   SELECT p.src, h.site FROM packets p JOIN hosts h
--                                       ^^^^^^^^^^

-- case: a left join without its condition before WHERE
SELECT p.src FROM packets p LEFT JOIN hosts WHERE p.src > 1
-- gives:
-- TypeFault: query q1, line 1, column 34: a join needs its condition; write JOIN hosts ON ...
--   SELECT p.src FROM packets p LEFT JOIN hosts WHERE p.src > 1
--                                    ^^^^^^^^^^

-- case: one join of two without its condition
SELECT p.src FROM packets p JOIN hosts h JOIN sites s ON s.site = h.site
-- gives:
-- TypeFault: query q1, line 1, column 29: a join needs its condition; write JOIN hosts ON ...
--   SELECT p.src FROM packets p JOIN hosts h JOIN sites s ON s.site = h.site
--                               ^^^^^^^^^^

-- case: HOP with the size first, as Spark's window() has it
SELECT COUNT(*) FROM packets GROUP BY HOP(ts, INTERVAL '10' MINUTE, INTERVAL '2' MINUTE)
-- gives:
-- TypeFault: query q1, line 1, column 39: HOP: the slide of 10 min is longer than the window of 2 min, so rows between two windows would be in none; the slide comes first: write HOP(..., '2 min', '10 min')
--   SELECT COUNT(*) FROM packets GROUP BY HOP(ts, INTERVAL '10' MINUTE, INTERVAL '2' MINUTE)
--                                         ^^^

-- case: HOP over a table with the size first
SELECT COUNT(*) FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '2' MINUTE))
-- gives:
-- TypeFault: query q1, line 1, column 22: HOP: the slide of 10 min is longer than the window of 2 min, so rows between two windows would be in none; the slide comes first: write HOP(..., '2 min', '10 min')
--   SELECT COUNT(*) FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '2' MINUTE))
--                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: more answers than a second of data can have
SELECT COUNT(*) FROM packets [WINDOW 1 MIN SLIDE 1 us]
-- gives:
-- Refused: query q1, line 1, column 50: a slide of 1 us gives more than 1,000 answers per second of data; the shortest slide is 1 ms
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN SLIDE 1 us]
--                                                    ^^^^

-- case: a window that slides by its own length, which is too short
SELECT COUNT(*) FROM packets [WINDOW 999 us]
-- gives:
-- Refused: query q1, line 1, column 38: a slide of 999 us gives more than 1,000 answers per second of data; the shortest slide is 1 ms
--   SELECT COUNT(*) FROM packets [WINDOW 999 us]
--                                        ^^^^^^

-- case: HOP with a slide that is too short
SELECT COUNT(*) FROM packets GROUP BY HOP(ts, INTERVAL '10' us, INTERVAL '2' MINUTE)
-- gives:
-- Refused: query q1, line 1, column 39: a slide of 10 us gives more than 1,000 answers per second of data; the shortest slide is 1 ms
--   SELECT COUNT(*) FROM packets GROUP BY HOP(ts, INTERVAL '10' us, INTERVAL '2' MINUTE)
--                                         ^^^

-- case: a query that reads a query
CREATE QUERY a AS SELECT ts, src FROM packets;
CREATE QUERY b AS SELECT src FROM a
-- gives:
-- Refused: query b, line 2, column 35: 'a' is a query, and a query reads streams, relations and views; CREATE VIEW names a text for several
--   CREATE QUERY b AS SELECT src FROM a
--                                     ^

-- case: a join with USING
SELECT packets.src FROM packets JOIN hosts USING (id)
-- gives:
-- Refused: query q1, line 1, column 44: USING is not admitted; write ON ...
--   SELECT packets.src FROM packets JOIN hosts USING (id)
--                                              ^^^^^^^^^

-- case: a quantile by another name
SELECT QUANTILE(length, 0.95) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 8: the function QUANTILE is not admitted; write PERCENTILE(x, 0.95)
--   SELECT QUANTILE(length, 0.95) FROM packets [WINDOW 1 MIN]
--          ^^^^^^^^

