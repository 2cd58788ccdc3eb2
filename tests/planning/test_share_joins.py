"""Which window joins share one join, and what is made before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import PlanError
from penstock.functions import predicate
from penstock.language import bind
from penstock.language.aggregates import AGGREGATES
from penstock.plan import Plan
from penstock.planning import plan
from penstock.planning.check import check
from penstock.planning.fanout import fan_out

STREAMS = """
    CREATE STREAM a (ts TIMESTAMP, k INT, v INT) FROM rate TIME ts;
    CREATE STREAM b (ts TIMESTAMP, k INT, v INT) FROM rate TIME ts;
    CREATE RELATION sites (id INT, site STRING) FROM csv 'sites.csv';
    CREATE FUNCTION odd FROM 'm:odd';
"""


def planned(**queries: str) -> Plan:
    text = "".join(f"CREATE QUERY {name} AS SELECT A.v FROM {rest};"
                   for name, rest in queries.items())
    return plan(bind(STREAMS + text, load=lambda *_: predicate(lambda v: v)))


def together(made: Plan) -> list[list[str]]:
    return [[member.query for member in join.members] for join in made.joins]


def test_queries_that_differ_in_windows_selections_and_columns_share_one_join():
    made = planned(
        one="a A, b B WHERE A.k = B.k WINDOW 1 MIN",
        two="a A, b B WHERE B.k = A.k AND A.v > 5 WINDOW 1 HOUR",
        three="a A JOIN b B ON A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 5 SECONDS "
              "WHERE B.v < A.v")
    assert together(made) == [["one", "two", "three"]]
    (join,) = made.joins
    assert join.span == 3_600_000_000
    assert join.path.reads == join.id and made.path(join.path.id) is join.path
    assert made.paths == ()
    assert made.paths_of("two") == (join.path,)


def test_other_streams_predicates_lookups_and_python_keep_joins_apart():
    made = planned(
        plain="a A, b B WHERE A.k = B.k WINDOW 1 MIN",
        turned="b A, a B WHERE A.k = B.k WINDOW 1 MIN",
        other="a A, b B WHERE A.k = B.v WINDOW 1 MIN",
        more="a A, b B WHERE A.k = B.k AND A.v = B.v WINDOW 1 MIN",
        placed="a A JOIN b B ON A.k = B.k JOIN sites s ON A.k = s.id WINDOW 1 MIN",
        python="a A, b B WHERE A.k = B.k AND odd(A.v) WINDOW 1 MIN",
        pythons="a A, b B WHERE A.k = B.k AND odd(A.v) WINDOW 1 MIN",
        loops="a A, b B WHERE A.k < B.k WINDOW 1 MIN")
    assert all(len(queries) == 1 for queries in together(made))


def test_a_thousand_queries_that_differ_in_windows_and_constants_are_one_join_of_two_shapes():
    made = planned(**{
        f"q{n}": f"a A, b B WHERE A.k = B.k AND A.v > {n} WINDOW {1 + n % 50} SECONDS" if n % 2
        else f"a A, b B WHERE B.k = A.k AND B.v = {n} WINDOW {n} ms" for n in range(2, 1002)})
    (join,) = made.joins
    assert len(join.members) == 1000
    fanout = fan_out([made.branch(member).over_pairs for member in join.members])
    assert len(fanout.shapes) == 2


def test_aggregates_that_call_python_alike_share_one_join_and_one_synopsis():
    where = "a A, b B WHERE A.k = B.k AND odd(A.v)"
    aggregates = {"one": f"COUNT(*) FROM {where} WINDOW 1 MIN SLIDE 20 SECONDS",
                  "two": f"MAX(B.v) FROM {where} WINDOW 2 MIN SLIDE 30 SECONDS",
                  "other": f"COUNT(*) FROM {where} AND odd(B.v) WINDOW 1 MIN SLIDE 20 SECONDS",
                  "called": f"COUNT(odd(B.v)) FROM {where} WINDOW 1 MIN SLIDE 20 SECONDS"}
    text = "".join(f"CREATE QUERY {name} AS SELECT {rest};" for name, rest in aggregates.items())
    made = plan(bind(STREAMS + text, load=lambda *_: predicate(lambda v: v)))
    assert together(made) == [["one", "two"], ["other"], ["called"]]
    assert [len(group.members) for group in made.groups] == [2, 1, 1]
    assert [[op.kind for op in join.path.operators] for join in made.joins] == [
        ["python", "panes"], ["python", "python", "panes"], ["python", "python", "panes"]]


@pytest.mark.parametrize("slide", ["", " SLIDE 20 SECONDS", " SLIDE EXACTLY 20 SECONDS",
                                   " SLIDE 90 SECONDS"])
def test_a_join_takes_every_aggregate_with_every_slide(slide):
    """All of them in one query, over either side and over both."""
    given = {"APPROX_PERCENTILE": "B.v, 0.5", "PERCENTILE": "B.v, 0.9", "TOPK": "A.v, 3, B.v",
             "APPROX_TOPK": "B.v, 3", "COLLECT_LIST": "A.v, 2"} | {
        name: "A.v < B.v" for name in ("BOOL_AND", "BOOL_OR", "COUNT_IF")}
    sides = {1: "A.v", 2: "A.v, B.v"}
    calls = ", ".join(f"{name}({given.get(name) or sides[admitted.least]}) AS a{number}"
                      for number, (name, admitted) in enumerate(AGGREGATES.items()))
    made = plan(bind(f"{STREAMS} CREATE QUERY q AS SELECT A.k, {calls} FROM a A, b B "
                     f"WHERE A.k = B.k GROUP BY A.k HAVING COUNT(*) > 1 WINDOW 1 MIN{slide};",
                     load=lambda *_: predicate(lambda v: v)))
    (group,) = made.groups
    assert group.paired and len(made.query("q").branches[0].grouping.aggregates) > 20
    assert made.joins[0].path.end == "panes"


def test_selections_of_one_side_that_all_queries_have_are_made_before_the_join():
    made = planned(
        one="a A, b B WHERE A.k = B.k AND A.v > 5 AND B.v > 7 AND A.v < B.v WINDOW 1 MIN",
        two="a A, b B WHERE A.k = B.k AND A.v > 5 WINDOW 1 HOUR")
    (join,) = made.joins
    assert list(map(len, join.where)) == [1, 0]
    (alone,) = planned(
        one="a A, b B WHERE A.k = B.k AND A.v > 5 AND B.v > 7 AND A.v < B.v WINDOW 1 MIN").joins
    assert list(map(len, alone.where)) == [1, 1]


def test_a_join_stays_the_same_when_queries_come_and_go():
    alone = planned(one="a A, b B WHERE A.k = B.k WINDOW 1 MIN")
    both = planned(one="a A, b B WHERE A.k = B.k WINDOW 1 MIN",
                   two="a A, b B WHERE A.k = B.k WINDOW 2 MIN")
    assert alone.joins[0].id == both.joins[0].id
    assert alone.joins[0].path.id == both.joins[0].path.id


@pytest.mark.parametrize("change, told", [
    (lambda join: replace(join, span=1), "longer than that of join"),
    (lambda join: replace(join, streams=("b", "b")), "joins other rows"),
    (lambda join: replace(join, members=()), "no path carries one#0"),
    (lambda join: replace(join, path=replace(join.path, members=())), "does not have the members"),
    (lambda join: replace(join, path=replace(join.path, reads="a")), "reads 'a'"),
])
def test_a_broken_join_is_told(change, told):
    made = planned(one="a A, b B WHERE A.k = B.k WINDOW 1 MIN")
    with pytest.raises(PlanError, match=told):
        check(replace(made, joins=tuple(map(change, made.joins))))
