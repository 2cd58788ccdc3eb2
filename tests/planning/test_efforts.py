"""SQL conditions come in the order of what they cost, and stay as written among equals."""

from __future__ import annotations

import pytest

from penstock.language import bind
from penstock.planning.efforts import cheapest_first, effort
from penstock.rendering import render

STREAM = "CREATE STREAM s (name STRING, text STRING, a INT, b INT, at TIMESTAMP) FROM rate;"


def ordered(where: str) -> list[str]:
    application = bind(f"{STREAM} CREATE QUERY q AS SELECT a FROM s WHERE {where}")
    return [render(one) for one in cheapest_first(application.queries["q"].branches[0].where)]


@pytest.mark.parametrize(("written", "evaluated"), [
    ("name RLIKE 'x+y' AND a = 1", ["a = 1", "name RLIKE 'x+y'"]),
    ("CAST(text AS DOUBLE) > 0.5 AND name = 'x' AND b < 3",
     ["b < 3", "name = 'x'", "CAST(text AS DOUBLE) > 0.5"]),
    ("b = 1 AND a = 1", ["b = 1", "a = 1"]),
    ("a + b > 3 AND a = 1", ["a = 1", "a + b > 3"]),
])
def test_the_cheapest_conditions_come_first(written: str, evaluated: list[str]) -> None:
    found = ordered(written)
    assert [text.replace("(", "").replace(")", "") for text in found] == [
        text.replace("(", "").replace(")", "") for text in evaluated]


def test_every_admitted_function_costs_something() -> None:
    application = bind(f"{STREAM} CREATE QUERY q AS SELECT a FROM s "
                       "WHERE ABS(a) > 1 AND LOWER(name) = 'x' AND HOUR(at) = 3")
    assert all(effort(one) > 0 for one in application.queries["q"].branches[0].where)
