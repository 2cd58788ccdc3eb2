-- case: the aggregates paper, word for word
SELECT MEDIAN(length) FROM S [WINDOW 14 min SLIDE 3 min]
-- gives:
-- NotYet: query q1, line 1, column 30: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT MEDIAN(length) FROM S [WINDOW 14 min SLIDE 3 min]
--                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: the joins paper, word for word
SELECT COUNT(DISTINCT A.LocationId) FROM Temperature A, Humidity B WHERE A.LocationId = B.LocationId and A.Value > 30 and B.Value > 60 WINDOW 1 min;
-- gives:
-- NotYet: query q1, line 1, column 136: a window join (form 5) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   tionId) FROM Temperature A, Humidity B WHERE A.LocationId = B.LocationId and A.Value > 30 and B.Value > 60 WINDOW 1 min;
--                                                                                                              ^^^^^^^^^^^^

-- case: groups
SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN] WHERE port = 80 GROUP BY src HAVING COUNT(*) > 3
-- gives:
-- NotYet: query q1, line 1, column 36: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN] WHERE port = 80 GROUP BY src HAVING COUNT(*) > 3
--                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: exactly
CREATE QUERY q INTO parquet 'x' AS SELECT src, SUM(length) AS total FROM packets [WINDOW INTERVAL '10' MINUTE SLIDE EXACTLY 2 MIN] GROUP BY src
-- gives:
-- NotYet: query q, line 1, column 82: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   arquet 'x' AS SELECT src, SUM(length) AS total FROM packets [WINDOW INTERVAL '10' MINUTE SLIDE EXACTLY 2 MIN] GROUP BY s
--                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

-- case: an aggregate without a window
SELECT COUNT(*) FROM packets
-- gives:
-- NotYet: query q1, line 1, column 8: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT COUNT(*) FROM packets
--          ^^^^^

-- case: GROUP BY alone
SELECT src FROM packets GROUP BY src
-- gives:
-- NotYet: query q1, line 1, column 34: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT src FROM packets GROUP BY src
--                                    ^^^

-- case: the standard windows
SELECT src, COUNT(*) FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE)
-- gives:
-- NotYet: query q1, line 1, column 13: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT src, COUNT(*) FROM packets GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE)
--               ^^^^^

-- case: the standard windows as tables
SELECT COUNT(*) FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '10' MINUTE))
-- gives:
-- NotYet: query q1, line 1, column 8: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT COUNT(*) FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '10' MINUTE))
--          ^^^^^

-- case: the most frequent
SELECT TOPK(src, 10, length) FROM packets [WINDOW 1 HOUR]
-- gives:
-- NotYet: query q1, line 1, column 43: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT TOPK(src, 10, length) FROM packets [WINDOW 1 HOUR]
--                                             ^^^^^^^^^^^^^^^

-- case: a window of rows
SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1000 ROWS
-- gives:
-- NotYet: query q1, line 1, column 60: a window join (form 5) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1000 ROWS
--                                                              ^^^^^^^^^^^^^^^^

-- case: a join of streams without a window
SELECT A.src FROM packets A JOIN readings B ON A.src = B.n
-- gives:
-- NotYet: query q1, line 1, column 34: a window join (form 5) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT A.src FROM packets A JOIN readings B ON A.src = B.n
--                                    ^^^^^^^^^^

-- case: three streams
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.dst = C.dst WINDOW 1 MIN
-- gives:
-- NotYet: query q1, line 1, column 89: a multiway join (form 6) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.dst = C.dst WINDOW 1 MIN
--                                                                                           ^^^^^^^^^^^^

-- case: a window in a union
SELECT src FROM packets UNION ALL SELECT MAX(n) FROM readings [WINDOW 1 MIN]
-- gives:
-- NotYet: query q1, line 1, column 63: a window aggregate (form 4) is not yet run by this version; it runs filters, joins with relations and UNION ALL
--   SELECT src FROM packets UNION ALL SELECT MAX(n) FROM readings [WINDOW 1 MIN]
--                                                                 ^^^^^^^^^^^^^^

-- case: kafka as a sink
CREATE QUERY q INTO kafka 'topic' AS SELECT src FROM packets
-- gives:
-- NotYet: query q, line 1, column 21: the sink kafka is not yet written to
--   CREATE QUERY q INTO kafka 'topic' AS SELECT src FROM packets
--                       ^^^^^

-- case: a syntax error inside comes first
SELECT MEDIAN(length FROM packets [WINDOW 10 MIN]
-- gives:
-- SyntaxFault: query q1, line 1, column 22: expected ) at 'FROM'
--   SELECT MEDIAN(length FROM packets [WINDOW 10 MIN]
--                        ^^^^

-- case: a window that is not closed
SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN
-- gives:
-- SyntaxFault: query q1, line 1, column 59: expected ] after this
--   SELECT MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN
--                                                             ^^^

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

-- case: a window of no time
SELECT MEDIAN(length) FROM packets [WINDOW 0 MIN]
-- gives:
-- SyntaxFault: query q1, line 1, column 44: a window is longer than nothing
--   SELECT MEDIAN(length) FROM packets [WINDOW 0 MIN]
--                                              ^^^^^

