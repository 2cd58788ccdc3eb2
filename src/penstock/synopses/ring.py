"""A ring over cells: the panes of one family, and one scan over them.

A pane is *dense* (a value for every cell) or *sparse* (the numbers of its cells, sorted, and their
values), whichever is smaller. Both are read alike and give the same answers. Cells are numbered as
they come and never move until `kept` renumbers them. So a dense pane is simply shorter than those
that came after more cells were known.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.model import BIGINT
from penstock.synopses.array_layout import Lane, lane
from penstock.synopses.dictionaries import Dictionary, packed, ranks, unpacked
from penstock.synopses.families import Family, Measure
from penstock.synopses.pair_panes import earlier_of, first_of, later_of
from penstock.synopses.prefix_sums import FEW, PrefixSums, WindowSums

FILLED = 0.25
"""The share of the cells from which on a pane is dense: a scan adds a dense one four times faster
per cell, and needs no numbers for it."""


@dataclass(slots=True)
class Pane:
    """What one pane holds: ``ids`` is None when it is dense."""

    ids: np.ndarray | None
    lanes: list[np.ndarray]

    @property
    def places(self) -> np.ndarray | slice:
        """Its cells among all."""
        return slice(self.lanes[0].shape[-1]) if self.ids is None else self.ids


@dataclass(frozen=True, slots=True)
class Update:
    """A pane table that was read and is about to be merged."""

    panes: np.ndarray
    cells: np.ndarray
    lanes: list[np.ndarray]

    def of(self, rows: np.ndarray) -> Update:
        """Some of its rows."""
        return Update(self.panes[rows], self.cells[rows], [lane[..., rows] for lane in self.lanes])


class Ring:
    """The panes of one family."""

    def __init__(self, family: Family, filled: float = FILLED, paired: bool = False) -> None:
        """No pane, no cell. ``paired``: the panes are those of pairs, by their numbers."""
        self.family = family
        self._filled, self._paired = filled, paired
        self._lanes: list[Lane] = [lane(measure, family) for measure in family.measures]
        self._places = {measure: n for n, measure in enumerate(family.measures)}
        self._summed = [n for n, way in enumerate(self._lanes)
                        if way.merge is np.add and way.dtype is np.int64]
        self._panes: dict[int, Pane] = {}
        self._held: list[int] = []
        """The numbers of the panes, ascending."""
        self._running = PrefixSums()
        self._number = 0
        self._last = np.empty(0, np.int64)
        self._order: np.ndarray | None = None
        self._numbers: np.ndarray | None = None
        self.values = Dictionary(family.cell) if family.cell else None
        """What a cell holds besides its key; None if the key alone is a cell."""
        self._pairs = Dictionary(BIGINT)

    # --- cells -----------------------------------------------------------------------------------

    @property
    def key_of(self) -> np.ndarray:
        """The key of each cell."""
        if self.values is None:
            return np.arange(self._number)
        return unpacked(np.asarray(self._pairs.values))[0]

    @property
    def value_of(self) -> np.ndarray:
        """The code of each cell's value."""
        return unpacked(np.asarray(self._pairs.values))[1]

    @property
    def has_value(self) -> np.ndarray:
        """Whether a cell's value is not NULL: the cell of NULL only says that there are rows."""
        assert self.values is not None
        valid = np.asarray(self.values.values.is_valid())
        return np.asarray(valid[self.value_of])

    def find(self, keys: np.ndarray, values: pa.Array) -> np.ndarray:
        """The cells of keys and values, -1 for those that no pane holds."""
        assert self.values is not None
        codes = self.values.find(values)
        found = self._pairs.find(pa.array(packed(keys, np.maximum(codes, 0))))
        return np.where(codes < 0, -1, found)

    @property
    def ordered(self) -> np.ndarray:
        """The cells by key, and by value within a key; NaN above all numbers."""
        assert self.values is not None
        if self._order is None:
            places = ranks(self.values.values)
            self._order = np.lexsort((places[self.value_of], self.key_of))
        return self._order

    @property
    def numbers(self) -> np.ndarray:
        """The values as doubles, by their codes; NULL is NaN."""
        assert self.values is not None
        known = self.values.values
        if self._numbers is None or len(self._numbers) != len(known):
            if pa.types.is_duration(known.type):
                known = known.cast(pa.int64())
            self._numbers = np.asarray(known.cast(pa.float64(), safe=False).fill_null(np.nan))
        return self._numbers

    # --- panes -----------------------------------------------------------------------------------

    def read(self, keys: np.ndarray, table: pa.Table) -> Update:
        """A pane table of this family in our numbers; what it holds is not yet in any pane."""
        cells = keys
        if self.values is not None:
            cells = self._pairs.codes(pa.array(packed(keys, self.values.codes(table["cell"]))))
        self._grow(int(cells.max(initial=-1)) + 1)
        columns = [table[f"m{n}"].combine_chunks() for n in range(len(self._lanes))]
        lanes = [way.read(column) for way, column in zip(self._lanes, columns, strict=True)]
        return Update(np.asarray(table["pane"]).astype(np.int64, copy=False), cells, lanes)

    def merge(self, update: Update, before: int) -> None:
        """Add an update to the panes; those before ``before`` are forgotten and stay so."""
        before = self._first_of(before)
        if len(update.panes) and update.panes.min() < before:
            update = update.of(update.panes >= before)
        if not len(update.panes):
            return
        np.maximum.at(self._last, update.cells, update.panes)
        laid_out = self._laid_out(update)
        for pane, added in self._sorted(update) if laid_out is None else laid_out:
            self._merge_pane(pane, added)

    def _laid_out(self, update: Update) -> list[tuple[int, Pane]] | None:
        """The panes of an update, with every value put in its place: faster than sorting them.

        None if a cell comes twice, or if too few of the cells come to be worth room for all.
        """
        first, number = int(update.panes.min()), self._number
        panes = int(update.panes.max()) - first + 1
        if panes * number * FILLED > len(update.panes):
            return None
        places = update.panes - first
        places *= number
        places += update.cells
        named = np.zeros((panes, number), bool)
        named.reshape(-1)[places] = True
        sizes = np.count_nonzero(named, axis=1)
        if sizes.sum() < len(places):
            return None
        cells = {n: None if sizes[n] >= self._filled * number else np.flatnonzero(named[n])
                 for n in np.flatnonzero(sizes).tolist()}
        lanes = [_cut_out(way.empty(panes * number), places, values, cells, number)
                 for way, values in zip(self._lanes, update.lanes, strict=True)]
        return [(first + n, Pane(ids, [lane[n] for lane in lanes])) for n, ids in cells.items()]

    def _sorted(self, update: Update) -> Iterator[tuple[int, Pane]]:
        order = np.lexsort((update.cells, update.panes))
        panes = update.panes[order]
        starts = np.flatnonzero(np.r_[True, panes[1:] != panes[:-1]])
        for part in np.split(order, starts[1:]):
            some = update.of(part)
            yield int(some.panes[0]), Pane(*self._once(some.cells, some.lanes))

    def _grow(self, number: int) -> None:
        if number > self._number:
            fresh = np.full(number - self._number, np.iinfo(np.int64).min)
            self._last = np.concatenate([self._last, fresh])
            self._number = number
            self._order = None
            self._running = PrefixSums()

    def _merge_pane(self, pane: int, added: Pane) -> None:
        self._running.cut(pane)
        held = self._panes.get(pane)
        if held is None:
            insort(self._held, pane)
        self._panes[pane] = self._settled(added if held is None else self._both(held, added))

    def _once(
        self, cells: np.ndarray, lanes: list[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Every cell once: those that a sorted table names several times are merged two by two."""
        while (repeated := cells[1:] == cells[:-1]).any():
            starts = np.flatnonzero(np.r_[True, ~repeated])
            places = np.arange(len(cells))
            within = places - np.repeat(starts, np.diff(np.r_[starts, len(cells)]))
            even = within % 2 == 0
            pairs = np.flatnonzero(even & np.r_[repeated, False])
            for way, values in zip(self._lanes, lanes, strict=True):
                values[..., pairs] = way.merge(values[..., pairs], values[..., pairs + 1])
            cells, lanes = cells[even], [values[..., even] for values in lanes]
        return cells, lanes

    def _both(self, held: Pane, added: Pane) -> Pane:
        """The two merged, over the cells of either."""
        if held.ids is None or added.ids is None:
            ids, number = None, self._number
            places, into = held.places, added.places
        else:
            ids = np.union1d(held.ids, added.ids)
            number = len(ids)
            places, into = np.searchsorted(ids, held.ids), np.searchsorted(ids, added.ids)
        lanes = []
        for way, old, new in zip(self._lanes, held.lanes, added.lanes, strict=True):
            merged = way.empty(number)
            merged[..., places] = old
            merged[..., into] = way.merge(merged[..., into], new)
            lanes.append(merged)
        return Pane(ids, lanes)

    def _settled(self, pane: Pane) -> Pane:
        """Dense or sparse, as its size says."""
        if pane.ids is not None and len(pane.ids) >= self._filled * self._number:
            lanes = []
            for way, values in zip(self._lanes, pane.lanes, strict=True):
                dense = way.empty(self._number)
                dense[..., pane.ids] = values
                lanes.append(dense)
            return Pane(None, lanes)
        if pane.ids is None:
            held = pane.lanes[0] != self._lanes[0].neutral
            if np.count_nonzero(held) < self._filled / 2 * self._number:  # not back and forth
                return Pane(np.flatnonzero(held), [values[..., held] for values in pane.lanes])
        return pane

    # --- reading ---------------------------------------------------------------------------------

    def scan(
        self, end: int, lengths: Sequence[int], measures: Iterable[Measure]
    ) -> Iterator[Totals]:
        """The totals of windows of these lengths, ascending, that end at a pane.

        One pass from the youngest pane to the oldest: the totals of a length are those of the one
        before with more panes merged in. What is given is overwritten by the next.
        """
        wanted = self._wanted(measures)
        totals = Totals(self, {n: self._lanes[n].empty(self._number) for n in wanted})
        waiting = self._of_window(end - max(lengths), end)
        for length in lengths:
            first = self._first_of(end - length)
            while waiting and waiting[-1] >= first:
                self._include(totals.lanes, self._panes[waiting.pop()])
            yield totals

    def _first_of(self, pane: int) -> int:
        return first_of(pane) if self._paired else pane

    def _of_window(self, first: int, end: int) -> list[int]:
        """The panes of a window; pairs have both rows in it."""
        found = self._between(self._first_of(first), self._first_of(end))
        return [pane for pane in found if later_of(pane) < end] if self._paired else found

    def _between(self, first: int, end: int) -> list[int]:
        return self._held[bisect_left(self._held, first) : bisect_left(self._held, end)]

    def _wanted(self, measures: Iterable[Measure]) -> list[int]:
        return sorted({0, *(self._places[measure] for measure in measures)})

    def windows(
        self, end: int, lengths: Sequence[int], measures: Iterable[Measure]
    ) -> Totals | None:
        """The same totals, window after window, as if each had cells of its own.

        They are made from prefix sums. None if these do not serve: for measures other than sums of
        whole numbers, for very many cells, and for sparse panes.
        """
        wanted = self._wanted(measures)
        few = self._held and self._number <= FEW
        if self._paired or not few or not set(wanted) <= set(self._summed):
            return None
        last = self._running.last
        for number in self._between(self._held[0] if last is None else last + 1, end):
            pane = self._panes[number]
            if pane.ids is not None:
                return None
            self._running.extend(number, {n: pane.lanes[n] for n in self._summed}, self._number)
        return Totals(self, self._running.windows(end, lengths)) if len(self._running) else None

    def _include(self, totals: Mapping[int, np.ndarray], pane: Pane) -> None:
        number = pane.lanes[0].shape[-1]
        for n, total in totals.items():
            way, values = self._lanes[n], pane.lanes[n]
            if pane.ids is not None:
                total[..., pane.ids] = way.merge(total[..., pane.ids], values)
            elif isinstance(way.merge, np.ufunc) and total.dtype != object:
                way.merge(total[..., :number], values, out=total[..., :number])
            else:
                total[..., :number] = way.merge(total[..., :number], values)

    # --- forgetting ------------------------------------------------------------------------------

    def forget(self, before: int) -> None:
        """Drop the panes before this one."""
        gone = bisect_left(self._held, self._first_of(before))
        for pane in self._held[:gone]:
            del self._panes[pane]
        del self._held[:gone]
        self._running.forget(before)

    def settle(self, before: int) -> None:
        """No coming window ends before this pane: pairs up to it differ in their earlier rows only.

        Those with their earlier rows in one pane become one pane of the ring.
        """
        done = [pane for pane in self._held if later_of(pane) < before]
        apart = [pane for pane in done if pane != first_of(earlier_of(pane))]
        if not apart:
            return
        moved = [(first_of(earlier_of(pane)), self._panes.pop(pane)) for pane in apart]
        gone = set(apart)
        self._held = [pane for pane in self._held if pane not in gone]
        for pane, held in moved:
            self._merge_pane(pane, held)

    def alive(self, before: int) -> np.ndarray:
        """The cells that a pane from this one on holds."""
        return np.flatnonzero(self._last >= self._first_of(before))

    def __len__(self) -> int:
        return self._number

    def kept(self, cells: np.ndarray, renumbered: np.ndarray) -> Ring:
        """Only these cells, with new numbers; ``renumbered`` gives the new number of each key."""
        fresh = Ring(self.family, self._filled, self._paired)
        if self.values is None or fresh.values is None:
            places = renumbered[cells]
        else:
            keys = renumbered[self.key_of[cells]]
            codes = fresh.values.codes(self.values.take(self.value_of[cells]))
            places = fresh._pairs.codes(pa.array(packed(keys, codes)))
        fresh._grow(int(places.max(initial=-1)) + 1)
        fresh._last[places] = self._last[cells]
        moved = np.full(self._number, -1)
        moved[cells] = places
        fresh._held = self._held.copy()
        for number, pane in self._panes.items():
            fresh._panes[number] = fresh._settled(self._moved(pane, moved))
        return fresh

    def _moved(self, pane: Pane, moved: np.ndarray) -> Pane:
        ids, lanes = pane.ids, pane.lanes
        if ids is None:
            ids = np.flatnonzero(lanes[0] != self._lanes[0].neutral)
            lanes = [values[..., ids] for values in lanes]
        order = np.argsort(moved[ids])
        return Pane(moved[ids][order], [values[..., order] for values in lanes])

    @property
    def nbytes(self) -> int:
        """The memory it takes; an object counts as 64 bytes."""
        arrays = [a for pane in self._panes.values() for a in (pane.ids, *pane.lanes)]
        held = sum(a.size * (72 if a.dtype == object else a.itemsize)
                   for a in arrays if a is not None)
        return held + self._running.nbytes + self._last.nbytes + self._pairs.nbytes + (
            self.values.nbytes if self.values else 0)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a window holds in each cell of a ring, while the scan stands there."""

    ring: Ring
    lanes: Mapping[int, np.ndarray]
    """By the number of the measure; the first is always there."""

    def of(self, measure: Measure) -> np.ndarray:
        """The totals of a measure."""
        return self.lanes[self.ring._places[measure]]

    def everywhere(self, measure: Measure) -> bool:
        """Whether it is known at once that what is counted occurs in all cells of all windows.

        Windows that end at one pane are nested: what occurs in the shortest is in all.
        """
        lanes = self.lanes
        return isinstance(lanes, WindowSums) and bool(
            lanes.shortest(self.ring._places[measure]).all())

    @property
    def present(self) -> np.ndarray:
        """Whether a cell has rows in the window."""
        return np.asarray(self.lanes[0] != self.ring._lanes[0].neutral)


def _cut_out(
    room: np.ndarray, places: np.ndarray, values: np.ndarray,
    cells: Mapping[int, np.ndarray | None], number: int,
) -> dict[int, np.ndarray]:
    """The values of each pane, of these cells or of all; copied, as ``room`` is not to be kept."""
    room[..., places] = values
    rows = room.reshape(*room.shape[:-1], -1, number)
    return {n: rows[..., n, :].copy() if ids is None else rows[..., n, ids]
            for n, ids in cells.items()}
