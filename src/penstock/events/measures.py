"""What is known of a stream, a query, a queue and the whole run at one moment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from penstock.events.histogram import SLOT, Histogram, RollingHistogram, bucket
from penstock.events.kinds import Outcome
from penstock.events.ledger import Ledger, StreamQueue

BEHIND, AHEAD = 3600.0, 60.0
"""The stream follows the clock if its time is at most this many seconds behind it, or ahead of it.
"""
RATE_WINDOW = 5.0
"""Seconds over which a rate is computed: enough to smooth blocks, few enough to show a burst."""


@dataclass(slots=True, eq=False)
class StreamMeasures:
    """A stream: what came, what waits, what is held in memory."""

    name: str
    state: Literal["reading", "retrying", "ended", "stopped", "failed"] = "reading"
    """Ended: the source has no more rows. Stopped: the run ended."""
    reason: str = ""
    retries: int = 0
    """How often it had to be retried."""
    read: int = 0
    kept: int = 0
    late: int = 0
    """The part of the kept rows that came too late for windows."""
    rejected: int = 0
    files: int = 0
    """Files that were read, if the source is a folder."""
    files_rejected: int = 0
    """Files that were set aside; their rows, if known, count as rejected."""
    blocks: int = 0
    watermark: float | None = None
    total: int | None = None
    """How much a bounded source holds, in `unit`; None if it is endless."""
    progress: int = 0
    unit: str = "rows"
    hot_bytes: int = 0
    hot_peak: int = 0
    queue: StreamQueue = field(default_factory=StreamQueue)
    """The blocks that some query still waits for."""
    queue_peak: int = 0
    """The most bytes that waited."""
    hot: dict[int, int] = field(default_factory=dict)
    """Bytes of each block in memory."""
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """Arrivals (time, rows) of the last `RATE_WINDOW` seconds."""

    @property
    def fraction(self) -> float | None:
        """How much of a bounded source has been read, 0 to 1."""
        if self.state == "ended":
            return 1.0
        if self.total is None:
            return None
        return min(1.0, self.progress / self.total) if self.total else 1.0

    def rate(self, now: float, since: float) -> float:
        """Rows per second over the last `RATE_WINDOW` seconds of a run that began at ``since``."""
        begin = now - RATE_WINDOW
        rows = sum(rows for at, rows in list(self.recent) if at > begin)
        return rows / min(RATE_WINDOW, max(now - since, 1.0))

    def faults(self) -> Iterator[str]:
        """The ways in which its rows do not add up."""
        if self.read != self.kept + self.rejected:
            yield (
                f"stream {self.name}: {self.read} rows read, but {self.kept} kept + "
                f"{self.rejected} rejected"
            )

    def retry(self, reason: str) -> bool:
        """The stream could not be read and is retried; return False if the reason is unchanged."""
        is_new = self.reason != reason
        self.state, self.reason = "retrying", reason
        self.retries += 1
        return is_new

    def note_arrival(self, at: float, rows: int) -> None:
        """Remember rows for the rate, and forget those that are too old for it."""
        if self.state == "retrying":
            self.state, self.reason = "reading", ""
        self.recent.append((at, rows))
        while self.recent[0][0] <= at - RATE_WINDOW:
            self.recent.popleft()

    def heat(self, number: int, size: int) -> None:
        """A block is in memory now, with this size."""
        self.hot_bytes += size - self.hot.get(number, 0)
        self.hot[number] = size
        self.hot_peak = max(self.hot_peak, self.hot_bytes)

    def cool(self, number: int) -> None:
        """A block is no longer in memory."""
        self.hot_bytes -= self.hot.pop(number, 0)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long some rows waited for their delivery; many queries may have waited for them."""

    slot: int
    """When it ended, as `RollingHistogram` counts the time."""
    seconds: float
    """The seconds since their arrival."""
    bucket: int
    rows: int
    lag: float | None
    """The seconds since their event time; None if the stream does not follow the clock."""
    lag_bucket: int = 0
    blocks: int = 1
    """How many blocks waited alike."""

    @staticmethod
    def of(at: float, arrived: float, event: int | None, rows: int) -> Wait:
        """The wait of rows whose newest has this event time, in microseconds.

        >>> Wait.of(at=8.0, arrived=7.5, event=7_000_000, rows=10).lag
        1.0
        >>> Wait.of(at=2e9, arrived=2e9, event=7_000_000, rows=10).lag is None
        True
        """
        seconds, slot = max(0.0, at - arrived), int(at) // SLOT
        lag = None if event is None else at - event / 1e6
        if lag is None or not -AHEAD < lag < BEHIND:
            return Wait(slot, seconds, bucket(seconds), rows, None)
        lag = max(0.0, lag)
        return Wait(slot, seconds, bucket(seconds), rows, lag, bucket(lag))


    @staticmethod
    def merged(waits: Iterable[Wait]) -> tuple[Wait, ...]:
        """Those that ended together and fall into the same buckets as one.

        >>> alike = [Wait.of(at=8.0, arrived=at, event=None, rows=10) for at in (4.0, 3.9375)]
        >>> [(wait.seconds, wait.rows, wait.blocks) for wait in Wait.merged(alike)]
        [(4.0625, 20, 2)]
        """
        found: dict[tuple[int, int, bool, int], Wait] = {}
        for wait in waits:
            key = wait.slot, wait.bucket, wait.lag is None, wait.lag_bucket
            other = found.get(key)
            if other is not None:
                wait = Wait(wait.slot, max(wait.seconds, other.seconds), wait.bucket,
                            wait.rows + other.rows,
                            None if wait.lag is None else max(wait.lag, other.lag or 0.0),
                            wait.lag_bucket, wait.blocks + other.blocks)
            found[key] = wait
        return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the blocks of a job waited, for all the queries that waited for all of them."""

    each: tuple[Wait, ...]
    merged: tuple[Wait, ...]
    slowest: float

    @staticmethod
    def of(waits: Iterable[Wait]) -> Waits:
        """The waits for blocks that were delivered together."""
        each = tuple(waits)
        return Waits(each, Wait.merged(each), max((wait.seconds for wait in each), default=0.0))


@dataclass(slots=True)
class RelationMeasures:
    """A relation that changes: what it held when it was read last."""

    name: str
    version: int = 0
    rows: int = 0
    since: dict[str, int] = field(default_factory=dict)
    """By stream, the first block that is joined with this version."""
    changed: float = 0.0
    """When the version was decided."""
    read: float | None = None
    """When it was read last, whether it had changed or not."""
    reason: str = ""
    """Why it could not be read the last time that was tried; empty if it could."""


@dataclass(slots=True, eq=False)
class QueryMeasures:
    """A query: what it read, what became of the rows, and how long it took."""

    name: str
    sinks: tuple[str, ...] = ("memory",)
    """Each as its kind, and after a blank what it names there."""
    latency_goal: float | None = None
    state: Literal["running", "failed", "dropped", "done", "stopped"] = "running"
    """Done: its input ended. Stopped: the run ended."""
    reason: str = ""
    rows_in: int = 0
    """Rows of the blocks delivered for it, once for each branch that read them."""
    rows_out: int = 0
    rejected: int = 0
    window: tuple[int, int] | None = None
    """The window and the slide of a window aggregate, in microseconds. Its rows in go into panes,
    and its rows out are answers."""
    gap: int = 0
    """Of sessions: their gap, in microseconds."""
    join: tuple[int, int] | None = None
    """The bounds of a window join: the right row's time minus the left one's, in microseconds."""
    join_rows: bool = False
    """Whether the bounds are numbers of rows instead: how many lie between the two."""
    joined_by: str = ""
    """The shared join whose latest probe was for it."""
    summarised: int = 0
    """Rows that went into the panes of a window aggregate, for windows still to be answered."""
    late: int = 0
    """Rows that came too late for the windows of a window aggregate."""
    answers: int = 0
    """Windows answered."""
    skipped: int = 0
    """Windows, a slide apart, that hold rows and were not answered because the machine was late."""
    last_end: int | None = None
    """The end of the last window answered, in microseconds."""
    added: int = 0
    """Rows that relation joins added beyond one for each row in."""
    delivered_before: int = 0
    """Rows it had delivered in earlier runs on this checkpoint."""
    last_delivery: float | None = None
    latency: RollingHistogram = field(default_factory=RollingHistogram)
    """Seconds from a block's arrival to its delivery, weighted by the block's rows. Blocks from
    before the query joined are left out: they waited for the query, not the query for them."""
    block_latency: Histogram = field(default_factory=Histogram)
    """The same, counting every block once."""
    lag: RollingHistogram = field(default_factory=RollingHistogram)
    """Seconds from an event to its answer, if the stream follows the clock: from the time of a
    block's newest row to its delivery, or from the end of a window to its answer."""
    missed_blocks: int = 0
    """Blocks delivered later than `latency_goal`; 0 if there is no goal."""
    missed_rows: int = 0
    """The rows of these blocks."""
    members: dict[str, Ledger] = field(default_factory=dict)
    """Its branches, by the name that groups use."""

    @property
    def filtered(self) -> int:
        """Rows that did not meet its conditions."""
        passed = self.rows_out if self.window is None else self.summarised
        return self.rows_in + self.added - passed - self.late - self.rejected

    def take_wait(self, wait: Wait) -> None:
        """A block, or the answers of windows, were delivered after a wait."""
        self._count(wait)
        self._judge(wait)

    def take_waits(self, waits: Waits) -> None:
        """All blocks of a job were delivered; waits that look alike are counted together."""
        for wait in waits.merged:
            self._count(wait)
        if self.latency_goal is not None and waits.slowest > self.latency_goal:
            for wait in waits.each:
                self._judge(wait)

    def _count(self, wait: Wait) -> None:
        slot, index, seconds, rows = wait.slot, wait.bucket, wait.seconds, wait.rows
        self.latency.add_bucket(slot, index, seconds, rows)
        self.block_latency.add_bucket(index, seconds, wait.blocks)
        if wait.lag is not None:
            self.lag.add_bucket(slot, wait.lag_bucket, wait.lag, rows)

    def _judge(self, wait: Wait) -> None:
        if self.latency_goal is not None and wait.seconds > self.latency_goal:
            self.missed_blocks += wait.blocks
            self.missed_rows += wait.rows

    def faults(self) -> Iterator[str]:
        """The ways in which its rows do not add up."""
        counts = (self.rows_in, self.added, self.rows_out, self.late, self.rejected, self.filtered)
        if min(counts) < 0:
            passed = "out" if self.window is None else "summarised"
            rows = self.rows_out if self.window is None else self.summarised
            yield (
                f"query {self.name}: {self.rows_in} rows in + {self.added} added, but "
                f"{rows} {passed} + {self.late} late + {self.rejected} rejected"
            )

    @property
    def live(self) -> bool:
        """Whether it still waits for blocks."""
        return self.state == "running"

    def end(self, state: Literal["failed", "dropped"], reason: str) -> None:
        """The query no longer waits for anything; only its first end counts."""
        if self.live:
            self.state, self.reason = state, reason
            for ledger in self.members.values():
                ledger.leave()


@dataclass(slots=True, eq=False)
class QueueMeasures:
    """A queue: what waits before a stage of a path."""

    name: str
    entries: int = 0
    """Blocks, or intermediate rows that jobs have left."""
    bytes: int = 0
    hot: int = 0
    """Bytes of it in executor memory; the others are cold, and have to be read again."""
    peak: int = 0
    """The most bytes that waited."""

    @property
    def cold(self) -> int:
        """The bytes that are not in executor memory."""
        return self.bytes - self.hot


@dataclass(slots=True, eq=False)
class RunMeasures:
    """The run as a whole."""

    state: Literal["starting", "running"] | Outcome = "starting"
    reason: str = ""
    begun: float | None = None
    """The time of the first event, which comes before Spark is started."""
    started: float = 0.0
    now: float = 0.0
    """The time of the latest event."""
    step: str = ""
    """What the engine is doing before it can answer; empty once it can."""
    first_answer: float | None = None
    """When rows were first delivered."""
    policies: dict[str, str] = field(default_factory=dict)
    """By family, the policy that decides."""
    cores: int = 0
    checkpoint: str = ""
    decided: int = 0
    """Jobs of all kinds."""
    finished: int = 0
    """Jobs over blocks."""
    refreshes: int = 0
    """Jobs that answered window aggregates."""
    skipped: int = 0
    """Answers that were left out because the machine was late, over all queries."""
    failed: int = 0
    jobs: int = 0
    bytes_out: int = 0
    seconds_running: float = 0.0
    seconds_deciding: float = 0.0
    waiting_bytes: int = 0
    """What waits or is in an active job, by the core's account; a block counts once."""
    waiting_peak: int = 0
    hot_bytes: int = 0
    """Blocks and intermediate rows in executor memory, by the core's account."""
    hot_peak: int = 0
    memory: int = 0
    """The budget: bytes that may be hot."""
    driver_peak: int = 0
    jvm_peak: int = 0
    synopses: int = 0
    """Bytes of the panes of window aggregates in the driver."""
    synopses_peak: int = 0
    spool_full: float | None = None
    """Since when the streams have been waiting for room in the spool."""
    spool_waited: float = 0.0
    """Seconds for which they waited before that."""

    def fill_spool(self, at: float) -> bool:
        """The streams wait from now on; return False if they were waiting already."""
        self.spool_full = at
        return not self.spool_waited

    @property
    def waited(self) -> float:
        """Seconds for which the streams have waited for room in the spool."""
        since = self.now if self.spool_full is None else self.spool_full
        return self.spool_waited + self.now - since

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return max(0.0, self.now - self.started)

    @property
    def seconds_open(self) -> float:
        """How long the run has taken, including the start of Spark."""
        return 0.0 if self.begun is None else max(0.0, self.now - self.begun)

    @property
    def seconds_to_answer(self) -> float | None:
        """From the first event to the first answer."""
        if self.first_answer is None or self.begun is None:
            return None
        return max(0.0, self.first_answer - self.begun)

    def deliver(self, at: float) -> None:
        """Rows were delivered."""
        if self.first_answer is None:
            self.first_answer = at
