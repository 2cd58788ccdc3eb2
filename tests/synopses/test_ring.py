"""Rings: an update makes the same panes whether its cells are put in their places or sorted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.model import BIGINT, DOUBLE, INT, Aggregate, Column
from penstock.synopses.families import Measure, gathered
from penstock.synopses.ring import Ring

X, Y = Column("x", INT), Column("y", BIGINT)
(FAMILY,) = gathered([Aggregate("SUM", (X,), BIGINT), Aggregate("MIN", (X,), INT),
                      Aggregate("AVG", (Y,), DOUBLE)])
CELLS = 40


def table(panes: np.ndarray, rng: np.random.Generator) -> pa.Table:
    columns = {}
    for n, measure in enumerate(FAMILY.measures):
        values = pa.array(rng.integers(1, 9, len(panes)))
        halves = measure == Measure("sum", Y)
        columns[f"m{n}"] = pa.StructArray.from_arrays(
            [values, values], ["high", "low"]) if halves else values
    return pa.table({"pane": panes, **columns})


def cells(panes: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The panes and cells of an update, in any order."""
    every = np.flatnonzero(rng.random(panes * CELLS) < share)
    rng.shuffle(every)
    return every // CELLS + 3, every % CELLS


@pytest.mark.parametrize("filled", [0.0, 0.25, 0.7, 2.0])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 0.05])
def test_panes_are_the_same_whether_cells_are_put_in_place_or_sorted(
    filled: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Ring(FAMILY, filled), Ring(FAMILY, filled)
    monkeypatch.setattr(other, "_laid_out", lambda update: None)
    rng = np.random.default_rng(7)
    for before in (0, 0, 5):
        panes, ids = cells(6, share, rng)
        rows = table(panes, rng)
        assert share < 0.3 or one._laid_out(one.read(ids, rows)) is not None
        for ring in (one, other):
            ring.merge(ring.read(ids, rows), before)
            ring.forget(before)
            for pane in ring._panes.values():
                assert all(lane.base is None or lane.base.size == lane.size
                           for lane in pane.lanes), "a pane keeps others alive"
    assert one._panes.keys() == other._panes.keys() == set(one._held)
    assert one._held == other._held == sorted(one._held)
    assert one._last.tolist() == other._last.tolist()
    for number, pane in one._panes.items():
        same = other._panes[number]
        assert (pane.ids is None) == (same.ids is None)
        assert pane.ids is None or pane.ids.tolist() == same.ids.tolist()
        assert [lane.tolist() for lane in pane.lanes] == [lane.tolist() for lane in same.lanes]


def test_a_cell_that_comes_twice_is_merged() -> None:
    ring, rng = Ring(FAMILY), np.random.default_rng(7)
    panes = np.repeat([3, 4], CELLS)
    ids = np.tile(np.arange(CELLS), 2)
    ids[1] = 0
    rows = table(panes, rng)
    update = ring.read(ids, rows)
    assert ring._laid_out(update) is None
    ring.merge(update, 0)
    sums = ring._panes[3].lanes[0]
    assert sums[:2].tolist() == [int(np.asarray(rows["m0"])[:2].sum()), 0]
