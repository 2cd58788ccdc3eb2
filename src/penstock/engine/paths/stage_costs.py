"""What is known of the stages of paths, and what of it the policy was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, prod

from penstock.engine.statistics import Statistics
from penstock.events.kinds import StageFigures
from penstock.plan import Path, Plan
from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.routes import gain, rest

MATERIAL = 0.2
"""A figure that has changed by less than this part is as good as the same."""
SAMPLING_SHARE, SAMPLING_CREDIT = 0.05, 2.0
"""Timing stages apart takes at most this part of the time, beyond these seconds."""
ENOUGH, SOON = 3, 2.0
"""How often stages are timed apart before they are known, so many seconds apart: the first time all
is cold, and of the others one may be disturbed."""
PATIENCE = 5
"""How many times as long known stages go without, while others would wait for it."""


@dataclass(frozen=True, slots=True)
class _Latest:
    """The latest job from a stage of a path on."""

    rows: float
    seconds: float
    per_row: float
    """Seconds per row of the stages that were sampled."""


@dataclass(slots=True)
class StageCosts:
    """Costs and selectivities of all stages, as measured, and the routes made of them."""

    statistics: Statistics = field(default_factory=Statistics)
    told: dict[str, Route] = field(default_factory=dict)
    """By path: what the policy was last told."""
    _latest: dict[tuple[str, int], _Latest] = field(default_factory=dict)
    """By path and stage."""
    _timed: dict[str, float] = field(default_factory=dict)
    """When the stages of a path were timed apart last."""
    _samples: Counter[str] = field(default_factory=Counter)
    """How often those of a path have been."""
    _sampling: float = 0.0
    """Seconds that samples have taken, but for the very first."""
    _began: float = inf
    _renewed: bool = False
    """Whether a window of the statistics has ended."""
    _ran: dict[str, None] = field(default_factory=dict)
    """The paths that ran in the present window, or in the one that has ended."""

    def tell(self, plan: Plan) -> list[Route]:
        """The paths with what is known of them now."""
        self.told = {path.id: self._route(plan, path) for path in plan.paths}
        return list(self.told.values())

    def tell_again(self, plan: Plan, path: str) -> Route:
        """One path with what is known of it now."""
        self.told[path] = self._route(plan, plan.path(path))
        return self.told[path]

    def _route(self, plan: Plan, path: Path) -> Route:
        queries = [plan.query(member.query) for member in path.members]
        return Route(
            path.id, self._stages(path),
            latency=min((q.latency for q in queries if q.latency is not None), default=inf),
            priority=max((q.priority for q in queries), default=1),
        )

    def _stages(self, path: Path) -> tuple[Stage, ...]:
        return tuple(map(self.statistics.stage, names(path)))

    def record(
        self, at: float, path: Path, first: int, last: int, job: StageFigures,
        measured: Mapping[str, StageFigures], sampling: float = 0.0,
    ) -> None:
        """Take in a job of some stages, and what was sampled beside it, in so many seconds."""
        if sampling:
            self._sampling += sampling if self._samples else 0.0  # at first all of Spark is cold
            self._samples[path.id] += 1
        for name, figures in measured.items():
            self._record(name, at, figures)
        ran = names(path)[first:last]
        if job.rows_in and job.seconds:
            timed = ran if last < len(path.stages) else ran[:-1]
            each = rest(list(map(self.statistics.stage, timed)))
            self._latest[path.id, first] = _Latest(job.rows_in, job.seconds, each)
        if len(ran) == 1:
            self._record(ran[0], at, job)
        elif last == len(path.stages):
            self._record_last(at, ran, job)

    def _record(self, stage: str, at: float, figures: StageFigures) -> None:
        self._renewed |= self.statistics.record(
            stage, at, figures.rows_in, figures.rows_out, figures.seconds, figures.bytes_in,
            figures.bytes_out)

    def _record_last(self, at: float, ran: list[str], job: StageFigures) -> None:
        """The last stage writes, which no sample does: it is what a job takes beyond the others."""
        before = list(map(self.statistics.stage, ran[:-1]))
        entering = job.rows_in * gain(before)
        if entering >= 1 and all(map(self.statistics.knows, ran[:-1])):
            beyond = max(job.seconds - job.rows_in * rest(before), 0.0)
            self._record(ran[-1], at, StageFigures(rows_in=entering, rows_out=job.rows_out,
                                                   seconds=beyond))

    def is_due(self, path: Path, at: float, every: float, busy: bool) -> bool:
        """Whether the stages of a path are to be timed apart now; then not before ``every``.

        It is sooner while they are not known well, and later while others would wait, as they do in
        a burst. All together takes no more than a small part of the time, but for stages that
        become known while nobody waits.
        """
        self._began = min(self._began, at)
        is_new = self._samples[path.id] < ENOUGH
        interval = min(every, SOON) if is_new else PATIENCE * every if busy else every
        is_small = self._sampling <= SAMPLING_CREDIT + SAMPLING_SHARE * (at - self._began)
        due = (len(path.stages) > 1 and at - self._timed.get(path.id, -inf) >= interval
               and (is_small or is_new and not busy))
        if due:
            self._timed[path.id] = at
        return due

    def changed(self, plan: Plan, ran: str) -> dict[str, str]:
        """The paths that differ materially from what the policy was told, with what does, in words.

        Since this was last asked a job ran on one path. Only its figures can be others; when a
        window of the statistics ends, also those of the paths that ran in it.
        """
        self._ran[ran] = None
        looked = list(self._ran) if self._renewed else [ran]
        if self._renewed:
            self._ran, self._renewed = {ran: None}, False
        found = ((path, self._difference(plan, path)) for path in looked if path in self.told)
        return {path: words for path, words in found if words}

    def _difference(self, plan: Plan, path: str) -> str:
        for told, known in zip(self.told[path].stages, self._stages(plan.path(path)), strict=True):
            if differs(told.cost, known.cost):
                return (f"{known.operator} costs {known.cost * 1e6:.3g} us a row, "
                        f"{told.cost * 1e6:.3g} us before")
            if differs(told.selectivity, known.selectivity):
                return (f"{known.operator} keeps {known.selectivity:.3g} of its rows, "
                        f"{told.selectivity:.3g} before")
            if differs(told.width, known.width):
                return (f"rows after {known.operator} are {known.width:.3g} times as wide as "
                        f"before it, {told.width:.3g} times earlier")
        return ""

    def knows(self, path: str) -> bool:
        """Whether the plan that the policy was told of has this path."""
        return path in self.told

    def cost(self, path: str, first: int, last: int) -> float:
        """Seconds per row through some stages of a path, as told."""
        return rest(self.told[path].stages[first:last])

    def expected(self, rows: float, path: str, first: int) -> float:
        """Seconds that so many rows will take from a stage of a path on, going by the latest run.

        0 while unknown.
        """
        latest = self._latest.get((path, first))
        return rows * latest.seconds / latest.rows if latest else 0.0

    def rows_out(self, rows: float, path: Path, first: int) -> float | None:
        """Rows that come out at the end of a path if so many go into a stage of it.

        None while a stage on the way has not been measured.
        """
        left = names(path)[first:]
        if not all(map(self.statistics.knows, left)):
            return None
        return rows * gain(list(map(self.statistics.stage, left)))

    def kept(self, path: str, first: int, last: int) -> float:
        """Bytes out of some stages of a path per byte in, as told."""
        return prod(stage.kept for stage in self.told[path].stages[first:last])

    def rows_within(
        self, seconds: float, path: str, first: int, onward: Iterable[int] = ()
    ) -> float:
        """Rows that take about so long from a stage of a path on, going by the latest runs.

        Those of a train stay together, so what is left of them at the stages where the path goes
        ``onward`` must not take longer either.
        """
        most = self._rows_at(seconds, path, first)
        for stage in onward:
            if left := gain(self.told[path].stages[first:stage]):
                most = min(most, self._rows_at(seconds, path, stage) / left)
        return most

    def _rows_at(self, seconds: float, path: str, first: int) -> float:
        """By the latest run from a stage on; what it took beyond its rows is taken once.

        That is what remains of it after the stages that were timed apart.
        """
        if not (latest := self._latest.get((path, first))):
            return inf
        rows, took, each = latest.rows, latest.seconds, latest.per_row
        fixed = max(took - rows * each, 0.0) if each else 0.0
        return max((seconds - fixed) / ((took - fixed) / rows), rows * seconds / took)


def names(path: Path) -> list[str]:
    """The names under which the stages of a path are measured.

    A path that is one job is measured as a whole, whoever rides on it.
    """
    return [path.id] if len(path.stages) == 1 else [stage[0].id for stage in path.stages]


def differs(told: float, known: float) -> bool:
    """Whether two figures are materially different."""
    return abs(known - told) > MATERIAL * max(abs(known), abs(told))
