"""What the core holds, and what may be asked of it; the verbs are in `core.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field

from penstock.engine.aggregates.pane_backfill import PaneBackfill
from penstock.engine.aggregates.refresher import Refresher
from penstock.engine.aggregates.windows import WindowAggregates
from penstock.engine.blocks import Blocks
from penstock.engine.instructions import Instruction
from penstock.engine.latency_goals import LatencyGoals
from penstock.engine.lifetimes import Lifetimes
from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.batching import Batching
from penstock.engine.paths.preemption import Preemption
from penstock.engine.paths.queue_entries import QueueEntry
from penstock.engine.paths.scheduler import Scheduler
from penstock.engine.paths.stage_costs import StageCosts
from penstock.engine.paths.stage_queues import StageQueues
from penstock.engine.queue_memory import Place
from penstock.engine.rejections import Rejections
from penstock.engine.retries import Retries
from penstock.engine.settings import Settings
from penstock.engine.spool_limit import SpoolLimit
from penstock.engine.timeouts import Timeouts
from penstock.plan import Member, Path, Plan
from penstock.policies import operators, refresh
from penstock.policies.operators import Policy, Queue, Segment


@dataclass(slots=True)
class State:
    """The queues, what is under way, and what is known of queries and streams."""

    policies: InitVar[Mapping[str, object]]
    """By family the policy that decides; where there is none, the default."""
    settings: Settings = Settings()
    plan: Plan = field(default_factory=lambda: Plan((), ()))
    figures: StageCosts = field(default_factory=StageCosts)
    policy: Policy = field(init=False)
    """Which segment runs next."""
    _scheduler: Scheduler = field(init=False)
    _overtaking: Preemption = field(init=False)
    _waiting: StageQueues = field(init=False)
    _windows: WindowAggregates = field(init=False)
    _refilling: PaneBackfill = field(init=False)
    _paths: dict[str, Path] = field(default_factory=dict)
    _active: dict[str, dict[Member, None]] = field(default_factory=dict)
    _gathering: Batching = field(default_factory=Batching)
    _running: dict[int, ActiveJob] = field(default_factory=dict)
    _goals: LatencyGoals = field(default_factory=LatencyGoals)
    _cuts: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    _lifetimes: Lifetimes = field(default_factory=Lifetimes)
    _timeouts: Timeouts = field(default_factory=Timeouts)
    _retries: Retries = field(init=False)
    _room_in_spool: SpoolLimit = field(default_factory=SpoolLimit)
    _broken: dict[str, str] = field(default_factory=dict)
    """Streams that cannot be read any more, and why."""
    _ending: dict[str, str] = field(default_factory=dict)
    """Queries that stop when they have had what waits for them, and why."""
    _rejections: Rejections = field(default_factory=Rejections)
    _open: dict[str, None] = field(default_factory=dict)
    _pending: list[Instruction] = field(default_factory=list)
    _jobs: int = 0
    """The highest number given to a job so far."""
    _ahead: float = 0.0
    """Seconds that runs have had more than refreshes, since the latest run."""
    _failures: dict[str, str] = field(default_factory=dict)
    _finished: bool = False

    def __post_init__(self, policies: Mapping[str, object]) -> None:
        """Nothing is planned yet."""
        self.policy = operators.FAMILY.among(policies)
        self._waiting = StageQueues(Blocks(self.settings.retention))
        self._refilling = PaneBackfill(self._waiting, self._running)
        self._timeouts = Timeouts(self.settings.timeout)
        self._retries = Retries(self._timeouts)
        self._room_in_spool = SpoolLimit(self.settings.spool)
        self._schedule()
        refreshing = refresh.FAMILY.among(policies)
        self._windows = WindowAggregates(Refresher(refreshing, self.settings.until_drained))

    def _schedule(self) -> None:
        self._scheduler = Scheduler(self.policy, (), self._look)
        self._overtaking = Preemption(self._scheduler, self.figures)

    def _look(self, number: int) -> Queue:
        """What waits before a stage, behind what is under way there."""
        segment, place = self._scheduler.segments[number], self._waiting.places[number]
        begun, done = [], 0.0
        if running := self._under_way(place):
            begun, done = running.entries, self._done(running)
        waiting = self._waiting.queues[place].entries
        head, length = (begun or waiting)[0], len(begun) + len(waiting)
        blocks: list[tuple[float, float]] = []
        if self.policy.looks_at_blocks:
            blocks += [(entry.arrived, (segment.rest - done) * entry.rows) for entry in begun]
            blocks += [(entry.arrived, segment.rest * entry.rows) for entry in waiting]
        return Queue(segment, length, head.arrived, done, head.rows, tuple(blocks))

    def _under_way(self, place: Place) -> ActiveJob | None:
        """The run that began with this stage and is not through."""
        return next((running for running in self._running.values()
                     if (running.path.id, running.first) == place), None)

    def _done(self, running: ActiveJob) -> float:
        """Seconds per row that a run has spent, going by the part of its work that is done."""
        return running.done * self.figures.cost(running.path.id, running.first, running.last)

    def _is_busy(self, segment: Segment) -> bool:
        """Whether stages of this segment are at work already: one run at a time, in order."""
        return any(running.meets(segment) for running in self._running.values())

    # --- blocks ------------------------------------------------------------------------------

    @property
    def _blocks(self) -> Blocks:
        return self._waiting.blocks

    @property
    def _room(self) -> int:
        """Bytes that are left of the memory budget."""
        return self.settings.memory - self._waiting.held_in_memory

    def _is_too_much(self, path: Path, first: int, last: int, train: list[QueueEntry]) -> bool:
        """Whether what a run is expected to keep has no room in memory."""
        kept = self.figures.kept(path.id, first, last) * sum(entry.bytes for entry in train)
        return kept > self._room

    @property
    def last_job(self) -> int:
        """The highest number given to a job so far."""
        return self._jobs

    @property
    def under_way(self) -> tuple[int, ...]:
        """The runs under way."""
        return tuple(self._running)

    @property
    def refreshing(self) -> tuple[int, ...]:
        """The refreshes under way."""
        return self._windows.under_way

    def is_alive(self, query: str) -> bool:
        """Whether a query takes the blocks that come."""
        return any(member.query == query for members in self._active.values()
                   for member in members)

    def is_known(self, query: str) -> bool:
        """Whether the plan has a query."""
        return any(known.name == query for known in self.plan.queries)

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""
        return self._blocks.newest(stream)

    # --- the end -----------------------------------------------------------------------------

    @property
    def failures(self) -> dict[str, str]:
        """Queries that stopped, and why."""
        return dict(self._failures)

    @property
    def _is_idle(self) -> bool:
        return not self._running and not len(self._waiting) and self._windows.idle
