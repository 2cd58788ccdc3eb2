"""What a joins policy sees, what it answers, and the contract between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.policies.joins.model.windows import JoinWindow, ScanCost, SharedScan, combined


@dataclass(frozen=True, slots=True)
class Waiting:
    """Outers that have scanned the same levels of a scan and wait to go on.

    An *outer* is what probes the window of the other stream: a row in the paper, a block on Spark.
    """

    scan: int
    """Which of the scans made by `Policy.prepare`."""
    scanned: int
    """Levels that they have already scanned."""
    allowed: int
    """The level beyond which they must not go, because the outer before them has not. All levels,
    if there is no outer before them."""
    first: int
    """The number of the first of them, in the order of their arrival."""
    length: int = 1
    """How many there are."""


@dataclass(frozen=True, slots=True)
class View:
    """The waiting outers, those furthest on first, and the scans in which they wait."""

    scans: tuple[SharedScan, ...]
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Let the first of some waiting outers scan up to this level, for this reason."""

    scan: int
    scanned: int
    """Which waiting outers: those that have scanned this many levels."""
    until: int
    reason: str


class Policy:
    """Decides which outer goes on scanning, and how far.

    Every outer scans from the smallest window to the largest. A later outer never goes beyond an
    earlier one, so that every query gets its pairs in the order of their later members.
    """

    streams: ClassVar[bool] = False
    """Whether pairs leave as they are found, unless an earlier outer may still find some for the
    same query. If not, the pairs of a step leave together at its end."""
    releases_early: ClassVar[bool] = False
    """Whether pairs that had to wait for an earlier outer leave as soon as that outer has finished.
    If not, they leave when their own outer goes on."""

    def prepare(self, windows: Sequence[JoinWindow], cost: ScanCost) -> tuple[SharedScan, ...]:
        """The scans that serve the windows; called again when queries or costs change."""
        return (SharedScan(tuple(combined(windows)), cost),)

    def choose(self, view: View) -> Decision | None:
        """The next scan, or None if nothing waits."""
        raise NotImplementedError


def decision(view: View, chosen: Waiting, until: int, why: str) -> Decision:
    """A decision with its reason in words.

    >>> view = View((SharedScan((JoinWindow(2.0), JoinWindow(3.0))),), (Waiting(0, 1, 2, first=4),))
    >>> decision(view, view.waiting[0], 2, "it is the first")
    Decision(scan=0, scanned=1, until=2, reason='outer 4 scans 2 to 3: it is the first')
    """
    scan = view.scans[chosen.scan]
    reach = f"{scan.reach(chosen.scanned):g} to {scan.reach(until):g}"
    reason = f"outer {chosen.first} scans {reach}: {why}"
    return Decision(chosen.scan, chosen.scanned, until, reason)
