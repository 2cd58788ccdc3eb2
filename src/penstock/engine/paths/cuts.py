"""How the policy has cut the paths into segments, and when it cuts them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.instructions import Note
from penstock.engine.paths.scheduler import Scheduler
from penstock.engine.paths.stage_costs import StageCosts
from penstock.engine.paths.stage_queues import StageQueues
from penstock.events.kinds import PathCut
from penstock.plan import Plan
from penstock.policies.operators import Segment
from penstock.policies.operators.model.routes import remainders


@dataclass(slots=True)
class PathCuts:
    """Has the policy cut and rank paths by their known costs; a cut that differs is noted."""

    scheduler: Scheduler
    costs: StageCosts
    queues: StageQueues
    _made: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """By path, the operators of its segments."""
    _notes: list[Note] = field(default_factory=list)

    def make(self, plan: Plan, at: float = 0.0, reason: str = "") -> None:
        """Cut all paths of a plan."""
        routes = self.costs.tell(plan)
        cuts: dict[str, list[Segment]] = {route.id: [] for route in routes}
        for cut in self.scheduler.policy.prepare(routes):
            cuts[cut.path].append(cut)
        self.scheduler.adopt([remainder for route in routes
                              for remainder in remainders(route, cuts[route.id])])
        self.queues.touch_all()
        for id, segments in cuts.items():
            self._note(at, id, segments, reason)

    def renew(self, plan: Plan, at: float, changed: Mapping[str, str]) -> None:
        """Cut again the paths that depend on changed costs; ``changed`` has a reason per path."""
        if self.scheduler.policy.sees_all:
            self.make(plan, at, next(iter(changed.values())))
            return
        for id, reason in changed.items():
            route = self.costs.tell_again(plan, id)
            cuts = self.scheduler.policy.prepare([route])
            self.scheduler.replace(self.queues.numbers[id, 0], remainders(route, cuts))
            self.queues.touch(id)
            self._note(at, id, cuts, reason)

    def _note(self, at: float, path: str, segments: Sequence[Segment], reason: str) -> None:
        made = tuple(segment.operators for segment in segments)
        before = self._made.get(path)
        self._made[path] = made
        if before not in (made, None):
            self._notes.append(Note(event=PathCut(at=at, path=path, segments=made,
                                                  reason=reason)))

    def notes(self) -> list[Note]:
        """The cuts that have changed since the last call."""
        notes, self._notes = self._notes, []
        return notes
