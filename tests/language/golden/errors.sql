-- case: a column that is nearly there
SELECT lenght FROM packets
-- gives:
-- UnknownName: query q1, line 1, column 8: no column 'lenght' in packets; did you mean 'length'?
--   SELECT lenght FROM packets
--          ^^^^^^

-- case: a column on a later line
CREATE QUERY q AS
  SELECT src,
         dts
  FROM packets
-- gives:
-- UnknownName: query q, line 3, column 10: no column 'dts' in packets; did you mean 'ts'?
--            dts
--            ^^^

-- case: a column of another input
SELECT p.site FROM packets p JOIN hosts h ON p.src = h.id
-- gives:
-- UnknownName: query q1, line 1, column 8: no column 'site' in p; it has ts, src, dst, port, length
--   SELECT p.site FROM packets p JOIN hosts h ON p.src = h.id
--          ^^^^^^

-- case: an alias that is not there
SELECT q.src FROM packets p
-- gives:
-- UnknownName: query q1, line 1, column 8: nothing in this query is called 'q'; the query reads p
--   SELECT q.src FROM packets p
--          ^^^^^

-- case: an ambiguous column
SELECT site FROM packets JOIN hosts ON src = id JOIN sites ON region = hosts.site
-- gives:
-- UnknownName: query q1, line 1, column 8: 'site' is ambiguous; write hosts.site or sites.site
--   SELECT site FROM packets JOIN hosts ON src = id JOIN sites ON region = hosts.site
--          ^^^^

-- case: a stream that is nearly there
SELECT src FROM packet
-- gives:
-- UnknownName: query q1, line 1, column 17: no stream, relation or view 'packet'; did you mean 'packets'?
--   SELECT src FROM packet
--                   ^^^^^^

-- case: a relation is not a stream
SELECT id FROM hosts
-- gives:
-- TypeFault: query q1, line 1, column 16: 'hosts' is a relation, not a stream; a query reads one stream; join the relation to it
--   SELECT id FROM hosts
--                  ^^^^^

-- case: a relation before the stream
SELECT id FROM hosts JOIN packets ON src = id
-- gives:
-- TypeFault: query q1, line 1, column 16: 'hosts' is a relation, not a stream; write the stream first: FROM stream JOIN relation
--   SELECT id FROM hosts JOIN packets ON src = id
--                  ^^^^^

-- case: the same alias twice
SELECT p.src FROM packets p JOIN hosts p ON src = id
-- gives:
-- TypeFault: query q1, line 1, column 34: two inputs are called 'p'; give one of them an alias
--   SELECT p.src FROM packets p JOIN hosts p ON src = id
--                                    ^^^^^^^

-- case: no FROM
SELECT 1
-- gives:
-- TypeFault: query q1, line 1, column 8: this SELECT has no FROM; a query reads a stream: SELECT ... FROM packets
--   SELECT 1
--          ^

-- case: a field that is not there
SELECT nested.aa FROM readings
-- gives:
-- UnknownName: query q1, line 1, column 8: no field 'aa' in the struct; it has a, b
--   SELECT nested.aa FROM readings
--          ^^^^^^^^^

-- case: a field of a number
SELECT n.x FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: a value of type INT has no field 'x'
--   SELECT n.x FROM readings
--          ^^^

-- case: two columns of one name
SELECT src, dst AS SRC FROM packets
-- gives:
-- TypeFault: query q1, line 1, column 13: two columns of the answer are called 'SRC'; name one of them with AS
--   SELECT src, dst AS SRC FROM packets
--               ^^^^^^^^^^

-- case: star of two inputs with one name
SELECT * FROM packets JOIN hosts ON src = id JOIN sites ON sites.site = hosts.site
-- gives:
-- TypeFault: query q1, line 1, column 8: two columns of the answer are called 'site'; name one of them with AS
--   SELECT * FROM packets JOIN hosts ON src = id JOIN sites ON sites.site = hosts.site
--          ^

-- case: a condition that is none
SELECT src FROM packets WHERE src
-- gives:
-- TypeFault: query q1, line 1, column 31: the condition of WHERE must be BOOLEAN, not INT
--   SELECT src FROM packets WHERE src
--                                 ^^^

-- case: AND of numbers
SELECT src FROM packets WHERE src AND dst > 1
-- gives:
-- TypeFault: query q1, line 1, column 31: each side of AND must be BOOLEAN, not INT
--   SELECT src FROM packets WHERE src AND dst > 1
--                                 ^^^

-- case: comparing what cannot be compared
SELECT n FROM readings WHERE ok > 5
-- gives:
-- TypeFault: query q1, line 1, column 30: a BOOLEAN cannot be compared with an INT
--   SELECT n FROM readings WHERE ok > 5
--                                ^^^^^^

-- case: comparing maps
SELECT n FROM readings WHERE tags = tags
-- gives:
-- TypeFault: query q1, line 1, column 30: a MAP<STRING, INT> cannot be compared
--   SELECT n FROM readings WHERE tags = tags
--                                ^^^^^^^^^^^

-- case: a text that is no number
SELECT src FROM packets WHERE length = 'abc'
-- gives:
-- TypeFault: query q1, line 1, column 31: 'abc' is not an INT
--   SELECT src FROM packets WHERE length = 'abc'
--                                 ^^^^^^^^^^^^^^

-- case: a text that is no time
SELECT src FROM packets WHERE ts > 'yesterday'
-- gives:
-- TypeFault: query q1, line 1, column 31: 'yesterday' is not a TIMESTAMP
--   SELECT src FROM packets WHERE ts > 'yesterday'
--                                 ^^^^^^^^^^^^^^^^

-- case: a date that is none
SELECT src FROM packets WHERE ts > DATE '2024-02-30'
-- gives:
-- TypeFault: query q1, line 1, column 36: '2024-02-30' is not a DATE
--   SELECT src FROM packets WHERE ts > DATE '2024-02-30'
--                                      ^^^^^^^^^^^^^^^^^

-- case: adding texts
SELECT name + 1 FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: + takes numbers, not a STRING; CAST it to a number
--   SELECT name + 1 FROM readings
--          ^^^^^^^^

-- case: subtracting times
SELECT at - at FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: - takes numbers, not a TIMESTAMP; take UNIX_TIMESTAMP of it
--   SELECT at - at FROM readings
--          ^^^^^^^

-- case: branches without a common type
SELECT CASE WHEN ok THEN n ELSE name END FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: the branches of CASE have no common type: INT and STRING; CAST one of them
--   SELECT CASE WHEN ok THEN n ELSE name END FROM readings
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a cast that does not exist
SELECT CAST(day AS INT) FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: a DATE cannot be cast to INT
--   SELECT CAST(day AS INT) FROM readings
--          ^^^^^^^^^^^^^^^^

-- case: a type that does not exist
SELECT CAST(n AS INTT) FROM readings
-- gives:
-- SyntaxFault: query q1, line 1, column 18: expected a type after CAST at 'INTT'
--   SELECT CAST(n AS INTT) FROM readings
--                    ^^^^

-- case: a column without a type
SELECT NULL AS x FROM packets
-- gives:
-- TypeFault: query q1, line 1, column 8: the column 'x' has no type that can be stored (VOID); write CAST(NULL AS type)
--   SELECT NULL AS x FROM packets
--          ^^^^^^^^^

-- case: union of different widths
SELECT src FROM packets UNION ALL SELECT n, big FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 42: this SELECT has 2 columns, the first of the UNION has 1
--   SELECT src FROM packets UNION ALL SELECT n, big FROM readings
--                                            ^^^^^^^^^^^^^^^^^^^^

-- case: union of different types
SELECT src FROM packets UNION ALL SELECT name FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 42: the columns 'src' have no common type: INT and STRING; CAST one of them
--   SELECT src FROM packets UNION ALL SELECT name FROM readings
--                                            ^^^^

-- case: too few arguments
SELECT MD5() FROM packets
-- gives:
-- TypeFault: query q1, line 1, column 8: MD5 takes 1 argument, not 0
--   SELECT MD5() FROM packets
--          ^^^

-- case: too many arguments
SELECT ABS(src, dst) FROM packets
-- gives:
-- TypeFault: query q1, line 1, column 8: ABS takes 1 argument, not 2
--   SELECT ABS(src, dst) FROM packets
--          ^^^

-- case: arguments of a python function
SELECT src FROM packets WHERE is_botnet(src)
-- gives:
-- TypeFault: query q1, line 1, column 31: is_botnet takes 2 arguments, not 1
--   SELECT src FROM packets WHERE is_botnet(src)
--                                 ^^^^^^^^^

-- case: an argument of the wrong kind
SELECT SQRT(name) FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: SQRT: expected a number, not a STRING; CAST it
--   SELECT SQRT(name) FROM readings
--          ^^^^

-- case: a pattern that is no constant
SELECT n FROM readings WHERE name LIKE name
-- gives:
-- TypeFault: query q1, line 1, column 30: LIKE: expected a constant in quotes
--   SELECT n FROM readings WHERE name LIKE name
--                                ^^^^^^^^^^^^^^

-- case: a LIKE that ends in its escape
SELECT n FROM readings WHERE name LIKE 'a\\'
-- gives:
-- TypeFault: query q1, line 1, column 30: \ in a LIKE pattern must stand before %, _ or \; write \\ for \ itself
--   SELECT n FROM readings WHERE name LIKE 'a\\'
--                                ^^^^^^^^^^^^^^^

-- case: a bracket that is not closed
SELECT n FROM readings WHERE name RLIKE 'a(b'
-- gives:
-- TypeFault: query q1, line 1, column 30: the regular expression has a ( that is not closed at character 4
--   SELECT n FROM readings WHERE name RLIKE 'a(b'
--                                ^^^^^^^^^^^^^^^^

-- case: a group that the pattern lacks
SELECT REGEXP_EXTRACT(name, '(a)', 2) FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: the pattern has 1 groups, so there is no group 2; 0 is the whole match
--   SELECT REGEXP_EXTRACT(name, '(a)', 2) FROM readings
--          ^^^^^^^^^^^^^^

-- case: a replacement with a group that the pattern lacks
SELECT REGEXP_REPLACE(name, 'a', '$1') FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: $ in a replacement must name a group of the pattern; write \\$ for a dollar
--   SELECT REGEXP_REPLACE(name, 'a', '$1') FROM readings
--          ^^^^^^^^^^^^^^

-- case: a repetition without bound
SELECT n FROM readings WHERE name RLIKE '(a|b)*c'
-- gives:
-- TypeFault: query q1, line 1, column 30: the regular expression repeats a group that can match in several ways more than a thousand times, which runs out of stack on a long string; bound it: {0,100} instead of * or +
--   SELECT n FROM readings WHERE name RLIKE '(a|b)*c'
--                                ^^^^^^^^^^^^^^^^^^^^

-- case: part 0
SELECT SPLIT_PART(name, ',', 0) FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: SPLIT_PART counts from 1, or from -1 backwards
--   SELECT SPLIT_PART(name, ',', 0) FROM readings
--          ^^^^^^^^^^

-- case: a unit that DATE_TRUNC lacks
SELECT DATE_TRUNC('fortnight', at) FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: DATE_TRUNC knows no unit 'FORTNIGHT'; it knows YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND
--   SELECT DATE_TRUNC('fortnight', at) FROM readings
--          ^^^^^^^^^^

-- case: a schema that is none
SELECT FROM_JSON(name, 'a INTT') FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: FROM_JSON: this is not a schema: expected a type such as INT, STRING or TIMESTAMP, not INTT; did you mean 'INT'?
--   SELECT FROM_JSON(name, 'a INTT') FROM readings
--          ^^^^^^^^^

-- case: a schema that is no constant
SELECT FROM_JSON(name, name) FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: FROM_JSON: expected a constant in quotes
--   SELECT FROM_JSON(name, name) FROM readings
--          ^^^^^^^^^

-- case: an interval of months
SELECT at + INTERVAL 1 MONTH FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 13: an interval of MONTH has no fixed length; write it in DAYS
--   SELECT at + INTERVAL 1 MONTH FROM readings
--               ^^^^^^^^^^^^^^^^

-- case: comparisons do not chain
SELECT n FROM readings WHERE n = 1 = ok
-- gives:
-- SyntaxFault: query q1, line 1, column 30: write parentheses: comparisons do not chain
--   SELECT n FROM readings WHERE n = 1 = ok
--                                ^^^^^^^^^^

-- case: a string that is not closed
SELECT src FROM packets WHERE 'abc
-- gives:
-- SyntaxFault: statement 1, line 1, column 31: this string is not closed
--   SELECT src FROM packets WHERE 'abc
--                                 ^

-- case: a name that is not closed
SELECT `src FROM packets
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: this quoted name is not closed
--   SELECT `src FROM packets
--          ^

-- case: a comment that is not closed
SELECT src FROM packets /* here
-- gives:
-- SyntaxFault: statement 1, line 1, column 25: this comment is not closed
--   SELECT src FROM packets /* here
--                           ^^

-- case: a parenthesis that is not closed
SELECT src FROM packets WHERE (src > 1
-- gives:
-- SyntaxFault: query q1, line 1, column 38: expected ) after '1'
--   SELECT src FROM packets WHERE (src > 1
--                                        ^

-- case: a keyword misspelt
SELECT src FORM packets
-- gives:
-- SyntaxFault: query q1, line 1, column 17: unexpected 'packets'; did you mean 'FROM'?
--   SELECT src FORM packets
--                   ^^^^^^^

-- case: nothing after AND
SELECT src FROM packets WHERE src > 1 AND
-- gives:
-- SyntaxFault: query q1, line 1, column 39: expected more after 'AND'
--   SELECT src FROM packets WHERE src > 1 AND
--                                         ^^^

-- case: an empty item
SELECT src,, dst FROM packets
-- gives:
-- SyntaxFault: query q1, line 1, column 11: something is missing at ','; expected a value or a column
--   SELECT src,, dst FROM packets
--             ^

-- case: an empty list
SELECT src FROM packets WHERE src IN ()
-- gives:
-- SyntaxFault: query q1, line 1, column 31: expected values between ( and ) after IN
--   SELECT src FROM packets WHERE src IN ()
--                                 ^^^

-- case: two statements without a semicolon
SELECT src FROM packets SELECT dst FROM packets
-- gives:
-- SyntaxFault: query q1, line 1, column 25: unexpected 'SELECT'; expected an operator, a comma, or a clause such as FROM, JOIN or WHERE
--   SELECT src FROM packets SELECT dst FROM packets
--                           ^^^^^^

-- case: an unknown statement
UPDATE packets SET src = 1
-- gives:
-- SyntaxFault: statement 1, line 1, column 1: expected CREATE, DROP, SET, SELECT, SHOW or DESCRIBE, not UPDATE; answers are never changed
--   UPDATE packets SET src = 1
--   ^^^^^^

-- case: a statement misspelt
CREAT STREAM s (a INT) FROM rate
-- gives:
-- SyntaxFault: statement 1, line 1, column 1: expected CREATE, DROP, SET, SELECT, SHOW or DESCRIBE, not CREAT; did you mean 'CREATE'?
--   CREAT STREAM s (a INT) FROM rate
--   ^^^^^

-- case: a kind misspelt
CREATE STREM s (a INT) FROM rate
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: expected STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE, not STREM; did you mean 'STREAM'?
--   CREATE STREM s (a INT) FROM rate
--          ^^^^^

-- case: a stream without columns
CREATE STREAM s FROM rate
-- gives:
-- SyntaxFault: stream s, line 1, column 17: expected (, not FROM
--   CREATE STREAM s FROM rate
--                   ^^^^

-- case: a type misspelt
CREATE STREAM s (a STRNG) FROM rate
-- gives:
-- SyntaxFault: stream s, line 1, column 20: expected a type such as INT, STRING or TIMESTAMP, not STRNG; did you mean 'STRING'?
--   CREATE STREAM s (a STRNG) FROM rate
--                      ^^^^^

-- case: a column twice
CREATE STREAM s (a INT, A STRING) FROM rate
-- gives:
-- TypeFault: stream s, line 1, column 25: 'A' is declared twice
--   CREATE STREAM s (a INT, A STRING) FROM rate
--                           ^

-- case: a decimal that does not exist
CREATE STREAM s (a DECIMAL(50, 2)) FROM rate
-- gives:
-- TypeFault: stream s, line 1, column 27: DECIMAL(50,2) does not exist; a DECIMAL has 1 to 38 digits, and no more after the point than in all
--   CREATE STREAM s (a DECIMAL(50, 2)) FROM rate
--                             ^

-- case: a time column that is not there
CREATE STREAM s (ts TIMESTAMP) FROM rate TIME t
-- gives:
-- UnknownName: stream s, line 1, column 47: no column 't'
--   CREATE STREAM s (ts TIMESTAMP) FROM rate TIME t
--                                                 ^

-- case: a time column that is none
CREATE STREAM s (ts INT) FROM rate TIME ts
-- gives:
-- TypeFault: stream s, line 1, column 41: 'ts' is an INT, not a TIMESTAMP; say what it counts since 1970: TIME ts UNIT MILLISECONDS
--   CREATE STREAM s (ts INT) FROM rate TIME ts
--                                           ^^

-- case: a time with a unit that is none
CREATE STREAM s (ts BIGINT) FROM rate TIME ts UNIT MINUTES
-- gives:
-- SyntaxFault: stream s, line 1, column 52: expected a unit: SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS, not MINUTES
--   CREATE STREAM s (ts BIGINT) FROM rate TIME ts UNIT MINUTES
--                                                      ^^^^^^^

-- case: a unit for what is no number
CREATE STREAM s (ts TIMESTAMP) FROM rate TIME ts UNIT SECONDS
-- gives:
-- TypeFault: stream s, line 1, column 47: 'ts' is a TIMESTAMP, not a number; a TIMESTAMP needs no UNIT
--   CREATE STREAM s (ts TIMESTAMP) FROM rate TIME ts UNIT SECONDS
--                                                 ^^

-- case: an option of a stream that is no duration
CREATE STREAM s (ts TIMESTAMP) FROM rate OPTIONS (maxAhead = 'far') TIME ts
-- gives:
-- TypeFault: stream s, line 1, column 42: the option maxAhead: 'far' is not a duration such as '10 minutes' or '500 ms'
--   CREATE STREAM s (ts TIMESTAMP) FROM rate OPTIONS (maxAhead = 'far') TIME ts
--                                            ^^^^^^^

-- case: lateness without time
CREATE STREAM s (ts TIMESTAMP) FROM rate LATENESS 5 SECONDS
-- gives:
-- TypeFault: stream s, line 1, column 51: LATENESS needs TIME; name the column that holds the time
--   CREATE STREAM s (ts TIMESTAMP) FROM rate LATENESS 5 SECONDS
--                                                     ^^^^^^^^^

-- case: a duration that is none
CREATE STREAM s (ts TIMESTAMP) FROM rate TIME ts LATENESS 5 PARSECS
-- gives:
-- SyntaxFault: stream s, line 1, column 59: '5 PARSECS' is not a duration such as '10 minutes' or '500 ms'
--   CREATE STREAM s (ts TIMESTAMP) FROM rate TIME ts LATENESS 5 PARSECS
--                                                             ^^^^^^^^^

-- case: a clause twice
CREATE STREAM s (ts TIMESTAMP) FROM rate TIME ts TIME ts
-- gives:
-- SyntaxFault: stream s, line 1, column 50: TIME is given twice
--   CREATE STREAM s (ts TIMESTAMP) FROM rate TIME ts TIME ts
--                                                    ^^^^

-- case: an option twice
CREATE STREAM s (a INT) FROM rate OPTIONS (x = 1, X = 2)
-- gives:
-- SyntaxFault: stream s, line 1, column 51: the option 'X' is given twice
--   CREATE STREAM s (a INT) FROM rate OPTIONS (x = 1, X = 2)
--                                                     ^

-- case: an option without a value
CREATE STREAM s (a INT) FROM rate OPTIONS (x = )
-- gives:
-- SyntaxFault: stream s, line 1, column 48: expected a value: a quoted text, a number, true, false or ENV 'NAME', not )
--   CREATE STREAM s (a INT) FROM rate OPTIONS (x = )
--                                                  ^

-- case: a list into csv
CREATE QUERY q INTO csv 'out' AS SELECT FROM_JSON('[1]', 'ARRAY<INT>') AS parts FROM packets
-- gives:
-- TypeFault: query q, line 1, column 21: csv cannot hold column 'parts', which is ARRAY<INT>; INTO json holds it
--   CREATE QUERY q INTO csv 'out' AS SELECT FROM_JSON('[1]', 'ARRAY<INT>') AS parts FROM packets
--                       ^^^

-- case: an unknown sink
CREATE QUERY q INTO parket 'x' AS SELECT src FROM packets
-- gives:
-- UnknownName: query q, line 1, column 21: no sink 'parket'; did you mean 'parquet'?
--   CREATE QUERY q INTO parket 'x' AS SELECT src FROM packets
--                       ^^^^^^

-- case: a sink without its folder
CREATE QUERY q INTO parquet AS SELECT src FROM packets
-- gives:
-- SyntaxFault: query q, line 1, column 29: expected the folder of parquet, in quotes, not AS
--   CREATE QUERY q INTO parquet AS SELECT src FROM packets
--                               ^^

-- case: a sink that takes no folder
CREATE QUERY q INTO memory 'x' AS SELECT src FROM packets
-- gives:
-- SyntaxFault: query q, line 1, column 28: the sink memory takes no target
--   CREATE QUERY q INTO memory 'x' AS SELECT src FROM packets
--                              ^^^

-- case: a sink twice
CREATE QUERY q INTO memory, parquet 'x', memory AS SELECT src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 42: the sink memory is named twice
--   CREATE QUERY q INTO memory, parquet 'x', memory AS SELECT src FROM packets
--                                            ^^^^^^

-- case: one folder for two formats
CREATE QUERY q INTO parquet 'x', csv './x' AS SELECT src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 34: /app/x cannot hold both parquet and csv files; name another folder
--   CREATE QUERY q INTO parquet 'x', csv './x' AS SELECT src FROM packets
--                                    ^^^

-- case: a list into the second sink
CREATE QUERY q INTO json 'out', csv 'text' AS SELECT path FROM readings
-- gives:
-- TypeFault: query q, line 1, column 21: csv cannot hold column 'path', which is ARRAY<INT>; INTO json holds it
--   CREATE QUERY q INTO json 'out', csv 'text' AS SELECT path FROM readings
--                       ^^^^

-- case: a comma after the last sink
CREATE QUERY q INTO memory, AS SELECT src FROM packets
-- gives:
-- UnknownName: query q, line 1, column 29: no sink 'as'; there are parquet, csv, json, console, memory, callback, kafka, noop
--   CREATE QUERY q INTO memory, AS SELECT src FROM packets
--                               ^^

-- case: answers into a Delta table
CREATE QUERY q INTO delta 'x' AS SELECT src FROM packets
-- gives:
-- NotYet: query q, line 1, column 21: there is no writer of delta tables for this version of Spark; write INTO parquet 'folder' and load its files into the table: they appear whole and never change
--   CREATE QUERY q INTO delta 'x' AS SELECT src FROM packets
--                       ^^^^^

-- case: an unknown option of a query
CREATE QUERY q WITH (latncy = '1 s') AS SELECT src FROM packets
-- gives:
-- UnknownName: query q, line 1, column 22: a query has no option 'latncy'; did you mean 'latency'?
--   CREATE QUERY q WITH (latncy = '1 s') AS SELECT src FROM packets
--                        ^^^^^^

-- case: a start that is none
CREATE QUERY q WITH (start = 'tomorrow') AS SELECT src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 30: start is 'now' or 'earliest', not 'tomorrow'
--   CREATE QUERY q WITH (start = 'tomorrow') AS SELECT src FROM packets
--                                ^^^^^^^^^^

-- case: a priority that is none
CREATE QUERY q WITH (priority = 'high') AS SELECT src FROM packets
-- gives:
-- SyntaxFault: query q, line 1, column 33: expected a whole number, not 'high'
--   CREATE QUERY q WITH (priority = 'high') AS SELECT src FROM packets
--                                   ^^^^^^

-- case: an unknown setting
SET memry = '1 GB'
-- gives:
-- UnknownName: setting memry, line 1, column 5: no setting 'memry'; did you mean 'memory'?
--   SET memry = '1 GB'
--       ^^^^^

-- case: a size that is none
SET memory = 'a lot'
-- gives:
-- TypeFault: setting memory, line 1, column 14: 'a lot' is not a size such as '512 MB' or '2 GB'
--   SET memory = 'a lot'
--                ^^^^^^^

-- case: a policy that is none
SET operators = 'mixed(gamma=)'
-- gives:
-- TypeFault: setting operators, line 1, column 17: 'mixed(gamma=)' is not a policy such as 'fifo' or 'mixed(gamma=0.01)'
--   SET operators = 'mixed(gamma=)'
--                   ^^^^^^^^^^^^^^^

-- case: a number of slots that is none
SET slots = 'two'
-- gives:
-- TypeFault: setting slots, line 1, column 13: 'two' is neither 'auto' nor a whole number of at least 1
--   SET slots = 'two'
--               ^^^^^

-- case: no slot at all
SET slots = 0
-- gives:
-- TypeFault: setting slots, line 1, column 13: '0' is neither 'auto' nor a whole number of at least 1
--   SET slots = 0
--               ^

-- case: dropping what is not there
CREATE QUERY bigger AS SELECT src FROM packets; DROP QUERY big
-- gives:
-- UnknownName: statement 2, line 1, column 60: no query 'big'
--   CREATE QUERY bigger AS SELECT src FROM packets; DROP QUERY big
--                                                              ^^^

-- case: dropping a stream
DROP STREAM packets
-- gives:
-- SyntaxFault: statement 1, line 1, column 6: expected QUERY or VIEW after DROP, not STREAM; nothing else can be dropped
--   DROP STREAM packets
--        ^^^^^^

-- case: a function that cannot be imported
CREATE FUNCTION f FROM 'no_such_module:f'
-- gives:
-- LanguageError: function f, line 1, column 24: cannot import no_such_module: ModuleNotFoundError: No module named 'no_such_module'
--   CREATE FUNCTION f FROM 'no_such_module:f'
--                          ^^^^^^^^^^^^^^^^^^

-- case: a function called like one of ours
CREATE FUNCTION abs FROM 'detectors:score'
-- gives:
-- TypeFault: function abs, line 1, column 17: the language has a function ABS already
--   CREATE FUNCTION abs FROM 'detectors:score'
--                   ^^^

-- case: a function without its module
CREATE FUNCTION f FROM 'score'
-- gives:
-- SyntaxFault: function f, line 1, column 24: expected 'module:name'
--   CREATE FUNCTION f FROM 'score'
--                          ^^^^^^^

-- case: a statement that is not ended
CREATE QUERY a AS SELECT src FROM packets
CREATE QUERY b AS SELECT dst FROM packets
-- gives:
-- SyntaxFault: query a, line 2, column 1: unexpected 'CREATE'; a ; ends the statement before
--   CREATE QUERY b AS SELECT dst FROM packets
--   ^^^^^^

-- case: OR REPLACE
CREATE OR REPLACE QUERY q AS SELECT src FROM packets
-- gives:
-- SyntaxFault: statement 1, line 1, column 8: expected STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE, not OR; DROP the query or view first, then CREATE it
--   CREATE OR REPLACE QUERY q AS SELECT src FROM packets
--          ^^

-- case: INSERT
INSERT INTO out SELECT src FROM packets
-- gives:
-- TypeFault: statement 1, line 1, column 8: answers go to a sink by its kind, and out is none; write CREATE QUERY out INTO parquet 'out/out' AS SELECT ...
--   INSERT INTO out SELECT src FROM packets
--          ^^^^^^^^

-- case: SHOW of what is not listed
SHOW TABLES
-- gives:
-- SyntaxFault: statement 1, line 1, column 6: expected one of FUNCTIONS, POLICIES, QUERIES, RELATIONS, SETTINGS, STREAMS, VIEWS after SHOW, not TABLES
--   SHOW TABLES
--        ^^^^^^

-- case: DESCRIBE a name that is not declared
DESCRIBE pakets
-- gives:
-- UnknownName: statement 1, line 1, column 10: no stream, relation, view, function or query 'pakets'; did you mean 'packets'?
--   DESCRIBE pakets
--            ^^^^^^

-- case: EXPLAIN a question
EXPLAIN SELECT src FROM packets
-- gives:
-- SyntaxFault: statement 1, line 1, column 9: expected the name of a query, not SELECT; CREATE QUERY gives it one
--   EXPLAIN SELECT src FROM packets
--           ^^^^^^

-- case: a JOIN with nothing after it
SELECT src FROM packets JOIN
-- gives:
-- SyntaxFault: query q1, line 1, column 25: expected a relation after JOIN
--   SELECT src FROM packets JOIN
--                           ^^^^

-- case: a number of rows with leading noughts
SELECT COUNT(*) FROM packets [WINDOW 0000000000000000000000000000000000000099999999999999 ROWS]
-- gives:
-- SyntaxFault: query q1, line 1, column 38: expected a number of ROWS
--   SELECT COUNT(*) FROM packets [WINDOW 0000000000000000000000000000000000000099999999999999 ROWS]
--                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: an interval of too many digits
SELECT src FROM packets WHERE ts > ts - INTERVAL '11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111' MINUTE
-- gives:
-- TypeFault: query q1, line 1, column 41: '11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111 MINUTE' is too long
--   SELECT src FROM packets WHERE ts > ts - INTERVAL '1111111111111111111111111111111111111111111111111111111111111111111111
--                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: a name in HAVING that AS does not give
SELECT src, COUNT(*) AS n FROM packets [WINDOW 1 MIN] GROUP BY src HAVING hits > 3
-- gives:
-- UnknownName: query q1, line 1, column 75: no column 'hits' in packets; it has ts, src, dst, port, length; AS gives n
--   SELECT src, COUNT(*) AS n FROM packets [WINDOW 1 MIN] GROUP BY src HAVING hits > 3
--                                                                             ^^^^

-- case: a name in HAVING that is nearly there
SELECT src, COUNT(*) AS total FROM packets [WINDOW 1 MIN] GROUP BY src HAVING totl > 3
-- gives:
-- UnknownName: query q1, line 1, column 79: no column 'totl' in packets; did you mean 'total'?
--   SELECT src, COUNT(*) AS total FROM packets [WINDOW 1 MIN] GROUP BY src HAVING totl > 3
--                                                                                 ^^^^

-- case: a regular expression that can be tried in too many ways
SELECT name FROM readings WHERE name RLIKE 'a*a*a*a*b'
-- gives:
-- TypeFault: query q1, line 1, column 33: too many repetitions of the regular expression may take the same characters: on a text that nearly matches there would be more than a billion ways to try; begin it with ^, bound a repetition, or write *+ for one that never gives back
--   SELECT name FROM readings WHERE name RLIKE 'a*a*a*a*b'
--                                   ^^^^^^^^^^^^^^^^^^^^^^

-- case: an expression to extract that can be tried in too many ways
SELECT REGEXP_EXTRACT(name, '".*".*"(.*)"', 1) AS x FROM readings
-- gives:
-- TypeFault: query q1, line 1, column 8: too many repetitions of the regular expression may take the same characters: on a text that nearly matches there would be more than a billion ways to try; begin it with ^, bound a repetition, or write *+ for one that never gives back
--   SELECT REGEXP_EXTRACT(name, '".*".*"(.*)"', 1) AS x FROM readings
--          ^^^^^^^^^^^^^^

