-- case: a topic, and columns in its values
CREATE STREAM s (at TIMESTAMP, url STRING, kafka_key STRING)
  FROM kafka 'clicks' OPTIONS (kafka.bootstrap.servers = 'a:1', valueFormat = 'json') TIME at
-- gives:
-- STREAM s (at TIMESTAMP, url STRING, kafka_key STRING) FROM kafka None subscribe=clicks kafka.bootstrap.servers=a:1 valueFormat=json TIME at LATENESS 0

-- case: several topics
CREATE RELATION r (value STRING) FROM KAFKA 'clicks, views' OPTIONS (kafka.bootstrap.servers = 'a:1')
-- gives:
-- RELATION r (value STRING) FROM kafka None subscribe=clicks, views kafka.bootstrap.servers=a:1

-- case: a topic that is named twice
CREATE STREAM s (value BINARY) FROM kafka 'clicks' OPTIONS (subscribe = 'clicks')
-- gives:
-- TypeFault: stream s, line 1, column 43: the topic is named twice, here and by subscribe; leave one out
--   CREATE STREAM s (value BINARY) FROM kafka 'clicks' OPTIONS (subscribe = 'clicks')
--                                             ^^^^^^^^

-- case: no name of a topic
CREATE STREAM s (value BINARY) FROM kafka '../clicks'
-- gives:
-- TypeFault: stream s, line 1, column 43: '../clicks' is no name of a topic; letters, digits and . _ - make one
--   CREATE STREAM s (value BINARY) FROM kafka '../clicks'
--                                             ^^^^^^^^^^^

-- case: an unknown format of values
CREATE STREAM s (value BINARY) FROM kafka 'clicks' OPTIONS (valueFormat = 'jsn')
-- gives:
-- UnknownName: stream s, line 1, column 43: no valueFormat 'jsn'; did you mean 'json'?
--   CREATE STREAM s (value BINARY) FROM kafka 'clicks' OPTIONS (valueFormat = 'jsn')
--                                             ^^^^^^^^

-- case: text is no format
CREATE STREAM s (value BINARY) FROM kafka 'clicks' OPTIONS (valueFormat = 'text')
-- gives:
-- UnknownName: stream s, line 1, column 43: no valueFormat 'text'; leave it out and declare value STRING
--   CREATE STREAM s (value BINARY) FROM kafka 'clicks' OPTIONS (valueFormat = 'text')
--                                             ^^^^^^^^

-- case: Avro without a schema
CREATE STREAM s (a INT) FROM kafka 'clicks' OPTIONS (valueFormat = 'avro')
-- gives:
-- TypeFault: stream s, line 1, column 36: valueFormat = 'avro' needs the option avroSchema; give the schema of the values as JSON text
--   CREATE STREAM s (a INT) FROM kafka 'clicks' OPTIONS (valueFormat = 'avro')
--                                      ^^^^^^^^

-- case: Avro with a schema that is none
CREATE STREAM s (a INT) FROM kafka 'clicks' OPTIONS (valueFormat = 'avro', avroSchema = 'record')
-- gives:
-- TypeFault: stream s, line 1, column 36: avroSchema is not JSON: Expecting value: line 1 column 1 (char 0)
--   CREATE STREAM s (a INT) FROM kafka 'clicks' OPTIONS (valueFormat = 'avro', avroSchema = 'record')
--                                      ^^^^^^^^

-- case: answers to a topic
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', key = 'src') AS
  SELECT src, length FROM packets
-- gives:
-- QUERY q INTO kafka 'sizes'
-- SELECT src AS src: INT, length AS length: INT
-- FROM packets

-- case: INSERT INTO a topic
INSERT INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1') SELECT src, length FROM packets
-- gives:
-- QUERY q1 INTO kafka 'sizes'
-- SELECT src AS src: INT, length AS length: INT
-- FROM packets

-- case: a topic without its cluster
CREATE QUERY q INTO kafka 'sizes' AS SELECT src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 27: the sink kafka needs the option kafka.bootstrap.servers; write INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'host:9092')
--   CREATE QUERY q INTO kafka 'sizes' AS SELECT src FROM packets
--                             ^^^^^^^

-- case: an option that the sink does not know
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', keys = 'src') AS SELECT src FROM packets
-- gives:
-- UnknownName: query q, line 1, column 27: the sink kafka has no option 'keys'; did you mean 'key'?
--   CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', keys = 'src') AS SELECT src FROM packets
--                             ^^^^^^^

-- case: an option that is ours
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', kafka.transactional.id = 'x') AS SELECT src FROM packets
-- gives:
-- Refused: query q, line 1, column 27: the option kafka.transactional.id is not taken: it tells the transactions of this checkpoint from others
--   CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', kafka.transactional.id = 'x') AS SELECT src
--                             ^^^^^^^

-- case: a key that is no column
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', key = 'srk') AS SELECT src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 21: the key 'srk' is none of its columns
--   CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', key = 'srk') AS SELECT src FROM packets
--                       ^^^^^

-- case: a key that is no single value
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', key = 'k') AS SELECT SPLIT(CAST(src AS STRING), ',') AS k, src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 21: the key 'k' is ARRAY<STRING>, and a key is a single value
--   CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', key = 'k') AS SELECT SPLIT(CAST(src AS STRIN
--                       ^^^^^

-- case: text of a number
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', valueFormat = 'text') AS SELECT src FROM packets
-- gives:
-- TypeFault: query q, line 1, column 21: valueFormat = 'text' needs one column besides the key, and that a STRING; valueFormat = 'json' takes any
--   CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', valueFormat = 'text') AS SELECT src FROM pac
--                       ^^^^^

-- case: text with a key
CREATE QUERY q INTO kafka 'sizes' OPTIONS (kafka.bootstrap.servers = 'a:1', valueFormat = 'text', key = 'src') AS SELECT src, CAST(length AS STRING) AS size FROM packets
-- gives:
-- QUERY q INTO kafka 'sizes'
-- SELECT src AS src: INT, CAST(length AS STRING) AS size: STRING
-- FROM packets

