"""The profile: a sliding window over a sample of the rows that were dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.policies.filters.model.drop_patterns import Bits, DropPatterns, Floats, Order
from penstock.policies.filters.model.matrix_view import MatrixView, unasked

LEAST = 1e-12
"""Seconds: no predicate is taken to be faster, since drop rates are divided by it."""


@dataclass(frozen=True, slots=True)
class FilterPredicate:
    """One of the predicates that a row must meet."""

    name: str
    seconds: float = 1.0
    """What it is believed to take per row until it is measured."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """What a host samples while it evaluates predicates in an order."""

    version: int
    """Counts the orders and stages; a batch says under which it was profiled."""
    order: Order
    probability: float
    """The share of the dropped rows to profile."""
    most: int
    """The window holds no more rows: a host that evaluates larger blocks samples them thinner."""
    unasked: tuple[tuple[int, ...], ...]
    """By the place at which a profiled row was dropped: the predicates to evaluate as well."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfileBatch:
    """What a host found out about a sample of dropped rows, from one row to those of a block."""

    dropped: Bits
    """By profiled row, as they came, and by predicate, as they are written: whether it drops the
    row. What was not evaluated counts as no."""
    seconds: Floats
    """Seconds per row, by predicate or by row and predicate; NaN where none was evaluated."""
    passed: float = 0.0
    """Rows that met all predicates in the same stretch of the stream, for each that was dropped."""
    version: int = 0
    """That of the request."""


class Profile:
    """The latest profiled rows, their costs, and the matrix view over them.

    >>> profile = Profile([FilterPredicate("a"), FilterPredicate("b")], window=2)
    >>> profile.add(ProfileBatch(np.array([[1, 0], [1, 1]], bool), np.array([2.0, 5.0])))
    >>> profile.add(ProfileBatch(np.array([[0, 1]], bool), np.array([4.0, np.nan])))
    >>> profile.matrix.counts
    array([[1, 2],
           [0, 1]])
    >>> profile.seconds
    array([3., 5.])
    """

    def __init__(
        self, predicates: Sequence[FilterPredicate], window: int, watched: Bits | None = None
    ) -> None:
        """Predicates are evaluated as they are written until something is known of them."""
        count = len(predicates)
        self.predicates = tuple(predicates)
        self.window = window
        self.position = min(1, count - 1)
        """The place that `Sweep` profiles, counted from 0."""
        self.version = 0
        self.scanned = 0
        """Rows times lines of the matrix that had to be counted from scratch so far."""
        self._dropped = np.zeros((window, count), bool)
        self._seconds = np.full((window, count), np.nan)
        self._passed = np.zeros(window)
        self._sums, self._timed = np.zeros(count), np.zeros(count, int)
        self._believed = np.array([predicate.seconds for predicate in predicates])
        self._end = 0
        """Rows that were ever added: the next one goes there, modulo the window."""
        self._since = 0
        """Rows from this one on count for the matrix."""
        self.matrix = MatrixView(range(count), self._dropped[:0], watched)

    @property
    def order(self) -> Order:
        """The present order."""
        return self.matrix.order

    @property
    def rows(self) -> int:
        """How many rows count."""
        return self._end - self._since

    def add(self, batch: ProfileBatch) -> None:
        """Take the rows of a batch; as many of the oldest leave if the window is full.

        A batch that was profiled under an earlier order is left aside, unless every predicate was
        evaluated: the later predicates of its rows were chosen for another order.
        """
        if batch.version != self.version and not self.is_complete:
            return
        dropped = batch.dropped[-self.window:]
        seconds = np.broadcast_to(batch.seconds, batch.dropped.shape)[-self.window:]
        end = self._end + len(dropped)
        first = max(self._since, end - self.window)
        self.matrix.remove(self._dropped[self._places(self._since, first)])
        self._forget_seconds(self._places(max(0, self._end - self.window),
                                          max(0, end - self.window)))
        places = self._places(self._end, end)
        self._dropped[places], self._seconds[places] = dropped, seconds
        self._passed[places] = batch.passed
        self._sums += np.nansum(seconds, axis=0)
        self._timed += (~np.isnan(seconds)).sum(axis=0)
        if end // self.window > self._end // self.window:  # sums of floats must not drift
            self._sums = np.nansum(self._seconds, axis=0)
        self._end, self._since = end, first
        self.matrix.add(dropped)

    def adopt(self, order: Sequence[int], position: int, watched: Bits) -> None:
        """Go on with another order, or profile another place.

        If every predicate of a profiled row is evaluated, the rows say as much about the new order.
        If not, the window begins to fill again.
        """
        self.version += 1
        self.position = position
        if not self.is_complete:
            self._since = self._end
        updated = self.matrix.updated
        changed = sum(1 for old, new in zip(self.order, order, strict=True) if old != new)
        self.scanned += self.rows * changed
        self.matrix = MatrixView(order, self._dropped[self._counting], watched)
        self.matrix.updated = updated

    @property
    def is_complete(self) -> bool:
        """Whether every predicate of a profiled row is evaluated."""
        return all(len(later) == len(self.predicates) - place - 1
                   for place, later in enumerate(unasked(self.matrix.watched)))

    @property
    def patterns(self) -> DropPatterns:
        """The rows that count, and the rows that passed meanwhile."""
        return DropPatterns(self._dropped[self._counting],
                            passed=float(self._passed[self._counting].sum()))

    @property
    def seconds(self) -> Floats:
        """By predicate, the mean seconds per row in the window; what was believed, if none."""
        means = self._sums / np.maximum(self._timed, 1)
        self._believed = np.where(self._timed > 0, np.maximum(means, LEAST), self._believed)
        return self._believed

    def request(self, probability: float) -> ProfileRequest:
        """What a host must sample from now on."""
        return ProfileRequest(self.version, self.order, probability, self.window, tuple(
            tuple(self.order[place] for place in later)
            for later in unasked(self.matrix.watched)))

    @property
    def _counting(self) -> np.ndarray:
        return self._places(self._since, self._end)

    def _places(self, first: int, end: int) -> np.ndarray:
        return np.arange(first, max(first, end)) % self.window

    def _forget_seconds(self, places: np.ndarray) -> None:
        leaving = self._seconds[places]
        self._sums -= np.nansum(leaving, axis=0)
        self._timed -= (~np.isnan(leaving)).sum(axis=0)
