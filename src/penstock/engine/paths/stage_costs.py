"""The measured costs of the stages of paths, and which of them the policy was told."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from statistics import median_low

from penstock.engine.cost_model import Cost, RecentJobs, unmeasured_cost
from penstock.engine.statistics import Statistics
from penstock.events.kinds import StageFigures
from penstock.plan import Path, Plan
from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.routes import gain, rest

MATERIAL = 0.2
"""A figure that has changed by less than this part counts as unchanged."""
FIXED_SHARE = 0.25
"""Under backlog the fixed part is at most this part of a job. At a quarter, a path handles three
quarters of the rows that endless jobs would. A job then takes four times its fixed part: half a
second if that is 0.12. A smaller share would gain little and make others wait."""
RISK = 2.0
"""A train larger than any earlier job may take this many times as long as intended, or as the
largest job took, if its rows turn out to cause all of a job's cost."""
LEAST = 1e-8
"""The least cost of a row, in seconds, that policies are told: they divide by it."""
SAMPLING_SHARE = 0.02
"""Samples take at most this part of the time."""
FIRST_SAMPLE = 1.0
"""Seconds that the first sample of a path is expected to take."""
ENOUGH, SOON = 3, 2.0
"""A path gets this many samples, this many seconds apart, before its stages count as known: one of
them may be disturbed."""
CHEAPEST_OF = 256
"""The cheapest job is sought among this many of the latest jobs of all paths."""


@dataclass(slots=True)
class StageCosts:
    """The measured costs and selectivities of all stages, and the routes made from them."""

    statistics: Statistics = field(default_factory=Statistics)
    told: dict[str, Route] = field(default_factory=dict)
    """By path, what the policy was last told."""
    _jobs: dict[tuple[str, int, int], RecentJobs] = field(default_factory=dict)
    """By path, first stage, and the stage before which jobs ended."""
    _lasts: dict[tuple[str, int], int] = field(default_factory=dict)
    """By path and first stage, the stage before which the latest job ended."""
    _each: dict[tuple[str, int, int], float] = field(default_factory=dict)
    """With the same keys, seconds per row of the stages that were measured."""
    _seconds: deque[float] = field(default_factory=lambda: deque(maxlen=CHEAPEST_OF))
    """The seconds of the latest jobs of all paths."""
    _learnt: dict[str, None] = field(default_factory=dict)
    """The stages that every job measures."""
    _sampled: dict[str, deque[float]] = field(default_factory=dict)
    """By stage, seconds per row in the latest samples."""
    _samples: dict[str, list[float]] = field(default_factory=dict)
    """By path, when its samples were ordered."""
    _took: dict[str, float] = field(default_factory=dict)
    """By path, the seconds that its latest sample took."""
    _sampling: float = 0.0
    """Seconds that all samples have taken."""
    _began: float = inf
    _renewed: bool = False
    """Whether a window of the statistics has ended."""
    _ran: dict[str, None] = field(default_factory=dict)
    """The paths that ran in the present window, or in the previous one."""

    # --- what the policy is told -------------------------------------------------------------

    def tell(self, plan: Plan) -> list[Route]:
        """The routes of all paths with what is known of them now."""
        self.told = {path.id: self._route(plan, path) for path in plan.paths}
        self._forget_others()
        return list(self.told.values())

    def tell_again(self, plan: Plan, path: str) -> Route:
        """The route of one path with what is known of it now."""
        self.told[path] = self._route(plan, plan.path(path))
        return self.told[path]

    def _forget_others(self) -> None:
        """Forget the jobs of paths that no longer exist: queries may come and go without end."""
        self._jobs = {key: jobs for key, jobs in self._jobs.items() if key[0] in self.told}
        self._lasts = {key: last for key, last in self._lasts.items() if key[0] in self.told}
        self._each = {key: each for key, each in self._each.items() if key in self._jobs}
        self._samples = {path: at for path, at in self._samples.items() if path in self.told}
        self._took = {path: took for path, took in self._took.items() if path in self.told}

    def _route(self, plan: Plan, path: Path) -> Route:
        queries = [plan.query(member.query) for member in path.members]
        return Route(
            path.id, self._stages(path),
            latency=min((q.latency for q in queries if q.latency is not None), default=inf),
            priority=max((q.priority for q in queries), default=1),
        )

    def _stages(self, path: Path) -> tuple[Stage, ...]:
        return tuple(map(self.statistics.stage, names(path)))

    def changed(self, plan: Plan, ran: str) -> dict[str, str]:
        """The paths that differ materially from what the policy was told, and how they differ.

        Since the last call a job ran on one path. Only the figures of this path can have changed.
        When a window of the statistics ends, so can those of the paths that ran in it.
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

    def rows_out(self, rows: float, path: Path, first: int) -> float | None:
        """Rows that come out at the end of a path if this many go into one of its stages.

        None while a stage on the way has not been measured.
        """
        left = names(path)[first:]
        if not all(map(self.statistics.knows, left)):
            return None
        return rows * gain(list(map(self.statistics.stage, left)))

    def kept(self, path: str, first: int, last: int) -> float:
        """Bytes out of some stages of a path per byte in, as told."""
        return prod(stage.kept for stage in self.told[path].stages[first:last])

    # --- jobs that finished ------------------------------------------------------------------

    def record(
        self, at: float, path: Path, first: int, last: int, job: StageFigures,
        measured: Mapping[str, StageFigures], sampling: float = 0.0,
    ) -> None:
        """Take in a job of some stages, the measurements of them, and the seconds of a sample."""
        self._take_samples(at, path, measured, sampling)
        ran = names(path)[first:last]
        known = [self._seconds_per_row(name, measured.get(name)) for name in ran]
        kept = [self._selectivity(name, measured.get(name)) for name in ran]
        each = rest([Stage(name, cost or 0.0, keeps)
                     for name, cost, keeps in zip(ran, known, kept, strict=True)])
        if job.rows_in and job.seconds:
            key = path.id, first, last
            self._jobs.setdefault(key, RecentJobs()).add(job.rows_in, job.seconds)
            self._lasts[path.id, first], self._each[key] = last, each
            self._seconds.append(job.seconds)
        if job.rows_in:
            self._record_stages(at, ran, known, kept, job,
                                job.rows_in * self.model(path.id, first, last).per_row)

    def _take_samples(
        self, at: float, path: Path, measured: Mapping[str, StageFigures], sampling: float
    ) -> None:
        """Take in what a sample says about stages that no job ran alone."""
        if sampling:
            self._sampling += sampling
            self._took[path.id] = sampling
        for name, figures in measured.items():
            if figures.how == "worker":
                self._learnt[name] = None
            elif figures.how == "sample":
                recent = self._sampled.setdefault(name, deque(maxlen=ENOUGH))
                recent.append(figures.seconds / max(figures.rows_in, 1.0))
                self._record(name, at, figures)

    def _seconds_per_row(self, stage: str, told: StageFigures | None) -> float | None:
        """A stage's cost in the job that ended, or in samples; None if it was not measured."""
        if told is not None and told.how != "count" and told.rows_in:
            return told.seconds / told.rows_in
        sampled = self._sampled.get(stage)
        return median_low(sampled) if sampled else None

    def _selectivity(self, stage: str, told: StageFigures | None) -> float:
        if told is not None and told.rows_in:
            return told.rows_out / told.rows_in
        return self.statistics.selectivity(stage)

    def _record_stages(
        self, at: float, ran: list[str], known: list[float | None], kept: list[float],
        job: StageFigures, spent: float,
    ) -> None:
        """Divide the cost of a job's rows among its stages.

        A stage that ran alone takes all of it. Of several, the measured stages take what was
        measured, and the others share the rest. If rows were kept, the change of their width counts
        at the first stage.
        """
        entering = [job.rows_in * prod(kept[:place]) for place in range(len(ran))]
        if len(ran) == 1:
            known = [spent / job.rows_in]
        share = unmeasured_cost(spent, zip(entering, known, strict=True))
        for place, name in enumerate(ran):
            rows = entering[place]
            out = job.rows_out if place == len(ran) - 1 else rows * kept[place]
            cost = known[place]
            per_row = max(share if cost is None else cost, LEAST)
            narrows = bool(job.bytes_out) and place == 0
            if rows >= 1:
                self._record(name, at, StageFigures(
                    rows_in=rows, rows_out=out, seconds=rows * per_row,
                    bytes_in=job.bytes_in if narrows else 0.0,
                    bytes_out=job.bytes_out / job.rows_out * out if narrows else 0.0))

    def _record(self, stage: str, at: float, figures: StageFigures) -> None:
        self._renewed |= self.statistics.record(
            stage, at, figures.rows_in, figures.rows_out, figures.seconds, figures.bytes_in,
            figures.bytes_out)

    # --- samples -----------------------------------------------------------------------------

    def to_sample(self, path: Path, at: float, every: float, idle: bool) -> tuple[str, ...]:
        """The stages of a path that are to be sampled now; then none for ``every`` seconds.

        Only stages that jobs do not measure themselves are sampled. The last stage is not: it
        writes, and a sample does not. Samples are more frequent while stages are not known well,
        and never taken while anything waits. All samples together, this one included, take only a
        small part of the time.
        """
        self._began = min(self._began, at)
        unknown = tuple(name for name in names(path)[:-1] if name not in self._learnt)
        ordered = self._samples.setdefault(path.id, [])
        interval = min(every, SOON) if len(ordered) < ENOUGH else every
        takes = self._took.get(path.id, FIRST_SAMPLE)
        due = (unknown and idle and (not ordered or at - ordered[-1] >= interval)
               and self._sampling + takes <= SAMPLING_SHARE * (at - self._began))
        if not due:
            return ()
        ordered[:] = [*ordered[-ENOUGH:], at]
        return unknown

    # --- what jobs will take -----------------------------------------------------------------

    def model(self, path: str, first: int, last: int | None = None) -> Cost:
        """The cost of a job that begins at a stage of a path: a fixed part and a part per row.

        It is fitted to jobs that ended before the same stage, or if there were none, to the latest
        others. Both parts are 0 while nothing is known.
        """
        key = self._like(path, first, last)
        if key is None:
            return Cost(0.0, 0.0, distinct=False)
        cheapest, each = min(self._seconds), self._each[key]
        return self._jobs[key].cost(cheapest, (cheapest, each) if each else None)

    def _like(self, path: str, first: int, last: int | None) -> tuple[str, int, int] | None:
        """The key of the jobs that show what such a job takes."""
        if last is not None and (path, first, last) in self._jobs:
            return path, first, last
        ended = self._lasts.get((path, first))
        return None if ended is None else (path, first, ended)

    def has_run(self, path: str, first: int) -> bool:
        """Whether a job from a stage of a path on has finished."""
        return (path, first) in self._lasts

    def expected(self, rows: float, path: str, first: int, last: int | None = None) -> float:
        """Seconds that this many rows will take from a stage of a path on; 0 while unknown."""
        return self.model(path, first, last).seconds(rows)

    def rows_within(
        self, seconds: float, path: str, first: int, last: int | None = None,
        onward: Iterable[int] = (),
    ) -> float:
        """Rows of a train that takes about this long from a stage of a path on.

        A train stays together, so its remaining rows must not take longer at the stages where the
        path goes ``onward`` either. The train is larger if fixed parts would otherwise be more than
        `FIXED_SHARE` of these jobs. While the fixed part cannot be told from the part per row, the
        train is twice as large as any earlier one, to learn them.
        """
        most = limit = inf
        fixed = per_row = 0.0
        for stage, ended in ((first, last), *((stage, None) for stage in onward)):
            left = gain(self.told[path].stages[first:stage]) if stage > first else 1.0
            if left:
                cost = self.model(path, stage, ended)
                fixed, per_row = fixed + cost.fixed, per_row + left * cost.per_row
                rows, took = self._largest(path, stage, ended)
                within = cost.rows_in(seconds)
                most = min(most, (within if cost.distinct else max(within, RISK * rows)) / left)
                limit = min(limit, RISK * rows * max(seconds / took, 1.0) / left)
        worth = (1 / FIXED_SHARE - 1) * fixed / per_row if per_row else most
        return min(max(most, worth), limit)

    def _largest(self, path: str, first: int, last: int | None) -> tuple[float, float]:
        """Rows and seconds of the largest job from a stage on; infinite without any."""
        key = self._like(path, first, last)
        return self._jobs[key].largest if key else (inf, 1.0)


def names(path: Path) -> list[str]:
    """The names under which the stages of a path are measured.

    A path that is one job is measured as a whole, whichever members ride on it.
    """
    return [path.id] if len(path.stages) == 1 else [stage[0].id for stage in path.stages]


def differs(told: float, known: float) -> bool:
    """Whether two figures are materially different."""
    return abs(known - told) > MATERIAL * max(abs(known), abs(told))
