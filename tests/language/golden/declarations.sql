-- What every golden case may use.
CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT)
  FROM parquet 'data/packets' TIME ts LATENESS 5 SECONDS;

CREATE STREAM readings (at TIMESTAMP, tiny TINYINT, small SMALLINT, n INT, big BIGINT, single FLOAT,
  real DOUBLE, price DECIMAL(10,2), name STRING, raw BINARY, ok BOOLEAN, day DATE,
  tags MAP<STRING, INT>, path ARRAY<INT>, nested STRUCT<a: INT, b: STRUCT<c: STRING>>)
  FROM json 'data/readings';

CREATE RELATION hosts (id INT, site STRING) FROM csv 'data/hosts.csv' OPTIONS (header = true);
CREATE RELATION sites (site STRING, region STRING) FROM parquet '/lake/sites';

CREATE FUNCTION is_botnet FROM 'detectors:is_botnet';
CREATE FUNCTION score FROM 'detectors:score';
