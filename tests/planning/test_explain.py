"""The text of `penstock explain`, whole."""

from __future__ import annotations

import json

from penstock.language import bind
from penstock.planning.explain import explain, explain_json
from penstock.planning.passes import plan

DECLARED = """
CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT)
  FROM parquet '/data/packets' TIME ts LATENESS 5 SECONDS;
CREATE STREAM alarms (src INT, text STRING) FROM json '/data/alarms';
CREATE RELATION hosts (id INT, site STRING) FROM csv '/data/hosts.csv';
"""
RULES = "".join(
    f"CREATE QUERY rule{n} INTO parquet '/out/rules' AS SELECT 'rule-{n}' AS rule, ts "
    f"FROM packets WHERE port = {n} AND length > {n * 7 % 90};\n"
    for n in range(500)
)
NETS = "".join(
    f"CREATE QUERY net{n} AS SELECT ts FROM packets WHERE src BETWEEN {n} AND {n + 9};\n"
    for n in range(4)
)
ODD = """
CREATE QUERY web AS SELECT ts FROM packets WHERE port IN (80, 443);
CREATE QUERY odd AS SELECT ts FROM packets WHERE (port = 1 OR src = 2) AND length % 10 = 3;
CREATE QUERY everything INTO noop AS SELECT * FROM packets;
CREATE QUERY sites AS
  SELECT p.src, h.site FROM packets p LEFT JOIN hosts h ON p.src = h.id WHERE p.port > 5
  UNION ALL SELECT src, text FROM alarms;
"""

EXPECTED = """\
streams
  packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT)
      from parquet '/data/packets', time ts, lateness 5 s
      read once, for packets/fanout, packets+hosts@edf44c2e/fanout
  alarms (src INT, text STRING)
      from json '/data/alarms', time of arrival
      read once, for alarms/fanout

paths
  packets/fanout: rule0, rule1, rule2, ... (507 queries in all) share packets, one segment
  ├─ fanout   507 queries in one pass
  │    500 x port = ? AND length > ?                         (one look-up by port)
  │      4 x src >= ? AND src <= ?                           (one look-up by bin of src)
  │      1 x port = ?                                        (one look-up by port)
  │      1 x ((port = ?) OR (src = ?)) AND (length % ?) = ?  (one look-up by length % 10)
  │      1 x every row                                       (asked of every row)
  └─ sink     each query's own

  packets+hosts@edf44c2e/fanout: sites over packets with hosts, one segment
  ├─ join     left hosts on src = id@1
  ├─ filter   port > 5
  ├─ project  src, site
  └─ sink     memory

  alarms/fanout: sites#1 over alarms, one segment
  ├─ project  src, site
  └─ sink     memory

queries
  rule0, rule1, rule2, ... (500 queries in all) -> parquet '/out/rules', on packets/fanout
  net0, net1, net2, net3, web, odd -> memory, on packets/fanout
  everything -> noop, on packets/fanout
  sites -> memory, on packets+hosts@edf44c2e/fanout, alarms/fanout
"""


def test_the_whole_text():
    application = bind(DECLARED + RULES + NETS + ODD)
    assert explain(application, plan(application)) == EXPECTED


def test_segments_are_marked_where_a_path_has_several():
    application = bind(DECLARED + "CREATE QUERY q AS SELECT src FROM packets WHERE port = 1;")
    id = "packets/fanout"
    segments = {id: [[f"{id}:filter"], [f"{id}:project", f"{id}:sink"]]}
    text = explain(application, plan(application), segments)
    assert [line.split()[-1] for line in text.splitlines() if "─" in line] == ["1", "2", "″"]


def test_json_holds_every_name():
    application = bind(DECLARED + RULES + NETS + ODD)
    told = json.loads(json.dumps(explain_json(application, plan(application))))
    shared, joined, _ = told["paths"]
    assert len(shared["members"]) == 507
    assert shared["shapes"][0]["members"] == [f"rule{n}" for n in range(500)]
    assert [lookup["kind"] for lookup in shared["lookups"]] == ["equal", "range", "equal", "always"]
    assert joined["relations"] == ["hosts"]
    assert told["queries"][-1]["paths"] == [joined["id"], "alarms/fanout"]
    assert shared["segments"] == [["packets/fanout:fanout", "packets/fanout:sink"]]


def test_nothing_declared_is_nothing_to_tell():
    application = bind("")
    assert explain(application, plan(application)) == ""
