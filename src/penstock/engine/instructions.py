"""What the core tells a host to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.engine.version_history import RelationHistory
from penstock.events.kinds import Event, Through
from penstock.model import Block
from penstock.plan import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """In which order a job evaluates the conjunction of its path, and what it profiles."""

    order: tuple[int, ...] = ()
    """The predicates, by their numbers in the plan. Those that the rows of the job have met already
    come first. Empty means as planned."""
    rate: float = 0.0
    """The share of the rows to profile if they are dropped; 0 if nothing is to be profiled."""
    unasked: tuple[tuple[int, ...], ...] = ()
    """By the place at which a profiled row was dropped: the later places to evaluate as well."""
    version: int = 0
    """Counts the orders; a profile says under which it was made."""
    seed: int = 0
    per_partition: float = 0.0
    """A task goes on in an order of its own if that saves this part of its cost; 0 if never."""
    enough: int = 0
    """It must have profiled so many dropped rows before."""
    lookahead: int = 0
    """Rows that a task profiles before it begins, to choose its order by them. 0 if the order was
    decided by what is known."""


AS_WRITTEN = Evaluation()
"""The order in which predicates are written, and no profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentJob:
    """Run some stages of a path on these blocks for these members.

    After the last stage the answers are delivered, or the panes are made; after any other the rows
    are kept for a later job, in memory or (``on_disk``) out of it.
    """

    number: int
    segment: str
    path: str
    kind: Literal["segment", "panes"]
    """Panes: the last stage puts the rows into the panes of window aggregates."""
    riders: int
    """The number of its members as a whole."""
    members: tuple[Member, ...]
    blocks: tuple[Block, ...]
    """Consecutive work of one queue: a train."""
    keep: tuple[int, ...] = ()
    """Numbers of the blocks to keep in memory when they are read: other jobs will read them soon.
    """
    first: int = 0
    last: int = 1
    """The stages first to last - 1."""
    final: bool = True
    """Whether the last stage is the path's last."""
    parts: tuple[int, ...] = ()
    """The jobs whose intermediate rows this one reads instead of the blocks."""
    on_disk: bool = False
    urgent: bool = False
    """Whether it preempts active jobs: it gets the cores as they become free."""
    yields: bool = False
    """Whether it may be preempted itself: then it is done in small pieces."""
    expected: float = 0.0
    """Seconds that it will take, by the cost model; 0 while unknown."""
    fixed: float = 0.0
    """Seconds of it that do not depend on the number of rows."""
    sample: tuple[str, ...] = ()
    """The stages to sample, beside the job."""
    again: bool = False
    """Whether its members have already had these blocks: only the panes are made again."""
    in_driver: bool = False
    """Whether few answers are expected: one Spark job brings them to the driver, which writes them.
    Otherwise the executors write them."""
    evaluation: Evaluation = AS_WRITTEN
    """What it does with the conjunction of its path, if there is one."""

    @property
    def rows(self) -> int:
        """The rows of its blocks."""
        return sum(block.rows for block in self.blocks)

    @property
    def late(self) -> dict[str, int]:
        """By query, the rows of its blocks that came too late for windows, if there are any."""
        late = sum(block.late for block in self.blocks)
        return dict.fromkeys((member.query for member in self.members), late) if late else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Answer these queries of a group from its synopsis, in one scan back from an end."""

    group: str
    end: int
    """The pane before which all windows end."""
    queries: tuple[tuple[str, int], ...]
    """Each with the length of its window, in panes."""
    reason: str
    waiting: int = 0
    """Tasks that were due when the choice was made."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Answers that it skips, per query, because the machine is late."""
    since: int = 0
    """The pane after which the skipped windows end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshJob:
    """Refresh answers of a group of window aggregates, and deliver them together."""

    number: int
    group: str
    pane: int
    """The length of a pane, in microseconds."""
    scans: tuple[Scan, ...]
    """In order of their ends."""
    arrived: float
    """When the rows arrived that closed the last of the panes."""
    retried: bool = False
    """Whether it has failed before."""
    kind: Literal["refresh"] = "refresh"

    @property
    def members(self) -> tuple[Member, ...]:
        """The queries that it answers, each once."""
        queries = dict.fromkeys(query for scan in self.scans for query, _ in scan.queries)
        return tuple(Member(query, 0) for query in queries)

    @property
    def answers(self) -> dict[str, int]:
        """The windows for which each query is answered."""
        return dict(Counter(query for scan in self.scans for query, _ in scan.queries))

    @property
    def ends(self) -> dict[str, int]:
        """By query, the window end up to which it has then answered, in microseconds."""
        return {query: scan.end * self.pane for scan in self.scans for query, _ in scan.queries}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """The blocks of one stream that a scan of a window join reads."""

    fresh: tuple[Block, ...]
    """Those that may hold the later row of a pair."""
    window: tuple[Block, ...]
    """Those that may hold the earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeScan:
    """Find the pairs whose later row is from some time, and whose rows are so far apart.

    All times are in microseconds. Of rows with the same time, that of the stream
    that is named first counts as the later one, so that each pair is found once.
    """

    since: int
    until: int
    """The later row is not before the first, and before the second."""
    nearest: int
    farthest: int
    """The rows are at least the first apart, and less than the second."""
    sides: tuple[JoinSide, ...]
    """By stream of the join."""
    members: tuple[Member, ...]
    """Those that get the pairs which their own windows cover."""

    @property
    def may_find(self) -> bool:
        """Whether the blocks allow pairs: fresh rows of one stream, and rows of all others."""
        return any(side.fresh and all(other.window for other in self.sides if other is not side)
                   for side in self.sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOrder:
    """In which order fresh rows of one stream of a multiway join probe the other streams."""

    order: tuple[int, ...]
    """The other streams, by their numbers in the join."""
    version: int = 0
    """A profile says under which version it was made."""
    probability: float = 0.0
    """The share of the dropped keys to profile: they probe all other streams."""
    most: int = 0
    """The most of them that are worth profiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """Probe the window of a shared join, and deliver what is found."""

    number: int
    join: str
    riders: int
    """The number of its members as a whole."""
    members: tuple[Member, ...]
    scans: tuple[ProbeScan, ...]
    outer: int
    """The number of what probes the window, in the order of the join."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """By query that then has all pairs up to some time: that time, in microseconds."""
    partial: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By query that then has the nearest of its next pairs: up to which time of their later rows,
    and how far apart, both in microseconds."""
    through: tuple[Through, ...] = ()
    """The blocks that it makes an end of."""
    late: Mapping[str, int] = field(default_factory=dict)
    """By query, the rows of these blocks that came too late for windows."""
    passed: Mapping[str, int] = field(default_factory=dict)
    """By query, the rows of these blocks, once for each input that reads them."""
    expected: float = 0.0
    """Seconds that it will take, by the cost model; 0 while unknown."""
    in_driver: bool = False
    """Whether few pairs are expected: the driver writes them."""
    group: str = ""
    """The group of window aggregates in whose panes the pairs go; empty if they are delivered."""
    orders: tuple[ProbeOrder, ...] = ()
    """Of a multiway join, by stream whose fresh rows probe the others."""
    kind: Literal["probe"] = "probe"

    def added(self, out: Mapping[str, int], rejected: Mapping[str, int]) -> dict[str, int]:
        """By query, the pairs beyond one for each row that is through."""
        more = {query: out.get(query, 0) + rejected.get(query, 0) + self.late.get(query, 0)
                - self.passed.get(query, 0) for query in {**out, **rejected, **self.late}}
        return {query: count for query, count in more.items() if count > 0}


Job: TypeAlias = SegmentJob | RefreshJob | ProbeJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Cancel a job that has passed its limit; its end is reported like any other."""

    job: int
    limit: float
    """The seconds that it was allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """Drop the panes of a group before this one: no answer will read them."""

    group: str
    before: int
    settled: int | None = None
    """Of a group over pairs: no answer will be for a window that ends before this pane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cool:
    """Drop a hot block from memory; the spool still has it."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Drop the intermediate rows of a job: nobody will read them."""

    job: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Delete a block from the spool."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Pause the streams: the spool is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Resume the streams: there is room in the spool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Nothing more is delivered to a derived stream: take what was, and end it."""

    stream: str
    reason: str = ""
    """Why the stream fails, if its query did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRelation:
    """Read a relation again, and report what was read (`RelationRead`)."""

    relation: str
    version: int
    """The number of the version that it becomes; its rows have to outlive the driver."""
    digest: str
    """That of its latest version. If it has the same rows still, they need not be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreVersions:
    """Store durably which blocks are joined with which versions, before the next instruction.

    Versions that are missing are not needed any more.
    """

    history: RelationHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Send a `Tick` at this time: something falls due."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing is left to do: ``drained``, or ``failed`` with a reason."""

    outcome: Literal["drained", "failed"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Write an event of the core's own into the record: a decision, a query that failed."""

    event: Event


Instruction: TypeAlias = (
    Job | Cancel | Trim | Cool | Forget | Release | Pause | Resume | Drain | ReadRelation
    | StoreVersions | Wake | Finish | Note)
