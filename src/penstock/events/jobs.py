"""What can happen to a job: it is decided, and then it finishes or fails, whatever its kind.

A job has one number, by which all events name it. The head of these events is the same for all
kinds, and holds everything that is needed to count jobs, seconds or rows. Only its *work*, when it
is decided, and its *result*, when it finishes, depend on the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

JobKind: TypeAlias = Literal["segment", "panes", "refresh", "probe"]
"""Stages of a path over blocks; the last ones of a path that ends in panes; answers of a synopsis;
a probe of the window of a shared join."""


# --- what is ordered ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PathWork:
    """Some stages of a path, over blocks of its stream."""

    segment: str
    riders: int
    """The members it is done for, by the number that `RidersFormed` gave them."""
    stream: str
    blocks: tuple[int, ...]
    rows: int
    stages: tuple[int, int] = (0, 1)
    """The stages of the path: the first one, and the one before which the job ends."""
    entering: int | None = None
    """Rows that go into the first stage, if earlier jobs have left fewer or more."""
    urgent: bool = False
    """Whether it preempts active jobs."""
    again: bool = False
    """Whether its members have already had the blocks, so that only panes are made from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanWork:
    """Windows that end together, answered in one scan back over the panes, with the reason."""

    end: int
    """The pane before which all windows end."""
    queries: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWork:
    """Answers of a group of window aggregates, from its synopsis."""

    group: str
    """The name that `SynopsisBegun` gave it."""
    scans: tuple[ScanWork, ...]
    """In order of their ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeWork:
    """A probe of the window of a shared join; times are in microseconds."""

    join: str
    riders: int
    """Those for whom it is done, by the number that `RidersFormed` gave them."""
    outer: int
    """The number of what probes the window."""
    since: int
    until: int
    """The later rows of the pairs are not before the first, and before the second."""
    nearest: int
    farthest: int
    """How far apart the rows of a pair are: at least, and less than this."""
    rows: int
    """Rows of the blocks that may hold the later rows."""
    size: float = 0.0
    """What its cost goes by: these rows times the seconds that are scanned, in all of its scans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """Blocks that some members of window joins are done with: no new pair has a later row there."""

    stream: str
    blocks: tuple[int, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecided:
    """The core ordered a job, with the reason."""

    at: float
    job: int
    kind: JobKind
    reason: str
    work: PathWork | RefreshWork | ProbeWork
    waiting: int = 0
    """What the policy had to choose from: blocks waiting in all queues, or answers that were due.
    """
    seconds: float = 0.0
    """Seconds that the decision itself took."""


# --- what comes of it -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """What a stage of a path did."""

    rows_in: float
    rows_out: float
    seconds: float
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    how: Literal["sample", "worker", "count"] = "sample"
    """Sample: measured beside the job, on part of its rows. Worker: measured by the Python workers,
    in the job. Count: counted in the job, rows only."""
    raised: float = 0.0
    """Rows for which a condition in Python raised; they count as rows out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConjunctionProfile:
    """What workers found out about a sample of the rows that a conjunction dropped."""

    version: int
    """That of the order under which they were dropped."""
    patterns: Mapping[str, int]
    """How many profiled rows have each pattern: a 1 for every predicate that drops the row, in the
    order of the plan. What was not evaluated counts as 0."""
    seconds: tuple[float | None, ...]
    """Seconds per row of each predicate, in the order of the plan; None where none was evaluated.
    """
    passed: float = 0.0
    """Rows that met all predicates, for each that was dropped."""
    sampling: float = 0.0
    """Seconds of all cores together that profiling took."""
    cores: int = 1
    """The cores that the job had."""
    own: tuple[tuple[int, ...], ...] = ()
    """By partition that went on in an order of its own, that order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """What a job has left between two stages of its path, for a later job."""

    rows: int
    bytes: int
    on_disk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """What stages of a path have made of blocks."""

    rows_in: int
    """The rows of its blocks."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Rows per query for which a Python function raised an error."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """The first error that it raised, per query."""
    added: Mapping[str, int] = field(default_factory=dict)
    """Rows per query that relation joins added beyond one per input row."""
    operators: Mapping[str, int] = field(default_factory=dict)
    """Rows out of each operator that was counted."""
    measured: Mapping[str, StageFigures] = field(default_factory=dict)
    """Stages that were measured, in the job or beside it."""
    sampling: float = 0.0
    """Seconds that a sample took, beside the job."""
    bare: float = 0.0
    """Seconds that a stage of the sample took for hardly any rows: the fixed cost of a Spark job.
    """
    raising: Mapping[str, int] = field(default_factory=dict)
    """Rows per query that came to one of its predicates in Python, which raised for all of them."""
    profile: ConjunctionProfile | None = None
    """What was found out about the rows that the conjunction of the path dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentResult(PathResult):
    """Answers were delivered, or rows were kept because a stage of the path is still to come."""

    kept: KeptRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanesResult(PathResult):
    """The rows are in the panes of window aggregates, which answer from them once due."""

    panes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Per group, the panes that got rows."""
    summarised: Mapping[str, int] = field(default_factory=dict)
    """Rows per query that went into panes of windows still to be answered."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Rows per query that came too late, for all windows or for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """Window aggregates were answered."""

    answers: Mapping[str, int]
    """Windows answered per query."""
    arrived: float
    """When the rows arrived that closed the last of these windows."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """The end of the last window that each query was answered for, in microseconds."""
    scanning: float | None = None
    """Seconds spent reading and merging panes; None means all but the answering."""
    answering: float = 0.0
    """Seconds spent making answers from merged panes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProfile:
    """How the fresh rows of one stream of a multiway join fared with the other streams.

    Rows with the same keys are probed as one.
    """

    stream: int
    """Which one, by its number in the join."""
    version: int
    """The version of the order, as it was ordered."""
    order: tuple[int, ...]
    """The other streams in the order in which they were probed."""
    probed: tuple[int, ...]
    """By place in it: the keys that were left when the stream was probed."""
    left: int
    """Keys that no stream dropped."""
    seconds: tuple[float, ...] = ()
    """By place: seconds of the probe for each key that there was at first."""
    dropped: tuple[tuple[int, int], ...] = ()
    """Of a sample of the dropped keys, which streams drop them, and how many keys are alike: bit n
    stands for the n-th of the other streams as they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """Pairs of a shared join were delivered."""

    through: tuple[Through, ...] = ()
    ends: Mapping[str, int] = field(default_factory=dict)
    """By query that has all pairs up to some time of their later rows: that time."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Rows per query that came too late for windows."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Pairs per query that a Python function raised for."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What it raised first, per query."""
    added: Mapping[str, int] = field(default_factory=dict)
    """Pairs per query beyond one for each row of the blocks that are through."""
    operators: Mapping[str, int] = field(default_factory=dict)
    """Rows out of each operator that was counted."""
    panes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Per group of window aggregates over the join, the panes that got later rows of pairs."""
    summarised: Mapping[str, int] = field(default_factory=dict)
    """Pairs per query that went into panes."""
    oldest: tuple[int, ...] = ()
    """Over windows of rows: by side, the time of the oldest row that later rows can meet."""
    profiles: tuple[ProbeProfile, ...] = ()
    """Of a multiway join, by stream that had fresh rows."""


Result: TypeAlias = SegmentResult | PanesResult | RefreshResult | ProbeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinished:
    """A job has finished, and what it delivered counts."""

    at: float
    job: int
    kind: JobKind
    seconds: float
    result: Result
    rows_out: Mapping[str, int] = field(default_factory=dict)
    """Rows delivered per query; a query that got none may be absent."""
    bytes_out: int = 0
    spark_jobs: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries whose sink refused the answers, and why."""

    @property
    def kept(self) -> KeptRows | None:
        """The rows that it left between two stages; None if it delivered."""
        return self.result.kept if isinstance(self.result, SegmentResult) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed:
    """A job failed before it delivered anything."""

    at: float
    job: int
    kind: JobKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgressed:
    """The part of a job's work that is done; the core asks when the job might be preempted."""

    at: float
    job: int
    done: float
