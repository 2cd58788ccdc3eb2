"""Maximum query throughput: the outer goes on whose scan serves the most queries per second."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.joins.base import Decision, View, Waiting, decision
from penstock.policies.joins.swf import SmallestWindowFirst


@dataclass(frozen=True, slots=True)
class MaximumQueryThroughput(SmallestWindowFirst):
    """Weighs the rest of an old outer's window against the whole of a new one's.

    The small slice between two neighbouring windows may serve a query sooner than the smallest
    window of a new outer does. What an outer can do per second, at best, depends on how far it is
    and how far the outer before it is. So it is looked up in a matrix, which is computed once.

    >>> from penstock.policies.joins.model.windows import JoinWindow, ScanCost
    >>> mqt = MaximumQueryThroughput()
    >>> scans = mqt.prepare([JoinWindow(2), JoinWindow(3), JoinWindow(6)], ScanCost())
    >>> mqt.choose(View(scans, (Waiting(0, 1, 3, first=11), Waiting(0, 0, 1, first=12)))).reason
    'outer 11 scans 2 to 3: serves 1 queries per second'
    >>> mqt.choose(View(scans, (Waiting(0, 2, 3, first=11), Waiting(0, 0, 2, first=12)))).reason
    'outer 12 scans 0 to 2: serves 0.667 queries per second'

    An outer goes on by one level, and then the policy is asked again, since another outer may be
    the best by then. Pairs leave as soon as no earlier outer can find one for the same query.

    Reference: section 3.3 of the joins paper. Slices are merged as by `SmallestWindowFirst`.
    """

    streams = True
    releases_early = True

    def choose(self, view: View) -> Decision | None:
        """The outer with the largest matrix entry, one level on; ties go to the furthest on."""
        if not view.waiting:
            return None
        best = max(view.waiting, key=lambda waiting: _most(view, waiting))
        return decision(view, best, best.scanned + 1,
                        f"serves {_most(view, best):.3g} queries per second")


def _most(view: View, waiting: Waiting) -> float:
    return view.scans[waiting.scan].max_throughput[waiting.scanned][waiting.allowed]
