"""The engine core: it holds the queues, asks the policy, and says what the host does next."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from penstock.engine.instructions import Cool, Finish, Instruction, Note, Release, Run, Wake
from penstock.engine.queues import Entry, PathQueue
from penstock.engine.scheduler import Scheduler
from penstock.engine.statistics import Statistics
from penstock.events import kinds as ev
from penstock.model import FILE_SINKS, Block
from penstock.plan import Member, Path, Plan
from penstock.policies.operators import Policy, Queue, Route, Stage
from penstock.policies.operators import Run as Choice

HOT_READERS = 2
"""A block is worth keeping in memory when at least this many paths still have to read it after
the one that reads it now: filling the cache costs about three times what one hot read saves."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What `SET` and the host decide about a run."""

    slots: int = 1
    """Runs under way at once."""
    memory: int = 512 * 2**20
    """Bytes of blocks that may be hot."""
    retention: float = 3600.0
    """Seconds a block stays in the spool after it arrived, once all have read it."""
    until_drained: bool = False
    hold: float = 0.5
    """The part of a query's latency for which its blocks may gather before they are run."""
    gather: float = 0.0
    """Seconds for which any block may wait for others to ride with: few large jobs cost less. For
    runs in which nobody waits for the first answer."""


@dataclass(slots=True)
class _Held:
    """A block in the spool."""

    block: Block
    readers: int = 0
    """Queue entries and runs that still need it."""
    hot: bool = False


@dataclass(slots=True)
class _Running:
    """A run under way."""

    segment: str
    entries: list[Entry]
    retried: bool
    left: set[str] = field(default_factory=set)
    """Queries that left meanwhile: what becomes of the run no longer concerns them."""


@dataclass(slots=True)
class Core:
    """Takes events, returns instructions; the same object serves every host.

    The host adopts a plan (again whenever queries come or go), reports every event through
    `handle`, and carries out the instructions in order.
    """

    policy: Policy
    settings: Settings = Settings()
    plan: Plan = field(default_factory=lambda: Plan((), ()))
    statistics: Statistics = field(default_factory=Statistics)
    _scheduler: Scheduler | None = None
    _paths: dict[str, Path] = field(default_factory=dict)
    _home: dict[Member, str] = field(default_factory=dict)
    _rank: dict[Member, int] = field(default_factory=dict)
    _active: dict[str, dict[Member, None]] = field(default_factory=dict)
    _queues: dict[str, PathQueue] = field(default_factory=dict)
    _blocks: dict[tuple[str, int], _Held] = field(default_factory=dict)
    _aging: list[tuple[float, str, int]] = field(default_factory=list)
    _earlier: list[Block] = field(default_factory=list)
    _cooling: list[tuple[str, int]] = field(default_factory=list)
    _alone: dict[str, None] = field(default_factory=dict)
    _running: dict[int, _Running] = field(default_factory=dict)
    _groups: dict[tuple[str, tuple[Member, ...]], int] = field(default_factory=dict)
    _formed: int = 0
    _lanes: dict[Member, int] = field(default_factory=dict)
    _retry: set[tuple[str, int, int]] = field(default_factory=set)
    _ends: list[tuple[float, str]] = field(default_factory=list)
    _open: dict[str, None] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _hot_bytes: int = 0
    _runs: int = 0
    _lane: int = 0
    _failures: dict[str, str] = field(default_factory=dict)
    _finished: bool = False

    # --- the verbs ---------------------------------------------------------------------------

    def adopt(self, plan: Plan, first_run: int | None = None) -> None:
        """Work by this plan from now on; what waits moves to the paths that now carry it."""
        waiting = [entry for queue in self._queues.values() for entry in queue.entries]
        self.plan = plan
        self._paths = {path.id: path for path in plan.paths}
        members = [(member, path.id) for path in plan.paths for member in path.members]
        self._home = dict(members)
        self._rank = {member: rank for rank, (member, _) in enumerate(members)}
        self._queues = {path.id: PathQueue() for path in plan.paths}
        self._alone = dict.fromkeys(_with_own_folder(plan))
        for entry in waiting:
            self._held(entry.block).readers -= 1
            self._enqueue(entry.block, entry.members)
        self._prepare()
        if first_run is not None:
            self._runs = first_run

    def _prepare(self) -> None:
        """Tell the policy what the paths cost and keep; each is one job, and so one stage."""
        segments = self.policy.prepare([self._route(path) for path in self.plan.paths])
        if self._scheduler is None:
            self._scheduler = Scheduler(self.policy, segments, self._look)
        else:
            self._scheduler.adopt(segments)

    def _route(self, path: Path) -> Route:
        queries = [self.plan.query(member.query) for member in path.members]
        known = self.statistics
        return Route(
            path.id,
            (Stage(path.id, known.cost(path.id), known.selectivity(path.id)),),
            latency=min((q.latency for q in queries if q.latency is not None), default=inf),
            priority=max((q.priority for q in queries), default=1),
        )

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Take an event in; say what is to be done."""
        out: list[Instruction] = []
        self._take(event, out)
        self._end_lifetimes(event.at, out)
        if not isinstance(event, ev.QueryAdded):  # others may join with it and share its runs
            self._dispatch(event.at, out)
        self._release(event.at, out)
        self._finish(out)
        return out

    # --- events ------------------------------------------------------------------------------

    def _take(self, event: ev.Event, out: list[Instruction]) -> None:
        match event:
            case ev.RunStarted(streams=streams):
                self._open = dict.fromkeys(streams)
            case ev.BlockHeld(block=block):
                self._hold(block)
                self._earlier.append(block)
            case ev.BlockArrived(block=block):
                self._hold(block)
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
            case ev.RunFailed(run=run, reason=reason):
                self._fail_run(event.at, run, reason, out)
            case ev.BlockHot(stream=stream, number=number):
                self._warm(stream, number)
            case ev.Tick():
                self._age_earlier()

    def _hold(self, block: Block) -> None:
        self._newest[block.stream] = max(block.number, self.newest(block.stream))
        self._blocks[(block.stream, block.number)] = _Held(block)

    def _age_earlier(self) -> None:
        """Let blocks of an earlier run go that nobody wants: by now all queries have joined."""
        for block in self._earlier:
            if (block.stream, block.number) in self._blocks:
                self._settle(block)
        self._earlier.clear()

    def _arrive(self, block: Block) -> None:
        members = self._active.get(block.stream)
        if block.rows and members:
            self._enqueue(block, members)
        self._settle(block)

    def _add_query(self, event: ev.QueryAdded) -> None:
        query = self.plan.query(event.query)
        self._failures.pop(event.query, None)
        self._groups = {riders: group for riders, group in self._groups.items()
                        if all(member.query != query.name for member in riders[1])}  # namesakes'
        for number, branch in enumerate(query.branches):
            member = Member(query.name, number)
            self._active.setdefault(branch.stream, {})[member] = None
            for block in (block for owed, block in event.backlog if owed == number):
                held = self._blocks.get((branch.stream, block))
                if held and held.block.rows:
                    self._enqueue(held.block, (member,))
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

    def _withdraw(self, queue: PathQueue, name: str) -> None:
        """Take a query's members out of what waits."""
        kept: list[Entry] = []
        for entry in queue.entries:
            members = tuple(m for m in entry.members if m.query != name)
            if members:
                same = len(members) == len(entry.members)
                kept.append(entry if same else Entry(entry.block, members, entry.lane))
            else:
                self._let_go(entry.block)
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
        rows_out = sum(event.rows_out.values())
        if self.statistics.record(
                running.segment, event.at, event.rows_in, rows_out, event.seconds):
            self._prepare()
        for entry in running.entries:
            self._let_go(entry.block)
            for member in entry.members:
                self._lanes.pop(member, None)  # what has run well may ride with the others again
        for query, reason in event.failed.items():
            self._fail_query(event.at, query, reason, out)

    def _fail_run(self, at: float, run: int, reason: str, out: list[Instruction]) -> None:
        """Try once more; then halve the members until the one that fails stands alone."""
        running = self._running.pop(run)
        members = tuple(m for m in running.entries[0].members if m.query not in running.left)
        lone = len({member.query for member in members}) == 1
        if running.retried and lone:
            self._fail_query(at, members[0].query, reason, out)
        elif running.retried:
            self._set_apart(members)
        for entry in running.entries:
            still = tuple(m for m in entry.members
                          if m.query not in running.left and m.query not in self._failures)
            self._enqueue(entry.block, still, retry=True)
            self._let_go(entry.block)

    def _set_apart(self, members: tuple[Member, ...]) -> None:
        """Two new lanes, each with half of the queries."""
        queries = list(dict.fromkeys(member.query for member in members))
        half = set(queries[: len(queries) // 2])
        self._lane += 2
        for member in members:
            self._lanes[member] = self._lane - (member.query in half)

    def _dispatch(self, at: float, out: list[Instruction]) -> None:
        """Fill the free slots with what the policy chooses."""
        assert self._scheduler is not None
        while len(self._running) < self.settings.slots:
            for place, path in enumerate(self.plan.paths):
                if self._ready(path, at, out):
                    self._scheduler.wake(place, self._queues[path.id].entries[0].block.arrived)
                else:
                    self._scheduler.sleep(place)
            if self._scheduler.decide(at) < 0:
                return
            self._start(at, self._scheduler.run, out)

    def _ready(self, path: Path, at: float, out: list[Instruction]) -> bool:
        """Whether a path's head may run now, or shall wait for more blocks to ride with it."""
        queue = self._queues[path.id]
        if not queue:
            return False
        due = queue.entries[0].block.arrived + self._gathering(path)
        closing = path.stream not in self._open
        if due <= at or closing or queue.is_worth_a_job():
            return True
        out.append(Wake(due))
        return False

    def _gathering(self, path: Path) -> float:
        """Seconds a path's blocks may gather: folders of their own are costly to write often."""
        queries = [self.plan.query(member.query) for member in path.members]
        if not all(query.name in self._alone for query in queries):
            return self.settings.gather
        hold = self.settings.hold * min(query.latency or 0.0 for query in queries)
        return max(hold, self.settings.gather)

    def _look(self, place: int) -> Queue:
        path = self.plan.paths[place]
        assert self._scheduler is not None
        segment = self._scheduler.segments[place]
        blocks = [entry.block for entry in self._queues[path.id].entries]
        return Queue(
            segment=segment,
            length=len(blocks),
            oldest=blocks[0].arrived,
            head=blocks[0].rows,
            blocks=tuple((block.arrived, segment.rest * block.rows) for block in blocks),
        )

    def _start(self, at: float, choice: Choice, out: list[Instruction]) -> None:
        path = self._paths[choice.segment]
        queue = self._queues[path.id]
        waiting = sum(len(q) for q in self._queues.values())
        retried = (path.id, *queue.entries[0].order) in self._retry
        train = queue.entries[:1] if retried else queue.train()
        queue.remove(train)
        for entry in train:
            self._retry.discard((path.id, *entry.order))
        self._runs += 1
        self._running[self._runs] = _Running(path.id, train, retried)
        members = train[0].members
        group = self._group(at, path.id, members, out)
        blocks = tuple(entry.block for entry in train)
        numbers = tuple(block.number for block in blocks)
        rows = sum(block.rows for block in blocks)
        out.append(Note(ev.Decided(at, self._runs, choice.segment, group, path.stream, numbers,
                                   rows, choice.reason, waiting)))
        keep = tuple(block.number for block in blocks if self._worth_keeping(block))
        out.append(Run(self._runs, choice.segment, path.id, group, members, blocks, keep))

    def _group(
        self, at: float, path: str, members: tuple[Member, ...], out: list[Instruction]
    ) -> int:
        group = self._groups.get((path, members))
        if group is None:
            self._formed += 1
            group = self._groups[path, members] = self._formed
            names = tuple(str(member) for member in members)
            out.append(Note(ev.GroupFormed(at, group, path, names)))
        return group

    # --- blocks ------------------------------------------------------------------------------

    def _enqueue(self, block: Block, members: Iterable[Member], retry: bool = False) -> None:
        """Put a block before the paths of these members."""
        shares: dict[tuple[str, int], list[Member]] = {}
        for member in members:
            if member in self._home:
                lane = self._lanes.get(member, 0)
                shares.setdefault((self._home[member], lane), []).append(member)
        for (path, lane), riders in shares.items():
            entry = Entry(block, tuple(sorted(riders, key=self._rank.__getitem__)), lane)
            if self._queues[path].add(entry, self._rank.__getitem__):
                self._held(block).readers += 1
            if retry:
                self._retry.add((path, *entry.order))

    def _held(self, block: Block) -> _Held:
        return self._blocks[(block.stream, block.number)]

    def _let_go(self, block: Block) -> None:
        """One reader of the block is done."""
        self._held(block).readers -= 1
        self._settle(block)

    def _settle(self, block: Block) -> None:
        if self._held(block).readers == 0:
            due = block.arrived + self.settings.retention
            heapq.heappush(self._aging, (due, block.stream, block.number))
            self._cooling.append((block.stream, block.number))

    def _worth_keeping(self, block: Block) -> bool:
        held = self._held(block)
        others = held.readers - 1
        fits = self._hot_bytes + block.bytes <= self.settings.memory
        return not held.hot and others >= HOT_READERS and fits

    def _warm(self, stream: str, number: int) -> None:
        held = self._blocks.get((stream, number))
        if held and not held.hot:
            held.hot = True
            self._hot_bytes += held.block.bytes

    def _release(self, at: float, out: list[Instruction]) -> None:
        """Cool what nobody waits for; delete what is past its retention."""
        for stream, number in self._cooling:
            held = self._blocks.get((stream, number))
            if held and held.hot and held.readers == 0:
                held.hot = False
                self._hot_bytes -= held.block.bytes
                out.append(Cool(stream, number))
        self._cooling.clear()
        while self._aging and self._aging[0][0] <= at:
            _, stream, number = heapq.heappop(self._aging)
            held = self._blocks.get((stream, number))
            if held and held.readers == 0:
                del self._blocks[stream, number]
                out.append(Release(stream, number))

    @property
    def last_run(self) -> int:
        """The highest number given to a run so far."""
        return self._runs

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""
        return self._newest.get(stream, -1)

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


def _with_own_folder(plan: Plan) -> list[str]:
    """The queries that write files into a folder no other query writes to."""
    folders = Counter(query.sink.target for query in plan.queries)
    return [query.name for query in plan.queries
            if query.sink.kind in FILE_SINKS and folders[query.sink.target] == 1]
