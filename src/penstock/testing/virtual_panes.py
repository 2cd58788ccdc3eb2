"""Synopses in virtual time: the panes of groups of window aggregates, as counts of rows.

What a window aggregate would answer is not of interest here, but which rows its answer is made of:
a block that is missing, or was taken in twice, or a pane that went too early, shows in the count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from penstock.engine import RefreshJob
from penstock.engine.aggregates.coverage import Coverage, families_of, to_rebuild
from penstock.model import Block
from penstock.plan import Group, Plan

BYTES_PER_ROW = 16


@dataclass(slots=True)
class RowCounts(Coverage):
    """Rows per pane of a group."""

    rows: Counter[int] = field(default_factory=Counter)

    def add(self, times: Iterable[int]) -> None:
        """Take rows in; those of forgotten panes are passed by."""
        panes = Counter(time // self.group.pane for time in times)
        self.rows.update({pane: count for pane, count in panes.items() if pane >= self.first})

    def forget(self, before: int) -> None:
        """Drop the panes before this one."""
        self.first = max(self.first, before)
        self.rows = Counter({pane: count for pane, count in self.rows.items()
                             if pane >= self.first})


@dataclass(frozen=True, slots=True)
class Answer:
    """A window that a query was answered for."""

    query: str
    start: int
    end: int
    rows: int
    at: float


@dataclass(slots=True)
class Synopses:
    """Those of a plan."""

    held: dict[str, RowCounts] = field(default_factory=dict)

    def adopt(self, plan: Plan, needs: Callable[[Group], int | None]) -> list[Group]:
        """Keep the synopses of this plan; those that begin without panes are returned.

        ``needs(group)`` is the oldest pane that newly joined queries read.
        """
        fresh = to_rebuild(plan, self.held, needs)
        self.held = {group.id: RowCounts(group, families_of(group)) if group in fresh
                     else self.held[group.id] for group in plan.groups}
        for group in plan.groups:
            self.held[group.id].group = group
        return fresh

    def answers(self, refresh: RefreshJob, at: float) -> list[Answer]:
        """What a refresh gives."""
        rows = self.held[refresh.group].rows
        return [
            Answer(query, (scan.end - length) * refresh.pane, scan.end * refresh.pane,
                   sum(rows[pane] for pane in range(scan.end - length, scan.end)), at)
            for scan in refresh.scans for query, length in scan.queries]


@dataclass(slots=True)
class EventTime:
    """The event times of a stream's blocks, in microseconds, and which of them are late."""

    lateness: int
    seen: int | None = None
    times: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By block, without the late ones: those that windows take."""

    def block(self, stream: str, number: int, arrived: float, times: Sequence[int]) -> Block:
        """A block whose rows have these times."""
        cutoff = None if self.seen is None else self.seen - self.lateness
        kept = tuple(time for time in times if cutoff is None or time >= cutoff)
        self.times[number] = kept
        self.seen = max(kept if self.seen is None else (*kept, self.seen), default=None)
        watermark = None if self.seen is None else self.seen - self.lateness
        return Block(stream, number, len(times), len(times) * BYTES_PER_ROW, arrived,
                     cutoff, watermark, self.seen, len(times) - len(kept))
