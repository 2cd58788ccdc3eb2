"""What can happen in a run. A host reports these, the core acts on them, the record keeps them.

An event is a frozen fact with the time it happened. The live view, the summary, the tests and the
what-if read events and nothing else, so whatever a person may ask of a run must be in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.events.jobs import JobDecided as JobDecided
from penstock.events.jobs import JobFailed as JobFailed
from penstock.events.jobs import JobFinished as JobFinished
from penstock.events.jobs import JobKind as JobKind
from penstock.events.jobs import JobProgressed as JobProgressed
from penstock.events.jobs import KeptRows as KeptRows
from penstock.events.jobs import PanesResult as PanesResult
from penstock.events.jobs import PathResult as PathResult
from penstock.events.jobs import PathWork as PathWork
from penstock.events.jobs import RefreshResult as RefreshResult
from penstock.events.jobs import RefreshWork as RefreshWork
from penstock.events.jobs import Result as Result
from penstock.events.jobs import ScanWork as ScanWork
from penstock.events.jobs import SegmentResult as SegmentResult
from penstock.events.jobs import StageFigures as StageFigures
from penstock.events.refreshes import AnswersSkipped as AnswersSkipped
from penstock.events.refreshes import PeriodsChosen as PeriodsChosen
from penstock.events.refreshes import SynopsisBegun as SynopsisBegun
from penstock.events.streams import SpoolFreed as SpoolFreed
from penstock.events.streams import SpoolFull as SpoolFull
from penstock.events.streams import StreamEnded as StreamEnded
from penstock.events.streams import StreamFailed as StreamFailed
from penstock.events.streams import StreamRetried as StreamRetried
from penstock.model import Block, Query
from penstock.plan import Member

Outcome: TypeAlias = Literal["drained", "stopped", "failed", "broken"]
"""How a run ends: nothing was left to do, it was told to stop, no query is left, or it could not go
on."""

@dataclass(frozen=True, slots=True, kw_only=True)
class StartupStep:
    """What the engine does before it can answer: people who wait should know what for."""

    at: float
    step: str
    """As people read it: ``starting Spark``, ``compiling 3 paths``; empty when nothing is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStarted:
    """The engine began to run an application, anew or after a stop."""

    at: float
    streams: tuple[str, ...]
    policies: Mapping[str, str]
    """By family the policy that decides, as `SET` names it."""
    cores: int
    totals: Mapping[str, int | None] = field(default_factory=dict)
    """Per stream how much a bounded source holds, in its unit; None when it is endless."""
    unit: Mapping[str, str] = field(default_factory=dict)
    """Per stream the unit of its total: rows or bytes."""
    checkpoint: str = ""
    progress: Mapping[str, int] = field(default_factory=dict)
    """Per stream how much of its total earlier runs had read."""
    slots: int = 1
    """Jobs under way at once."""
    overlap: bool = False
    """Whether one more may begin while they are about to end."""
    gather: float = 0.0
    """Seconds for which any block may wait for others to ride with."""
    hold: float = 0.5
    """The part of a query's latency for which its blocks may gather."""
    memory: int = 512 * 2**20
    """Bytes that may be held in executor memory."""
    keep_from: int = 0
    """Bytes of the smallest block that is worth holding there."""
    quantum: float | None = None
    """Seconds for which a job may run, going by the one before; None: for as long as it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStopped:
    """The engine stopped: ``drained``, ``stopped``, ``failed`` (no query is left) or ``broken``."""

    at: float
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockArrived:
    """A block is durable in the spool and may be run."""

    at: float
    block: Block
    read: int
    """Rows the source gave: those of the block, late ones among them, and the rejected ones."""
    late: int = 0
    rejected: int = 0
    progress: int = 0
    """How much of the source's total has been read, in the unit of the total."""
    files: int = 0
    """Files that the rows were read from, where the source is a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHeld:
    """A block that an earlier run on this checkpoint left in the spool; it was counted then."""

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
    """A file of a stream is not read, for a reason; another version of it may be."""

    at: float
    stream: str
    file: str
    reason: str
    rows: int = 0
    """The rows it is known to have; they count as read and rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAdded:
    """A query joins, with the blocks it still has to see from before."""

    at: float
    query: str
    inputs: tuple[tuple[str, ...], ...]
    """The streams that each of its branches reads, in order."""
    sink: str = "memory"
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
    """The window and the slide of a window aggregate, in microseconds."""
    since: int | None = None
    """A window aggregate answers for windows that end after this, in microseconds."""

    @property
    def members(self) -> Iterator[tuple[Member, str]]:
        """Each of its members, with the stream that it reads."""
        for branch, streams in enumerate(self.inputs):
            for input, stream in enumerate(streams):
                yield Member(self.query, branch, input), stream

    def owed(self, member: Member) -> list[int]:
        """The numbers of the blocks from before that a member has not delivered yet."""
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
    ) -> QueryAdded:
        """A query as it was declared joins."""
        sink, window = query.sink, query.branches[0].window
        return QueryAdded(at=at, query=query.name,
                          inputs=tuple(branch.streams for branch in query.branches),
                          sink=f"{sink.kind} {sink.target}" if sink.target else sink.kind,
                          latency=query.latency, backlog=backlog, delivered=delivered,
                          joined=joined, priority=query.priority, lifetime=query.lifetime,
                          window=None if window is None else (window.length, window.slide),
                          since=since)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDropped:
    """A query leaves because it was told to, or because its lifetime is over."""

    at: float
    query: str
    reason: str = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFailed:
    """A query stops alone, with its reason."""

    at: float
    query: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RidersFormed:
    """Members that ride together from now on; later events name them by their number."""

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
    """By family; those of other families stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCut:
    """A path is run in these segments from now on, for a reason."""

    at: float
    path: str
    segments: tuple[tuple[str, ...], ...]
    """The operators of each segment."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLevel:
    """What waits in a queue."""

    entries: int = 0
    """Blocks, or what jobs have kept of some."""
    bytes: int = 0
    hot: int = 0
    """Bytes of it in executor memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """What waits or is under way has changed: the core's own account of its memory."""

    at: float
    blocks: int
    """Blocks, and what is left of some between two stages."""
    bytes: int
    """In decoded form, hot or cold; a block that several paths wait for counts once."""
    hot: int
    """Bytes of it in executor memory."""
    queues: Mapping[str, QueueLevel] = field(default_factory=dict)
    """What waits before a stage of a path, for each queue that has changed: `path` before its first
    stage, `path@2` before its third. What is under way waits in none, and a block that several
    paths wait for is in the queue of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyMissed:
    """A query's answers came later than promised: for the first time, or ten times as often."""

    at: float
    query: str
    promised: float
    """Its latency, in seconds."""
    seconds: float
    """From arrival to delivery, of the oldest block just delivered."""
    blocks: int
    """Blocks delivered late so far, once for each branch that reads them; of a window aggregate the
    deliveries of answers."""
    rows: int
    """The rows of these blocks, or answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHot:
    """A block is held in executor memory for those who still have to read it."""

    at: float
    stream: str
    number: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCold:
    """A block is in memory no longer; the spool still has it."""

    at: float
    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReleased:
    """A block has left the spool: all have read it and its retention is over."""

    at: float
    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Nothing happened but time."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Something a person should know that stops nothing."""

    at: float
    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the driver process held at this moment, in bytes."""

    at: float
    driver: int
    jvm: int = 0
    synopses: int = 0
    """Of the driver's: the panes of window aggregates."""


Event: TypeAlias = (
    StartupStep | EngineStarted | EngineStopped | BlockArrived | BlockHeld | WatermarkMoved
    | FileSetAside | StreamEnded | StreamFailed | StreamRetried | SpoolFull | SpoolFreed
    | QueryAdded | QueryDropped | QueryFailed | RidersFormed | PolicyChanged | PathCut
    | JobDecided | JobProgressed | JobFinished | JobFailed | Queued | LatencyMissed
    | SynopsisBegun | PeriodsChosen | AnswersSkipped
    | BlockHot | BlockCold | BlockReleased | Tick | Warned | Memory
)

KINDS: tuple[type[Event], ...] = (
    StartupStep, EngineStarted, EngineStopped, BlockArrived, BlockHeld, WatermarkMoved,
    FileSetAside, StreamEnded, StreamFailed, StreamRetried, SpoolFull, SpoolFreed, QueryAdded,
    QueryDropped, QueryFailed, RidersFormed, PolicyChanged, PathCut, JobDecided, JobProgressed,
    JobFinished, JobFailed, Queued, LatencyMissed, SynopsisBegun, PeriodsChosen, AnswersSkipped,
    BlockHot, BlockCold, BlockReleased, Tick, Warned, Memory,
)
