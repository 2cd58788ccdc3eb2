"""Sessions from panes are those of the rows, each once, whatever the panes are."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.aggregates.refresher import Refresher
from penstock.model import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Aggregate, Column, Field, Type
from penstock.policies.refresh import QueryGroup, WindowQuery, policy
from penstock.synopses import Question, Synopsis, gathered
from penstock.synopses.sessions import SessionRule, Times, due
from tests.synopses.reference import answers, partials, same
from tests.synopses.test_synopsis import COLUMNS as ALL
from tests.synopses.test_synopsis import EXACT, VALUES, as_groups, check

GAP = 10
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STEPS = st.sampled_from([0, 0, 1, 3, 8, 9, 9, 9, 10, 11, 25, 60])


def of_rows(times: Iterable[int], longest: int) -> set[tuple[int, int, int]]:
    """First and last time and number of rows of each session, cut if it lasts for too long."""
    parts: dict[tuple[int, int], list[int]] = {}
    begun = last = cut = 0
    for number, time in enumerate(sorted(times)):
        if not number or time - last >= GAP:
            begun = cut = time
        elif time // longest * longest - begun >= longest:
            cut = time // longest * longest
        parts.setdefault((begun, cut), []).append(time)
        last = time
    return {(part[0], part[-1], len(part)) for part in parts.values()}


@st.composite
def walks(draw: st.DrawFn) -> list[int]:
    time = draw(st.integers(-100, 100))
    return [time := time + draw(STEPS) for _ in range(draw(st.integers(1, 60)))]


Cells = dict[int, dict[int, list[int]]]
"""By slice or pane, and by key, the times of the rows."""


def found_due(rule: SessionRule, end: int, held: int, cells: Cells) -> list[tuple[int, ...]]:
    """Key, first and last time and number of rows of each session that is due."""

    def told(number: int) -> Times:
        rows = [(key, min(t), max(t)) for key, t in cells.get(number, {}).items()]
        key, first, last = np.array(rows, np.int64).reshape(-1, 3).T
        return key, first, last

    due_now = due(rule, end, held, 3, told)
    found = []
    for key, first, last in zip(due_now.keys, due_now.firsts, due_now.lasts, strict=True):
        times = [t for n in range(first, last + 1) for t in cells.get(n, {}).get(int(key), [])]
        found.append((int(key), min(times), max(times), len(times)))
    return found


@given(st.lists(walks(), min_size=1, max_size=3), st.sampled_from([20, 40, 60]))
def test_each_session_is_due_once(walks, longest):
    rule, reach = SessionRule(GAP, longest), 2 * (longest // GAP + 1)
    cells: Cells = {}
    for key, times in enumerate(walks):
        for time in times:
            cells.setdefault(time // GAP, {}).setdefault(key, []).append(time)
    found = [one for end in range(min(cells), max(cells) + reach + 2)
             for one in found_due(rule, end, reach, cells)]
    assert len(found) == len(set(found))
    assert set(found) == {(key, *one) for key, times in enumerate(walks)
                          for one in of_rows(times, longest)}


@given(st.lists(walks(), min_size=1, max_size=3), st.sampled_from([2, 5, 10]),
       st.sampled_from([20, 40]), st.integers(0, 3), st.integers(0, 5), st.booleans(),
       st.integers(1, 20))
def test_only_ends_with_a_recent_row_are_asked_for_across_jumps_and_a_restart(
    walks, pane, longest, lateness, crash, starts_anew, size
):
    """Blocks of rows close the panes behind them, however far event time jumps."""
    rows = sorted((time, key) for key, times in enumerate(walks) for time in times)
    rule, known = SessionRule(GAP, longest), {}
    ratio, reach = GAP // pane, 2 * (longest // GAP + 1)
    query = WindowQuery("q", reach * ratio, ratio, exactly=True, recent=2 * ratio)

    def begun(answered: int | None) -> Refresher:
        made = Refresher(policy("hybrid"), drained=True)
        made.adopt(0.0, [QueryGroup("g", (query,))], {} if answered is None else {"q": answered})
        return made

    def settle() -> None:
        while scan := refresher.decide(0.0):
            refresher.finished(0.0, scan, 0.0)
            ends.append(scan.end)
            cells: Cells = {}
            for number in [number for number in known if number < scan.end]:
                for key, times in known[number].items():
                    cells.setdefault(number // ratio, {}).setdefault(key, []).extend(times)
            found.extend(found_due(rule, scan.end // ratio, reach, cells))
            oldest = refresher.oldest("g")
            assert oldest is not None and scan.end % ratio == 0
            for number in [number for number in known if number < oldest]:
                del known[number]

    found: list[tuple[int, ...]] = []
    ends: list[int] = []
    refresher, closed = begun(None), None
    for number in range(0, len(rows), size):
        for time, key in rows[number : number + size]:
            known.setdefault(time // pane, {}).setdefault(key, []).append(time)
        if starts_anew and ends and number // size == crash:
            refresher, closed = begun(ends[-1]), None
        end = (rows[min(number + size, len(rows)) - 1][0] - lateness) // pane
        if closed is None or end > closed:
            closed = end
            refresher.close("g", end, sorted(p for p in known if p < end))
            settle()
    refresher.close("g", max(known, default=closed) + 1, sorted(known))
    refresher.conclude("g")
    settle()
    assert len(found) == len(set(found))
    assert set(found) == {(key, *one) for key, times in enumerate(walks)
                          for one in of_rows(times, longest)}
    assert ends == sorted(set(ends)) and ends[-1] * pane <= rows[-1][0] + 2 * GAP + pane
    recent = {end for end in ends if any((end - query.recent) <= t // pane < end for t, _ in rows)}
    assert recent == set(ends)


def test_a_synopsis_answers_sessions_of_rows_with_equal_times() -> None:
    """Two keys, several rows at one time, and a time at the very end of a gap."""
    time, key = Column("timestamp", TIMESTAMP), Column("int", INT)
    asked = (Aggregate("COUNT", (), BIGINT),
             *(Aggregate(function, (time,), TIMESTAMP) for function in ("MIN", "MAX")))
    times = [0, 0, 9, 19, 19, 19, 28, 40, 40, 100]
    rows = [{"pane": at // GAP, "int": n % 2, "at": at,
             "timestamp": datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at)}
            for n, at in enumerate(times)]
    synopsis = Synopsis([INT], gathered(asked), span=98)
    synopsis.add({family: partials(rows, family, [key]) for family in gathered(asked)})
    question = Question(98, asked, SessionRule(GAP, 480, 1, asked[1:]))
    found = [(row["key0"], *((row[name] - rows[0]["timestamp"]).microseconds
                             for name in ("agg1", "agg2")), row["agg0"])
             for end in range(1, 15) for row in synopsis.scan(end, [question])[0].to_pylist()]
    assert len(found) == len(set(found))
    assert set(found) == {(k, *one) for k in (0, 1) for one in of_rows(
        [row["at"] for row in rows if row["int"] == k], 480)}


def test_a_session_that_a_drained_run_has_ended_goes_on_in_the_next_and_is_answered_whole() -> None:
    rule, query = SessionRule(GAP, 480), WindowQuery("q", 98, 1, exactly=True, recent=2)
    panes: Cells = {0: {0: [0, 5]}}

    def drained(answered: dict[str, int]) -> list[tuple[int, list[tuple[int, ...]]]]:
        made = Refresher(policy("hybrid"), drained=True)
        made.adopt(0.0, [QueryGroup("g", (query,))], answered)
        made.close("g", max(panes) + 1, sorted(panes))
        made.conclude("g")
        told = []
        while scan := made.decide(0.0):
            made.finished(0.0, scan, 0.0)
            told.append((scan.end, found_due(rule, scan.end, 98, panes)))
        return [(end, found) for end, found in told if found]

    assert drained({}) == [(2, [(0, 0, 5, 2)])]
    panes[1] = {0: [12]}
    assert drained({"q": 2}) == [(3, [(0, 0, 12, 3)])]


@st.composite
def timed_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of up to three keys, one of them NULL, with values of every type or NULL, mixed."""
    walked, chance = draw(st.lists(walks(), max_size=3)), random.Random(draw(st.integers(0, 999)))
    rows = [{c.name: chance.choice([None, *VALUES[t]]) for t, c in ALL.items()} | {
                "at": at, "int": key, "timestamp": EPOCH + timedelta(microseconds=at)}
            for key, times in zip((7, 8, None), walked, strict=False) for at in times[:15]]
    chance.shuffle(rows)
    return rows


@given(timed_rows(), st.lists(st.sampled_from(EXACT), min_size=1, max_size=5, unique=True),
       st.sampled_from([2, 5, 10]), st.sampled_from([20, 480]), st.integers(1, 30))
@settings(max_examples=25, deadline=None)
def test_every_aggregate_of_every_session_is_that_of_plain_python(
    rows, aggregates, pane, longest, size
):
    key, times = ALL[INT], tuple(Aggregate(f, (ALL[TIMESTAMP],), TIMESTAMP) for f in ("MIN", "MAX"))
    asked = tuple(dict.fromkeys((*aggregates, *times)))
    reach = 2 * (longest // GAP + 1)
    held = Synopsis([INT], gathered(asked), span=reach * GAP // pane)
    for start in range(0, len(rows), size):  # blocks of any size
        block = [row | {"pane": row["at"] // pane} for row in rows[start : start + size]]
        held.add({family: partials(block, family, [key]) for family in gathered(asked)})
    question = Question(held.span, asked, SessionRule(GAP, longest, GAP // pane, times))
    ends = {row["at"] // GAP + n for row in rows for n in (1, 2, 3)}
    ends |= {end // (longest // GAP) * (longest // GAP) for end in ends}
    found: dict[Any, list[Any]] = {}
    for end in sorted(ends):
        for row in held.scan(end * GAP // pane, [question])[0].to_pylist():
            begun = row[f"agg{asked.index(times[0])}"]
            assert found.setdefault((same(row["key0"]), begun), row) is row, "answered twice"
    wanted = {}
    for name in (7, 8, None):
        mine = [row for row in rows if row["int"] == name]
        for first, last, _ in of_rows([row["at"] for row in mine], longest):
            inside = [row | {"pane": 0} for row in mine if first <= row["at"] <= last]
            ((_, told),) = answers(inside, [key], asked, 1, 1).items()
            wanted[same(name), EPOCH + timedelta(microseconds=first)] = told
    check({k: [row[f"agg{n}"] for n in range(len(asked))] for k, row in found.items()},
          wanted, asked)


@given(timed_rows(), st.lists(st.sampled_from(EXACT), min_size=1, max_size=5, unique=True),
       st.integers(1, 8), st.integers(1, 12), st.integers(-20, 60), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_groups_that_are_known_from_before_the_window_have_the_aggregates_of_nothing(
    rows, aggregates, window, kept, end, size
):
    key, asked = ALL[INT], tuple(aggregates)
    held = Synopsis([INT], gathered(asked), span=window + kept)
    placed = [row | {"pane": row["at"] // 4} for row in rows]
    for start in range(0, len(rows), size):
        held.add({family: partials(placed[start : start + size], family, [key])
                  for family in gathered(asked)})
    plain = Question(window, asked)
    found, alone = held.scan(end, [Question(window + kept, asked, kept=kept), plain])
    wanted = answers(placed, [key], asked, end, window)
    check(as_groups(alone, 1), wanted, asked)
    known = answers(placed, [key], asked, end, window + kept)
    nulls = [dict.fromkeys(row, None) for row in rows[:1]]
    for group in known.keys() - wanted.keys():
        (nothing,) = answers([row | {"pane": 0} for row in nulls], [key], asked, 1, 1).values()
        wanted[group] = [0 if not a.args else value
                         for a, value in zip(asked, nothing, strict=True)]
    check(as_groups(found, 1), wanted, asked)
    assert found.schema.equals(alone.schema)


def test_approximate_aggregates_of_a_group_without_rows_are_those_of_nulls() -> None:
    key, value = ALL[INT], ALL[STRING]
    counted = Type("ARRAY", element=Type("STRUCT", fields=(
        Field("value", STRING), Field("count", BIGINT))))
    asked = (Aggregate("APPROX_COUNT_DISTINCT", (value,), BIGINT, (0.05,), "hll"),
             Aggregate("APPROX_COUNT_DISTINCT", (value,), BIGINT, (), "fm"),
             Aggregate("APPROX_F2", (value,), BIGINT, (), "ams"),
             Aggregate("APPROX_TOPK", (value,), counted, (2,), "count_min"),
             Aggregate("APPROX_PERCENTILE", (ALL[DOUBLE],), DOUBLE, (0.5,), "kll"))
    rows = [{"pane": pane, "int": name, "string": text, "double": number}
            for pane, name, text, number in ((0, 1, "a", 0.5), (5, 2, None, None))]
    held = Synopsis([INT], gathered(asked), span=10)
    held.add({family: partials(rows, family, [key]) for family in gathered(asked)})
    (found,) = held.scan(6, [Question(7, asked, kept=5)])
    assert [list(row.values()) for row in found.to_pylist()] == [
        [2, 0, 0, 0, [], None], [1, 0, 0, 0, [], None]]
