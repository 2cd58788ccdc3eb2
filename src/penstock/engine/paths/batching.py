"""How long blocks may wait to be batched: few large jobs cost less than many small ones."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from penstock.engine.queue_memory import Place
from penstock.engine.settings import Settings
from penstock.plan import Path, Plan


@dataclass(slots=True)
class Batching:
    """The paths whose blocks are batched: it is costly to write folders of their own often."""

    _hold: dict[str, float] = field(default_factory=dict)
    """By path, the seconds that its strictest query can wait, if all of them write folders of their
    own."""
    _due: dict[Place, float] = field(default_factory=dict)
    """The queues that batch, each with the time at which that ends."""
    _order: list[tuple[float, Place]] = field(default_factory=list)
    """The same in order of time, with some entries that are out of date."""

    def adopt(self, plan: Plan) -> None:
        """See which queries write where; no queue batches until it is looked at again."""
        self._due.clear()
        self._order.clear()
        self._hold = {path.id: min(plan.query(m.query).latency or 0.0 for m in path.members)
                      for path in plan.paths
                      if path.end == "sink" and all(m.query in plan.alone for m in path.members)}

    def seconds(self, path: Path, settings: Settings) -> float:
        """Seconds for which a path's blocks may wait to be batched.

        A path that makes panes begins at once, and its next job takes what has arrived meanwhile.
        """
        if path.end == "panes":
            return 0.0
        return max(settings.hold * self._hold.get(path.id, 0.0), settings.gather)

    # --- the queues that batch ---------------------------------------------------------------

    def wait(self, place: Place, due: float) -> None:
        """The blocks of a queue wait for others until ``due``."""
        if self._due.get(place) != due:
            self._due[place] = due
            heapq.heappush(self._order, (due, place))

    def end(self, place: Place) -> None:
        """A queue batches no longer: it is empty, blocked, or may run."""
        self._due.pop(place, None)

    def over(self, at: float) -> list[Place]:
        """The queues that have batched long enough; each is listed once."""
        found = []
        while (due := self.next) is not None and due <= at:
            _, place = heapq.heappop(self._order)
            del self._due[place]
            found.append(place)
        return found

    @property
    def next(self) -> float | None:
        """When the next queue has batched long enough."""
        while self._order and self._due.get(self._order[0][1]) != self._order[0][0]:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None
