-- case: a stream with all its clauses
CREATE STREAM s (ts TIMESTAMP, v DECIMAL(10, 2), `odd name` array<struct<a: int, `b c`: map<string, double>>>)
  FROM kafka OPTIONS (subscribe = 'topic', kafka.bootstrap.servers = 'a:1', maxOffsets = 100, 'fail.on' = false, lag = -2.5)
  TIME TS LATENESS INTERVAL '10' MINUTE
-- gives:
-- STREAM s (ts TIMESTAMP, v DECIMAL(10,2), odd name ARRAY<STRUCT<`a`: INT, `b c`: MAP<STRING, DOUBLE>>>) FROM kafka None subscribe=topic kafka.bootstrap.servers=a:1 maxOffsets=100 fail.on=false lag=-2.5 TIME ts LATENESS 600

-- case: clauses in another order, other words for types
create stream S (a integer, b long, c short, d byte, e real, f bool, g dec, h numeric(5), i binary, j date, t timestamp)
  from CSV 'data/x' lateness 500 ms time t
-- gives:
-- STREAM S (a INT, b BIGINT, c SMALLINT, d TINYINT, e FLOAT, f BOOLEAN, g DECIMAL(10,0), h DECIMAL(5,0), i BINARY, j DATE, t TIMESTAMP) FROM csv /app/data/x TIME t LATENESS 0.5

-- case: a source by its class
CREATE STREAM s (a INT) FROM org.example.Source 's3a://bucket/x'
-- gives:
-- STREAM s (a INT) FROM org.example.Source s3a://bucket/x TIME None LATENESS 0

-- case: names are found whatever their case
CREATE STREAM Mixed (Alpha INT) FROM rate; CREATE QUERY Q AS SELECT ALPHA, mixed.alpha AS Beta FROM MIXED
-- gives:
-- STREAM Mixed (Alpha INT) FROM rate None TIME None LATENESS 0
-- QUERY Q INTO memory
-- SELECT Alpha AS Alpha: INT, Alpha AS Beta: INT
-- FROM Mixed

-- case: a relation
CREATE RELATION r (id INT) FROM parquet '../lake/r' OPTIONS (mergeSchema = TRUE)
-- gives:
-- RELATION r (id INT) FROM parquet /lake/r mergeSchema=true

-- case: sinks
CREATE QUERY a INTO parquet 'out/a' AS SELECT src FROM packets;
CREATE QUERY b INTO csv '/abs/b' AS SELECT src FROM packets;
CREATE QUERY c INTO json 'hdfs://x/c' AS SELECT src FROM packets;
CREATE QUERY d INTO console AS SELECT src FROM packets;
CREATE QUERY e INTO memory AS SELECT src FROM packets;
CREATE QUERY f INTO callback 'pkg.alerts:send' AS SELECT src FROM packets;
CREATE QUERY g INTO noop AS SELECT src FROM packets;
CREATE QUERY h AS SELECT src FROM packets
-- gives:
-- QUERY a INTO parquet '/app/out/a'
-- SELECT src AS src: INT
-- FROM packets
-- QUERY b INTO csv '/abs/b'
-- SELECT src AS src: INT
-- FROM packets
-- QUERY c INTO json 'hdfs://x/c'
-- SELECT src AS src: INT
-- FROM packets
-- QUERY d INTO console
-- SELECT src AS src: INT
-- FROM packets
-- QUERY e INTO memory
-- SELECT src AS src: INT
-- FROM packets
-- QUERY f INTO callback 'pkg.alerts:send'
-- SELECT src AS src: INT
-- FROM packets
-- QUERY g INTO noop
-- SELECT src AS src: INT
-- FROM packets
-- QUERY h INTO memory
-- SELECT src AS src: INT
-- FROM packets

-- case: options of a query
CREATE QUERY a WITH (latency = '2 seconds', priority = 3, lifetime = '1 hour', start = 'earliest') AS SELECT src FROM packets;
CREATE QUERY b INTO noop WITH (latency = 500 ms) AS SELECT src FROM packets
-- gives:
-- QUERY a INTO memory WITH (start = 'earliest', latency = 2 s, lifetime = 3600 s, priority = 3)
-- SELECT src AS src: INT
-- FROM packets
-- QUERY b INTO noop WITH (latency = 0.5 s)
-- SELECT src AS src: INT
-- FROM packets

-- case: a SELECT of its own gets a name
SELECT src FROM packets; SELECT dst FROM packets;
-- gives:
-- QUERY q1 INTO memory
-- SELECT src AS src: INT
-- FROM packets
-- QUERY q2 INTO memory
-- SELECT dst AS dst: INT
-- FROM packets

-- case: settings are normalised and the last one counts
SET operators = 'fifo'; SET operators = 'Mixed( gamma=0.01 , k = 3 )'; SET refresh = 'hybrid+late_pending';
SET memory = '512  mb'; SET retention = 10 MIN;
SET slots = 2
-- gives:
-- SET memory = 512 MB
-- SET operators = mixed(gamma=0.01, k=3)
-- SET refresh = hybrid+late_pending
-- SET retention = 10 MIN
-- SET slots = 2

-- case: a policy for window joins of streams
SET joins = 'mqt'
-- gives:
-- SET joins = mqt

-- case: a policy for the order of predicates
set FILTERS = 'Sweep( p=0.02 )'
-- gives:
-- SET filters = sweep(p=0.02)

-- case: the same declaration again changes nothing
CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT) FROM parquet 'data/packets' TIME ts LATENESS 5 s
-- gives:
-- nothing new

-- case: another declaration of a name
CREATE STREAM packets (ts TIMESTAMP, src INT) FROM parquet 'data/packets'
-- gives:
-- TypeFault: stream packets, line 1, column 15: stream 'packets' exists already and is declared differently; a declaration cannot be changed
--   CREATE STREAM packets (ts TIMESTAMP, src INT) FROM parquet 'data/packets'
--                 ^^^^^^^

-- case: another query of a name
CREATE QUERY q AS SELECT src FROM packets; CREATE QUERY Q AS SELECT dst FROM packets
-- gives:
-- TypeFault: query Q, line 1, column 57: query 'Q' exists already and is declared differently; DROP it first
--   CREATE QUERY q AS SELECT src FROM packets; CREATE QUERY Q AS SELECT dst FROM packets
--                                                           ^

-- case: a stream called like a relation
CREATE STREAM hosts (a INT) FROM rate
-- gives:
-- TypeFault: stream hosts, line 1, column 15: there is a relation 'hosts' already
--   CREATE STREAM hosts (a INT) FROM rate
--                 ^^^^^

-- case: a relation called like a stream
CREATE RELATION packets (a INT) FROM csv 'x'
-- gives:
-- TypeFault: relation packets, line 1, column 17: there is a stream 'packets' already
--   CREATE RELATION packets (a INT) FROM csv 'x'
--                   ^^^^^^^

-- case: dropping and declaring again
CREATE QUERY q AS SELECT src FROM packets; DROP QUERY Q; CREATE QUERY q AS SELECT dst FROM packets
-- gives:
-- QUERY q INTO memory
-- SELECT dst AS dst: INT
-- FROM packets

-- case: comments everywhere
/* a /* nested */ comment; with a semicolon */ CREATE /* here */ QUERY q -- and; here
AS SELECT src /* and */ FROM packets -- the end
-- gives:
-- QUERY q INTO memory
-- SELECT src AS src: INT
-- FROM packets

-- case: no statement at all
  -- only a comment
;;
-- gives:
-- nothing new

-- case: strings as Spark reads them
SELECT 'it''s' AS a, 'two ' 'parts' AS b, "double" AS c, 'tab\there' AS d, r'raw\d' AS e, '\u00e9' AS f FROM packets
-- gives:
-- QUERY q1 INTO memory
-- SELECT 'it\'s' AS a: STRING, 'two parts' AS b: STRING, 'double' AS c: STRING, 'tab\there' AS d: STRING, 'raw\\d' AS e: STRING, 'é' AS f: STRING
-- FROM packets

-- case: statements that show change nothing
CREATE QUERY q AS SELECT src FROM packets; SHOW STREAMS; show queries; DESCRIBE PACKETS; DESC q; EXPLAIN QUERY Q; EXPLAIN q
-- gives:
-- QUERY q INTO memory
-- SELECT src AS src: INT
-- FROM packets

-- case: relations that change
CREATE RELATION a (id INT) FROM csv 'a' OPTIONS (header = true) REFRESH EVERY 10 MINUTES; CREATE RELATION b (id INT) FROM parquet 'b' REFRESH ON DEMAND; REFRESH RELATION A; refresh relation b
-- gives:
-- RELATION a (id INT) FROM csv /app/a header=true REFRESH every 600 s
-- RELATION b (id INT) FROM parquet /app/b REFRESH every inf s

-- case: a relation that is read once cannot be refreshed
REFRESH RELATION hosts
-- gives:
-- TypeFault: statement 1, line 1, column 18: relation 'hosts' is read once, when a run begins; declare it with REFRESH ON DEMAND or REFRESH EVERY 10 MINUTES
--   REFRESH RELATION hosts
--                    ^^^^^

-- case: a relation that nobody knows cannot be refreshed
REFRESH RELATION host
-- gives:
-- UnknownName: statement 1, line 1, column 18: no relation 'host'; did you mean 'hosts'?
--   REFRESH RELATION host
--                    ^^^^

-- case: only relations are refreshed
REFRESH QUERY q
-- gives:
-- SyntaxFault: statement 1, line 1, column 9: expected RELATION after REFRESH, not QUERY; nothing else is read again
--   REFRESH QUERY q
--           ^^^^^

-- case: a period of nothing
CREATE RELATION a (id INT) FROM csv 'a' REFRESH EVERY 0 SECONDS
-- gives:
-- TypeFault: relation a, line 1, column 55: a relation is read again after some time; write REFRESH EVERY 10 MINUTES
--   CREATE RELATION a (id INT) FROM csv 'a' REFRESH EVERY 0 SECONDS
--                                                         ^^^^^^^^^

-- case: refreshed, but when
CREATE RELATION a (id INT) FROM csv 'a' REFRESH 10 MINUTES
-- gives:
-- SyntaxFault: relation a, line 1, column 49: expected EVERY or ON DEMAND after REFRESH, not 10
--   CREATE RELATION a (id INT) FROM csv 'a' REFRESH 10 MINUTES
--                                                   ^^

