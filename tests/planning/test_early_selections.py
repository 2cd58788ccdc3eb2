"""What is asked of rows before a shared join: whatever some query wants comes through."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.explain.plans import explain, explain_json
from penstock.functions import predicate
from penstock.language import bind
from penstock.model import Application, Branch
from penstock.planning import plan
from penstock.planning.check import check
from penstock.planning.early_selections import EarlySelection, early_selection, lets_through
from penstock.planning.shapes import conjunction
from penstock.rendering import render

STREAMS = """
    CREATE STREAM a (ts TIMESTAMP, k INT, v INT, x DOUBLE, s STRING) FROM rate TIME ts;
    CREATE STREAM b (ts TIMESTAMP, k INT, v INT, x DOUBLE, s STRING) FROM rate TIME ts;
    CREATE FUNCTION odd FROM 'm:odd';
"""
CONDITIONS = [
    *(f"A.v {how} {n}" for how in ("<", "<=", "=", ">=", ">") for n in (-1, 0, 1, 2)),
    *(f"A.x {how} {n}" for how in ("<", ">", "=") for n in (-0.5, 0.0, 1.5)),
    "3 > A.v", "A.v IN (0, 2)", "A.v IN (1, NULL)", "A.v <> 1", "A.v BETWEEN 0 AND 1",
    "A.v > 0 OR A.k = 1", "A.s > 'm'", "A.s <= 'b'", "A.s = 'c'", "A.v > A.k", "A.v IS NULL",
    "A.v > NULL", "NOT A.v > 1",
]


def bound(queries: str) -> Application:
    return bind(STREAMS + queries, load=lambda *_: predicate(lambda v: v))


def branches(*asked: str) -> list[Branch]:
    """Joins that ask for these, beside the key."""
    text = "".join(
        f"CREATE QUERY q{n} AS SELECT A.k FROM a A, b B WHERE A.k = B.k{one and ' AND '}{one} "
        f"WINDOW {n + 1} SECONDS;" for n, one in enumerate(asked))
    app = bound(text)
    return [query.branches[0] for query in app.queries.values()]


def selected(*asked: str, side: int = 0) -> list[str]:
    return [render(one) for one in early_selection(branches(*asked), side).where]


@settings(max_examples=150, deadline=None)
@given(asked=st.lists(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3).map(
    " AND ".join), min_size=1, max_size=7))
def test_no_row_is_left_out_that_some_query_wants(asked):
    some = branches(*asked)
    found = early_selection(some, 0)
    assert all(lets_through(found.where, one, 0) for one in some)
    with duckdb.connect() as database:
        database.execute("""CREATE TABLE a AS SELECT * FROM
            (SELECT unnest([0, 1, 2, NULL]) AS k), (SELECT unnest([-2, -1, 0, 1, 2, 3, NULL]) AS v),
            (SELECT unnest([-0.5::DOUBLE, 0, 1.5, 2, 'nan', NULL]) AS x),
            (SELECT unnest(['', 'b', 'c', 'mm', NULL]) AS s)""")
        wanted = " OR ".join(f"coalesce({one.replace('A.', '')}, false)" for one in map(
            lambda text: f"({text})", asked))
        kept = conjunction(found.where) or "true"
        (lost,), = database.execute(
            f"SELECT count(*) FROM a WHERE ({wanted}) AND NOT coalesce({kept}, false)").fetchall()
    assert lost == 0


def test_bounds_that_differ_in_their_constants_become_the_weakest_of_them():
    assert selected("A.v > 7", "A.v > 3", "A.v > 5") == ["v > 3"]
    assert selected("A.v <= 7", "A.v <= 9 AND B.v > 1") == ["v <= 9"]
    assert selected("A.v > 7 AND A.x < 1.5", "A.x < 9.5 AND A.v > 9") == ["(v > 7) AND (x < 9.5)"]
    thousand = [f"A.v > {n} AND B.v = {n % 7}" for n in range(1000)]
    assert selected(*thousand) == ["v > 0"]
    assert selected(*thousand, side=1) == ["v@1 IN (0, 1, 2, 3, 4, 5, 6)"]


def test_different_things_become_alternatives():
    assert selected("A.v > 7", "A.k = 1", "A.k = 2") == ["(v > 7) OR (k IN (1, 2))"]
    assert selected("A.s = 'x' AND A.v > 7", "A.s = 'x' AND A.v < 2") == [
        "s = 'x'", "(v > 7) OR (v < 2)"]


def test_doubles_are_not_looked_up_in_a_table():
    """There -0.0 is another value than 0.0."""
    assert selected("A.x = 0.0", "A.x = 1.0") == ["(x = 0.0) OR (x = 1.0)"]


def test_rows_enter_whole_if_a_query_wants_them_all_or_too_much_is_asked():
    assert early_selection(branches("A.v > 7", "B.v > 1"), 0) == EarlySelection(wants_all=1)
    some = [f"A.v % {n} = 1" for n in range(2, 11)]
    assert early_selection(branches(*some[:8]), 0).too_many == 0
    assert early_selection(branches(*some), 0) == EarlySelection(too_many=9)
    values = [f"A.k = {n}" for n in range(33)]
    assert len(early_selection(branches(*values[:-1]), 0).one_of) == 1
    assert early_selection(branches(*values), 0) == EarlySelection(too_many=33)


def test_conditions_over_both_sides_and_python_are_asked_of_pairs():
    assert selected("A.v > B.v", "A.v > 3") == []
    assert selected("A.v > 3 AND A.v > B.v AND odd(A.v)") == ["v > 3"]


def test_what_all_ask_for_stays_beside_the_alternatives():
    found = early_selection(branches("A.k > 1 AND A.v > 7", "A.k > 1 AND A.v > 9", "A.k > 1"), 0)
    assert conjunction(found.all_ask) == "k > 1" and found.wants_all == 2


def test_the_plan_is_refused_if_a_row_is_left_out_that_a_query_wants():
    text = "".join(f"CREATE QUERY q{n} AS SELECT A.k FROM a A, b B WHERE A.k = B.k AND A.v > {n} "
                   "WINDOW 1 MIN;" for n in (1, 5))
    made = plan(bound(text))
    (join,) = made.joins
    assert [[render(one) for one in side] for side in join.where] == [["v > 1"], []]
    stricter = replace(join, where=((*join.where[0], made.branch(join.members[1]).where[0]), ()))
    with pytest.raises(PlanError, match="leaves rows out that q1 wants"):
        check(replace(made, joins=(stricter,)))


def test_explain_tells_what_is_done_before_the_join_and_why_not_more():
    app = bound("".join(
        f"CREATE QUERY {name} AS SELECT A.k FROM a A, a B WHERE A.k = B.k AND A.v > 2 AND {one} "
        "WINDOW 1 MIN;" for name, one in (
            ("low", "A.x < 1.0"), ("high", "A.x > 5.0 AND B.v = 1"))))
    lines = [line.strip() for line in explain(app, plan(app)).splitlines()]
    assert [line for line in lines if "before the join" in line] == [
        "before the join: v > 2, which all its queries ask for",
        "before the join, of a (1): x < 1.0 OR x > 5.0, since no query wants other rows",
        "before the join, of a (2): all rows that are left, since low asks for all of them"]
    (told,) = explain_json(app, plan(app))["joins"]
    assert told["above"] == 3 and set(told["before_some"]) == {"a (1)"}
    many = bound("".join(
        f"CREATE QUERY q{n} AS SELECT A.k FROM a A, b B WHERE A.k = B.k AND A.v % {n} = 1 "
        "WINDOW 1 MIN;" for n in range(2, 12)))
    assert ("before the join, of a: all rows, since its queries ask for 10 different things, and "
            "more than 8 would cost a row more than they save") in explain(many, plan(many))
