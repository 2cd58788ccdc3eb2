-- case: an aggregate without a window
SELECT COUNT(*) FROM packets
-- gives:
-- TypeFault: query q1, line 1, column 8: an aggregate over a stream needs a window; write FROM packets [WINDOW 10 MIN SLIDE 2 MIN]
--   SELECT COUNT(*) FROM packets
--          ^^^^^

-- case: GROUP BY without a window
SELECT src FROM packets GROUP BY src
-- gives:
-- TypeFault: query q1, line 1, column 34: an aggregate over a stream needs a window; write FROM packets [WINDOW 10 MIN SLIDE 2 MIN]
--   SELECT src FROM packets GROUP BY src
--                                    ^^^

-- case: HAVING without a window
SELECT src FROM packets HAVING src > 1
-- gives:
-- TypeFault: query q1, line 1, column 32: an aggregate over a stream needs a window; write FROM packets [WINDOW 10 MIN SLIDE 2 MIN]
--   SELECT src FROM packets HAVING src > 1
--                                  ^^^^^^^

-- case: a window without an aggregate
SELECT src FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 25: nothing is aggregated here; select an aggregate such as COUNT(*), or GROUP BY
--   SELECT src FROM packets [WINDOW 1 MIN]
--                           ^^^^^^^^^^^^^^

-- case: HOP without an aggregate
SELECT src FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), 1 MIN, 5 MIN))
-- gives:
-- TypeFault: query q1, line 1, column 23: nothing is aggregated here; select an aggregate such as COUNT(*), or GROUP BY
--   SELECT src FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), 1 MIN, 5 MIN))
--                         ^^^

-- case: a column outside
SELECT src, length, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src
-- gives:
-- TypeFault: query q1, line 1, column 13: packets.length is neither grouped by nor inside an aggregate; add it to GROUP BY, or take an aggregate of it
--   SELECT src, length, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src
--               ^^^^^^

-- case: a column outside inside an expression
SELECT src, 1 + ABS(p.length) AS x, COUNT(*) FROM packets p [WINDOW 1 MIN] GROUP BY src
-- gives:
-- TypeFault: query q1, line 1, column 21: p.length is neither grouped by nor inside an aggregate; add it to GROUP BY, or take an aggregate of it
--   SELECT src, 1 + ABS(p.length) AS x, COUNT(*) FROM packets p [WINDOW 1 MIN] GROUP BY src
--                       ^^^^^^^^

-- case: a column outside in HAVING
SELECT src FROM packets [WINDOW 1 MIN] GROUP BY src HAVING length > 3
-- gives:
-- TypeFault: query q1, line 1, column 60: packets.length is neither grouped by nor inside an aggregate; add it to GROUP BY, or take an aggregate of it
--   SELECT src FROM packets [WINDOW 1 MIN] GROUP BY src HAVING length > 3
--                                                              ^^^^^^

-- case: a star outside
SELECT *, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY ts, src
-- gives:
-- TypeFault: query q1, line 1, column 8: packets.dst is neither grouped by nor inside an aggregate; add it to GROUP BY, or take an aggregate of it
--   SELECT *, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY ts, src
--          ^

-- case: a name that is close
SELECT src, SUM(lenght) FROM packets [WINDOW 1 MIN] GROUP BY src
-- gives:
-- UnknownName: query q1, line 1, column 17: no column 'lenght' in packets; did you mean 'length'?
--   SELECT src, SUM(lenght) FROM packets [WINDOW 1 MIN] GROUP BY src
--                   ^^^^^^

-- case: a name that is close beside a key
SELECT src, lenght + COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src
-- gives:
-- UnknownName: query q1, line 1, column 13: no column 'lenght' in packets; did you mean 'length'?
--   SELECT src, lenght + COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src
--               ^^^^^^

-- case: an aggregate that is close
SELECT MEDAIN(length) FROM packets [WINDOW 1 MIN]
-- gives:
-- UnknownName: query q1, line 1, column 8: no function 'MEDAIN'; did you mean 'MEDIAN'?
--   SELECT MEDAIN(length) FROM packets [WINDOW 1 MIN]
--          ^^^^^^

-- case: an aggregate in WHERE
SELECT src FROM packets [WINDOW 1 MIN] WHERE COUNT(*) > 3 GROUP BY src
-- gives:
-- Refused: query q1, line 1, column 46: the aggregate COUNT is not admitted in WHERE; write it in HAVING
--   SELECT src FROM packets [WINDOW 1 MIN] WHERE COUNT(*) > 3 GROUP BY src
--                                                ^^^^^

-- case: an aggregate in ON
SELECT COUNT(*) FROM packets [WINDOW 1 MIN] JOIN hosts ON MAX(src) = id
-- gives:
-- Refused: query q1, line 1, column 59: the aggregate MAX is not admitted in ON
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN] JOIN hosts ON MAX(src) = id
--                                                             ^^^

-- case: an aggregate in GROUP BY
SELECT COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src, MAX(dst)
-- gives:
-- Refused: query q1, line 1, column 59: the aggregate MAX is not admitted in GROUP BY
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src, MAX(dst)
--                                                             ^^^

-- case: an aggregate in GROUP BY by its number
SELECT COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY 1
-- gives:
-- Refused: query q1, line 1, column 8: the aggregate COUNT is not admitted in GROUP BY
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY 1
--          ^^^^^

-- case: an aggregate in another
SELECT SUM(1 + MAX(length)) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 16: the aggregate MAX is not admitted in another aggregate
--   SELECT SUM(1 + MAX(length)) FROM packets [WINDOW 1 MIN]
--                  ^^^

-- case: an aggregate in its own FILTER
SELECT SUM(length) FILTER (WHERE MAX(length) > 1) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 34: the aggregate MAX is not admitted in another aggregate
--   SELECT SUM(length) FILTER (WHERE MAX(length) > 1) FROM packets [WINDOW 1 MIN]
--                                    ^^^

-- case: FILTER of what is no condition
SELECT SUM(length) FILTER (WHERE length) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 34: the condition of FILTER must be BOOLEAN, not INT
--   SELECT SUM(length) FILTER (WHERE length) FROM packets [WINDOW 1 MIN]
--                                    ^^^^^^

-- case: DISTINCT in a sum
SELECT SUM(DISTINCT length) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 8: SUM(DISTINCT ...) is not admitted; only COUNT takes DISTINCT
--   SELECT SUM(DISTINCT length) FROM packets [WINDOW 1 MIN]
--          ^^^

-- case: DISTINCT of two
SELECT COUNT(DISTINCT src, dst) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: COUNT(DISTINCT ...) takes 1 argument, not 2
--   SELECT COUNT(DISTINCT src, dst) FROM packets [WINDOW 1 MIN]
--          ^^^^^

-- case: a star in a sum
SELECT SUM(*) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 12: * is not admitted here
--   SELECT SUM(*) FROM packets [WINDOW 1 MIN]
--              ^

-- case: nothing to count
SELECT COUNT() FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: COUNT takes 1 argument, not 0
--   SELECT COUNT() FROM packets [WINDOW 1 MIN]
--          ^^^^^

-- case: a sum of texts
SELECT SUM(name) FROM readings [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: SUM: expected a number, not a STRING; CAST it
--   SELECT SUM(name) FROM readings [WINDOW 1 MIN]
--          ^^^

-- case: the largest map
SELECT MAX(tags) FROM readings [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: MAX: a MAP<STRING, INT> cannot be compared
--   SELECT MAX(tags) FROM readings [WINDOW 1 MIN]
--          ^^^

-- case: grouped by a map
SELECT COUNT(*) FROM readings [WINDOW 1 MIN] GROUP BY tags
-- gives:
-- TypeFault: query q1, line 1, column 55: a MAP<STRING, INT> cannot be grouped by
--   SELECT COUNT(*) FROM readings [WINDOW 1 MIN] GROUP BY tags
--                                                         ^^^^

-- case: a percentile past the end
SELECT PERCENTILE(length, 95) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: PERCENTILE: expected a constant from 0 to 1; 0.5 is the median
--   SELECT PERCENTILE(length, 95) FROM packets [WINDOW 1 MIN]
--          ^^^^^^^^^^

-- case: a percentile that is not constant
SELECT PERCENTILE(length, src) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: PERCENTILE: expected a constant from 0 to 1; 0.5 is the median
--   SELECT PERCENTILE(length, src) FROM packets [WINDOW 1 MIN]
--          ^^^^^^^^^^

-- case: the top nothing
SELECT TOPK(src, 0) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: TOPK: expected a number of values from 1 to 10,000
--   SELECT TOPK(src, 0) FROM packets [WINDOW 1 MIN]
--          ^^^^

-- case: the top of too many
SELECT TOPK(src, 10001) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: TOPK: expected a number of values from 1 to 10,000
--   SELECT TOPK(src, 10001) FROM packets [WINDOW 1 MIN]
--          ^^^^

-- case: a top that is not constant
SELECT TOPK(src, dst) FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: TOPK: expected a constant whole number
--   SELECT TOPK(src, dst) FROM packets [WINDOW 1 MIN]
--          ^^^^

-- case: the weight of a top is a number
SELECT TOPK(n, 3, name) FROM readings [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: TOPK: expected a number, not a STRING; CAST it
--   SELECT TOPK(n, 3, name) FROM readings [WINDOW 1 MIN]
--          ^^^^

-- case: a sketch that is not known
SELECT APPROX_COUNT_DISTINCT(src, 'theta') FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: APPROX_COUNT_DISTINCT: expected 'hll' or 'fm'
--   SELECT APPROX_COUNT_DISTINCT(src, 'theta') FROM packets [WINDOW 1 MIN]
--          ^^^^^^^^^^^^^^^^^^^^^

-- case: HAVING of what is no condition
SELECT src FROM packets [WINDOW 1 MIN] GROUP BY src HAVING SUM(length)
-- gives:
-- TypeFault: query q1, line 1, column 60: the condition of HAVING must be BOOLEAN, not BIGINT
--   SELECT src FROM packets [WINDOW 1 MIN] GROUP BY src HAVING SUM(length)
--                                                              ^^^

-- case: a number that GROUP BY does not have
SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY 3
-- gives:
-- TypeFault: query q1, line 1, column 59: the SELECT list has no item 3, it has 2
--   SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY 3
--                                                             ^

-- case: ROLLUP
SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY ROLLUP(src)
-- gives:
-- Refused: query q1, line 1, column 66: ROLLUP is not admitted here
--   SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY ROLLUP(src)
--                                                                    ^^^

-- case: GROUP BY ALL
SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY ALL
-- gives:
-- Refused: query q1, line 1, column 1: GROUP BY ALL is not admitted
--   SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY ALL
--   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: two names for one column
SELECT COUNT(*) AS n, SUM(src) AS N FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 23: two columns of the answer are called 'N'; name one of them with AS
--   SELECT COUNT(*) AS n, SUM(src) AS N FROM packets [WINDOW 1 MIN]
--                         ^^^^^^^^^^^^^

-- case: a name that is the window's
SELECT MAX(ts) AS window_end FROM packets [WINDOW 1 MIN]
-- gives:
-- TypeFault: query q1, line 1, column 8: two columns of the answer are called 'window_end'; that is the window's own
--   SELECT MAX(ts) AS window_end FROM packets [WINDOW 1 MIN]
--          ^^^^^^^^^^^^^^^^^^^^^

-- case: Python over an aggregate
SELECT score(MAX(src)) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 8: a Python function is not admitted over an aggregate; call it in WHERE, in GROUP BY or inside an aggregate
--   SELECT score(MAX(src)) FROM packets [WINDOW 1 MIN]
--          ^^^^^

-- case: a window function
SELECT SUM(length) OVER (PARTITION BY src) FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: a window function (OVER) is not admitted here; TOPK(x, 10), MAX_BY(x, y) and LAST(x) answer for windows of time
--   SELECT SUM(length) OVER (PARTITION BY src) FROM packets
--          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: two windows
SELECT COUNT(*) FROM packets [WINDOW 1 MIN] WINDOW 2 MIN
-- gives:
-- SyntaxFault: query q1, line 1, column 45: a query has one window
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN] WINDOW 2 MIN
--                                               ^^^^^^^^^^^^

-- case: two windows of two kinds
SELECT COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY TUMBLE(ts, 1 MIN)
-- gives:
-- SyntaxFault: query q1, line 1, column 54: a query has one window
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY TUMBLE(ts, 1 MIN)
--                                                        ^^^^^^

-- case: a window of a relation
SELECT COUNT(*) FROM packets JOIN hosts [WINDOW 1 MIN] ON src = id
-- gives:
-- SyntaxFault: query q1, line 1, column 41: a window does not stand here; in brackets it follows its stream, without them it ends the query
--   SELECT COUNT(*) FROM packets JOIN hosts [WINDOW 1 MIN] ON src = id
--                                           ^^^^^^^^^^^^^^

-- case: a window in the wrong place
SELECT COUNT(*) [WINDOW 1 MIN] FROM packets
-- gives:
-- SyntaxFault: query q1, line 1, column 17: a window does not stand here; in brackets it follows its stream, without them it ends the query
--   SELECT COUNT(*) [WINDOW 1 MIN] FROM packets
--                   ^^^^^^^^^^^^^^

-- case: a window in the middle
SELECT COUNT(*) WINDOW 1 MIN FROM packets
-- gives:
-- SyntaxFault: query q1, line 1, column 17: a window does not stand here; in brackets it follows its stream, without them it ends the query
--   SELECT COUNT(*) WINDOW 1 MIN FROM packets
--                   ^^^^^^^^^^^^

-- case: a window of rows
SELECT COUNT(*) FROM packets [WINDOW 1000 ROWS]
-- gives:
-- Refused: query q1, line 1, column 30: a window of ROWS is for joins of streams; an aggregate has a window of time; write WINDOW 10 MIN
--   SELECT COUNT(*) FROM packets [WINDOW 1000 ROWS]
--                                ^^^^^^^^^^^^^^^^^^

-- case: a window of no rows
SELECT COUNT(*) FROM packets [WINDOW 0 ROWS]
-- gives:
-- SyntaxFault: query q1, line 1, column 38: expected a number of ROWS
--   SELECT COUNT(*) FROM packets [WINDOW 0 ROWS]
--                                        ^

-- case: a window of no time
SELECT MEDIAN(length) FROM packets [WINDOW 0 MIN]
-- gives:
-- SyntaxFault: query q1, line 1, column 44: a window is longer than nothing
--   SELECT MEDIAN(length) FROM packets [WINDOW 0 MIN]
--                                              ^^^^^

-- case: a slide of no time
SELECT MEDIAN(length) FROM packets [WINDOW 1 MIN SLIDE EXACTLY 0.0 s]
-- gives:
-- SyntaxFault: query q1, line 1, column 64: a slide is longer than nothing
--   SELECT MEDIAN(length) FROM packets [WINDOW 1 MIN SLIDE EXACTLY 0.0 s]
--                                                                  ^^^^^

-- case: a window shorter than a microsecond
SELECT MEDIAN(length) FROM packets [WINDOW 0.0001 ms]
-- gives:
-- SyntaxFault: query q1, line 1, column 44: '0.0001 ms' is no whole number of microseconds
--   SELECT MEDIAN(length) FROM packets [WINDOW 0.0001 ms]
--                                              ^^^^^^^^^

-- case: a slide of a fraction of a microsecond
SELECT MEDIAN(length) FROM packets [WINDOW 1 s SLIDE 0.0000015 s]
-- gives:
-- SyntaxFault: query q1, line 1, column 54: '0.0000015 s' is no whole number of microseconds
--   SELECT MEDIAN(length) FROM packets [WINDOW 1 s SLIDE 0.0000015 s]
--                                                        ^^^^^^^^^^^

-- case: a window of a month
SELECT MEDIAN(length) FROM packets [WINDOW 1 MONTH]
-- gives:
-- SyntaxFault: query q1, line 1, column 44: '1 MONTH' is not a duration such as '10 minutes' or '500 ms'
--   SELECT MEDIAN(length) FROM packets [WINDOW 1 MONTH]
--                                              ^^^^^^^

-- case: a window without a length
SELECT MEDIAN(length) FROM packets [WINDOW]
-- gives:
-- SyntaxFault: query q1, line 1, column 43: expected a duration such as 10 MIN, not ]
--   SELECT MEDIAN(length) FROM packets [WINDOW]
--                                             ^

-- case: a window with an odd length
SELECT MEDIAN(length) FROM packets [WINDOW 10 parsecs]
-- gives:
-- SyntaxFault: query q1, line 1, column 44: '10 parsecs' is not a duration such as '10 minutes' or '500 ms'
--   SELECT MEDIAN(length) FROM packets [WINDOW 10 parsecs]
--                                              ^^^^^^^^^^

-- case: a window that is not closed
SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN
-- gives:
-- SyntaxFault: query q1, line 1, column 59: expected ] after this
--   SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN
--                                                             ^^^

-- case: a syntax error inside comes first
SELECT MEDIAN(length FROM packets [WINDOW 10 MIN]
-- gives:
-- SyntaxFault: query q1, line 1, column 22: expected ) at 'FROM'
--   SELECT MEDIAN(length FROM packets [WINDOW 10 MIN]
--                        ^^^^

-- case: HOP of another column
SELECT MAX(src) FROM packets GROUP BY HOP(src, 1 MIN, 5 MIN)
-- gives:
-- TypeFault: query q1, line 1, column 43: HOP looks at the TIME of packets, which is ts
--   SELECT MAX(src) FROM packets GROUP BY HOP(src, 1 MIN, 5 MIN)
--                                             ^^^

-- case: HOP of no column
SELECT MAX(src) FROM packets GROUP BY HOP(tss, 1 MIN, 5 MIN)
-- gives:
-- UnknownName: query q1, line 1, column 43: no column 'tss' in packets; did you mean 'ts'?
--   SELECT MAX(src) FROM packets GROUP BY HOP(tss, 1 MIN, 5 MIN)
--                                             ^^^

-- case: TUMBLE without a time
SELECT MAX(n) FROM readings GROUP BY TUMBLE(at, 1 MIN)
-- gives:
-- TypeFault: query q1, line 1, column 45: readings has no TIME for TUMBLE to look at; write [WINDOW ... SLIDE EXACTLY ...] for windows of the time of arrival
--   SELECT MAX(n) FROM readings GROUP BY TUMBLE(at, 1 MIN)
--                                               ^^

-- case: HOP with too little
SELECT MAX(src) FROM packets GROUP BY HOP(ts, 1 MIN)
-- gives:
-- TypeFault: query q1, line 1, column 39: HOP takes the TIME of the stream, a slide and a size
--   SELECT MAX(src) FROM packets GROUP BY HOP(ts, 1 MIN)
--                                         ^^^

-- case: TUMBLE with too much
SELECT MAX(src) FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), 1 MIN, 5 MIN))
-- gives:
-- TypeFault: query q1, line 1, column 22: TUMBLE takes a stream, DESCRIPTOR(ts) and a size
--   SELECT MAX(src) FROM TABLE(TUMBLE(TABLE packets, DESCRIPTOR(ts), 1 MIN, 5 MIN))
--                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: HOP of no time
SELECT MAX(src) FROM packets GROUP BY HOP(ts, 0 s, 5 MIN)
-- gives:
-- SyntaxFault: query q1, line 1, column 39: HOP: a window and its slide are longer than nothing
--   SELECT MAX(src) FROM packets GROUP BY HOP(ts, 0 s, 5 MIN)
--                                         ^^^

-- case: HOP with an odd length
SELECT MAX(src) FROM packets GROUP BY HOP(ts, 5, INTERVAL '1' MONTH)
-- gives:
-- SyntaxFault: query q1, line 1, column 39: HOP: expected a duration such as INTERVAL '10' MINUTE
--   SELECT MAX(src) FROM packets GROUP BY HOP(ts, 5, INTERVAL '1' MONTH)
--                                         ^^^

-- case: HOP with a month
SELECT MAX(src) FROM packets GROUP BY HOP(ts, 5 MIN, INTERVAL '1' MONTH)
-- gives:
-- SyntaxFault: query q1, line 1, column 39: HOP: '1 MONTH' is not a duration such as '10 minutes' or '500 ms'
--   SELECT MAX(src) FROM packets GROUP BY HOP(ts, 5 MIN, INTERVAL '1' MONTH)
--                                         ^^^

-- case: HOP without DESCRIPTOR
SELECT MAX(src) FROM TABLE(HOP(TABLE packets, ts, 1 MIN, 5 MIN))
-- gives:
-- TypeFault: query q1, line 1, column 22: HOP takes the time as DESCRIPTOR(ts)
--   SELECT MAX(src) FROM TABLE(HOP(TABLE packets, ts, 1 MIN, 5 MIN))
--                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: HOP of a relation
SELECT MAX(id) FROM TABLE(HOP(TABLE hosts, DESCRIPTOR(site), 1 MIN, 5 MIN))
-- gives:
-- TypeFault: query q1, line 1, column 37: 'hosts' is a relation, not a stream; a query reads one stream; join the relation to it
--   SELECT MAX(id) FROM TABLE(HOP(TABLE hosts, DESCRIPTOR(site), 1 MIN, 5 MIN))
--                                       ^^^^^

-- case: HOP of no stream
SELECT MAX(id) FROM TABLE(HOP(TABLE packet, DESCRIPTOR(site), 1 MIN, 5 MIN))
-- gives:
-- UnknownName: query q1, line 1, column 37: no stream, relation or view 'packet'; did you mean 'packets'?
--   SELECT MAX(id) FROM TABLE(HOP(TABLE packet, DESCRIPTOR(site), 1 MIN, 5 MIN))
--                                       ^^^^^^

-- case: HOP in the SELECT list
SELECT HOP(ts, 1 MIN, 5 MIN) FROM packets
-- gives:
-- Refused: query q1, line 1, column 8: HOP stands in GROUP BY or in FROM TABLE(HOP(...)); window_start and window_end are the ends of the window
--   SELECT HOP(ts, 1 MIN, 5 MIN) FROM packets
--          ^^^

-- case: HOP in the wrong place
SELECT COUNT(*), HOP(ts, 1 MIN, 5 MIN) FROM packets [WINDOW 1 MIN]
-- gives:
-- Refused: query q1, line 1, column 18: HOP stands in GROUP BY or in FROM TABLE(HOP(...)); window_start and window_end are the ends of the window
--   SELECT COUNT(*), HOP(ts, 1 MIN, 5 MIN) FROM packets [WINDOW 1 MIN]
--                    ^^^

-- case: TUMBLE in WHERE
SELECT COUNT(*) FROM packets [WINDOW 1 MIN] WHERE TUMBLE(ts, 1 MIN)
-- gives:
-- Refused: query q1, line 1, column 51: TUMBLE stands in GROUP BY or in FROM TABLE(TUMBLE(...)); window_start and window_end are the ends of the window
--   SELECT COUNT(*) FROM packets [WINDOW 1 MIN] WHERE TUMBLE(ts, 1 MIN)
--                                                     ^^^^^^

