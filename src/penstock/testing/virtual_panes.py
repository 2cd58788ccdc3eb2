"""Synopses in virtual time: the panes of groups of window aggregates, as counts of rows.

A count shows which rows an answer is made of. So a test sees a block that is missing or was merged
twice, and a pane that went too early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.engine import RefreshJob
from penstock.engine.aggregates.coverage import Coverage, families_of, to_rebuild
from penstock.plan import Group, Plan


@dataclass(slots=True)
class RowCounts(Coverage):
    """Rows per pane of a group."""

    rows: Counter[int] = field(default_factory=Counter)
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Over a join: pairs by the panes of their earlier and their later rows."""

    def add_pairs(self, times: Iterable[tuple[int, int]]) -> None:
        """Add pairs by the times of their earlier and their later rows."""
        pane = self.group.pane
        self.pairs.update((earlier // pane, later // pane) for earlier, later in times)

    def within(self, start: int, end: int) -> int:
        """The rows of a window, or the pairs with both rows in it."""
        if not self.group.paired:
            return sum(self.rows[pane] for pane in range(start, end))
        assert end >= self.first, "an answer for a window that ends before those to come"
        return sum(count for (earlier, later), count in self.pairs.items()
                   if start <= earlier and later < end)

    def settle(self, before: int, settled: int) -> None:
        """Drop pairs whose earlier row is in an earlier pane; no window will end before another."""
        self.first = max(self.first, settled)
        self.pairs = Counter({pair: count for pair, count in self.pairs.items()
                              if pair[0] >= before})

    def add(self, times: Iterable[int]) -> None:
        """Add rows, except those of forgotten panes."""
        panes = Counter(time // self.group.pane for time in times)
        self.rows.update({pane: count for pane, count in panes.items() if pane >= self.first})

    def forget(self, before: int) -> None:
        """Drop the panes before this one."""
        self.first = max(self.first, before)
        self.rows = Counter({pane: count for pane, count in self.rows.items()
                             if pane >= self.first})


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a query for one window."""

    query: str
    start: int
    end: int
    rows: int
    at: float


@dataclass(slots=True)
class Synopses:
    """The synopses of a plan."""

    held: dict[str, RowCounts] = field(default_factory=dict)

    def adopt(self, plan: Plan, needs: Callable[[Group], int | None]) -> list[Group]:
        """Keep the synopses of this plan; return the groups whose synopses begin empty.

        ``needs(group)`` is the oldest pane that newly joined queries read.
        """
        fresh = to_rebuild(plan, self.held, needs)
        self.held = {group.id: RowCounts(group, families_of(group)) if group in fresh
                     else self.held[group.id] for group in plan.groups}
        for group in plan.groups:
            self.held[group.id].group = group
        return fresh

    def answers(self, refresh: RefreshJob, at: float) -> list[Answer]:
        """The answers of a refresh."""
        held = self.held[refresh.group]
        return [
            Answer(query, (scan.end - length) * refresh.pane, scan.end * refresh.pane,
                   held.within(scan.end - length, scan.end), at)
            for scan in refresh.scans for query, length in scan.queries]
