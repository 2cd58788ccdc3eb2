"""Running sums: whatever came and went before, a window has the sums of its panes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model import BIGINT, DOUBLE, INT, Aggregate, Column
from penstock.synopses import Question, Synopsis, gathered
from penstock.synopses import ring as rings
from penstock.synopses.prefix_sums import PrefixSums

X, Y = Column("x", INT), Column("y", BIGINT)
ASKED = (Aggregate("SUM", (X,), BIGINT), Aggregate("COUNT", (), BIGINT),
         Aggregate("AVG", (X,), DOUBLE), Aggregate("SUM", (Y,), BIGINT))
(FAMILY,) = gathered(ASKED)
SPAN = 8

Row = tuple[int, int, int | None]
"""Pane, key and value."""


def table(rows: list[Row]) -> pa.Table:
    """A pane table that names a cell as often as it has rows."""
    columns: dict[str, list[object]] = {"pane": [], "k0": []}
    columns |= {f"m{n}": [] for n in range(len(FAMILY.measures))}
    for pane, key, value in rows:
        columns["pane"].append(pane)
        columns["k0"].append(key)
        for n, measure in enumerate(FAMILY.measures):
            columns[f"m{n}"].append(_measured(measure.kind, str(measure.type), value))
    types = [pa.int64(), pa.int32()] + [
        pa.struct({"high": pa.int64(), "low": pa.int64()})
        if measure.kind == "sum" and measure.type == BIGINT else pa.int64()
        for measure in FAMILY.measures]
    return pa.table({name: pa.array(values, type_)
                     for (name, values), type_ in zip(columns.items(), types, strict=True)})


def _measured(kind: str, type_: str, value: int | None) -> object:
    if kind == "rows":
        return 1
    if kind == "count":
        return int(value is not None)
    if type_ == "BIGINT":
        return {"high": (value or 0) >> 32, "low": (value or 0) & 0xFFFFFFFF}
    return value


def expected(rows: list[Row], first: int, end: int) -> dict[int, tuple[object, ...]]:
    found: dict[int, tuple[object, ...]] = {}
    for key in sorted({key for pane, key, _ in rows if first <= pane < end}):
        mine = [value for pane, k, value in rows if first <= pane < end and k == key]
        known = [value for value in mine if value is not None]
        total = sum(known) if known else None
        mean = sum(known) / len(known) if known else None
        found[key] = (total, len(mine), mean, total)
    return found


ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3),
                          st.none() | st.integers(-9, 9) | st.just(2**31 - 1)), max_size=12)
STEPS = st.lists(st.tuples(ROWS, st.integers(1, 32), st.integers(0, 30)), min_size=1, max_size=6)


FULL = st.tuples(st.integers(0, 25), st.integers(1, 6), st.integers(1, 4), st.lists(
    st.none() | st.integers(-9, 9) | st.just(2**31 - 1), min_size=1, max_size=5))
"""The first pane, how many there are, how many keys they hold, and values in turn."""
FULL_STEPS = st.lists(st.tuples(FULL, st.integers(1, 32), st.integers(0, 30)),
                      min_size=1, max_size=8)


def full(first: int, panes: int, keys: int, values: list[int | None]) -> list[Row]:
    """Rows of every key in every pane, youngest pane first."""
    cells = [(pane, key) for pane in range(first + panes - 1, first - 1, -1) for key in range(keys)]
    return [(*cell, values[n % len(values)]) for n, cell in enumerate(cells)]


def follow(steps: list[tuple[list[Row], int, int]], filled: float) -> None:
    """Rows, a scan at an end and forgetting before a pane, again and again.

    ``filled``: all panes dense, as they come, or all sparse.
    """
    synopsis = Synopsis([INT], [FAMILY], SPAN, filled)
    held: list[Row] = []
    for rows, end, before in steps:
        synopsis.add({FAMILY: table(rows)})
        held = [row for row in (*held, *rows) if row[0] >= synopsis.first]
        questions = [Question(length, ASKED[:some]) for length in (1, 2, SPAN) for some in (1, 4)]
        for question, answer in zip(questions, synopsis.scan(end, questions), strict=True):
            given = {row["key0"]: tuple(row[f"agg{n}"] for n in range(len(question.aggregates)))
                     for row in answer.to_pylist()}
            wanted = expected(held, end - question.length, end)
            assert given == {key: value[:len(question.aggregates)]
                             for key, value in wanted.items()}
        synopsis.forget(before)
        held = [row for row in held if row[0] >= synopsis.first]


@settings(deadline=None, max_examples=150)
@given(STEPS, st.sampled_from([0.0, 0.25, 2.0]))
def test_windows_have_the_sums_of_their_panes_whatever_came_and_went(
    steps: list[tuple[list[Row], int, int]], filled: float
) -> None:
    follow(steps, filled)


@settings(deadline=None, max_examples=150)
@given(FULL_STEPS, st.sampled_from([0.0, 0.25, 2.0]))
def test_they_have_them_where_every_key_is_in_every_pane(
    steps: list[tuple[tuple[int, int, int, list[int | None]], int, int]], filled: float
) -> None:
    follow([(full(*grid), end, before) for grid, end, before in steps], filled)


def test_keys_without_rows_or_values_in_the_shortest_window_alone() -> None:
    every = [(pane, 1, 2**31 - 1) for pane in range(3)]
    follow([([*every, (2, 2, 7), (2, 3, 5)], 3, 0)], filled=0.0)
    follow([([*every, (0, 2, 7), (0, 3, 5), (2, 3, None)], 3, 0)], filled=0.0)
    follow([([*every, (0, 3, 5), (2, 3, None)], 3, 0)], filled=0.0)
    follow([([*every, (0, 3, None), (2, 3, None)], 3, 0)], filled=0.0)


def test_a_late_row_changes_running_sums_that_are_there() -> None:
    rows = full(0, 6, 2, [3])
    follow([(rows, 6, 0), (full(2, 1, 2, [4]), 6, 1), ([(1, 0, 9)], 6, 3), ([(1, 1, 9)], 6, 3)],
           filled=0.0)


ACTIONS = st.lists(st.tuples(st.sampled_from(["extend", "extend", "forget", "cut"]),
                             st.integers(1, 4)), max_size=60)


@settings(deadline=None, max_examples=150)
@given(ACTIONS)
def test_they_are_the_sums_of_the_panes_that_are_left(actions: list[tuple[str, int]]) -> None:
    running, panes, forgotten, next_pane = PrefixSums(), {}, 0, 0
    for action, number in actions:
        if action == "extend":
            next_pane = max(forgotten, *panes, 0) + number
            panes[next_pane] = added = np.array([next_pane, number])
            running.extend(next_pane, {0: added[:1], 1: np.stack([added, added])}, cells=2)
        elif action == "forget":
            forgotten += number
            running.forget(forgotten)
            panes = {pane: held for pane, held in panes.items() if pane >= forgotten}
        else:
            running.cut(next_pane - number)
            panes = {pane: held for pane, held in panes.items() if pane < next_pane - number}
        assert len(running) == len(panes)
        assert running.last == max(panes, default=None)
        if panes:
            end, lengths = max(panes), [5, 1, 200]
            found = running.windows(end, lengths)
            wanted = [sum((held for pane, held in panes.items() if end - length <= pane < end),
                          np.zeros(2, int)) for length in lengths]
            assert found[0].tolist() == [n for each in wanted for n in (each[0], 0)]
            assert found[1].tolist() == [np.concatenate(wanted).tolist()] * 2
            assert found.shortest(1).tolist() == [wanted[1].tolist()] * 2


def test_what_is_forgotten_leaves_the_memory() -> None:
    running = PrefixSums()
    for pane in range(1000):
        running.extend(pane, {0: np.ones(10, int)}, cells=10)
        running.forget(pane - 20)
    assert running.nbytes <= 2 * 8 * 10 * (21 + 8)


def test_as_many_keys_as_before_need_not_be_the_same() -> None:
    synopsis = Synopsis([INT], [FAMILY], SPAN)
    synopsis.add({FAMILY: table([(0, key, 1) for key in range(200)])})
    synopsis.add({FAMILY: table([(1, 7, 1)])})
    assert synopsis.scan(1, [Question(1, ASKED)])[0].num_rows == 200
    synopsis.forget(1)
    assert synopsis.keys == 1
    synopsis.add({FAMILY: table([(2, key, 1) for key in (7, *range(1000, 1199))])})
    (answer,) = synopsis.scan(3, [Question(1, ASKED)])
    assert answer["key0"].to_pylist() == [7, *range(1000, 1199)]


def test_answers_stay_as_they_are_when_more_rows_come() -> None:
    synopsis = Synopsis([INT], [FAMILY], SPAN)
    synopsis.add({FAMILY: table([(1, 7, 5)])})
    (answer,) = synopsis.scan(2, [Question(1, ASKED[:1])])
    synopsis.add({FAMILY: table([(1, 7, 5)])})
    assert answer.to_pydict() == {"key0": [7], "agg0": [5]}
    assert synopsis.scan(2, [Question(1, ASKED[:1])])[0].to_pydict()["agg0"] == [10]


def test_they_are_used_for_few_cells_only(monkeypatch: pytest.MonkeyPatch) -> None:
    synopsis = Synopsis([INT], [FAMILY], SPAN)
    synopsis.add({FAMILY: table([(pane, 7, 5) for pane in range(6)])})
    before = synopsis.nbytes
    monkeypatch.setattr(rings, "FEW", 0)
    whole = synopsis.scan(6, [Question(5, ASKED)])
    assert synopsis.nbytes == before
    monkeypatch.setattr(rings, "FEW", 1)
    assert synopsis.scan(6, [Question(5, ASKED)]) == whole
    assert synopsis.nbytes > before


def test_sums_of_fractions_lose_no_digits_to_what_came_before() -> None:
    z = Column("z", DOUBLE)
    total = Aggregate("SUM", (z,), DOUBLE)
    (family,) = gathered([total])
    synopsis = Synopsis([INT], [family], SPAN)
    synopsis.add({family: pa.table({
        "pane": [0, 1], "k0": pa.array([1, 1], pa.int32()), "m0": [1, 1], "m1": [1, 1],
        "m2": np.array([1e18, 0.125])})})
    assert synopsis.scan(2, [Question(1, (total,))])[0]["agg0"].to_pylist() == [0.125]
