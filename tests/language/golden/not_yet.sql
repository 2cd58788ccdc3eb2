-- case: joins in a union
SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN UNION ALL SELECT src FROM packets
-- gives:
-- NotYet: query q1, line 1, column 30: joins of streams in a UNION ALL are not supported yet; make it a query of its own
--   SELECT A.src FROM packets A, packets B WHERE A.src = B.src WINDOW 1 MIN UNION ALL SELECT src FROM packets
--                                ^^^^^^^^^

-- case: three streams over windows of rows
SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.dst = C.dst WINDOW 100 ROWS
-- gives:
-- NotYet: query q1, line 1, column 41: windows of ROWS over three or more streams are not supported yet; write a window of time, such as WINDOW 1 MIN
--   SELECT A.src FROM packets A, packets B, packets C WHERE A.src = B.src AND B.dst = C.dst WINDOW 100 ROWS
--                                           ^^^^^^^^^

-- case: a window in a union
SELECT src FROM packets UNION ALL SELECT MAX(n) FROM readings [WINDOW 1 MIN]
-- gives:
-- NotYet: query q1, line 1, column 63: window aggregates in a UNION ALL are not supported yet; make it a query of its own
--   SELECT src FROM packets UNION ALL SELECT MAX(n) FROM readings [WINDOW 1 MIN]
--                                                                 ^^^^^^^^^^^^^^

-- case: aggregates in a union
SELECT MAX(src) FROM packets UNION ALL SELECT MAX(n) FROM readings
-- gives:
-- NotYet: query q1, line 1, column 8: window aggregates in a UNION ALL are not supported yet; make it a query of its own
--   SELECT MAX(src) FROM packets UNION ALL SELECT MAX(n) FROM readings
--          ^^^

-- case: HOP over a join
SELECT A.src FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), 1 MIN, 1 MIN)) A, packets B WHERE A.src = B.src
-- gives:
-- NotYet: query q1, line 1, column 55: HOP over joins of streams is not supported yet; write WINDOW 1 MIN at the end
--   SELECT A.src FROM TABLE(HOP(TABLE packets, DESCRIPTOR(ts), 1 MIN, 1 MIN)) A, packets B WHERE A.src = B.src
--                                                         ^^

