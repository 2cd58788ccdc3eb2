"""The engine core: it holds the queues, asks the policy, and says what the host does next."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from penstock.engine.blocks import Blocks
from penstock.engine.figures import Figures, names
from penstock.engine.instructions import Finish, Forget, Instruction, Note, Run, Wake
from penstock.engine.queues import Entry, StageQueue, extent
from penstock.engine.riders import Riders
from penstock.engine.running import Running
from penstock.engine.scheduler import Scheduler
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.plan import Member, Path, Plan
from penstock.policies.operators import Policy, Queue, Segment
from penstock.policies.operators.routes import remainders

OVERTAKING = 2.0
"""A block overtakes if it ranks so many times better: two jobs at once cost more than one after
the other, and only one can overtake at a time."""
Place = tuple[str, int]
"""Before a stage of a path."""


@dataclass(slots=True)
class Core:
    """Takes events, returns instructions; the same object serves every host.

    The host adopts a plan (again whenever queries come or go), reports every event through
    `handle`, and carries out the instructions in order.
    """

    policy: Policy
    settings: Settings = Settings()
    plan: Plan = field(default_factory=lambda: Plan((), ()))
    figures: Figures = field(default_factory=Figures)
    _scheduler: Scheduler = field(init=False)
    _blocks: Blocks = field(init=False)
    _paths: dict[str, Path] = field(default_factory=dict)
    _places: list[Place] = field(default_factory=list)
    _home: dict[Member, str] = field(default_factory=dict)
    _rank: dict[Member, int] = field(default_factory=dict)
    _active: dict[str, dict[Member, None]] = field(default_factory=dict)
    _queues: dict[Place, StageQueue] = field(default_factory=dict)
    _earlier: list[Block] = field(default_factory=list)
    _running: dict[int, Running] = field(default_factory=dict)
    _kept: dict[int, int] = field(default_factory=dict)
    """Bytes in memory of what runs have kept, until it is taken up."""
    _cuts: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    _riders: Riders = field(default_factory=Riders)
    _retry: set[tuple[Place, int, int]] = field(default_factory=set)
    _ends: list[tuple[float, str]] = field(default_factory=list)
    _open: dict[str, None] = field(default_factory=dict)
    _pending: list[Instruction] = field(default_factory=list)
    _accounted: tuple[int, int, int] = (0, 0, 0)
    _runs: int = 0
    _failures: dict[str, str] = field(default_factory=dict)
    _finished: bool = False

    def __post_init__(self) -> None:
        """Nothing is planned yet."""
        self._blocks = Blocks(self.settings.retention)
        self._scheduler = Scheduler(self.policy, (), self._look)

    # --- the verbs ---------------------------------------------------------------------------

    def adopt(self, plan: Plan, first_run: int | None = None) -> None:
        """Work by this plan from now on; what waits moves to the paths that now carry it."""
        waiting = [(place, entry) for place, queue in self._queues.items()
                   for entry in queue.entries]
        self.plan = plan
        self._paths = {path.id: path for path in plan.paths}
        members = [(member, path.id) for path in plan.paths for member in path.members]
        self._home = dict(members)
        self._rank = {member: rank for rank, (member, _) in enumerate(members)}
        self._places = [(path.id, k) for path in plan.paths for k in range(len(path.stages))]
        self._queues = {place: StageQueue() for place in self._places}
        for place, entry in waiting:
            self._put_back(place, entry, entry.members)
        self._prepare()
        if first_run is not None:
            self._runs = first_run

    def use(self, policy: Policy, at: float, name: str) -> None:
        """Decide by another policy from now on; what waits goes on from where it is."""
        self.policy = policy
        self._scheduler = Scheduler(policy, (), self._look)
        self._pending.append(Note(ev.PolicyChanged(at, name)))
        self._prepare(at, f"the policy is {name} now")

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Take an event in; say what is to be done."""
        out: list[Instruction] = []
        self._take(event, out)
        self._end_lifetimes(event.at, out)
        if not isinstance(event, ev.QueryAdded):  # others may join with it and share its runs
            self._dispatch(event.at, out)
        out.extend(self._blocks.release(event.at))
        out.extend(self._pending)
        self._pending.clear()
        self._account(event.at, out)
        self._finish(out)
        return out

    # --- what the policy is told -------------------------------------------------------------

    def _prepare(self, at: float = 0.0, reason: str = "") -> None:
        """Have the paths cut and ranked by what is known of them; a new cut is noted."""
        routes = self.figures.tell(self.plan)
        cuts: dict[str, list[Segment]] = {route.id: [] for route in routes}
        for cut in self.policy.prepare(routes):
            cuts[cut.path].append(cut)
        self._scheduler.adopt([remainder for route in routes
                               for remainder in remainders(route, cuts[route.id])])
        for id, segments in cuts.items():
            made = tuple(segment.operators for segment in segments)
            before = self._cuts.get(id)
            self._cuts[id] = made
            if before not in (made, None):
                self._pending.append(Note(ev.PathCut(at, id, made, reason)))

    def _look(self, number: int) -> Queue:
        """What waits before a stage, behind what is under way there."""
        segment, place = self._scheduler.segments[number], self._places[number]
        begun, done = [], 0.0
        if running := self._under_way(place):
            begun = running.entries
            done = running.done * self.figures.cost(place[0], running.first, running.last)
        waiting = self._queues[place].entries
        head = (begun or waiting)[0]
        blocks = [(entry.arrived, (segment.rest - done) * entry.rows) for entry in begun]
        blocks += [(entry.arrived, segment.rest * entry.rows) for entry in waiting]
        return Queue(segment, len(blocks), head.arrived, done, head.rows, tuple(blocks))

    def _under_way(self, place: Place) -> Running | None:
        """The run that began with this stage and is not through."""
        return next((running for running in self._running.values()
                     if (running.path.id, running.first) == place), None)

    # --- events ------------------------------------------------------------------------------

    def _take(self, event: ev.Event, out: list[Instruction]) -> None:
        match event:
            case ev.RunStarted(streams=streams):
                self._open = dict.fromkeys(streams)
            case ev.BlockHeld(block=block):
                self._blocks.hold(block)
                self._earlier.append(block)
            case ev.BlockArrived(block=block):
                self._blocks.hold(block)
                self._arrive(block)
            case ev.QueryAdded():
                self._add_query(event)
            case ev.QueryDropped(query=query):
                self._remove_query(query)
            case ev.QueryFailed(query=query, reason=reason):
                self._failures[query] = reason
                self._remove_query(query)
            case ev.StreamEnded(stream=stream):
                self._open.pop(stream, None)
            case ev.StreamFailed(stream=stream, reason=reason):
                self._open.pop(stream, None)
                self._fail_readers(event.at, stream, reason, out)
            case ev.RunFinished():
                self._finish_run(event, out)
            case ev.RunKept():
                self._keep(event, out)
            case ev.RunProgressed(run=run, done=done) if run in self._running:
                self._running[run].done = done
            case ev.RunFailed(run=run, reason=reason):
                self._fail_run(event.at, run, reason, out)
            case ev.BlockHot(stream=stream, number=number):
                self._blocks.warm(stream, number)
            case ev.Tick():
                self._age_earlier()

    def _age_earlier(self) -> None:
        """Let blocks of an earlier run go that nobody wants: by now all queries have joined."""
        for block in self._earlier:
            if self._blocks.find(block.stream, block.number):
                self._blocks.settle(block)
        self._earlier.clear()

    def _arrive(self, block: Block) -> None:
        members = self._active.get(block.stream)
        if block.rows and members:
            self._enqueue(block, members)
        self._blocks.settle(block)

    def _add_query(self, event: ev.QueryAdded) -> None:
        query = self.plan.query(event.query)
        self._failures.pop(event.query, None)
        self._riders.dissolve(query.name)
        for number, branch in enumerate(query.branches):
            member = Member(query.name, number)
            self._active.setdefault(branch.stream, {})[member] = None
            for block_number in (block for owed, block in event.backlog if owed == number):
                block = self._blocks.find(branch.stream, block_number)
                if block and block.rows:
                    self._enqueue(block, (member,))
        if query.lifetime is not None:
            joined = event.at if event.joined is None else event.joined
            heapq.heappush(self._ends, (joined + query.lifetime, query.name))

    def _remove_query(self, name: str, waiting_too: bool = True) -> None:
        for members in self._active.values():
            for member in [m for m in members if m.query == name]:
                del members[member]
        if waiting_too:
            for running in self._running.values():
                running.left.add(name)
            for queue in self._queues.values():
                self._withdraw(queue, name)

    def _withdraw(self, queue: StageQueue, name: str) -> None:
        """Take a query's members out of what waits."""
        kept: list[Entry] = []
        for entry in queue.entries:
            members = tuple(m for m in entry.members if m.query != name)
            if members:
                same = len(members) == len(entry.members)
                kept.append(entry if same else replace(entry, members=members))
            else:
                self._let_go(entry)
                self._forget(entry)
        queue.entries = kept

    def _fail_readers(
        self, at: float, stream: str, reason: str, out: list[Instruction]
    ) -> None:
        for member in list(self._active.get(stream, ())):
            self._fail_query(at, member.query, f"stream {stream} failed: {reason}", out)

    def _fail_query(self, at: float, query: str, reason: str, out: list[Instruction]) -> None:
        if query in self._failures:
            return
        self._failures[query] = reason
        self._remove_query(query)
        out.append(Note(ev.QueryFailed(at, query, reason)))

    def _end_lifetimes(self, at: float, out: list[Instruction]) -> None:
        """A query whose time is over takes no new block, but what waits for it is delivered."""
        while self._ends and self._ends[0][0] <= at:
            _, name = heapq.heappop(self._ends)
            self._remove_query(name, waiting_too=False)
            out.append(Note(ev.QueryDropped(at, name, "its lifetime is over")))
        if self._ends:
            out.append(Wake(self._ends[0][0]))

    # --- runs --------------------------------------------------------------------------------

    def _finish_run(self, event: ev.RunFinished, out: list[Instruction]) -> None:
        running = self._running.pop(event.run)
        self._measure(event, running, sum(event.rows_out.values()))
        for entry in running.entries:
            self._let_go(entry)
            self._kept.pop(entry.run, None)
            self._riders.clear(entry.members)
        for query, reason in event.failed.items():
            self._fail_query(event.at, query, reason, out)

    def _keep(self, event: ev.RunKept, out: list[Instruction]) -> None:
        """The rows of a run wait before the next stage."""
        running = self._running.pop(event.run)
        self._measure(event, running, event.rows)
        for entry in running.entries:
            self._kept.pop(entry.run, None)
        if not event.on_disk:
            self._kept[event.run] = event.bytes
        head = running.entries[0]
        blocks = tuple(block for entry in running.entries for block in entry.blocks)
        entry = Entry(blocks, head.members, head.lane, event.run, (event.rows, event.bytes))
        if head.members[0].query in running.left:
            self._let_go(entry)
            self._forget(entry)
        else:
            place = (running.path.id, running.last)
            self._queues[place].add(entry, self._rank.__getitem__)
        out.extend(self._blocks.cool(self._hot_bytes - self.settings.memory))

    def _measure(
        self, event: ev.RunFinished | ev.RunKept, running: Running, rows_out: float
    ) -> None:
        """Record what a run tells of its stages; figures that differ are new cuts and ranks."""
        kept = event.bytes if isinstance(event, ev.RunKept) else 0
        entered = sum(entry.bytes for entry in running.entries) if kept else 0
        run = (running.rows, rows_out, event.seconds, entered, kept)
        self.figures.record(
            event.at, running.path, running.first, running.last, run, event.measured,
            event.sampling)
        if changed := self.figures.changed(self.plan):
            self._prepare(event.at, changed)

    def _fail_run(self, at: float, run: int, reason: str, out: list[Instruction]) -> None:
        """Try once more; then halve the members until the one that fails stands alone."""
        running = self._running.pop(run)
        members = tuple(m for m in running.entries[0].members if m.query not in running.left)
        lone = len({member.query for member in members}) == 1
        if running.retried and lone:
            self._fail_query(at, members[0].query, reason, out)
        elif running.retried:
            self._riders.set_apart(members)
        for entry in running.entries:
            still = tuple(m for m in entry.members
                          if m.query not in running.left and m.query not in self._failures)
            self._put_back((running.path.id, running.first), entry, still, retry=True)

    def _put_back(
        self, place: Place, entry: Entry, members: tuple[Member, ...], retry: bool = False
    ) -> None:
        """Let what waited, or was under way, wait again; what nobody wants is let go."""
        if entry.run and members and place in self._queues:
            self._queues[place].add(entry, self._rank.__getitem__)
            if retry:
                self._retry.add((place, *entry.order))
            return
        for block in entry.blocks:
            if not entry.run:
                self._enqueue(block, members, retry)
        self._let_go(entry)
        self._forget(entry)

    def _dispatch(self, at: float, out: list[Instruction]) -> None:
        """Fill the free slots with what the policy chooses; let what is better overtake."""
        while len(self._running) < self.settings.slots + self.policy.preemptive:
            urgent = len(self._running) >= self.settings.slots
            for number, place in enumerate(self._places):
                segment = self._scheduler.segments[number]
                if self.policy.sees_all and urgent and (running := self._under_way(place)):
                    self._scheduler.wake(number, running.entries[0].arrived)  # it may go on
                elif not self._is_busy(segment) and self._ready(place, at, out):
                    self._scheduler.wake(number, self._queues[place].entries[0].arrived)
                else:
                    self._scheduler.sleep(number)
            number = self._scheduler.decide(at)
            if number < 0 or (urgent and not self._overtakes(number)):
                return
            self._start(at, number, out, urgent)

    def _is_busy(self, segment: Segment) -> bool:
        """Whether stages of this segment are at work already: one run at a time, in order."""
        return any(running.meets(segment) for running in self._running.values())

    def _overtakes(self, number: int) -> bool:
        """Whether the choice is much better than all that is under way, or due on another path."""
        if not self.settings.slots or self._is_busy(self._scheduler.carried(number)):
            return False
        return self._scheduler.run.whole or self._scheduler.last < OVERTAKING * min(
            self._rank_of(running) for running in self._running.values())

    def _rank_of(self, running: Running) -> float:
        """The rank of a run by the work that is left of it."""
        whole = self.figures.cost(running.path.id, running.first, running.last)
        return self.policy.rank(running.segment, running.done * whole, self._scheduler.last)

    def _ready(self, place: Place, at: float, out: list[Instruction]) -> bool:
        """Whether a queue's head may run now, or shall wait for more blocks to ride with it."""
        queue = self._queues[place]
        if not queue:
            return False
        path = self._paths[place[0]]
        due = queue.entries[0].arrived + self._gathering(path)
        closing = path.stream not in self._open
        if place[1] > 0 or due <= at or closing or queue.is_worth_a_job():
            return True
        out.append(Wake(due))
        return False

    def _gathering(self, path: Path) -> float:
        """Seconds a path's blocks may gather: folders of their own are costly to write often."""
        queries = [self.plan.query(member.query) for member in path.members]
        if not all(query.name in self.plan.alone for query in queries):
            return self.settings.gather
        hold = self.settings.hold * min(query.latency or 0.0 for query in queries)
        return max(hold, self.settings.gather)

    def _start(self, at: float, number: int, out: list[Instruction], urgent: bool) -> None:
        segment = self._scheduler.carried(number)
        if self._is_busy(segment):
            segment = self._scheduler.segments[number]
        place = self._places[segment.place]
        path = self._paths[place[0]]
        queue = self._queues[place]
        waiting = sum(len(queue) for queue in self._queues.values())
        retried = (place, *queue.entries[0].order) in self._retry
        most = self.figures.rows_within(self.settings.quantum, *place)
        train = queue.entries[:1] if retried else queue.train(most)
        queue.remove(train)
        for entry in train:
            self._retry.discard((place, *entry.order))
        self._runs += 1
        first, last = place[1], place[1] + len(segment.operators)
        self._running[self._runs] = Running(path, segment, train, retried)
        members = train[0].members
        group, formed = self._riders.group(path.id, members)
        if formed:
            riders = tuple(str(member) for member in members)
            out.append(Note(ev.GroupFormed(at, group, path.id, riders, tuple(names(path)))))
        blocks = tuple(block for entry in train for block in entry.blocks)
        reason = self._scheduler.run.reason + (", overtaking" if urgent else "")
        out.append(Note(ev.Decided(
            at, self._runs, segment.id, group, path.stream,
            tuple(block.number for block in blocks), sum(block.rows for block in blocks), reason,
            waiting, stages=(first, last), urgent=urgent,
            entering=sum(entry.rows for entry in train) if first else None)))
        out.append(Run(
            self._runs, segment.id, path.id, group, members, blocks,
            self._worth_keeping(blocks) if first == 0 else (), first, last,
            final=last == len(path.stages),
            parts=tuple(entry.run for entry in train if entry.run),
            on_disk=self._hot_bytes > self.settings.memory, urgent=urgent,
            yields=self.policy.preemptive,
            expected=self.figures.expected(sum(entry.rows for entry in train), *place),
            measure=first == 0 and self.figures.is_due(path, at, self.settings.measure_every)))

    def _account(self, at: float, out: list[Instruction]) -> None:
        """Note what waits or is under way, if it has changed."""
        entries = [entry for queue in self._queues.values() for entry in queue.entries]
        entries += [entry for run in self._running.values() for entry in run.entries]
        account = (*extent(entries), self._hot_bytes)
        if account != self._accounted:
            self._accounted = account
            out.append(Note(ev.Queued(at, *account)))

    # --- blocks ------------------------------------------------------------------------------

    def _enqueue(self, block: Block, members: Iterable[Member], retry: bool = False) -> None:
        """Put a block before the paths of these members."""
        shares: dict[tuple[str, int], list[Member]] = {}
        for member in members:
            if member in self._home:
                lane = self._riders.lane(member)
                shares.setdefault((self._home[member], lane), []).append(member)
        for (path, lane), riders in shares.items():
            entry = Entry((block,), tuple(sorted(riders, key=self._rank.__getitem__)), lane)
            if self._queues[path, 0].add(entry, self._rank.__getitem__):
                self._blocks.take(block)
            if retry:
                self._retry.add(((path, 0), *entry.order))

    def _let_go(self, entry: Entry) -> None:
        for block in entry.blocks:
            self._blocks.let_go(block)

    def _forget(self, entry: Entry) -> None:
        if entry.run:
            self._kept.pop(entry.run, None)
            self._pending.append(Forget(entry.run))

    @property
    def _hot_bytes(self) -> int:
        return self._blocks.hot_bytes + sum(self._kept.values())

    def _worth_keeping(self, blocks: tuple[Block, ...]) -> tuple[int, ...]:
        room, keep = self.settings.memory - self._hot_bytes, []
        for block in blocks:
            if self._blocks.worth_keeping(block, room):
                keep.append(block.number)
                room -= block.bytes
        return tuple(keep)

    @property
    def last_run(self) -> int:
        """The highest number given to a run so far."""
        return self._runs

    @property
    def under_way(self) -> tuple[int, ...]:
        """The runs under way."""
        return tuple(self._running)

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""
        return self._blocks.newest(stream)

    # --- the end -----------------------------------------------------------------------------

    @property
    def failures(self) -> dict[str, str]:
        """Queries that stopped, and why."""
        return dict(self._failures)

    def _finish(self, out: list[Instruction]) -> None:
        if self._finished or self._running or any(len(q) for q in self._queues.values()):
            return
        alive = any(self._active.values())
        if self._failures and not alive:
            reason = "; ".join(f"{query}: {why}" for query, why in self._failures.items())
            self._finished = True
            out.append(Finish("failed", f"no query is left ({reason})"))
        elif self.settings.until_drained and not self._open:
            self._finished = True
            out.append(Finish("drained"))
