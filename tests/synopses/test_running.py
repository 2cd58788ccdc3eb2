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


@settings(deadline=None, max_examples=150)
@given(STEPS, st.sampled_from([0.0, 0.25, 2.0]))
def test_windows_have_the_sums_of_their_panes_whatever_came_and_went(
    steps: list[tuple[list[Row], int, int]], filled: float
) -> None:
    """``filled``: all panes dense, as they come, or all sparse."""
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
