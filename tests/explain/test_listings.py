"""SHOW, DESCRIBE and EXPLAIN tell what is declared where they stand, and no secret."""

from __future__ import annotations

import pytest

from penstock.explain.listings import Listing, listed
from penstock.language import bind_all
from penstock.language.settings import SETTINGS
from penstock.policies import FAMILIES

TEXT = """
CREATE STREAM s (ts TIMESTAMP, a INT) FROM kafka
  OPTIONS (subscribe = 't', kafka.ssl.key.password = 'hush', token = ENV 'TOKEN') TIME ts;
CREATE RELATION r (id INT) FROM csv '/data/r.csv';
CREATE FUNCTION looks FROM 'penstock.demo.detectors:looks_like_a_scan';
CREATE QUERY big INTO parquet '/x' WITH (latency = '2 s') AS SELECT a FROM s WHERE a > 5;
CREATE QUERY small AS SELECT a FROM s WHERE a < 2;
CREATE QUERY per AS SELECT a, COUNT(*) AS n FROM s [WINDOW 1 MIN] GROUP BY a;
SET operators = 'mixed(gamma=0.01)';
"""


def listing(statement: str, text: str = TEXT) -> Listing:
    (shown,) = bind_all(f"{text};{statement}")[1]
    return listed(shown, dict.fromkeys(SETTINGS, "the default"))


@pytest.mark.parametrize(("what", "names"), [
    ("STREAMS", ["s"]), ("RELATIONS", ["r"]), ("FUNCTIONS", ["looks"]),
    ("QUERIES", ["big", "small", "per"]), ("SETTINGS", list(SETTINGS)), ("VIEWS", [])])
def test_a_list_has_what_is_declared(what: str, names: list[str]) -> None:
    found = listing(f"SHOW {what}")
    assert [row[0] for row in found.rows] == names
    assert all(len(row) == len(found.columns) for row in found.rows)


def test_a_list_ends_where_the_statement_stands() -> None:
    before, after = bind_all("SHOW STREAMS; CREATE STREAM s (a INT) FROM rate; SHOW STREAMS")[1]
    assert [len(listed(one, {}).rows) for one in (before, after)] == [0, 1]


def test_settings_have_their_values_and_defaults() -> None:
    rows = {row[0]: row[1:] for row in listing("SHOW SETTINGS").rows}
    assert rows["operators"] == ("mixed(gamma=0.01)", "the default")
    assert rows["memory"] == ("the default", "the default")


def test_policies_are_those_of_all_families_and_one_of_each_is_in_force() -> None:
    rows = listing("SHOW POLICIES").rows
    assert [row[:2] for row in rows] == [
        (family.name, name) for family in FAMILIES.values() for name in family.catalogue]
    assert [row[2] for row in rows if row[2]] == [
        "mixed(gamma=0.01)", *(family.default for family in list(FAMILIES.values())[1:])]
    assert all(row[3] for row in rows)


def test_a_stream_is_described_without_its_secrets() -> None:
    found = listing("DESCRIBE s")
    told = {row[1]: row[2] for row in found.rows}
    assert told["ts"] == "TIMESTAMP" and told["option subscribe"] == "t"
    assert told["option kafka.ssl.key.password"] == "(hidden)"
    assert told["option token"] == "ENV 'TOKEN'"
    assert "hush" not in str(found)


SEVERAL = TEXT + """
CREATE QUERY two INTO parquet '/x/two', memory, csv '/y' AS SELECT a FROM s WHERE a = 7;
CREATE RELATION now_and_then (id INT) FROM csv '/data/n.csv' REFRESH EVERY 90 SECONDS;
CREATE RELATION when_told (id INT) FROM csv '/data/n.csv' REFRESH ON DEMAND;
CREATE QUERY found AS SELECT s.a FROM s JOIN now_and_then n ON s.a = n.id;
"""


def test_all_sinks_of_a_query_are_told() -> None:
    told = "parquet '/x/two', memory, csv '/y'"
    assert ("property", "sink", told) in listing("DESCRIBE two", SEVERAL).rows
    assert told in [row[2] for row in listing("SHOW QUERIES", SEVERAL).rows]
    plan = "\n".join(str(row[0]) for row in listing("EXPLAIN two", SEVERAL).rows)
    assert f"two -> {told}, on" in plan


def test_a_relation_tells_when_it_is_read() -> None:
    told = {row[0]: row[3] for row in listing("SHOW RELATIONS", SEVERAL).rows}
    assert told == {"r": "once, when a run begins",
                    "now_and_then": "when a run begins, and again every 90 s",
                    "when_told": "when a run begins, and again when asked"}
    assert ("property", "read", told["when_told"]) in listing("DESCRIBE when_told", SEVERAL).rows
    plan = "\n".join(str(row[0]) for row in listing("EXPLAIN found", SEVERAL).rows)
    assert ("now_and_then: read when a run begins, and again every 90 s; a change holds from the "
            "next block on, for found") in plan
    assert "relations" not in str(listing("EXPLAIN two", SEVERAL))


def test_a_query_is_described_by_its_answers() -> None:
    rows = listing("DESCRIBE per").rows
    assert [row[1:] for row in rows if row[0] == "column"] == [
        ("window_start", "TIMESTAMP"), ("window_end", "TIMESTAMP"), ("a", "INT"), ("n", "BIGINT")]
    assert ("property", "window", "1 min") in rows
    assert ("property", "arguments", "2") in listing("DESC looks").rows
    assert ("property", "source", "csv '/data/r.csv'") in listing("DESCRIBE R").rows


def test_a_view_is_listed_described_and_explained_with_its_queries() -> None:
    text = (TEXT + "CREATE VIEW v AS SELECT a AS b FROM s; CREATE VIEW w AS SELECT b FROM v;"
            "CREATE QUERY over AS SELECT b FROM w")
    written = "CREATE VIEW w AS SELECT b FROM v"
    assert listing("SHOW VIEWS", text).rows[1] == ("w", "s, v", "b", written)
    assert listing("DESCRIBE W", text).rows == (
        ("column", "b", "INT"), ("property", "view", "w"), ("property", "reads", "s, v"),
        ("property", "statement", written))
    plan = "\n".join(row[0] or "" for row in listing("EXPLAIN over", text).rows)
    assert "w (b INT) over s: part of over" in plan
    assert "views" not in "\n".join(row[0] or "" for row in listing("EXPLAIN big", text).rows)


def test_a_derived_stream_is_told_with_its_query() -> None:
    written = "CREATE STREAM few TIME ts LATENESS 3 SECONDS AS SELECT ts, a FROM s WHERE a > 7"
    text = f"{TEXT}{written}; CREATE QUERY over AS SELECT a FROM few"
    assert listing("SHOW STREAMS", text).rows[1] == (
        "few", "ts TIMESTAMP, a INT", "the query few", "ts", "3 s")
    assert ("few", "s", "the stream few", "ts, a", written) in listing("SHOW QUERIES", text).rows
    rows = listing("DESCRIBE few", text).rows
    for told in (("source", "the query few"), ("lateness", "3 s"), ("reads", "s"),
                 ("statement", written)):
        assert ("property", *told) in rows
    assert listing("EXPLAIN few", text).rows


def test_a_query_is_explained_with_those_that_share_its_path() -> None:
    text = "\n".join(row[0] or "" for row in listing("EXPLAIN big").rows)
    assert "big, small share s" in text and "big -> parquet '/x'" in text
    assert "synopses" not in text and "small -> " not in text
    assert "synopses" in "\n".join(row[0] or "" for row in listing("EXPLAIN QUERY per").rows)


def test_sessions_and_empty_groups_are_described() -> None:
    text = TEXT + """
        CREATE QUERY visits AS SELECT a FROM s GROUP BY a, SESSION(ts, INTERVAL '5' MINUTE);
        CREATE QUERY quiet AS SELECT a FROM s [WINDOW 1 MIN] GROUP BY a EMPTY GROUPS FOR 1 HOUR;
    """
    visits, quiet = ({row[1]: row[2] for row in listing(f"DESCRIBE {name}", text).rows}
                     for name in ("visits", "quiet"))
    assert (visits["sessions"], "window" in visits) == ("with gaps below 5 min", False)
    assert (quiet["window"], quiet["empty groups"]) == ("1 min", "for 1 h")
