"""What if another policy had run? A recorded run beside its replays under other policies.

The recorded run and the replays are measured by the same fold over their events. So they differ in
what happened, not in how it was counted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

import numpy as np

from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.policies import FAMILIES, filters, joins
from penstock.policies.operators import Policy, Ranked, Segment
from penstock.policies.operators import policy as policy_of
from penstock.simulator.outcomes import Floats
from penstock.whatif.alike_queries import folded
from penstock.whatif.recorded import Recording, replay
from penstock.whatif.tried_orders import ConjunctionOutcomes, compare_orders

FEW = 5
"""With fewer jobs of a path than this, its cost is not known well."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from a block's arrival to its delivery; a block counts once for each of its rows."""

    mean: float
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, seconds: Floats, rows: Floats) -> Latency | None:
        """The latency of blocks with these numbers of rows; None if there are none.

        >>> Latency.of(np.array([9.0, 1.0]), np.array([1.0, 3.0]))
        Latency(mean=3.0, p50=1.0, p99=9.0, max=9.0)
        """
        if not rows.sum():
            return None
        order = np.argsort(seconds, kind="stable")
        seconds, rows = seconds[order], rows[order]
        through = np.cumsum(rows)
        p50, p99 = seconds[np.searchsorted(through, np.array([0.5, 0.99]) * through[-1])]
        mean = (seconds * rows).sum() / through[-1]
        return cls(float(mean), float(p50), float(p99), float(seconds[-1]))


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """A run under a policy: as it was, or as it would have been."""

    policy: str
    """The operator policy, or ``joins`` and the joins policy beside that which ran."""
    peak_bytes: int
    """The most bytes that waited or were in active jobs, between stages too; a block counts once.
    """
    peak_blocks: int
    latency: Latency | None
    """Over all queries."""
    queries: Mapping[str, Latency | None]
    runs: int
    busy: float
    """Seconds that all jobs took together."""
    times: Sequence[float] = field(repr=False)
    """Seconds since the beginning at which the waiting bytes changed."""
    waiting: Sequence[int] = field(repr=False)
    """The waiting bytes from each of these times on."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """A figure of the policy that really ran: recorded, and simulated."""

    recorded: float
    simulated: float

    @property
    def percent(self) -> float | None:
        """By how many percent the simulation is off.

        >>> Closeness(recorded=4.0, simulated=3.0).percent
        -25.0
        """
        return 100 * (self.simulated / self.recorded - 1) if self.recorded else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A recorded run, and what it would have been."""

    recording: Recording
    state: str
    """How the recorded run ended; ``running`` when its record has no end."""
    seconds: float
    recorded: PolicyOutcome
    simulated: tuple[PolicyOutcome, ...]
    """The first one is that of the policy that really ran."""
    windows: tuple[str, ...]
    """Window aggregates: the replays make their panes, but not their answers."""
    joins: Mapping[str, str]
    """Of the outcomes of joins policies, by their names: the policy."""
    conjunctions: tuple[ConjunctionOutcomes, ...]
    """What predicates would have cost under filters policies."""
    notes: tuple[str, ...]
    """What a reader should know."""

    def closeness(self) -> dict[str, Closeness]:
        """How close the simulation of the policy that ran is to what happened."""
        was, would_be = self.recorded, self.simulated[0]
        found = {"peak waiting": Closeness(was.peak_bytes, would_be.peak_bytes)}
        if was.latency and would_be.latency:
            found["mean latency"] = Closeness(was.latency.mean, would_be.latency.mean)
        found["seconds running"] = Closeness(was.busy, would_be.busy)
        return found


def compare(
    events: Iterable[ev.Event], policies: Mapping[str, Policy],
    joining: Mapping[str, joins.Policy] | None = None,
    ordering: Mapping[str, filters.Policy] | None = None,
) -> Comparison:
    """Replay a record under the policy that ran and under others.

    Joins policies are tried under the operator policy that ran, if there are window joins. Filters
    policies are tried on what was profiled, and do not change the replays.
    """
    given = list(events)
    record = folded(given)
    recording = Recording.of(record.events)
    ran = recording.started.policies["operators"]
    tried = {ran: policy_of(ran)}
    tried.update((name, p) for name, p in policies.items() if p != tried[ran])
    had = {(d.path, d.block) for d in _deliveries(record.events)}
    measure = partial(_outcome, only=had, twins=record.twins)
    summary, windows = Summary.of(record.events), _windows(record.events, record.twins)
    others = _others(recording, joining or {})
    conjunctions, thin = compare_orders(given, ordering or {})
    return Comparison(
        recording, summary.run.state, summary.run.seconds, measure("recorded", record.events),
        (*(measure(name, replay(recording, policy)) for name, policy in tried.items()),
         *(measure(name, replay(recording, tried[ran], joins.policy(text)))
           for name, text in others.items())),
        windows, others, conjunctions,
        (*_unplayed(record.events, windows), *_derived(given), *_unprofiled(thin),
         *_notes(recording, record.twins, summary, tried)))


def _others(recording: Recording, joining: Mapping[str, joins.Policy]) -> dict[str, str]:
    """The joins policies to try beside the one that ran, under the names of their outcomes."""
    ran = recording.started.policies.get("joins", FAMILIES["joins"].default)
    return {f"joins {text}": text for text, policy in joining.items()
            if recording.joins and policy != joins.policy(ran)}


def alike(outcomes: Iterable[PolicyOutcome]) -> list[tuple[str, PolicyOutcome]]:
    """Merge outcomes that do not differ, under the names of all their policies."""
    found: dict[object, list[PolicyOutcome]] = {}
    for outcome in outcomes:
        course = tuple(outcome.times), tuple(outcome.waiting), outcome.latency, outcome.runs
        found.setdefault(course, []).append(outcome)
    return [(", ".join(outcome.policy for outcome in same), same[0]) for same in found.values()]


# --- measuring ----------------------------------------------------------------------------------


def _outcome(
    name: str, events: Sequence[ev.Event], only: Container[tuple[str, int]],
    twins: Mapping[str, tuple[str, ...]],
) -> PolicyOutcome:
    times, waiting, blocks = _levels(events)
    counted = (d for d in _deliveries(events) if (d.path, d.block) in only)
    overall, queries = _latencies(counted, twins)
    began = {e.job: e.at for e in events if isinstance(e, ev.JobDecided)}
    ended = [e for e in events if isinstance(e, ev.JobFinished) and e.kind != "refresh"]
    spans = [e.at - began[e.job] for e in ended if e.job in began]
    return PolicyOutcome(name, max(waiting, default=0), max(blocks, default=0), overall, queries,
                   len(spans), sum(spans), times, waiting)


def _levels(events: Sequence[ev.Event]) -> tuple[list[float], list[int], list[int]]:
    """The bytes and blocks that waited or were in active jobs over time, by the core's account."""
    began = next(event.at for event in events if isinstance(event, ev.EngineStarted))
    accounts = [event for event in events if isinstance(event, ev.Queued)]
    times = [0.0, *(event.at - began for event in accounts), events[-1].at - began]
    sizes, counts = [event.bytes for event in accounts], [event.blocks for event in accounts]
    return times, [0, *sizes, sizes[-1] if sizes else 0], [0, *counts, counts[-1] if counts else 0]


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A block that reached the queries of a path."""

    path: str
    block: int
    queries: tuple[str, ...]
    seconds: float
    rows: int


def _deliveries(events: Iterable[ev.Event]) -> Iterator[_Delivery]:
    """Every block that was delivered, for the queries that had joined before it arrived.

    A block from before a query joined waited for the query, not the query for it. A block whose
    rows, or their pairs, went into panes is not delivered to anybody yet. A window join has had a
    block once no pair with a later row in it is still to come.
    """
    paned: set[str] = set()
    came: dict[tuple[str, int], tuple[int, ev.BlockArrived]] = {}
    joined: dict[str, tuple[int, str]] = {}
    groups: dict[int, tuple[tuple[int, str], ...]] = {}
    homes: dict[int, str] = {}
    decided: dict[int, ev.PathWork] = {}
    for place, event in enumerate(events):
        match event:
            case ev.BlockArrived(block=block):
                came[block.stream, block.number] = place, event
            case ev.QueryAdded(query=query):
                joined.update((str(member), (place, query)) for member, _ in event.members)
                paned |= {query} if event.window is not None else set()
            case ev.RidersFormed(riders=group, path=path, members=members):
                groups[group] = tuple(joined[name] for name in members if name in joined)
                homes[group] = path
            case ev.JobDecided(job=job, work=ev.PathWork() as work):
                decided[job] = work
            case ev.JobFinished(job=job, kind="panes"):
                decided.pop(job, None)
            case ev.JobFinished(result=ev.ProbeResult() as result):
                for through in result.through:
                    for name in through.members:
                        since, query = joined[name]
                        if query in paned or query in event.failed:
                            continue
                        for number in through.blocks:
                            arrival, how = came.get((through.stream, number), (-1, None))
                            if how is not None and since < arrival:
                                yield _Delivery(
                                    f"{through.stream} {name}", number, (query,),
                                    max(event.at - how.block.arrived, 0.0), how.block.rows)
            case ev.JobFinished(job=job, kept=None) if job in decided:
                of = decided.pop(job)
                riders = [rider for rider in groups.get(of.riders, ())
                          if rider[1] not in event.failed]
                for number in of.blocks:
                    if (of.stream, number) in came:
                        arrival, how = came[of.stream, number]
                        yield _Delivery(
                            homes.get(of.riders, of.segment), number,
                            tuple(query for since, query in riders if since < arrival),
                            max(event.at - how.block.arrived, 0.0), how.block.rows)


def _latencies(
    deliveries: Iterable[_Delivery], twins: Mapping[str, tuple[str, ...]]
) -> tuple[Latency | None, dict[str, Latency | None]]:
    """The latencies over all queries, and of each query."""
    seconds: list[float] = []
    rows: list[float] = []
    of: dict[str, list[int]] = {query: [] for query in twins}
    for place, delivery in enumerate(deliveries):
        seconds.append(delivery.seconds)
        rows.append(delivery.rows)
        for query in delivery.queries:
            of[query].append(place)
    took, size, weight = np.array(seconds), np.array(rows), np.zeros(len(rows))
    found: dict[str, Latency | None] = {}
    for query, places in of.items():
        if places:
            np.add.at(weight, places, len(twins[query]))
            latency = Latency.of(took[places], size[places])
            found.update((twin, latency) for twin in twins[query])
    return Latency.of(took, size * weight), found


# --- what a reader should know ------------------------------------------------------------------


def _windows(
    events: Iterable[ev.Event], twins: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The window aggregates of a record."""
    found = dict.fromkeys(event.query for event in events
                          if isinstance(event, ev.QueryAdded) and event.window is not None)
    return tuple(twin for query in found for twin in twins[query])


def _unplayed(events: Iterable[ev.Event], windows: Sequence[str]) -> Iterator[str]:
    """What the replays leave out about window aggregates."""
    if windows:
        took = [e.seconds for e in events if isinstance(e, ev.JobFinished) and e.kind == "refresh"]
        yield (f"{', '.join(windows)}: the replays put the rows of window aggregates into panes, "
               "but do not answer from them, so there are no latencies; in the recorded run "
               f"{len(took)} refreshes took {sum(took):.1f} s, which the replays have to spare")


def _derived(events: Iterable[ev.Event]) -> Iterator[str]:
    """What the replays leave out about derived streams."""
    found = dict.fromkeys(event.query for event in events
                          if isinstance(event, ev.QueryAdded) and event.sink == "stream")
    if found:
        yield (f"{', '.join(found)}: a derived stream; the replays have its blocks when they came "
               "in the recorded run, however early or late its query is answered")


def _unprofiled(paths: Sequence[str]) -> Iterator[str]:
    """Which conjunctions say nothing about other filters policies."""
    if paths:
        yield (f"{', '.join(paths)}: the filters policy that ran did not evaluate all predicates "
               "on the rows that it profiled, so nothing is known of other orders; a_greedy does")


def _notes(
    recording: Recording, twins: Mapping[str, tuple[str, ...]], summary: Summary,
    policies: Mapping[str, Policy],
) -> Iterator[str]:
    if summary.run.state == "running":
        yield ("the record has no end: the run goes on, or was cut off; it is replayed as far as "
               "it goes")
    left = sum(len(stream.queue.waiting) for stream in summary.streams.values())
    if left:
        yield (f"{left} blocks still waited when the record ended; latencies are those of the "
               "blocks that had been delivered")
    if recording.failed:
        yield f"{recording.failed} jobs failed; they are left out of the replays"
    runs = {name: model.runs for name, model in recording.paths.items()}
    runs |= {name: model.runs for name, model in recording.joins.items()}
    few = [name for name, jobs in runs.items() if jobs < FEW]
    if few:
        yield (f"{', '.join(few)}: fewer than {FEW} jobs finished, so the cost is a guess, and the "
               "replay follows the record more closely than it deserves")
    unknown = [twin for query in recording.unknown for twin in twins[query]]
    if unknown:
        yield (f"{', '.join(unknown)}: no job finished, so nothing is known of the cost, and the "
               "replays let it wait")
    turning = [name for name, policy in policies.items()
               if isinstance(policy, Ranked) and policy.turn(Segment("", "", ())).quantum < inf]
    if turning:
        yield f"{', '.join(turning)}: a turn is a whole job, which is not interrupted"
