"""The text of `penstock explain`, whole."""

from __future__ import annotations

import json

import pytest

from penstock.explain.plans import explain, explain_json
from penstock.explain.refresh_preview import renewals
from penstock.explain.segment_preview import segments
from penstock.functions import predicate
from penstock.language import bind
from penstock.planning.passes import plan
from penstock.policies.operators import POLICIES

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
  ├─ lookup   left hosts on src = id@1
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


CALLS = """
CREATE STREAM s (a INT) FROM rate;
CREATE FUNCTION f FROM 'm:f';
CREATE QUERY q AS SELECT a FROM s WHERE a > 1 AND f(a);
"""


@pytest.mark.parametrize(("operators", "cut"), [
    ("fifo", [["filter", "python", "project", "sink"]]),
    ("greedy", [["filter"], ["python"], ["project", "sink"]])])
def test_the_segments_are_those_of_the_chosen_policy(operators: str, cut: list) -> None:
    application = bind(CALLS, load=lambda *_: predicate(lambda a: a > 1))
    made = plan(application)
    (path,) = explain_json(application, made, segments(made, operators))["paths"]
    kinds = {operator["id"]: operator["kind"] for operator in path["operators"]}
    assert [[kinds[id] for id in segment] for segment in path["segments"]] == cut


@pytest.mark.parametrize("operators", POLICIES)
def test_every_policy_has_each_operator_in_one_segment(operators: str) -> None:
    application = bind(CALLS + "CREATE QUERY r AS SELECT a FROM s WHERE a = 7;",
                       load=lambda *_: predicate(lambda a: a > 1))
    made = plan(application)
    cut = segments(made, operators)
    for path in made.paths:
        assert [id for segment in cut[path.id] for id in segment] == [
            operator.id for operator in path.operators]


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


# --- window aggregates --------------------------------------------------------------------------

WINDOWS = DECLARED + """
CREATE QUERY sums AS SELECT src, SUM(length) FROM packets [WINDOW 10 S SLIDE 2 S] GROUP BY src;
CREATE QUERY means AS SELECT src, AVG(length) FROM packets [WINDOW 15 S SLIDE 3 S] GROUP BY src;
CREATE QUERY middles AS
  SELECT src, MEDIAN(length), COUNT(DISTINCT dst) FROM packets [WINDOW 30 S SLIDE 5 S] GROUP BY src;
CREATE QUERY large AS
  SELECT COUNT(*) FROM packets [WINDOW 1 MIN SLIDE EXACTLY 10 S] WHERE length > 1000;
"""

SYNOPSES = """\
synopses
  packets/src@38b2e9b3: sums, means, middles, one synopsis shared
      all rows, grouped by src
      panes of 1 s, made on packets/panes; 30 in the longest window
      each pane keeps scalars of length; frequencies of length; frequencies of dst
      window 10 s, slide 2 s: sums
      window 15 s, slide 3 s, answered every 2 s: means
      window 30 s, slide 5 s: middles
      hybrid costs 11.4 merges per pane; conservative 11.93, aggressive 14.5
      ways to shorten slides, by cost:
            11.4  3 s to 2 s
           11.93  none
           12.67  5 s to 3 s
           14.33  3 s to 2 s, 5 s to 3 s
            14.5  3 s to 2 s, 5 s to 2 s
           16.83  5 s to 2 s

  packets/all@8e1a3198: large, one synopsis of its own
      rows where length > 1000, in one group
      panes of 10 s, made on packets/panes; 6 in the longest window
      each pane keeps the number of rows
      window 1 min, slide exactly 10 s: large
      hybrid costs 5 merges per pane; conservative 5, aggressive 5
"""


def test_window_aggregates_show_what_they_share_and_what_their_answers_cost() -> None:
    application = bind(WINDOWS)
    made = plan(application)
    told = renewals(made, "hybrid")
    assert SYNOPSES in explain(application, made, renewals=told)
    shared, alone = explain_json(application, made, renewals=told)["groups"]
    assert shared["queries"][1] == {"name": "means", "window": 15_000_000, "slide": 3_000_000,
                                    "exactly": False, "period": 2_000_000}
    assert (shared["pane"], shared["panes"], shared["refresh"]) == (1_000_000, 30, "hybrid")
    assert shared["ways"][0]["periods"] == {"2": 2, "3": 2, "5": 5}
    assert round(shared["costs"]["chosen"], 4) == round(shared["ways"][0]["cost"], 4) == 11.4
    assert alone["where"] == "length > 1000"
    json.dumps([shared, alone])


def test_a_group_of_many_slides_has_no_list_of_ways() -> None:
    text = DECLARED + "".join(
        f"CREATE QUERY w{n} AS SELECT MAX(src) FROM packets [WINDOW {n * 9} S SLIDE {n} S];"
        for n in range(1, 9))
    application = bind(text)
    made = plan(application)
    (group,) = explain_json(application, made, renewals=renewals(made, "hybrid"))["groups"]
    assert group["ways"] == []
    assert group["costs"]["chosen"] <= min(
        group["costs"]["conservative"], group["costs"]["aggressive"])


def test_without_renewals_only_the_sharing_is_told() -> None:
    application = bind(WINDOWS)
    text = explain(application, plan(application))
    assert "panes of 1 s" in text
    assert "costs" not in text and "answered every" not in text


def test_queries_that_share_predicates_are_told_and_which_may_come_in_any_order() -> None:
    text = """
        CREATE STREAM s (length INT, src INT, dst INT, port INT) FROM rate;
        CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';
        CREATE QUERY one AS SELECT src FROM s WHERE f(port, length) AND f(dst, src);
        CREATE QUERY two AS SELECT dst FROM s WHERE f(port, length) AND length > 5;"""
    application = bind(text)
    told = explain(application, plan(application))
    assert "one#0+: one and two share s" in told or "share s, one segment" in told
    assert "f(port, length)  (any order)" in told
    assert "2 queries in one trip to Python" in told
    assert explain_json(application, plan(application))["paths"][0]["conjunction"] == [
        "one#0+:python1", "one#0+:python2"]


OVER = """
CREATE STREAM events (value STRING, ts TIMESTAMP AS (FROM_JSON(value, 'at TIMESTAMP').at))
  FROM text '/data/events' TIME ts;
CREATE VIEW web AS SELECT ts, src FROM packets WHERE port = 80;
CREATE VIEW placed AS SELECT w.ts, h.site FROM web w JOIN hosts h ON w.src = h.id
  UNION ALL SELECT ts, value FROM events;
CREATE QUERY sites AS SELECT site FROM placed WHERE site > 'a';
CREATE QUERY counts AS SELECT src, COUNT(*) FROM web [WINDOW 1 MIN] GROUP BY src;
"""


def test_computed_columns_and_views_are_told_of():
    application = bind(DECLARED + OVER)
    told = explain(application, plan(application))
    assert """
  events (value STRING, ts TIMESTAMP)
      from text '/data/events', time ts
      computed: ts = from_json(value, 'STRUCT<`at`: TIMESTAMP>').at
      read once, for events/fanout
""" in told
    assert """
views
  web (ts TIMESTAMP, src INT) over packets: part of sites, counts
  placed (ts TIMESTAMP, site STRING) over packets, events with hosts: part of sites
""" in told
    views = explain_json(application, plan(application))["views"]
    assert [(view["name"], view["views"], view["queries"]) for view in views] == [
        ("web", [], ["sites", "counts"]), ("placed", ["web"], ["sites"])]


def test_sessions_and_empty_groups_are_told() -> None:
    application = bind(DECLARED + """
        CREATE QUERY visits AS
          SELECT src, COUNT(*) FROM packets GROUP BY src, SESSION(ts, INTERVAL '30' MINUTE);
        CREATE QUERY quiet AS SELECT src, COUNT(*) FROM packets
          GROUP BY src, TUMBLE(ts, INTERVAL '1' MINUTE) EMPTY GROUPS FOR 1 HOUR;
    """)
    made = plan(application)
    text = explain(application, made)
    assert "\n      sessions with gaps below 30 min: visits\n" in text
    assert "\n      window 1 min, slide exactly 1 min, with empty groups for 1 h: quiet\n" in text
    (group,) = explain_json(application, made)["groups"]
    assert [{"name": "visits", "gap": 1_800_000_000}, 60_000_000, 3_600_000_000] == [
        group["queries"][0], group["queries"][1]["window"], group["queries"][1]["empty_groups"]]
