"""Smallest window first: no outer goes on to a larger window while another waits for a smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.policies.joins.base import Decision, Policy, View, decision
from penstock.policies.joins.model.windows import (
    JoinWindow,
    ScanCost,
    SharedScan,
    combined,
    worthwhile,
)


@dataclass(frozen=True, slots=True)
class SmallestWindowFirst(Policy):
    """A new outer scans the smallest window at once; the rest of its scan waits for quiet times.

    Small windows are answered as if they were alone. Large ones wait, and during a burst they wait
    long.

    >>> from penstock.policies.joins.base import Waiting
    >>> swf = SmallestWindowFirst()
    >>> scans = swf.prepare([JoinWindow(1), JoinWindow(5), JoinWindow(60)], ScanCost())
    >>> swf.choose(View(scans, (Waiting(0, 2, 3, first=6), Waiting(0, 0, 2, first=7))))
    Decision(scan=0, scanned=0, until=1, reason='outer 7 scans 0 to 1: no smaller window waits')

    Reference: section 3.2 of the joins paper. We deviate where a job has a fixed cost: slices that
    are not worth a job are merged with the next (`worthwhile`), unless ``merge`` is false.
    """

    merge: bool = True

    def prepare(self, windows: Sequence[JoinWindow], cost: ScanCost) -> tuple[SharedScan, ...]:
        """One scan, of the levels that are worth a job."""
        levels = worthwhile(windows, cost) if self.merge else tuple(combined(windows))
        return (SharedScan(levels, cost),)

    def choose(self, view: View) -> Decision | None:
        """The first of the outers that have scanned least, one level on."""
        if not view.waiting:
            return None
        least = min(view.waiting, key=lambda waiting: waiting.scanned)
        return decision(view, least, least.scanned + 1, "no smaller window waits")
