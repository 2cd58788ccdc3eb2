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
-- Refused: query q1, line 1, column 8: the function INPUT_FILE_NAME is not admitted: its value depends on the machine, not on the row
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
-- Refused: query q1, line 1, column 8: the function NOW is not admitted: its value changes from run to run
--   SELECT NOW() FROM packets
--          ^^^

-- case: chance
SELECT src FROM packets WHERE RAND() < 0.1
-- gives:
-- Refused: query q1, line 1, column 31: the function RAND is not admitted: its value changes from run to run
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
-- Refused: query q1, line 1, column 8: the function AES_ENCRYPT is not admitted
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
-- Refused: query q1, line 1, column 8: the function EXPLODE is not admitted: it makes several rows of one
--   SELECT EXPLODE(path) FROM readings
--          ^^^^^^^

-- case: a subquery in FROM
SELECT src FROM (SELECT src FROM packets) x
-- gives:
-- Refused: query q1, line 1, column 25: a subquery is not admitted in FROM; name a stream or relation
--   SELECT src FROM (SELECT src FROM packets) x
--                           ^^^^^^^^^^^^^^^^^^^

-- case: a subquery in WHERE
SELECT src FROM packets WHERE src IN (SELECT id FROM hosts)
-- gives:
-- Refused: query q1, line 1, column 31: IN with a subquery is not admitted
--   SELECT src FROM packets WHERE src IN (SELECT id FROM hosts)
--                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: EXISTS
SELECT src FROM packets WHERE EXISTS (SELECT 1 FROM hosts)
-- gives:
-- Refused: query q1, line 1, column 31: EXISTS is not admitted here
--   SELECT src FROM packets WHERE EXISTS (SELECT 1 FROM hosts)
--                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a common table expression
WITH x AS (SELECT 1) SELECT src FROM packets
-- gives:
-- Refused: query q1, line 1, column 6: a common table expression (WITH) is not admitted
--   WITH x AS (SELECT 1) SELECT src FROM packets
--        ^^^^^^^^^^^^^^

-- case: DISTINCT
SELECT DISTINCT src FROM packets
-- gives:
-- Refused: query q1, line 1, column 1: DISTINCT is not admitted; a stream has no end
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
-- Refused: query q1, line 1, column 34: ORDER BY is not admitted; a stream has no end
--   SELECT src FROM packets ORDER BY src
--                                    ^^^

-- case: LIMIT
SELECT src FROM packets LIMIT 10
-- gives:
-- Refused: query q1, line 1, column 31: LIMIT is not admitted; a stream has no end
--   SELECT src FROM packets LIMIT 10
--                                 ^^

-- case: a window function
SELECT ROW_NUMBER() OVER (PARTITION BY src ORDER BY ts) AS r FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: a window function (OVER) is not admitted here
--   SELECT ROW_NUMBER() OVER (PARTITION BY src ORDER BY ts) AS r FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: an aggregate over a window
SELECT SUM(length) OVER (PARTITION BY src) AS s FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: a window function (OVER) is not admitted here
--   SELECT SUM(length) OVER (PARTITION BY src) AS s FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a cross join
SELECT src FROM packets CROSS JOIN hosts
-- gives:
-- Refused: query q1, line 1, column 36: CROSS JOIN is not admitted; write JOIN hosts ON ...
--   SELECT src FROM packets CROSS JOIN hosts
--                                      ^^^^^

-- case: a comma with a relation
SELECT src FROM packets, hosts WHERE src = id
-- gives:
-- Refused: query q1, line 1, column 26: CROSS JOIN is not admitted; write JOIN hosts ON ...
--   SELECT src FROM packets, hosts WHERE src = id
--                            ^^^^^

-- case: USING
SELECT src FROM packets JOIN hosts USING (id)
-- gives:
-- Refused: query q1, line 1, column 43: USING is not admitted
--   SELECT src FROM packets JOIN hosts USING (id)
--                                             ^^

-- case: a right join
SELECT src FROM packets RIGHT JOIN hosts ON src = id
-- gives:
-- Refused: query q1, line 1, column 36: RIGHT JOIN is not admitted; JOIN and LEFT JOIN are
--   SELECT src FROM packets RIGHT JOIN hosts ON src = id
--                                      ^^^^^^^^^^^^^^^^^

-- case: an anti join
SELECT src FROM packets LEFT ANTI JOIN hosts ON src = id
-- gives:
-- Refused: query q1, line 1, column 40: LEFT ANTI JOIN is not admitted; JOIN and LEFT JOIN are
--   SELECT src FROM packets LEFT ANTI JOIN hosts ON src = id
--                                          ^^^^^^^^^^^^^^^^^

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

-- case: LATERAL VIEW
SELECT n FROM readings LATERAL VIEW EXPLODE(path) t AS x
-- gives:
-- Refused: query q1, line 1, column 37: LATERAL VIEW is not admitted
--   SELECT n FROM readings LATERAL VIEW EXPLODE(path) t AS x
--                                       ^^^^^^^^^^^^^^^^^^^^

-- case: TABLESAMPLE
SELECT src FROM packets TABLESAMPLE (10 PERCENT)
-- gives:
-- Refused: query q1, line 1, column 38: TABLESAMPLE is not admitted
--   SELECT src FROM packets TABLESAMPLE (10 PERCENT)
--                                        ^^

-- case: bits
SELECT src & 1 FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: the operator & is not admitted here
--   SELECT src & 1 FROM packets
--          ^^^^^^^

-- case: a lambda
SELECT TRANSFORM(path, x -> x + 1) FROM readings
-- gives:
-- Refused: query q1, line 1, column 8: the function TRANSFORM is not admitted
--   SELECT TRANSFORM(path, x -> x + 1) FROM readings
--          ^^^^^^^^^

-- case: columns taken away
SELECT * EXCEPT (src) FROM packets
-- gives:
-- Refused: query q1, line 1, column 18: EXCEPT is not admitted
--   SELECT * EXCEPT (src) FROM packets
--                    ^^^

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
