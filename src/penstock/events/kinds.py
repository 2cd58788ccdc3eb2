"""What can happen in a run. A host reports these, the core acts on them, the record keeps them.

An event is a frozen fact with the time at which it happened. The live view, the summary, the tests
and what-if read nothing but events. So whatever a person may ask about a run must be in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.events.jobs import ConjunctionProfile as ConjunctionProfile
from penstock.events.jobs import JobDecided as JobDecided
from penstock.events.jobs import JobFailed as JobFailed
from penstock.events.jobs import JobFinished as JobFinished
from penstock.events.jobs import JobKind as JobKind
from penstock.events.jobs import JobProgressed as JobProgressed
from penstock.events.jobs import KeptRows as KeptRows
from penstock.events.jobs import PanesResult as PanesResult
from penstock.events.jobs import PathResult as PathResult
from penstock.events.jobs import PathWork as PathWork
from penstock.events.jobs import ProbeProfile as ProbeProfile
from penstock.events.jobs import ProbeResult as ProbeResult
from penstock.events.jobs import ProbeWork as ProbeWork
from penstock.events.jobs import RefreshResult as RefreshResult
from penstock.events.jobs import RefreshWork as RefreshWork
from penstock.events.jobs import Result as Result
from penstock.events.jobs import ScanWork as ScanWork
from penstock.events.jobs import SegmentResult as SegmentResult
from penstock.events.jobs import StageFigures as StageFigures
from penstock.events.jobs import Through as Through
from penstock.events.refreshes import AnswersSkipped as AnswersSkipped
from penstock.events.refreshes import PeriodsChosen as PeriodsChosen
from penstock.events.refreshes import SynopsisBegun as SynopsisBegun
from penstock.events.relations import RelationAsked as RelationAsked
from penstock.events.relations import RelationChanged as RelationChanged
from penstock.events.relations import RelationRead as RelationRead
from penstock.events.streams import SpoolFreed as SpoolFreed
from penstock.events.streams import SpoolFull as SpoolFull
from penstock.events.streams import StreamEnded as StreamEnded
from penstock.events.streams import StreamFailed as StreamFailed
from penstock.events.streams import StreamRetried as StreamRetried
from penstock.model import Block, Query
from penstock.plan import Member

Outcome: TypeAlias = Literal["drained", "stopped", "failed", "broken"]
"""How a run ends: nothing was left to do, it was told to stop, no query was left, or it could not
go on."""

@dataclass(frozen=True, slots=True, kw_only=True)
class StartupStep:
    """What the engine does before it can answer, for the people who wait for it."""

    at: float
    step: str
    """In words: ``starting Spark``, ``compiling 3 paths``; empty when nothing is left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStarted:
    """The engine began to run an application, for the first time or after a stop."""

    at: float
    streams: tuple[str, ...]
    policies: Mapping[str, str]
    """By family, the policy that decides, as `SET` names it."""
    cores: int
    totals: Mapping[str, int | None] = field(default_factory=dict)
    """Per stream, how much a bounded source holds, in its unit; None if it is endless."""
    unit: Mapping[str, str] = field(default_factory=dict)
    """Per stream, the unit of its total: rows or bytes."""
    checkpoint: str = ""
    progress: Mapping[str, int] = field(default_factory=dict)
    """Per stream, how much of its total earlier runs had read."""
    slots: int = 1
    """How many jobs may be active at once."""
    overlap: bool = False
    """Whether one more job may begin while the active ones are about to end."""
    gather: float = 0.0
    """Seconds for which any block may wait to be batched."""
    hold: float = 0.5
    """The part of a query's latency goal for which its blocks may wait to be batched."""
    memory: int = 512 * 2**20
    """Bytes that executor memory may hold."""
    keep_from: int = 0
    """Bytes of the smallest block that is worth keeping there."""
    quantum: float | None = None
    """Seconds that a job should take at most, by the cost model; None means no limit."""
    until_drained: bool = False
    """Whether the run ends when all rows of its streams are answered for."""
    paced: bool = False
    """Whether rows come at their own pace even if the run ends with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStopped:
    """The engine stopped: ``drained``, ``stopped``, ``failed`` (no query is left) or ``broken``."""

    at: float
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockArrived:
    """A block is durable in the spool and may be processed."""

    at: float
    block: Block
    read: int
    """Rows that the source gave: those of the block, including late ones, and the rejected ones."""
    late: int = 0
    rejected: int = 0
    progress: int = 0
    """How much of the source's total has been read, in the unit of the total."""
    files: int = 0
    """Files that the rows were read from, if the source is a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHeld:
    """A block that an earlier run on this checkpoint left in the spool, and counted."""

    at: float
    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkMoved:
    """Rows of the stream with an earlier time are late from now on."""

    at: float
    stream: str
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSetAside:
    """A file of a stream is not read, with the reason; another version of it may be."""

    at: float
    stream: str
    file: str
    reason: str
    rows: int = 0
    """The rows that it is known to hold; they count as read and rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAdded:
    """A query joins, with the earlier blocks that it still has to see."""

    at: float
    query: str
    inputs: tuple[tuple[str, ...], ...]
    """The streams that each of its branches reads, in order."""
    sink: str = "memory"
    """The kind of its first sink, and after a blank what it names there."""
    also: tuple[str, ...] = ()
    """Its other sinks, written in the same way."""
    latency: float | None = None
    backlog: tuple[tuple[int, int, int], ...] = ()
    """Blocks in the spool that have not been delivered yet: (branch, input, block)."""
    delivered: int = 0
    """Rows it had delivered in earlier runs on this checkpoint."""
    joined: float | None = None
    """When it first joined, if that was in an earlier run; its lifetime counts from then."""
    priority: int = 1
    lifetime: float | None = None
    window: tuple[int, int] | None = None
    """The window and the slide of a window aggregate, in microseconds. Of sessions: how far back
    an answer looks, and the gap."""
    gap: int = 0
    """Of sessions: how long nothing comes after the last row of one, in microseconds."""
    since: int | None = None
    """A window aggregate answers for windows that end after this, in microseconds. A window join
    answers with pairs whose later rows are not before this."""
    join: tuple[int, int] | None = None
    """The bounds of a window join: the right row's time minus the left one's, in microseconds."""
    join_rows: bool = False
    """Whether the bounds are numbers of rows instead: how many lie between the two."""
    partial: tuple[int, int] | None = None
    """A window join has had some pairs already whose later rows are before the first of these
    times: those less than the second apart."""

    @property
    def members(self) -> Iterator[tuple[Member, str]]:
        """Each of its members, with the stream that the member reads."""
        for branch, streams in enumerate(self.inputs):
            for input, stream in enumerate(streams):
                yield Member(self.query, branch, input), stream

    def owed(self, member: Member) -> list[int]:
        """The numbers of the earlier blocks that a member has not delivered yet."""
        return [number for branch, input, number in self.backlog
                if (branch, input) == (member.branch, member.input)]

    @staticmethod
    def of(
        query: Query,
        at: float,
        backlog: tuple[tuple[int, int, int], ...] = (),
        delivered: int = 0,
        joined: float | None = None,
        since: int | None = None,
        partial: tuple[int, int] | None = None,
    ) -> QueryAdded:
        """The event that a declared query joins."""
        window, join = query.branches[0].window, query.branches[0].join
        sink, *also = [f"{one.kind} {one.target}" if one.target else one.kind
                       for one in query.sinks]
        return QueryAdded(at=at, query=query.name,
                          inputs=tuple(branch.streams for branch in query.branches),
                          sink=sink, also=tuple(also),
                          latency=query.latency, backlog=backlog, delivered=delivered,
                          joined=joined, priority=query.priority, lifetime=query.lifetime,
                          window=None if window is None else (window.covered, window.slide),
                          gap=0 if window is None else window.gap,
                          since=since, join=None if join is None else (join.lower, join.upper),
                          join_rows=join is not None and join.rows, partial=partial)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDropped:
    """A query leaves because it was dropped, or because its lifetime is over."""

    at: float
    query: str
    reason: str = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFailed:
    """A query stops, with its reason; the others go on."""

    at: float
    query: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RidersFormed:
    """Members that ride together from now on; later events name them by this number."""

    at: float
    riders: int
    path: str
    members: tuple[str, ...]
    stages: tuple[str, ...] = ()
    """The stages of the path, by the names under which they are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged:
    """Other policies decide from now on."""

    at: float
    policies: Mapping[str, str]
    """By family; a family that is missing keeps its policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCut:
    """The policy runs a path in these segments from now on, with the reason."""

    at: float
    path: str
    segments: tuple[tuple[str, ...], ...]
    """The operators of each segment."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbesReordered:
    """Fresh rows of a stream of a multiway join probe the others in another order from now on."""

    at: float
    join: str
    stream: str
    order: tuple[str, ...]
    reason: str
    before: float
    """Expected seconds for a key in the order up to now."""
    after: float
    """The same in the new one."""
    rows: int = 0
    """Profiled keys that the policy saw."""
    matrix: tuple[tuple[int, ...], ...] = ()
    """By place in the order so far: how many of the profiled keys that come to it each stream from
    there on drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderChanged:
    """The predicates of a path's conjunction are evaluated in another order from now on."""

    at: float
    path: str
    stages: tuple[str, ...]
    """The predicates in the new order, by the names under which they are measured; empty for SQL
    conditions, which are not measured one by one."""
    order: tuple[str, ...]
    """The same, as they are written in SQL."""
    reason: str
    before: float
    """Expected seconds per row in the order so far."""
    after: float
    """The same in the new one."""
    rows: int = 0
    """Profiled rows that the policy saw."""
    matrix: tuple[tuple[int, ...], ...] = ()
    """By place in the order so far: how many of the profiled rows that come to it each predicate
    from there on drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLevel:
    """What waits in a queue."""

    entries: int = 0
    """Blocks, or intermediate rows that jobs have left."""
    bytes: int = 0
    hot: int = 0
    """Bytes of it in executor memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """What waits or is in an active job has changed: the core's own account of its memory."""

    at: float
    blocks: int
    """Blocks, and intermediate rows between two stages."""
    bytes: int
    """In decoded form, hot or cold; a block that waits for several paths counts once."""
    hot: int
    """Bytes of it in executor memory."""
    queues: Mapping[str, QueueLevel] = field(default_factory=dict)
    """For each queue that has changed, what waits in it. `path` is the queue before the path's
    first stage, `path@2` the one before its third. Blocks in an active job are in no queue. A block
    that waits for several paths is in the queue of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyMissed:
    """A query's answers missed its latency goal: for the first time, or ten times as often."""

    at: float
    query: str
    promised: float
    """The latency goal, in seconds."""
    seconds: float
    """The time from arrival to delivery of the oldest block just delivered."""
    blocks: int
    """Blocks delivered late so far, once for each branch that reads them. For a window aggregate,
    late deliveries of answers."""
    rows: int
    """The rows of these blocks, or of these answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHot:
    """A block is kept in executor memory for the paths that still have to read it."""

    at: float
    stream: str
    number: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCold:
    """A block is no longer in memory; the spool still has it."""

    at: float
    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReleased:
    """A block has left the spool: all queries have read it, and its retention is over."""

    at: float
    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Nothing happened except that time passed."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Something a person should know, which stops nothing."""

    at: float
    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the driver process holds at this moment, in bytes."""

    at: float
    driver: int
    jvm: int = 0
    synopses: int = 0
    """The part of the driver's memory that holds the panes of window aggregates."""


Event: TypeAlias = (
    StartupStep | EngineStarted | EngineStopped | BlockArrived | BlockHeld | WatermarkMoved
    | FileSetAside | StreamEnded | StreamFailed | StreamRetried | SpoolFull | SpoolFreed
    | QueryAdded | QueryDropped | QueryFailed | RidersFormed | PolicyChanged | PathCut
    | ProbesReordered
    | OrderChanged | JobDecided | JobProgressed | JobFinished | JobFailed | Queued | LatencyMissed
    | SynopsisBegun | PeriodsChosen | AnswersSkipped
    | RelationAsked | RelationRead | RelationChanged
    | BlockHot | BlockCold | BlockReleased | Tick | Warned | Memory
)

KINDS: tuple[type[Event], ...] = (
    StartupStep, EngineStarted, EngineStopped, BlockArrived, BlockHeld, WatermarkMoved,
    FileSetAside, StreamEnded, StreamFailed, StreamRetried, SpoolFull, SpoolFreed, QueryAdded,
    QueryDropped, QueryFailed, RidersFormed, PolicyChanged, PathCut, ProbesReordered,
    OrderChanged, JobDecided,
    JobProgressed, JobFinished, JobFailed, Queued, LatencyMissed, SynopsisBegun, PeriodsChosen,
    AnswersSkipped, RelationAsked, RelationRead, RelationChanged,
    BlockHot, BlockCold, BlockReleased, Tick, Warned, Memory,
)
