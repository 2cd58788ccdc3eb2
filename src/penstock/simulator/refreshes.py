"""Refreshes in virtual time: panes close at a steady pace, joint refreshes take modelled time.

One processor runs one thing at a time and finishes it. The same `Refresher` decides as on Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from penstock.engine.aggregates.refresher import Refresher
from penstock.engine.instructions import Scan
from penstock.policies.refresh import Policy, QueryGroup, WindowQuery

Price = Callable[[str, tuple[int, ...]], tuple[float, float]]
"""The seconds of a joint refresh of a group, for windows of these numbers of panes: for the scan,
and for the answers."""


@dataclass(frozen=True, slots=True)
class Refreshing:
    """What is to be refreshed, whatever the policy."""

    groups: tuple[QueryGroup, ...]
    price: Price
    panes: int
    """So many close, one after the other; synopses are full from the beginning."""
    pane: float = 1.0
    """Seconds between two."""
    interruptions: tuple[tuple[float, float], ...] = ()
    """Work that goes before all refreshes, such as one-time queries: when it comes, and seconds."""


@dataclass(slots=True)
class Refreshed:
    """What came of it."""

    seconds: float
    panes: int
    """So many closed meanwhile."""
    queries: dict[str, WindowQuery]
    ends: dict[str, list[int]] = field(default_factory=dict)
    """Per query the window ends that were answered."""
    runs: list[Scan] = field(default_factory=list)
    busy: float = 0.0
    """Seconds in which the processor worked."""
    tasks: int = 0
    """Tasks that were scheduled separately, at the end."""

    @property
    def throughput(self) -> float:
        """Answers per second."""
        return sum(map(len, self.ends.values())) / self.seconds

    @property
    def latency(self) -> float:
        """The mean over all queries of how many panes more than asked lay between two answers."""
        return sum(map(self.extra, self.queries)) / len(self.queries)

    def extra(self, query: str) -> float:
        """The same of one query: 0 if it was always answered in time, or early."""
        period, ends = self.queries[query].period, self.ends.get(query, [])
        gaps = [after - before for before, after in zip([0, *ends], ends, strict=False)]
        since = self.panes - (ends[-1] if ends else 0)
        if since > period:  # it is still waiting, and has waited too long already
            gaps.append(since)
        return sum(max(0, gap - period) for gap in gaps) / len(gaps) if gaps else 0.0


def play(load: Refreshing, policy: Policy) -> Refreshed:
    """Run a policy for as long as panes close.

    >>> from penstock.policies.refresh import policy
    >>> load = Refreshing((QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3))),),
    ...                   price=lambda group, windows: (0.1 * max(windows), 0.0), panes=12)
    >>> found = play(load, policy("conservative"))
    >>> found.ends["a"], found.ends["b"], found.latency
    ([2, 4, 6, 8, 10], [3, 6, 9], 0.0)
    """
    refresher = Refresher(policy)
    refresher.adopt(0.0, load.groups)
    queries = {query.name: query for group in load.groups for query in group.queries}
    end = load.panes * load.pane
    found = Refreshed(end, load.panes, queries)
    interruptions = iter(load.interruptions)
    closing, coming, now = 1, next(interruptions, (inf, 0.0)), 0.0
    while now < end:
        while closing * load.pane <= now:
            closing += 1
            for group in load.groups:
                refresher.close(group.id, closing - 1)
        if coming[0] <= now:
            spent, coming = coming[1], next(interruptions, (inf, 0.0))
        elif run := refresher.decide(now):
            spent = _carried_out(load, refresher, run, now, found)
        else:
            now = min(closing * load.pane, coming[0])
            continue
        found.busy += spent
        now += spent
    found.tasks = len({(group.id, period) for group in load.groups
                       for period in refresher.periods(group.id).values()})
    return found


def _carried_out(
    load: Refreshing, refresher: Refresher, run: Scan, now: float, found: Refreshed
) -> float:
    scanning, answering = load.price(run.group, tuple(window for _, window in run.queries))
    done = now + scanning + answering
    refresher.finished(done, run, scanning + answering, scanning, answering)
    refresher.noted()
    found.runs.append(run)
    if done <= found.seconds:
        for name, _ in run.queries:
            found.ends.setdefault(name, []).append(run.end)
    return scanning + answering
