"""The department of paths: blocks that wait before stages, and the jobs that carry them on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from penstock.engine.instructions import Instruction, Note, SegmentJob
from penstock.engine.latency_goals import LatencyGoals
from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.batching import Batching
from penstock.engine.paths.cuts import PathCuts
from penstock.engine.paths.filter_orders import FilterOrders
from penstock.engine.paths.preemption import Preemption
from penstock.engine.paths.queue_entries import QueueEntry
from penstock.engine.paths.scheduler import Scheduler, Turn
from penstock.engine.paths.small_answers import fit_driver
from penstock.engine.paths.stage_costs import StageCosts, names
from penstock.engine.paths.stage_queues import StageQueues
from penstock.engine.queue_memory import Place
from penstock.engine.rejections import Rejections
from penstock.engine.retries import Retries
from penstock.engine.state import EngineState
from penstock.engine.work import Begun, Ended
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.plan import Member, Path
from penstock.policies.filters import Policy as FiltersPolicy
from penstock.policies.operators import Policy, Queue, Segment

FIRST_ROWS = 10_000
"""Rows of the first train of a path if somebody waits for its answers, or if the best order of its
predicates is to be learnt. Their cost is unknown, and the first job waits for code to be compiled
anyway."""
ORDERED_ROWS = 1_000_000
"""The most rows of a job over a conjunction in Python, except for a single block that has more. Its
order is renewed between jobs, and after a drift all rows of a job meet the old one."""


@dataclass(frozen=True, slots=True)
class PathOffer:
    """The turn that the policy chose."""

    turn: Turn
    preempting: bool
    """Whether it takes cores from active jobs."""


@dataclass(slots=True)
class PathsDepartment:
    """Jobs over blocks: segments of paths, up to a sink, to intermediate rows, or into panes."""

    state: EngineState
    policy: Policy
    orders: FilterOrders
    goals: LatencyGoals
    retries: Retries
    costs: StageCosts = field(default_factory=StageCosts)
    queues: StageQueues = field(init=False)
    scheduler: Scheduler = field(init=False)
    active: dict[int, ActiveJob] = field(default_factory=dict)
    rejections: Rejections = field(default_factory=Rejections)
    _cuts: PathCuts = field(init=False)
    _preemption: Preemption = field(init=False)
    _batching: Batching = field(default_factory=Batching)
    _paths: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin without a plan."""
        self.queues = StageQueues(self.state.blocks)
        self._schedule()
        self._cuts = PathCuts(self.scheduler, self.costs, self.queues)

    def _schedule(self) -> None:
        self.scheduler = Scheduler(self.policy, (), self._look)
        self._preemption = Preemption(self.scheduler, self.costs)

    # --- plan and policy ---------------------------------------------------------------------

    def adopt(self) -> None:
        """Move what waits to the paths that now carry it."""
        self.orders.adopt(self.state.plan)
        plan = self.state.plan = self.orders.plan
        self._paths = {path.id: path for path in plan.paths}
        self.queues.adopt(plan)
        self._batching.adopt(plan)
        self._cuts.make(plan)

    def use(self, policy: Policy, at: float, name: str) -> None:
        """Cut and rank by another policy from now on."""
        self.policy = policy
        self._schedule()
        self._cuts.scheduler = self.scheduler
        self._cuts.make(self.state.plan, at, f"the policy is {name} now")

    def order_by(self, policy: FiltersPolicy) -> None:
        """Order conjunctions by another policy from now on."""
        self.orders.use(policy)

    def _reorder(self, path: str, at: float, reason: str) -> None:
        """A conjunction has another order: its path is cut again."""
        plan = self.state.plan = self.orders.plan
        self._paths[path] = plan.path(path)
        self._cuts.renew(plan, at, {path: reason})

    # --- what is asked of it -----------------------------------------------------------------

    @property
    def slots(self) -> int:
        """Every job takes one slot."""
        return len(self.active)

    @property
    def preempts(self) -> bool:
        """Whether its policy preempts."""
        return self.policy.preemptive

    @property
    def goes_first(self) -> bool:
        """Jobs over blocks take their turn."""
        return False

    @property
    def idle(self) -> bool:
        """Whether nothing waits and no job is active."""
        return not self.active and not len(self.queues)

    @property
    def wake_at(self) -> float | None:
        """When the next queue has batched long enough."""
        return self._batching.next

    def owes(self, query: str) -> bool:
        """Whether a block waits for a query, or is in an active job for it."""
        return self.queues.is_wanted_by(query) or any(
            member.query == query for job in self.active.values() for member in job.members)

    def needed(self) -> Mapping[str, int]:
        """Waiting blocks are counted one by one; no other row is read again."""
        return {}

    def tidy(self, at: float) -> Iterable[Instruction]:
        """Nothing that waits is given up."""
        return ()

    def notes(self) -> Iterable[Instruction]:
        """Intermediate rows that nobody will take up, and paths that were cut again."""
        return [*self.queues.forgotten(), *self.orders.notes(), *self._cuts.notes()]

    # --- events ------------------------------------------------------------------------------

    def take(self, event: ev.Event, job: ActiveJob | None = None) -> None:
        """Blocks arrive, and members that want them join."""
        match event:
            case ev.BlockArrived(block=block):
                self._arrive(block)
            case ev.QueryAdded():
                self._add_query(event)
            case ev.QueryDropped(query=query):
                self.rejections.leave(query)
            case ev.EngineStarted() | ev.StreamEnded() | ev.StreamFailed():
                self.queues.touch_all()  # blocks of an ended stream are not batched
            case ev.JobProgressed(job=number, done=done) if number in self.active:
                self.active[number].done = done
            case ev.BlockHot(stream=stream, number=number):
                self.queues.memory.heat(stream, number)

    def _arrive(self, block: Block) -> None:
        members = self.state.readers.get(block.stream)
        if block.rows and members:
            self.queues.add(block, members)
        self.state.blocks.settle(block)

    def _add_query(self, event: ev.QueryAdded) -> None:
        self.queues.riders.dissolve(event.query)
        for member, stream in event.members:
            for number in event.owed(member):
                block = self.state.blocks.find(stream, number)
                if block and block.rows:
                    self.queues.add(block, (member,))

    def leave(self, query: str, at_once: bool) -> None:
        """A query is no longer concerned by waiting blocks and active jobs."""
        if at_once:
            for job in self.active.values():
                job.left.add(query)
            self.queues.withdraw(query)

    # --- what runs next ----------------------------------------------------------------------

    def offer(self, at: float, preempting: bool) -> PathOffer | None:
        """The policy's choice; it may preempt only if that is worth it."""
        self._wake_queues(at)
        if preempting and self.scheduler.weighs_all:
            self._wake_active()
        turn = self.scheduler.decide(at)
        if turn is None or preempting and (
                self._is_busy(turn.segment)
                or not self._preemption.is_worth(turn, self.active.values())):
            return None
        return PathOffer(turn, preempting)

    def _wake_queues(self, at: float) -> None:
        """Tell the scheduler which queues have changed, or have batched long enough."""
        for place in (*self.queues.changed(), *self._batching.over(at)):
            number = self.queues.numbers[place]
            if not self._is_busy(self.scheduler.segments[number]) and self._is_ready(place, at):
                head = self.queues.queues[place].entries[0]
                self.scheduler.wake(number, head.arrived, 0.0, head.rows, self._fixed(*place))
            else:
                self.scheduler.sleep(number)

    def _wake_active(self) -> None:
        """Let active jobs compete: they may go on. The next decision looks at them again."""
        for job in self.active.values():
            number = self.queues.numbers.get((job.path.id, job.first))
            if number is not None:
                head = job.entries[0]
                fixed = (1 - job.done) * self._fixed(job.path.id, job.first)
                self.scheduler.wake(number, head.arrived, self._done(job), head.rows, fixed)
                self.queues.touch(job.path.id)

    def _is_busy(self, segment: Segment) -> bool:
        """Whether a job already works on stages of this segment: one job at a time, in order."""
        return any(job.meets(segment) for job in self.active.values())

    def _is_ready(self, place: Place, at: float) -> bool:
        """Whether a queue's head may run now, or has to wait for more blocks to be batched."""
        self._batching.end(place)
        queue = self.queues.queues[place]
        if not queue:
            return False
        path = self._paths[place[0]]
        due = queue.entries[0].arrived + self._batching.seconds(path, self.state.settings)
        closing = path.reads not in self.state.open
        if place[1] > 0 or due <= at or closing or queue.is_full():
            return True
        self._batching.wait(place, due)
        return False

    def _look(self, number: int) -> Queue:
        """What waits before a stage, behind the job that is active there."""
        segment, place = self.scheduler.segments[number], self.queues.places[number]
        begun: list[QueueEntry] = []
        done, fixed = 0.0, self._fixed(*place)
        for job in self.active.values():
            if (job.path.id, job.first) == place:
                begun, done, fixed = job.entries, self._done(job), (1 - job.done) * fixed
                break
        waiting = self.queues.queues[place].entries
        head, length = (begun or waiting)[0], len(begun) + len(waiting)
        blocks: list[tuple[float, float]] = []
        if self.policy.looks_at_blocks:
            blocks += [(entry.arrived, (segment.rest - done) * entry.rows) for entry in begun]
            blocks += [(entry.arrived, segment.rest * entry.rows) for entry in waiting]
            blocks[0] = blocks[0][0], blocks[0][1] + fixed  # they ride in one job
        return Queue(segment, length, head.arrived, done, head.rows, tuple(blocks))

    def _fixed(self, path: str, first: int) -> float:
        """The fixed seconds that any rows need to the output, if the policy weighs them."""
        return self.costs.model(path, first).fixed if self.scheduler.weighs_all else 0.0

    def _done(self, job: ActiveJob) -> float:
        """Seconds per row that a job has spent, by the part of its work that is done."""
        return job.done * self.costs.cost(job.path.id, job.first, job.last)

    # --- jobs begin --------------------------------------------------------------------------

    def begin(self, at: float, job: int, offer: PathOffer) -> Begun:
        """Take the train of the chosen queue, and order the job."""
        turn, segment = offer.turn, offer.turn.segment
        if self._is_busy(segment):
            segment = self.scheduler.segments[turn.place]
        place = self.queues.places[segment.place]
        path, waiting = self._paths[place[0]], len(self.queues)
        train, retried = self._train(turn, segment, path, place)
        evaluation = self.orders.evaluation(
            path.id, train[0].met, sum(b.rows for entry in train for b in entry.blocks), job)
        if train[0].met:
            path = self.orders.path(path.id, evaluation.order)
        last = segment.first + len(segment.operators)
        expected = self.costs.expected(sum(entry.rows for entry in train), *place, last)
        fixed = self.costs.model(*place, last).fixed
        yields = self._preemption.may_be(segment, expected, self.state.settings.quantum)
        planning = fixed if self.state.settings.overlap else inf
        active = ActiveJob(path, segment, train, retried, evaluation, at, offer.preempting, yields,
                           expected, planning)
        self.active[job] = active
        self.queues.touch(path.id)
        riders, formed = self.queues.riders.group(path.id, active.members)
        notes = [] if not formed else [Note(event=ev.RidersFormed(
            at=at, riders=riders, path=path.id, stages=tuple(names(path)),
            members=tuple(str(member) for member in active.members)))]
        reason = turn.reason + (", preempting" if offer.preempting else "")
        decided = ev.JobDecided(at=at, job=job, kind=_kind(active), reason=reason,
                                waiting=waiting, work=_work(active, riders))
        order = self._order(at, job, active, riders, fixed, waiting)
        return Begun(instructions=[*notes, Note(event=decided), order], riders=active.members,
                     expected=expected, fixed=fixed)

    def _train(
        self, turn: Turn, segment: Segment, path: Path, place: Place
    ) -> tuple[list[QueueEntry], bool]:
        """The entries that ride in the job, and whether they have failed before."""
        settings, seconds = self.state.settings, self._lasting(turn, path)
        most = self.costs.rows_within(
            seconds, *place, segment.first + len(segment.operators),
            self.scheduler.onward(segment))
        longest = settings.longest(path.end == "panes")
        hurried = seconds < inf and not settings.only_the_end_counts
        learning = hurried or path.movable > 1
        if path.movable > 1:
            longest = min(longest, ORDERED_ROWS)
        if learning and not self.costs.has_run(*place):
            longest = min(longest, FIRST_ROWS)
        return self.queues.take(place, min(most, longest), turn.most_blocks, self._sees(path))

    def _sees(self, path: Path) -> Callable[[Block], object] | None:
        """What tells which versions of relations a block is joined with, if there are several."""
        history = self.state.relations.history
        names = [lookup.relation for lookup in path.lookups
                 if len(history.versions.get(lookup.relation, ())) > 1]
        if not names:
            return None
        return lambda block: [history.seen(name, block.stream, block.number) for name in names]

    def _lasting(self, turn: Turn, path: Path) -> float:
        """Seconds that a job should take.

        The settings say it, unless the policy does. A policy that is asked after every block also
        says when it wants to be asked again, and the job should not take longer.
        """
        if turn.lasting is not None:
            return turn.lasting
        usual = self.state.settings.lasting(path.end == "panes")
        return usual if turn.limit == inf else min(usual, turn.quantum)

    def _order(
        self, at: float, number: int, job: ActiveJob, riders: int, fixed: float, waiting: int
    ) -> SegmentJob:
        """The instruction for the host."""
        settings, blocks = self.state.settings, job.blocks
        idle = (waiting == len(job.entries) and len(self.active) == 1
                and at - job.entries[0].arrived <= settings.quantum)
        return SegmentJob(
            number=number, kind=_kind(job), segment=job.segment.id, path=job.path.id,
            riders=riders, members=job.members, blocks=blocks,
            keep=self.state.blocks.worth_keeping(blocks, self.room, settings.keep_from)
            if job.first == 0 else (),
            first=job.first, last=job.last, final=job.is_final,
            parts=tuple(entry.job for entry in job.entries if entry.job),
            on_disk=self._is_too_much(job), urgent=job.urgent, yields=job.yields,
            again=job.is_backfill, expected=job.expected, fixed=fixed,
            in_driver=fit_driver(job, self.costs, self.state.plan),
            sample=self.costs.to_sample(job.path, at, settings.measure_every, idle)
            if job.first == 0 else (),
            evaluation=job.evaluation)

    @property
    def room(self) -> int:
        """Bytes that are left in the memory budget."""
        return self.state.settings.memory - self.queues.held_in_memory

    def _is_too_much(self, job: ActiveJob) -> bool:
        """Whether memory lacks room for the intermediate rows that a job is expected to leave."""
        kept = self.costs.kept(job.path.id, job.first, job.last)
        return kept * sum(entry.bytes for entry in job.entries) > self.room

    # --- jobs end ----------------------------------------------------------------------------

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        """Its blocks are done, wait before the next stage, or wait again."""
        job = self.active.pop(event.job)
        self.queues.touch(job.path.id)  # other jobs may begin at its stages
        if isinstance(event, ev.JobFailed):
            return self._fail(event, job)
        result = event.result
        assert isinstance(result, ev.SegmentResult | ev.PanesResult)
        if isinstance(result, ev.SegmentResult) and result.kept is not None:
            self._keep(event, result, result.kept, job)
            return Ended(stops=event.failed, job=job)
        self._measure(event, result, job, sum(event.rows_out.values()))
        for entry in job.entries:
            self.queues.let_go(entry)
            self.queues.riders.clear(entry.members)
        delivers = isinstance(result, ev.SegmentResult)
        return Ended(
            stops=event.failed, rejecting=list(self.rejections.take(
                event, result, job.path.operators[job.first:],
                sum(len(entry.blocks) for entry in job.entries), job.rows)),
            oldest=job.oldest, deliveries=self.goals.promised(job) if delivers else (), job=job)

    def _keep(
        self, event: ev.JobFinished, result: ev.SegmentResult, kept: ev.KeptRows, job: ActiveJob
    ) -> None:
        """The rows of a job wait before the next stage."""
        self._measure(event, result, job, kept.rows)
        head = job.entries[0]
        rest = QueueEntry(job.blocks, head.members, head.lane, event.job, kept, job.met)
        self.queues.keep(job.entries, rest, (job.path.id, job.last), job.staying)
        if job.stale:
            self.queues.begin_anew(job.path.id)

    def _measure(
        self, event: ev.JobFinished, result: ev.SegmentResult | ev.PanesResult, job: ActiveJob,
        rows_out: float,
    ) -> None:
        """Record what a job says about its stages; costs that differ lead to new cuts and ranks."""
        job.end_beside(self.active.values(), event.at)
        kept = event.kept.bytes if event.kept else 0
        figures = ev.StageFigures(
            rows_in=job.rows, rows_out=rows_out, seconds=job.own(event.seconds),
            bytes_in=sum(entry.bytes for entry in job.entries) if kept else 0, bytes_out=kept)
        self.costs.record(event.at, job.path, job.first, job.last, figures, result.measured,
                          result.sampling)
        if changed := self.costs.changed(self.state.plan, job.path.id):
            self._cuts.renew(self.state.plan, event.at, changed)
        if reason := self.orders.take(
                job.path.id, result.profile, event.at, event.seconds):
            self._reorder(job.path.id, event.at, reason)

    def _fail(self, event: ev.JobFailed, job: ActiveJob) -> Ended:
        """Let the blocks of a job wait again, for all members or for two halves of them."""
        members = job.staying
        judged = self.retries.judge(event, members, self._unit, job.retried)
        if judged.first:
            self.queues.riders.set_apart(members, lambda m: self._unit(m) in judged.first)
        again = tuple(m for m in members if m.query not in judged.stops)
        for entry in job.entries:
            self.queues.put_back((job.path.id, job.first), entry, again, retry=True)
        return Ended(stops=judged.stops, job=job)

    def _unit(self, member: Member) -> str:
        """The unit that fails together: a query, or window aggregates that share panes."""
        group = self.state.plan.group_of(member.query)
        return group.id if group else member.query


def _kind(job: ActiveJob) -> Literal["segment", "panes"]:
    return "panes" if job.is_final and job.path.end == "panes" else "segment"


def _work(job: ActiveJob, riders: int) -> ev.PathWork:
    """A job as the record describes it."""
    return ev.PathWork(
        segment=job.segment.id, riders=riders, stream=job.path.reads,
        blocks=tuple(block.number for block in job.blocks),
        rows=sum(block.rows for block in job.blocks), stages=(job.first, job.last),
        urgent=job.urgent, again=job.is_backfill, entering=job.rows if job.first else None)
