-- case: the time of a row inside its value
CREATE STREAM events (value STRING, ts TIMESTAMP AS (FROM_JSON(value, 'at TIMESTAMP').at), n AS (LENGTH(value))) FROM text 'in' TIME ts LATENESS 5 SECONDS; SELECT ts, n FROM events WHERE n > 3
-- gives:
-- STREAM events (value STRING, ts TIMESTAMP AS (from_json(value, 'STRUCT<`at`: TIMESTAMP>').at), n INT AS (length(value))) FROM text /app/in TIME ts LATENESS 5
-- QUERY q1 INTO memory
-- SELECT ts AS ts: TIMESTAMP, n AS n: INT
-- FROM events
-- WHERE n > 3

-- case: a number as the time, widened to its declaration
CREATE STREAM events (value STRING, t BIGINT AS (CAST(value AS INT))) FROM text 'in' TIME t UNIT MILLISECONDS
-- gives:
-- STREAM events (value STRING, t BIGINT AS (CAST(CAST(value AS INT) AS BIGINT))) FROM text /app/in TIME t LATENESS 0

-- case: a constant takes the declared type
CREATE STREAM events (value STRING, n BIGINT AS (5), p DECIMAL(10,2) AS (1)) FROM text 'in'
-- gives:
-- STREAM events (value STRING, n BIGINT AS (5::BIGINT), p DECIMAL(10,2) AS (1.00)) FROM text /app/in TIME None LATENESS 0

-- case: another type than the declared one
CREATE STREAM events (value STRING, t TIMESTAMP AS (value)) FROM text 'in'
-- gives:
-- TypeFault: stream events, line 1, column 53: 't' is declared TIMESTAMP, and this is a STRING; write CAST(... AS TIMESTAMP)
--   CREATE STREAM events (value STRING, t TIMESTAMP AS (value)) FROM text 'in'
--                                                       ^^^^^

-- case: a narrower type than that of the expression
CREATE STREAM events (a BIGINT, t INT AS (a + 1)) FROM json 'in'
-- gives:
-- TypeFault: stream events, line 1, column 43: 't' is declared INT, and this is a BIGINT; write CAST(... AS INT)
--   CREATE STREAM events (a BIGINT, t INT AS (a + 1)) FROM json 'in'
--                                             ^^^^^

-- case: a computed column of another
CREATE STREAM events (value STRING, a AS (LENGTH(value)), b AS (a + 1)) FROM text 'in'
-- gives:
-- Refused: stream events, line 1, column 65: 'a' is computed, too; a computed column sees those of the source; repeat the expression
--   CREATE STREAM events (value STRING, a AS (LENGTH(value)), b AS (a + 1)) FROM text 'in'
--                                                                   ^

-- case: a computed column of itself
CREATE STREAM events (value STRING, a AS (a)) FROM text 'in'
-- gives:
-- Refused: stream events, line 1, column 43: 'a' is computed, too; a computed column sees those of the source; repeat the expression
--   CREATE STREAM events (value STRING, a AS (a)) FROM text 'in'
--                                             ^

-- case: a computed column of an unknown one
CREATE STREAM events (value STRING, a AS (LENGTH(valu))) FROM text 'in'
-- gives:
-- UnknownName: stream events, line 1, column 50: no column 'valu' in events; did you mean 'value'?
--   CREATE STREAM events (value STRING, a AS (LENGTH(valu))) FROM text 'in'
--                                                    ^^^^

-- case: a computed column with the name of another
CREATE STREAM events (value STRING, VALUE AS (1)) FROM text 'in'
-- gives:
-- TypeFault: stream events, line 1, column 37: 'VALUE' is declared twice
--   CREATE STREAM events (value STRING, VALUE AS (1)) FROM text 'in'
--                                       ^^^^^

-- case: Python in a computed column
CREATE STREAM events (a INT, b INT, c AS (is_botnet(a, b))) FROM json 'in'
-- gives:
-- Refused: stream events, line 1, column 43: a Python function is not admitted in a computed column; call it in a query
--   CREATE STREAM events (a INT, b INT, c AS (is_botnet(a, b))) FROM json 'in'
--                                             ^^^^^^^^^^^^^^^

-- case: an aggregate in a computed column
CREATE STREAM events (a INT, c AS (COUNT(*))) FROM json 'in'
-- gives:
-- Refused: stream events, line 1, column 36: the aggregate COUNT is not admitted in a computed column
--   CREATE STREAM events (a INT, c AS (COUNT(*))) FROM json 'in'
--                                      ^^^^^

-- case: a query in a computed column
CREATE STREAM events (a INT, c AS (a FROM packets)) FROM json 'in'
-- gives:
-- SyntaxFault: stream events, line 1, column 36: expected one expression
--   CREATE STREAM events (a INT, c AS (a FROM packets)) FROM json 'in'
--                                      ^^^^^^^^^^^^^^

-- case: a computed column of nothing
CREATE STREAM events (a INT, c AS ()) FROM json 'in'
-- gives:
-- SyntaxFault: stream events, line 1, column 35: expected an expression
--   CREATE STREAM events (a INT, c AS ()) FROM json 'in'
--                                     ^^

-- case: a parenthesis of a computed column that is not closed
CREATE STREAM events (a INT, c AS (LENGTH('(') FROM json 'in'
-- gives:
-- SyntaxFault: stream events, line 1, column 35: this parenthesis is not closed
--   CREATE STREAM events (a INT, c AS (LENGTH('(') FROM json 'in'
--                                     ^

-- case: a computed column without a type that can be stored
CREATE STREAM events (a INT, c AS (NULL)) FROM json 'in'
-- gives:
-- TypeFault: stream events, line 1, column 36: the column 'c' has no type that can be stored (VOID); write CAST(NULL AS type)
--   CREATE STREAM events (a INT, c AS (NULL)) FROM json 'in'
--                                      ^^^^

-- case: nothing but computed columns
CREATE STREAM events (c AS (1)) FROM json 'in'
-- gives:
-- TypeFault: stream events, line 1, column 33: every column of this stream is computed; declare the columns that its source has, too
--   CREATE STREAM events (c AS (1)) FROM json 'in'
--                                   ^^^^

-- case: a computed column of a relation
CREATE RELATION names (a INT, c AS (1)) FROM json 'in'
-- gives:
-- SyntaxFault: relation names, line 1, column 33: expected a type such as INT, STRING or TIMESTAMP, not AS
--   CREATE RELATION names (a INT, c AS (1)) FROM json 'in'
--                                   ^^

-- case: the computed time of no column
CREATE STREAM events (value STRING, a AS (LENGTH(value))) FROM text 'in' TIME a
-- gives:
-- TypeFault: stream events, line 1, column 79: 'a' is an INT, not a TIMESTAMP; say what it counts since 1970: TIME a UNIT MILLISECONDS
--   CREATE STREAM events (value STRING, a AS (LENGTH(value))) FROM text 'in' TIME a
--                                                                                 ^

