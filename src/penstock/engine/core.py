"""The engine core: it holds the queues, asks the policy, and says what the host does next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from penstock.engine.instructions import Cancel, Finish, Instruction, Note, SegmentJob, Wake
from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.queue_entries import AGAIN, QueueEntry
from penstock.engine.paths.scheduler import Turn
from penstock.engine.paths.stage_costs import names
from penstock.engine.queue_memory import Place
from penstock.engine.state import State
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.plan import Member, Path, Plan
from penstock.policies import FAMILIES
from penstock.policies.operators import Segment
from penstock.policies.operators.model.routes import remainders

_JOINING = (ev.QueryAdded, ev.SynopsisBegun)


@dataclass(slots=True)
class Core(State):
    """Takes events, returns instructions; the same object serves every host.

    The host adopts a plan (again whenever queries come or go), reports every event through
    `handle`, and carries out the instructions in order.
    """

    # --- the verbs ---------------------------------------------------------------------------

    def adopt(self, plan: Plan, first_job: int | None = None) -> None:
        """Work by this plan from now on; what waits moves to the paths that now carry it."""
        self.plan = plan
        self._paths = {path.id: path for path in plan.paths}
        for part in (self._waiting, self._gathering, self._goals, self._windows):
            part.adopt(plan)
        self._prepare()
        if first_job is not None:
            self._jobs = first_job

    def use(self, family: str, policy: object, at: float, name: str) -> None:
        """Decide by another policy of a family from now on; what waits goes on from where it is."""
        chosen = FAMILIES[family].among({family: policy})
        self._pending.append(Note(event=ev.PolicyChanged(at=at, policies={family: name})))
        match family:
            case "operators":
                self.policy = chosen
                self._schedule()
                self._prepare(at, f"the policy is {name} now")
            case "refresh":
                self._windows.use(chosen, at)
            case _:
                raise AssertionError(f"nobody in the engine asks a policy for {family}")

    def allow(self, seconds: float) -> None:
        """Jobs that begin from now on may take so long."""
        self._timeouts.allowed = seconds

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Take an event in; say what is to be done."""
        out: list[Instruction] = []
        self._take(event, out)
        self._end_lifetimes(event.at, out)
        self._cancel_late(event.at, out)
        if not isinstance(event, _JOINING):  # others may join with it and share its runs
            out.extend(self._windows.trims(event.at))  # before a refresh begins to read the panes
            self._dispatch(event.at, out)
            self._fail_ending(event.at, out)
        if self._timeouts.next is not None:
            out.append(Wake(at=self._timeouts.next))
        out.extend(Note(event=event) for event in self._windows.noted())
        needed = self._windows.needed()
        out.extend(self._waiting.make_room(event.at, self.settings.memory, needed,
                                           self._room_in_spool.most))
        out.extend(self._room_in_spool.look(event.at, self._blocks.stored, self._is_idle))
        out.extend(self._waiting.forgotten())
        out.extend(self._pending)
        self._pending.clear()
        out.extend(self._waiting.account.news(event.at, self._blocks.hot_bytes))
        self._finish(event.at, out)
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
        self._waiting.touch_all()
        for id, segments in cuts.items():
            self._note_cut(at, id, segments, reason)

    def _prepare_again(self, at: float, changed: Mapping[str, str]) -> None:
        """Paths have other figures, for these reasons: what depends on them is cut and ranked."""
        if self.policy.sees_all:
            self._prepare(at, next(iter(changed.values())))
            return
        for id, reason in changed.items():
            route = self.figures.tell_again(self.plan, id)
            cuts = self.policy.prepare([route])
            self._scheduler.replace(self._waiting.numbers[id, 0], remainders(route, cuts))
            self._waiting.touch(id)
            self._note_cut(at, id, cuts, reason)

    def _note_cut(self, at: float, path: str, segments: Sequence[Segment], reason: str) -> None:
        made = tuple(segment.operators for segment in segments)
        before = self._cuts.get(path)
        self._cuts[path] = made
        if before not in (made, None):
            self._pending.append(Note(event=ev.PathCut(at=at, path=path, segments=made,
                                                       reason=reason)))

    # --- events ------------------------------------------------------------------------------

    def _take(self, event: ev.Event, out: list[Instruction]) -> None:
        match event:
            case ev.EngineStarted(streams=streams):
                self._open = dict.fromkeys(streams)
                self._waiting.touch_all()
            case ev.BlockHeld(block=block):
                self._blocks.hold(block, earlier=True)
            case ev.BlockArrived(block=block):
                self._blocks.hold(block)
                self._arrive(block)
                self._close_panes(event.at, block.stream)
            case ev.QueryAdded():
                self._add_query(event)
            case ev.QueryDropped(query=query):
                self._rejections.leave(query)
                self._remove_query(query)
            case ev.QueryFailed(query=query, reason=reason):
                self._failures[query] = reason
                self._remove_query(query)
            case ev.SynopsisBegun():
                self._begin_synopsis(event)
            case ev.StreamEnded(stream=stream):
                self._open.pop(stream, None)
                self._waiting.touch_all()
                self._close_panes(event.at, stream)
            case ev.StreamFailed(stream=stream, reason=reason):
                self._open.pop(stream, None)
                self._waiting.touch_all()
                self._broken[stream] = reason
                self._end_readers(stream)
            case ev.JobFinished():
                self._finish_job(event, out)
            case ev.JobProgressed(job=job, done=done) if job in self._running:
                self._running[job].done = done
            case ev.JobFailed():
                self._fail_job(event, out)
            case ev.BlockHot(stream=stream, number=number):
                self._blocks.warm(stream, number)
                self._waiting.account.heat(stream, number)
            case ev.Tick():
                self._blocks.settle_earlier()

    def _arrive(self, block: Block) -> None:
        members = self._active.get(block.stream)
        if block.rows and members:
            self._waiting.add(block, members)
        self._blocks.settle(block)

    def _add_query(self, event: ev.QueryAdded) -> None:
        query = self.plan.query(event.query)
        self._failures.pop(event.query, None)
        self._waiting.riders.dissolve(query.name)
        for member, stream in event.members:
            self._active.setdefault(stream, {})[member] = None
            backlog = event.owed(member)
            self._goals.join(member, backlog)
            for number in backlog:
                block = self._blocks.find(stream, number)
                if block and block.rows:
                    self._waiting.add(block, (member,))
        if self.plan.group_of(query.name):
            self._windows.add(query.name, event.since)
        if query.lifetime is not None:
            joined = event.at if event.joined is None else event.joined
            self._lifetimes.begin(query.name, joined + query.lifetime)
        for stream in query.streams:
            if stream in self._broken:
                self._end_readers(stream)

    def _remove_query(self, name: str, waiting_too: bool = True) -> None:
        self._windows.remove(name)
        self._ending.pop(name, None)
        for members in self._active.values():
            for member in [m for m in members if m.query == name]:
                del members[member]
                self._timeouts.clear([member])
        if waiting_too:
            if group := self.plan.group_of(name):
                self._refilling.leave(group, name, self._active[group.reads])
            for running in self._running.values():
                running.left.add(name)
            self._waiting.withdraw(name)

    def _end_readers(self, stream: str) -> None:
        """A stream is broken: its queries take no new block, and stop after those that wait."""
        reason = f"stream {stream} failed: {self._broken[stream]}"
        for query in {member.query: None for member in self._active.get(stream, ())}:
            self._ending.setdefault(query, reason)
            for members in self._active.values():
                for member in [m for m in members if m.query == query]:
                    del members[member]

    def _fail_ending(self, at: float, out: list[Instruction]) -> None:
        """Stop the queries of broken streams that have had all there is for them."""
        for query, reason in list(self._ending.items()):
            busy = any(m.query == query for running in self._running.values()
                       for entry in running.entries for m in entry.members)
            group = self.plan.group_of(query)
            due = group is not None and not self._windows.is_done_with(group.id)
            if not busy and not due and not self._waiting.is_wanted_by(query):
                del self._ending[query]
                self._fail_query(at, query, reason, out)

    def _fail_query(self, at: float, query: str, reason: str, out: list[Instruction]) -> None:
        if query in self._failures:
            return
        self._failures[query] = reason
        self._remove_query(query)
        out.append(Note(event=ev.QueryFailed(at=at, query=query, reason=reason)))

    def _end_lifetimes(self, at: float, out: list[Instruction]) -> None:
        """A query whose time is over takes no new block, but what waits for it is delivered."""
        for name in self._lifetimes.over(at):
            self._remove_query(name, waiting_too=False)
            out.append(Note(event=ev.QueryDropped(at=at, query=name,
                                                  reason="its lifetime is over")))
        if self._lifetimes.next is not None:
            out.append(Wake(at=self._lifetimes.next))

    def _cancel_late(self, at: float, out: list[Instruction]) -> None:
        """Have jobs cancelled that last far longer than they should."""
        out.extend(Cancel(job=run, limit=limit) for run, limit in self._timeouts.over(at))

    # --- window aggregates -------------------------------------------------------------------

    def _begin_synopsis(self, event: ev.SynopsisBegun) -> None:
        """Make a group's panes of blocks that its queries have had, or that came before them."""
        group = self.plan.group(event.group)
        self._windows.begin(group.id)
        self._refilling.begin(group, event.blocks)
        self._close_panes(event.at, group.reads)

    def _close_panes(self, at: float, stream: str) -> None:
        """Close the panes for which no row can come any more."""
        newest = self._blocks.find(stream, self._blocks.newest(stream))
        ended = (self.settings.until_drained and stream not in self._open
                 and stream not in self._broken)
        for group in self.plan.groups:
            if group.reads == stream:
                waiting = self._refilling.unfinished(group)
                self._windows.close(at, group.id, waiting, newest, ended)

    def _renew(self, at: float, out: list[Instruction]) -> bool:
        """Begin a refresh, if answers are due."""
        refresh = self._windows.next(at, self._jobs + 1)
        if refresh is None:
            return False
        self._jobs += 1
        again = self._timeouts.has_suspects(refresh.answers)
        self._timeouts.begin(refresh.number, at, self._timeouts.limit(0.0, again))
        out.append(refresh)
        return True

    # --- jobs --------------------------------------------------------------------------------

    def _finish_job(self, event: ev.JobFinished, out: list[Instruction]) -> None:
        """A job is through: what its kind asks for, then what holds for all."""
        self._timeouts.end(event.job)
        rejecting: Iterable[tuple[str, str]] = ()
        match event.result:
            case ev.RefreshResult() as result:
                self._finish_refresh(event, result, out)
            case ev.SegmentResult(kept=ev.KeptRows() as kept) as result:
                self._keep(event, result, kept)
            case result:
                rejecting = self._finish_blocks(event, result, out)
        for query, reason in event.failed.items():
            self._fail_query(event.at, query, reason, out)
        for query, text in rejecting:
            self._tell_rejects(event.at, query, text, out)

    def _finish_refresh(
        self, event: ev.JobFinished, result: ev.RefreshResult, out: list[Instruction]
    ) -> None:
        self._windows.finish(event, result)
        self._timeouts.clear(result.answers)
        self._ahead -= event.seconds
        answers = ((query, [(result.arrived, rows)]) for query, rows in event.rows_out.items()
                   if rows)
        out.extend(self._goals.check(event, result.arrived, answers))

    def _finish_blocks(
        self, event: ev.JobFinished, result: ev.SegmentResult | ev.PanesResult,
        out: list[Instruction],
    ) -> Iterable[tuple[str, str]]:
        """Blocks are done with; the queries whose function rejects everything are returned."""
        running = self._ended(event.job)
        self._measure(event, result, running, sum(event.rows_out.values()))
        if isinstance(result, ev.PanesResult):
            self._windows.fill({id: panes for id, panes in result.panes.items()
                                if id not in running.stale})
            self._refilling.finish(self.plan, running)
            self._close_panes(event.at, running.path.reads)
        else:
            out.extend(self._goals.check(event, running.oldest, self._goals.promised(running)))
        for entry in running.entries:
            self._waiting.let_go(entry)
            self._waiting.riders.clear(entry.members)
            self._timeouts.clear(entry.members)
        return list(self._rejections.take(event, result, running))

    def _tell_rejects(self, at: float, query: str, text: str, out: list[Instruction]) -> None:
        """A function rejects everything: that is a warning, or the end of its query."""
        if self.is_known(query) and self.plan.query(query).rejects == "fail":
            self._fail_query(at, query, text, out)
        else:
            out.append(Note(event=ev.Warned(at=at, subject=f"query {query}", text=text)))

    def _keep(self, event: ev.JobFinished, result: ev.SegmentResult, kept: ev.KeptRows) -> None:
        """The rows of a job wait before the next stage."""
        running = self._ended(event.job)
        head = running.entries[0]
        self._timeouts.clear(head.members)
        self._measure(event, result, running, kept.rows)
        blocks = tuple(block for entry in running.entries for block in entry.blocks)
        rest = QueueEntry(blocks, head.members, head.lane, event.job, kept)
        still = tuple(m for m in head.members if m.query not in running.left)
        self._waiting.keep(running.entries, rest, (running.path.id, running.last), still)
        if running.stale:
            self._waiting.begin_anew(running.path.id)
        if not still:  # nobody takes up what was kept, but others' panes may need its blocks
            self._refilling.finish(self.plan, running, failed=True)

    def _measure(
        self, event: ev.JobFinished, result: ev.SegmentResult | ev.PanesResult, running: ActiveJob,
        rows_out: float,
    ) -> None:
        """Record what a job tells of its stages; figures that differ are new cuts and ranks."""
        self._ahead = event.seconds
        running.end_beside(self._running.values(), event.at)
        kept = event.kept.bytes if event.kept else 0
        figures = ev.StageFigures(
            rows_in=running.rows, rows_out=rows_out, seconds=running.own(event.seconds),
            bytes_in=sum(entry.bytes for entry in running.entries) if kept else 0, bytes_out=kept)
        self.figures.record(event.at, running.path, running.first, running.last, figures,
                            result.measured, result.sampling)
        if changed := self.figures.changed(self.plan, running.path.id):
            self._prepare_again(event.at, changed)

    def _ended(self, job: int) -> ActiveJob:
        """A job over blocks is through: other jobs may begin where it was at work."""
        running = self._running.pop(job)
        self._waiting.touch(running.path.id)
        return running

    def _fail_job(self, event: ev.JobFailed, out: list[Instruction]) -> None:
        """Have those stop that the rule of failures names; the others are tried again."""
        if event.job in self._running:
            stops = self._fail_blocks(event)
        else:
            stops = self._windows.fail(event, self._retries)
        for query, reason in stops.items():
            self._fail_query(event.at, query, reason, out)

    def _fail_blocks(self, event: ev.JobFailed) -> dict[str, str]:
        """Let the blocks of a job wait again, for all members or for two halves of them."""
        running = self._ended(event.job)
        members = tuple(m for m in running.entries[0].members if m.query not in running.left)
        judged = self._retries.judge(event, members, self._unit, running.retried)
        if judged.first:
            self._waiting.riders.set_apart(members, lambda m: self._unit(m) in judged.first)
        for entry in running.entries:
            still = tuple(m for m in entry.members
                          if m.query not in running.left and m.query not in judged.stops)
            self._waiting.put_back((running.path.id, running.first), entry, still, retry=True)
        self._refilling.finish(self.plan, running, failed=True)
        return judged.stops

    def _unit(self, member: Member) -> str:
        """Who fails together: a query, or the window aggregates that share their panes."""
        group = self.plan.group_of(member.query)
        return group.id if group else member.query

    def _dispatch(self, at: float, out: list[Instruction]) -> None:
        """Fill the free slots; where runs and refreshes wait, they have as long as each other.

        Where nobody waits for a first answer refreshes go first: then few panes are held.
        """
        while True:
            free = self.settings.slots - len(self._running) - self._windows.slots
            first = free > 0 and (self.settings.until_drained or self._ahead > 0)
            if first and self._renew(at, out):
                continue
            begun = free > -self.policy.preemptive and self._run(at, out, urgent=free <= 0)
            if not begun and (first or free <= 0 or not self._renew(at, out)):
                return

    def _run(self, at: float, out: list[Instruction], urgent: bool) -> bool:
        """Begin the run that the policy chooses; an urgent one must be worth overtaking for."""
        self._wake_queues(at)
        if self._gathering.next is not None:
            out.append(Wake(at=self._gathering.next))
        if urgent and self._scheduler.weighs_all:
            self._wake_running()
        turn = self._scheduler.decide(at)
        if turn is None or (urgent and (
                self._is_busy(turn.segment)
                or not self._overtaking.is_worth(turn, self._running.values()))):
            return False
        self._start(at, turn, out, urgent)
        return True

    def _wake_queues(self, at: float) -> None:
        """Tell the scheduler of the queues that have changed, or have gathered long enough."""
        for place in (*self._waiting.changed(), *self._gathering.over(at)):
            number = self._waiting.numbers[place]
            if not self._is_busy(self._scheduler.segments[number]) and self._ready(place, at):
                head = self._waiting.queues[place].entries[0]
                self._scheduler.wake(number, head.arrived, rows=head.rows)
            else:
                self._scheduler.sleep(number)

    def _wake_running(self) -> None:
        """Let what is under way compete: it may go on. The next decision looks at it again."""
        for running in self._running.values():
            number = self._waiting.numbers.get((running.path.id, running.first))
            if number is not None:
                head = running.entries[0]
                self._scheduler.wake(number, head.arrived, self._done(running), head.rows)
                self._waiting.touch(running.path.id)

    def _ready(self, place: Place, at: float) -> bool:
        """Whether a queue's head may run now, or shall wait for more blocks to ride with it."""
        self._gathering.end(place)
        queue = self._waiting.queues[place]
        if not queue:
            return False
        path = self._paths[place[0]]
        due = queue.entries[0].arrived + self._gathering.seconds(path, self.settings)
        closing = path.reads not in self._open
        if place[1] > 0 or due <= at or closing or queue.is_full():
            return True
        self._gathering.wait(place, due)
        return False

    def _start(self, at: float, turn: Turn, out: list[Instruction], urgent: bool) -> None:
        segment = turn.segment
        if self._is_busy(segment):
            segment = self._scheduler.segments[turn.place]
        place = self._waiting.places[segment.place]
        path = self._paths[place[0]]
        waiting = len(self._waiting)
        most = self.figures.rows_within(
            self._lasting(turn, path), *place, self._scheduler.onward(segment))
        longest = self.settings.longest(path.end == "panes")
        train, retried = self._waiting.take(place, min(most, longest), turn.most_blocks)
        self._jobs += 1
        first, last = place[1], place[1] + len(segment.operators)
        members, entering = train[0].members, sum(entry.rows for entry in train)
        expected = self.figures.expected(entering, *place)
        yields = self._overtaking.may_be(segment, expected, self.settings.quantum)
        self._running[self._jobs] = ActiveJob(path, segment, train, retried, at, urgent, yields)
        self._waiting.touch(path.id)
        again = self._timeouts.has_suspects(members)
        self._timeouts.begin(self._jobs, at, self._timeouts.limit(expected, again))
        riders, formed = self._waiting.riders.group(path.id, members)
        if formed:
            out.append(Note(event=ev.RidersFormed(
                at=at, riders=riders, path=path.id, stages=tuple(names(path)),
                members=tuple(str(member) for member in members))))
        blocks = tuple(block for entry in train for block in entry.blocks)
        final, backfill = last == len(path.stages), train[0].lane == AGAIN
        kind: Literal["segment", "panes"] = "panes" if final and path.end == "panes" else "segment"
        reason = turn.reason + (", overtaking" if urgent else "")
        work = ev.PathWork(
            segment=segment.id, riders=riders, stream=path.reads,
            blocks=tuple(block.number for block in blocks),
            rows=sum(block.rows for block in blocks), stages=(first, last), urgent=urgent,
            again=backfill, entering=entering if first else None)
        out.append(Note(event=ev.JobDecided(at=at, job=self._jobs, kind=kind, reason=reason,
                                            waiting=waiting, work=work)))
        out.append(SegmentJob(
            number=self._jobs, kind=kind, segment=segment.id, path=path.id, riders=riders,
            members=members, blocks=blocks,
            keep=self._blocks.worth_keeping(blocks, self._room) if first == 0 else (),
            first=first, last=last, final=final,
            parts=tuple(entry.job for entry in train if entry.job),
            on_disk=self._is_too_much(path, first, last, train), urgent=urgent,
            yields=yields, again=backfill, expected=expected,
            measure=first == 0 and self.figures.is_due(
                path, at, self.settings.measure_every,
                busy=waiting > len(train) or at - train[0].arrived > self.settings.quantum)))

    def _lasting(self, turn: Turn, path: Path) -> float:
        """Seconds for which a run should last.

        By the settings, unless the policy says it; and not beyond the time at which a policy that
        is asked after every block wants to be asked again.
        """
        if turn.lasting is not None:
            return turn.lasting
        usual = self.settings.lasting(path.end == "panes")
        return usual if turn.limit == inf else min(usual, turn.quantum)

    # --- the end -----------------------------------------------------------------------------

    def _finish(self, at: float, out: list[Instruction]) -> None:
        if self._finished or not self._is_idle:
            return
        if self.settings.until_drained and not self._open:
            for query, text in list(self._rejections.rest()):
                self._tell_rejects(at, query, text, out)
        alive = any(self._active.values())
        if self._failures and not alive:
            reason = "; ".join(f"{query}: {why}" for query, why in self._failures.items())
            self._finished = True
            out.append(Finish(outcome="failed", reason=f"no query is left ({reason})"))
        elif self.settings.until_drained and not self._open:
            self._finished = True
            out.append(Finish(outcome="drained"))

