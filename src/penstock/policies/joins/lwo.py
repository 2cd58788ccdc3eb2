"""Largest window only: one scan of the largest window serves all; smaller windows wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.joins.base import Decision, Policy, View, decision


@dataclass(frozen=True, slots=True)
class LargestWindowOnly(Policy):
    """Every outer scans the largest window in one go, in the order of arrival.

    A pair is routed to each query whose window covers its difference in time. Nothing is held back,
    because an outer finishes before the next one begins. But a query with a small window waits
    until the earlier outers have scanned the largest one.

    >>> from penstock.policies.joins.base import Waiting
    >>> from penstock.policies.joins.model.windows import JoinWindow, ScanCost
    >>> lwo = LargestWindowOnly()
    >>> scans = lwo.prepare([JoinWindow(1), JoinWindow(5), JoinWindow(60)], ScanCost())
    >>> lwo.choose(View(scans, (Waiting(0, 0, 3, first=7, length=2),)))
    Decision(scan=0, scanned=0, until=3, reason='outer 7 scans 0 to 60: it came first')

    Reference: section 3.1 of the joins paper, used before by CACQ and PSoup.
    """

    streams = True

    def choose(self, view: View) -> Decision | None:
        """The outer that arrived first, up to the largest window."""
        if not view.waiting:
            return None
        oldest = min(view.waiting, key=lambda waiting: waiting.first)
        return decision(view, oldest, view.scans[oldest.scan].levels, "it came first")
