"""Isolated: every query has a join of its own, as if it were alone. The baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.policies.joins.lwo import LargestWindowOnly
from penstock.policies.joins.model.windows import JoinWindow, ScanCost, SharedScan


@dataclass(frozen=True, slots=True)
class Isolated(LargestWindowOnly):
    """Scans a window again for every query, in the order of arrival, smaller windows first.

    This is what Spark does with one streaming query per join: a pair within several windows is
    found once for every query that wants it.

    >>> scans = Isolated().prepare([JoinWindow(5, queries=2), JoinWindow(60)], ScanCost())
    >>> [scan.windows for scan in scans]  # doctest: +NORMALIZE_WHITESPACE
    [(JoinWindow(length=5, queries=1),), (JoinWindow(length=5, queries=1),),
     (JoinWindow(length=60, queries=1),)]

    Reference: section 3.1.1 of the joins paper, which compares the others with it.
    """

    def prepare(self, windows: Sequence[JoinWindow], cost: ScanCost) -> tuple[SharedScan, ...]:
        """A scan for every query."""
        ordered = sorted(windows, key=lambda window: window.length)
        return tuple(SharedScan((JoinWindow(window.length),), cost)
                     for window in ordered for _ in range(window.queries))
