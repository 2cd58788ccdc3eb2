"""Window joins as recorded: who shares which, what their probes cost, and what they find.

A replay forms outers and slices anew, under whatever policy it tries. So what a probe costs must
not depend on how the recorded run cut them: it goes by the rows of its outer times the part of the
window that it scans, as in the engine (`penstock.engine.joins.join_run`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.engine import ProbeJob
from penstock.engine.cost_model import Cost, fit
from penstock.events import kinds as ev
from penstock.model import Query, WindowJoin
from penstock.plan import Member, Operator, Path, SharedJoin


@dataclass(frozen=True, slots=True)
class RecordedProbe:
    """A probe of a window that finished."""

    decided: ev.JobDecided
    work: ev.ProbeWork
    ended: ev.JobFinished
    result: ev.ProbeResult

    @property
    def urgent(self) -> bool:
        """A probe waits for a free slot."""
        return False

    @property
    def sampling(self) -> float:
        """Nothing is sampled beside it."""
        return 0.0


@dataclass(frozen=True, slots=True)
class JoinModel:
    """What the probes of a shared join cost and find.

    >>> model = JoinModel(Cost(fixed=0.25, per_row=0.001), {"q": 0.5})
    >>> model.seconds(500.0, earlier=9), model.found(["q"], 500.0)
    (0.75, {'q': 250})
    """

    cost: Cost
    """Seconds per probe, and per row of the outer and second of the window that it scans."""
    pairs: Mapping[str, float]
    """By query, the pairs that it gets for each of these."""
    runs: int = 0
    """The number of probes that it was fitted to."""
    paned: bool = False
    """Whether the pairs went into the panes of window aggregates."""

    def seconds(self, size: float, earlier: int) -> float:
        """The seconds of a probe of this size, after this many earlier ones."""
        return self.cost.seconds(size, earlier)

    def found(self, queries: Iterable[str], size: float) -> dict[str, int]:
        """The pairs of these queries."""
        return {query: round(size * self.pairs.get(query, 0.0)) for query in queries}


def join_models(
    probes: Iterable[tuple[RecordedProbe, float]], cheapest: float
) -> dict[str, JoinModel]:
    """By join, a model of its probes and of the seconds that each really took."""
    of: dict[str, list[tuple[RecordedProbe, float]]] = {}
    for probe, took in probes:
        of.setdefault(probe.work.join, []).append((probe, took))
    return {join: _model(taken, cheapest) for join, taken in of.items()}


def _model(taken: Sequence[tuple[RecordedProbe, float]], cheapest: float) -> JoinModel:
    sizes = [(probe.work.size, seconds) for probe, seconds in taken]
    found = Counter[str]()
    for probe, _ in taken:
        found.update(probe.ended.rows_out)
    scanned = sum(size for size, _ in sizes)
    pairs = {query: count / scanned for query, count in found.items()} if scanned else {}
    return JoinModel(fit(sizes, cheapest), pairs, len(sizes),
                     any(probe.result.panes or probe.result.summarised for probe, _ in taken))


# --- the plan of a replay -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JoiningQuery:
    """A query of a record that takes part in a join."""

    query: Query
    join: str

    @property
    def bounds(self) -> WindowJoin:
        """Which rows are its pairs, as far as a schedule depends on it."""
        bounds = self.query.branches[0].join
        assert bounds is not None
        return bounds

    def over(self, span: int) -> Query:
        """The query as a member of a group whose panes one scan of the whole window makes."""
        bounds = replace(self.bounds, lower=1 - span, upper=span - 1)
        (branch,) = self.query.branches
        return replace(self.query, branches=(replace(branch, join=bounds),))


def shared_joins(
    present: Iterable[JoiningQuery], known: Mapping[str, JoinModel]
) -> Iterator[tuple[SharedJoin, list[Query]]]:
    """The joins of a plan, each with its queries as the replay knows them.

    Pairs that went into panes are delivered in a replay: what comes after a probe is not replayed.
    """
    of: dict[str, list[JoiningQuery]] = {}
    for one in present:
        if one.join in known:
            of.setdefault(one.join, []).append(one)
    for id, joining in of.items():
        span = max(one.bounds.reach for one in joining)
        queries = [one.over(span) if known[id].paned else one.query for one in joining]
        members = tuple(Member(query.name, 0) for query in queries)
        behind = f"{id}/pairs"
        path = Path(behind, id, (), members, (Operator(f"{behind}:sink", "sink", ""),))
        yield SharedJoin(id=id, streams=queries[0].branches[0].streams, on=(), members=members,
                         span=span, path=path, rows=joining[0].bounds.rows), queries


def probed(
    job: ProbeJob, work: ev.ProbeWork, model: JoinModel, at: float, seconds: float
) -> ev.JobFinished:
    """How a probe ends in a replay."""
    out = model.found({member.query: None for member in job.members}, work.size)
    return ev.JobFinished(
        at=at, job=job.number, kind="probe", seconds=seconds, rows_out=out,
        result=ev.ProbeResult(through=job.through, ends=job.ends, late=job.late,
                              added=job.added(out, {})))
