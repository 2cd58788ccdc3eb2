-- Twenty-two standing queries over two bursty streams of packets, and over the readings of sensors.
-- Each stream is read and decoded once, however many queries look at it. `penstock explain packets.sql`
-- shows what they share.

-- Flows begin at random, last a Pareto time and send five times the mean rate while they last:
-- silence, then a burst. `pace = 'clock'` lets the packets come in real time. `penstock demo` writes
-- rate and rows as they suit the machine; `penstock demo --rate N` has its own idea.
CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING)
  FROM onoff
  OPTIONS (rate = 8000, burst = 5, length = 0.2, seed = 7, rows = 236466, pace = 'clock')
  TIME ts LATENESS 5 SECONDS;

CREATE STREAM edge (ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING)
  FROM onoff
  OPTIONS (rate = 2000, burst = 5, length = 0.2, seed = 11, rows = 65572, pace = 'clock')
  TIME ts LATENESS 5 SECONDS;

-- Sensors report twenty readings a second. `onoff` makes them as well: `src` is the place of a sensor,
-- `length` what it has read. Such a slow stream needs no more than a block every five seconds (`slice`).
CREATE STREAM temperature (ts TIMESTAMP, src INT, length INT)
  FROM onoff
  OPTIONS (slice = 5000, rate = 20, burst = 0.2, length = 0.2, seed = 13, rows = 635, pace = 'clock')
  TIME ts LATENESS 500 MILLISECONDS;

CREATE STREAM humidity (ts TIMESTAMP, src INT, length INT)
  FROM onoff
  OPTIONS (slice = 5000, rate = 20, burst = 0.2, length = 0.2, seed = 17, rows = 594, pace = 'clock')
  TIME ts LATENESS 500 MILLISECONDS;

CREATE RELATION hosts (id INT, name STRING, site STRING)
  FROM csv 'hosts.csv' OPTIONS (header = true);

CREATE FUNCTION looks_like_a_scan FROM 'detectors:looks_like_a_scan';
CREATE FUNCTION is_from_outside FROM 'detectors:is_from_outside';

-- Four queries that name one folder share one dataset with a column `query`, written by one job.
-- This is how a thousand queries should deliver.
CREATE QUERY dns  INTO parquet 'answers/services' AS
  SELECT ts, src, dst, length FROM packets WHERE port = 53 AND protocol = 'udp';
CREATE QUERY ssh  INTO parquet 'answers/services' AS
  SELECT ts, src, dst, length FROM packets WHERE port = 22 AND length > 100;
CREATE QUERY mail INTO parquet 'answers/services' AS
  SELECT ts, src, dst, length FROM packets WHERE port = 25;
CREATE QUERY legacy INTO parquet 'answers/services' AS
  SELECT ts, src, dst, length FROM packets WHERE port IN (21, 23);

-- Answers in memory are read through the API: engine.results('one_pair').
CREATE QUERY one_pair AS
  SELECT ts, port, length FROM packets WHERE src = 1 AND dst = 1;
CREATE QUERY mid_sized AS
  SELECT ts, src, dst, length FROM packets WHERE length BETWEEN 900 AND 910;
CREATE QUERY small_udp AS
  SELECT ts, src, port, length * 8 AS bits FROM packets WHERE protocol LIKE 'u%' AND length < 50;

-- A folder of its own; the answers of a second or so are batched into one file.
CREATE QUERY unusual INTO parquet 'answers/unusual' WITH (latency = '2 seconds') AS
  SELECT ts, src, dst, port, length FROM packets
  WHERE port >= 1024 AND port NOT IN (3306, 8080) AND length > 1000;

-- Counted and thrown away: what the rest of the work costs without writing.
CREATE QUERY full_frames INTO noop AS
  SELECT ts, src, dst FROM packets WHERE length = 1500;

-- A join with a stored relation.
CREATE QUERY lisbon INTO parquet 'answers/lisbon' WITH (latency = '2 seconds') AS
  SELECT p.ts, h.name, p.port, p.length
  FROM packets p JOIN hosts h ON p.src = h.id
  WHERE h.site = 'Lisbon' AND p.length > 500;

-- Two streams as one.
CREATE QUERY pings AS
  SELECT ts, src, dst, 'core' AS seen_at FROM packets WHERE protocol = 'icmp'
  UNION ALL
  SELECT ts, src, dst, 'edge' AS seen_at FROM edge WHERE protocol = 'icmp';

-- Predicates in Python, over whole columns at once; the SQL conditions come first. Penstock learns in
-- which order the predicates cost least.
CREATE QUERY scans AS
  SELECT ts, src, dst, port FROM edge
  WHERE protocol = 'tcp' AND is_from_outside(src) AND looks_like_a_scan(port, length);

-- Window aggregates. One second of packets is summed up once for all of them, in a pane; an answer is
-- merged from the panes of its window. These three share one synopsis: only their windows differ.
CREATE QUERY bytes_5s  INTO parquet 'answers/traffic' AS
  SELECT src, SUM(length) AS bytes, COUNT(*) AS packets
  FROM packets [WINDOW 5 SECONDS SLIDE 1 SECOND] GROUP BY src;
CREATE QUERY bytes_10s INTO parquet 'answers/traffic' AS
  SELECT src, SUM(length) AS bytes, COUNT(*) AS packets
  FROM packets [WINDOW 10 SECONDS SLIDE 2 SECONDS] GROUP BY src;
CREATE QUERY bytes_20s INTO parquet 'answers/traffic' AS
  SELECT src, SUM(length) AS bytes, COUNT(*) AS packets
  FROM packets [WINDOW 20 SECONDS SLIDE 5 SECONDS] GROUP BY src;

-- Exact medians per protocol.
CREATE QUERY typical AS
  SELECT protocol, MEDIAN(length) AS median, PERCENTILE(length, 0.99) AS p99
  FROM packets [WINDOW 10 SECONDS SLIDE 2 SECONDS] GROUP BY protocol;

-- Who sends the most bytes, and how many hosts are reached.
CREATE QUERY talkers AS
  SELECT TOPK(src, 3, length) AS most_bytes, COUNT(DISTINCT dst) AS reached
  FROM packets [WINDOW 10 SECONDS SLIDE 2 SECONDS];

-- Standard SQL: answers at the multiples of ten seconds and at no other time.
CREATE QUERY ports AS
  SELECT port, COUNT(*) AS packets FROM packets
  GROUP BY port, TUMBLE(ts, INTERVAL '10' SECOND) HAVING packets > 1000;

-- Window joins: readings of temperature and humidity at one place that are close in time. These three
-- share one join, whatever their windows and selections. One window is kept and probed once, and each
-- pair goes to the queries whose windows cover it.
CREATE QUERY muggy_2s AS
  SELECT a.ts, a.src AS place, a.length AS temperature, b.length AS humidity
  FROM temperature a, humidity b WHERE a.src = b.src AND a.length > 1000 AND b.length > 1000
  WINDOW 2 SECONDS;
CREATE QUERY climate_10s AS
  SELECT a.ts, a.src AS place, a.length AS temperature, b.length AS humidity
  FROM temperature a, humidity b WHERE a.src = b.src WINDOW 10 SECONDS;
CREATE QUERY climate_30s INTO noop AS
  SELECT a.src AS place, a.length - b.length AS difference
  FROM temperature a, humidity b WHERE a.src = b.src WINDOW 30 SECONDS;

-- A join of three streams, one of them twice: places that grew much warmer while it was muggy. Fresh
-- readings probe the streams one after another, in an order that Penstock learns where windows are large.
CREATE QUERY warmer AS
  SELECT c.ts, c.src AS place, c.length - a.length AS warmer_by
  FROM temperature a, humidity b, temperature c
  WHERE a.src = b.src AND b.src = c.src AND b.length > 1000 AND a.ts < c.ts
    AND c.length - a.length > 500
  WINDOW 10 SECONDS;
