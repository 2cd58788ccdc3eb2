"""A run in numbers: a fold over its events, and the proof that no row was lost or taken twice."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from penstock.events import kinds as k
from penstock.events.flights import Flight, ProbeFlight, RidingGroup
from penstock.events.histogram import Histogram
from penstock.events.ledger import Ledger, Row, WaitingBlock
from penstock.events.measures import (
    QueryMeasures,
    QueueMeasures,
    RelationMeasures,
    RunMeasures,
    StreamMeasures,
    Wait,
    Waits,
)
from penstock.events.orders import CONJUNCTIONS_KEPT, OrderMeasures, Profiling
from penstock.events.summary_html import summary_html
from penstock.model import Block

WARNINGS_KEPT = 100
FAULTS_KEPT = 100
"""Up to this many faults are described; the others are only counted."""
ENDED_KEPT = 1000
"""This many failed or dropped queries are remembered; the oldest are forgotten first."""
QUEUES_KEPT = 1000
"""This many queues are remembered; of more, the oldest empty one is forgotten first."""
MEMBERS_KEPT = 1_000_000
"""This many memberships in groups are remembered; the least recently used groups go first."""


class Summary:
    """The sum of the events so far.

    >>> from penstock.events import (
    ...     BlockArrived, JobDecided, JobFinished, PathWork, QueryAdded, RidersFormed,
    ...     SegmentResult)
    >>> from penstock.model import Block
    >>> summary = Summary.of([
    ...     QueryAdded(at=0.0, query="big", inputs=(("packets",),)),
    ...     BlockArrived(at=1.0, block=Block("packets", 0, 98, 980, arrived=1.0), read=100,
    ...                  rejected=2),
    ...     RidersFormed(at=1.0, riders=0, path="p0", members=("big",)),
    ...     JobDecided(at=1.0, job=0, kind="segment", reason="the oldest", work=PathWork(
    ...         segment="p0", riders=0, stream="packets", blocks=(0,), rows=98)),
    ...     JobFinished(at=1.5, job=0, kind="segment", seconds=0.4, rows_out={"big": 8},
    ...                 result=SegmentResult(rows_in=98)),
    ... ])
    >>> big = summary.queries["big"]
    >>> big.rows_in, big.rows_out, big.filtered, big.latency.maximum
    (98, 8, 90, 0.5)
    >>> summary.accounting()
    []
    """

    def __init__(self) -> None:
        """Begin before any event."""
        self.run = RunMeasures()
        self.probes: dict[str, dict[str, OrderMeasures]] = {}
        """By multiway join: its streams with the orders in which they probe the others, where
        those are not as written any more."""
        self.streams: dict[str, StreamMeasures] = {}
        self.queries: dict[str, QueryMeasures] = {}
        self.relations: dict[str, RelationMeasures] = {}
        """The relations that change."""
        self.queues: dict[str, QueueMeasures] = {}
        """By the name of the queue, what waits before a stage of a path."""
        self.conjunctions: dict[str, OrderMeasures] = {}
        """By path, the conjunctions whose order has changed."""
        self.profiling = Profiling()
        self.warnings: deque[k.Warned] = deque(maxlen=WARNINGS_KEPT)
        """The latest warnings."""
        self.warned = 0
        """The number of all warnings."""
        self.forgotten = 0
        """Ended queries that are no longer remembered."""
        self.faults_seen = 0
        self._faults: list[str] = []
        self._groups: OrderedDict[int, RidingGroup] = OrderedDict()
        self._memberships = 0
        self._flights: dict[int, Flight | ProbeFlight | None] = {}
        """Active jobs; None for a refresh, which carries no block."""
        self._ended: OrderedDict[str, None] = OrderedDict()

    @staticmethod
    def of(events: Iterable[k.Event]) -> Summary:
        """The summary of a whole record."""
        summary = Summary()
        for event in events:
            summary.apply(event)
        return summary

    def apply(self, event: k.Event) -> None:
        """Add an event, in constant time apart from the size of its group."""
        run = self.run
        if run.begun is None:
            run.begun = event.at
        run.now = max(run.now, event.at)
        _VERBS[type(event)](self, event)

    def stream(self, name: str) -> StreamMeasures:
        """The measures of a stream, created when the stream is first named."""
        return self.streams.setdefault(name, StreamMeasures(name))

    def rate(self, stream: str) -> float:
        """The rate at which the stream has lately brought rows, per second."""
        return self.streams[stream].rate(self.run.now, self.run.started)

    def latency(self) -> Histogram:
        """The time from arrival to delivery over all queries, weighted by rows."""
        return Histogram.merged(query.latency.whole() for query in list(self.queries.values()))

    def recent_latency(self) -> Histogram:
        """The same for the last minute."""
        now = self.run.now
        return Histogram.merged(q.latency.last_minute(now) for q in list(self.queries.values()))

    def lag(self) -> Histogram:
        """The time from event to answer, over queries whose streams follow the clock, by rows."""
        return Histogram.merged(query.lag.whole() for query in list(self.queries.values()))

    def recent_lag(self) -> Histogram:
        """The same for the last minute."""
        now = self.run.now
        return Histogram.merged(q.lag.last_minute(now) for q in list(self.queries.values()))

    def waits_for(self) -> str:
        """What a run that has not answered yet is waiting for, in words."""
        run = self.run
        if run.state not in ("starting", "running") or run.first_answer is not None:
            return ""
        if run.step or run.state == "starting":
            return run.step
        if not any(stream.read for stream in list(self.streams.values())):
            return "waiting for rows"
        return "computing the first answers"

    def latency_of_blocks(self) -> Histogram:
        """The time from arrival to delivery over all queries; each counts every block once."""
        return Histogram.merged(query.block_latency for query in list(self.queries.values()))

    def missed(self) -> tuple[int, int]:
        """Blocks and rows that missed a latency goal, over all queries."""
        queries = list(self.queries.values())
        return sum(q.missed_blocks for q in queries), sum(q.missed_rows for q in queries)

    def failures(self) -> list[tuple[str, str]]:
        """What failed (``stream s``, ``query q``), and why."""
        streams = [(f"stream {s.name}", s.state, s.reason) for s in list(self.streams.values())]
        queries = [(f"query {q.name}", q.state, q.reason) for q in list(self.queries.values())]
        both = streams + queries
        return [(name, reason) for name, state, reason in both if state == "failed"]

    def accounting(self) -> list[str]:
        """Every way in which the books do not balance; an empty list when they do.

        Each stream: rows read = kept + rejected, and no more are late than were kept. Each query:
        rows in + added by joins = out (of a window aggregate: summarised) + filtered + late +
        rejected, none of them negative, and each block that arrived after it joined was delivered
        to each of its branches once, or still waits.
        """
        faults = list(self._faults)
        if self.faults_seen > len(faults):
            faults.append(f"and {self.faults_seen - len(faults)} more faults like these")
        for stream in list(self.streams.values()):
            faults.extend(stream.faults())
        for query in list(self.queries.values()):
            faults.extend(query.faults())
        return faults

    def _repr_html_(self) -> str:
        return summary_html(self)

    # -- the run -------------------------------------------------------------------------------

    def _startup_step(self, event: k.StartupStep) -> None:
        self.run.step = event.step

    def _engine_started(self, event: k.EngineStarted) -> None:
        run = self.run
        run.state, run.started, run.cores, run.step = "running", event.at, event.cores, ""
        run.policies = dict(event.policies)
        run.checkpoint = event.checkpoint
        run.memory = event.memory
        for name in event.streams:
            stream = self.stream(name)
            stream.total = event.totals.get(name)
            stream.unit = event.unit.get(name, "rows")
            stream.progress = event.progress.get(name, 0)

    def _engine_stopped(self, event: k.EngineStopped) -> None:
        self.run.state, self.run.reason = event.outcome, event.reason
        for stream in self.streams.values():
            if stream.state in ("reading", "retrying"):
                stream.state = "stopped"
        drained = event.outcome == "drained"
        for query in self.queries.values():
            if query.live:
                query.state = "done" if drained else "stopped"
                if drained:
                    self._check_drained(query)

    def _queued(self, event: k.Queued) -> None:
        run = self.run
        run.waiting_bytes, run.hot_bytes = event.bytes, event.hot
        run.waiting_peak = max(run.waiting_peak, event.bytes)
        run.hot_peak = max(run.hot_peak, event.hot)
        for name, level in event.queues.items():
            queue = self.queues.setdefault(name, QueueMeasures(name))
            queue.entries, queue.bytes, queue.hot = level.entries, level.bytes, level.hot
            queue.peak = max(queue.peak, level.bytes)
        while len(self.queues) > QUEUES_KEPT:
            del self.queues[min(self.queues.values(), key=lambda queue: queue.entries).name]

    def _memory(self, event: k.Memory) -> None:
        run = self.run
        run.driver_peak = max(run.driver_peak, event.driver)
        run.jvm_peak = max(run.jvm_peak, event.jvm)
        run.synopses, run.synopses_peak = event.synopses, max(run.synopses_peak, event.synopses)

    def _warned(self, event: k.Warned) -> None:
        self.warned += 1
        self.warnings.append(event)

    def _tick(self, event: k.Event) -> None:
        """Only the time moves."""

    # -- streams ---------------------------------------------------------------------------------

    def _block_arrived(self, event: k.BlockArrived) -> None:
        block, stream = event.block, self.stream(event.block.stream)
        stream.blocks += 1
        stream.read += event.read
        stream.kept += block.rows
        stream.late += event.late
        stream.rejected += event.rejected
        stream.files += event.files
        stream.progress = max(stream.progress, event.progress)
        stream.note_arrival(event.at, event.read)
        if event.read != block.rows + event.rejected:
            self._fault(
                f"stream {stream.name}, block {block.number}: {event.read} rows read, but "
                f"{block.rows} kept + {event.rejected} rejected"
            )
        if event.late > block.rows:
            self._fault(f"stream {stream.name}, block {block.number}: {event.late} of "
                        f"{block.rows} rows are late")
        if not stream.queue.arrive(block):
            self._fault(f"stream {stream.name}: block {block.number} arrived twice")
        stream.queue_peak = max(stream.queue_peak, stream.queue.bytes)

    def _block_held(self, event: k.BlockHeld) -> None:
        self.stream(event.block.stream).queue.hold(event.block)

    def _watermark_moved(self, event: k.WatermarkMoved) -> None:
        self.stream(event.stream).watermark = event.time

    def _file_set_aside(self, event: k.FileSetAside) -> None:
        stream = self.stream(event.stream)
        stream.files_rejected += 1
        stream.read += event.rows
        stream.rejected += event.rows
        self._warned(k.Warned(at=event.at, subject=f"stream {event.stream}",
                              text=f"{event.file} is set aside: {event.reason}"))

    def _stream_ended(self, event: k.StreamEnded) -> None:
        self.stream(event.stream).state = "ended"

    def _stream_failed(self, event: k.StreamFailed) -> None:
        stream = self.stream(event.stream)
        stream.state, stream.reason = "failed", event.reason

    def _stream_retried(self, event: k.StreamRetried) -> None:
        if self.stream(event.stream).retry(event.reason):
            text = f"failed and is tried again: {event.reason}"
            self._warned(k.Warned(at=event.at, subject=f"stream {event.stream}", text=text))

    def _spool_full(self, event: k.SpoolFull) -> None:
        if self.run.fill_spool(event.at):
            self._warned(k.Warned(at=event.at, subject="spool",
                                  text="it is full, and the streams wait"))

    def _spool_freed(self, event: k.SpoolFreed) -> None:
        self.run.spool_full, self.run.spool_waited = None, self.run.spool_waited + event.seconds

    def _block_hot(self, event: k.BlockHot) -> None:
        self.stream(event.stream).heat(event.number, event.bytes)

    def _block_cold(self, event: k.BlockCold) -> None:
        self.stream(event.stream).cool(event.number)

    def _block_released(self, event: k.BlockReleased) -> None:
        stream = self.stream(event.stream)
        stream.cool(event.number)
        waiting = stream.queue.release(event.number)
        if waiting is None:
            return
        # All queries are examined only if something went wrong.
        for query in self.queries.values():
            for member in query.members.values():
                if member.queue is stream.queue and member.skip(waiting):
                    self._fault(
                        f"query {member.name}: block {event.number} of {stream.name} was released "
                        "before it was delivered"
                    )

    # -- relations -------------------------------------------------------------------------------

    def _relation(self, name: str) -> RelationMeasures:
        return self.relations.setdefault(name, RelationMeasures(name))

    def _relation_read(self, event: k.RelationRead) -> None:
        relation = self._relation(event.relation)
        relation.reason = event.reason
        if not event.reason:
            relation.read = event.at

    def _relation_changed(self, event: k.RelationChanged) -> None:
        relation = self._relation(event.relation)
        relation.version, relation.rows = event.version, event.rows
        relation.since, relation.changed = dict(event.since), event.at

    # -- queries ---------------------------------------------------------------------------------

    def _query_added(self, event: k.QueryAdded) -> None:
        earlier = self.queries.pop(event.query, None)
        if earlier is not None:
            earlier.end("dropped", "replaced")
            self._ended.pop(event.query, None)
        query = QueryMeasures(event.query, (event.sink, *event.also), event.latency)
        query.window, query.gap, query.join = event.window, event.gap, event.join
        query.join_rows = event.join_rows
        query.delivered_before = event.delivered
        self.queries[event.query] = query
        for member, name in event.members:
            queue, backlog = self.stream(name).queue, event.owed(member)
            for number in backlog:
                if number not in queue.spool:
                    self._fault(f"query {event.query}: block {number} of {name} is not held")
            query.members[str(member)] = Ledger(str(member), name, queue, backlog)

    def _query_dropped(self, event: k.QueryDropped) -> None:
        self._end(event.query, "dropped", event.reason)

    def _query_failed(self, event: k.QueryFailed) -> None:
        self._end(event.query, "failed", event.reason)

    def _end(self, name: str, state: Literal["failed", "dropped"], reason: str) -> None:
        query = self.queries.get(name)
        if query is None or not query.live:
            return
        query.end(state, reason)
        self._ended[name] = None
        if len(self._ended) > ENDED_KEPT:
            oldest, _ = self._ended.popitem(last=False)
            self.queries.pop(oldest, None)
            self.forgotten += 1

    # -- jobs ------------------------------------------------------------------------------------

    def _riders_formed(self, event: k.RidersFormed) -> None:
        riders = []
        for member in event.members:
            name = member.rpartition("#")[0] or member
            query = self.queries.get(member) or self.queries.get(name)
            if query is None:
                self._fault(f"riders {event.riders}: nobody knows query {member}")
                continue
            riders.append((member, query, query.members.get(member)))
        group = RidingGroup(tuple(riders), {query.name: query for _, query, _ in riders})
        self._groups[event.riders] = group
        self._memberships += len(riders)
        while self._memberships > MEMBERS_KEPT and len(self._groups) > 1:
            _, oldest = self._groups.popitem(last=False)
            self._memberships -= len(oldest.riders)

    def _policy_changed(self, event: k.PolicyChanged) -> None:
        self.run.policies |= event.policies

    def _probes_reordered(self, event: k.ProbesReordered) -> None:
        known = self.probes.setdefault(event.join, {})
        known.setdefault(event.stream, OrderMeasures(event.stream)).take(event)
        self._tick(event)

    def _order_changed(self, event: k.OrderChanged) -> None:
        found = self.conjunctions.setdefault(event.path, OrderMeasures(event.path))
        found.take(event)
        if len(self.conjunctions) > CONJUNCTIONS_KEPT:
            self.conjunctions.pop(next(iter(self.conjunctions)))

    def _job_decided(self, event: k.JobDecided) -> None:
        self.run.decided += 1
        self.run.seconds_deciding += event.seconds
        work = event.work
        if isinstance(work, k.RefreshWork):
            self._flights[event.job] = None
            return
        group = self._groups.get(work.riders)
        if group is None:
            self._fault(f"job {event.job}: nobody knows riders {work.riders}")
            return
        self._groups.move_to_end(work.riders)
        if isinstance(work, k.ProbeWork):
            self._flights[event.job] = ProbeFlight(group)
            for query in group.queries.values():
                query.joined_by = work.join
            return
        waiting = self.stream(work.stream).queue.waiting
        blocks = tuple(waiting.get(number) for number in work.blocks)
        self._flights[event.job] = Flight(work, group, blocks)

    def _job_failed(self, event: k.JobFailed) -> None:
        self.run.failed += 1
        self._flights.pop(event.job, None)

    def _job_finished(self, event: k.JobFinished) -> None:
        """The head counts alike for all kinds; what became of rows depends on the result."""
        run = self.run
        run.jobs += event.spark_jobs
        run.bytes_out += event.bytes_out
        run.seconds_running += event.seconds
        if isinstance(event.result, k.PathResult):
            self.profiling.take(event.result.profile)
        if event.kind == "refresh":
            run.refreshes += 1
        else:
            run.finished += 1
        if event.job not in self._flights:
            self._fault(f"job {event.job} finished, but nobody had decided it")
            return
        flight = self._flights.pop(event.job)
        if isinstance(event.result, k.RefreshResult):
            self._answer(event, event.result)
        elif isinstance(flight, ProbeFlight):
            assert isinstance(event.result, k.ProbeResult)
            self._pair(flight.group, event, event.result)
            self._count(flight.group, event, event.result)
        elif flight is not None and event.kept is None:  # the rows that were kept go on waiting
            assert isinstance(event.result, k.PathResult)
            self._check_rows(flight, event.job, event.result)
            if flight.work.again:  # its members have already had the blocks: only panes were made
                return
            self._deliver(flight, event)
            self._count(flight.group, event, event.result)
        for name, reason in event.failed.items():
            self._end(name, "failed", reason)

    def _deliver(self, flight: Flight, event: k.JobFinished) -> None:
        """Give the blocks to every member that the sinks did not refuse."""
        rows = flight.work.rows
        waits = tuple(None if waiting is None else Wait.of(
            event.at, waiting.block.arrived, waiting.block.newest, waiting.block.rows)
            for waiting in flight.blocks)
        row, together = Row.of(flight.blocks), Waits.of(wait for wait in waits if wait)
        for name, query, ledger in flight.group.riders:
            if query.name in event.failed:
                continue
            query.rows_in += rows
            if ledger is None or ledger.stream != flight.work.stream:
                self._fault(f"query {name} was given blocks of {flight.work.stream}")
                continue
            if ledger.deliver_row(row):
                if query.window is None:
                    query.take_waits(together)
                continue
            trips = zip(flight.work.blocks, flight.blocks, waits, strict=True)
            for number, waiting, wait in trips:
                early = number in ledger.owed
                if not ledger.deliver(waiting):
                    self._fault(
                        f"query {name}: block {number} of {ledger.stream} was delivered, but it "
                        "had it before"
                    )
                elif wait and not early and query.window is None:
                    query.take_wait(wait)
        row.settle(self.stream(flight.work.stream).queue)

    def _pair(
        self, group: RidingGroup, event: k.JobFinished, result: k.ProbeResult
    ) -> None:
        """A window join is done with blocks: no pair with a later row there is still to come."""
        for through in result.through:
            queue = self.stream(through.stream).queue
            # Of a query that has left meanwhile, the blocks wait no more, but are still there.
            blocks = {number: (queue.waiting.get(number), queue.spool.get(number))
                      for number in through.blocks}
            for name in through.members:
                query = group.queries.get(name) or group.queries.get(name.rpartition("#")[0])
                if query is None or query.name in event.failed:
                    continue
                self._pass(event.at, query, query.members.get(name), blocks)
        for name, end in result.ends.items():
            if name in self.queries and name not in event.failed:
                self.queries[name].last_end = end

    def _pass(
        self, at: float, query: QueryMeasures, ledger: Ledger | None,
        blocks: Mapping[int, tuple[WaitingBlock | None, Block | None]],
    ) -> None:
        for number, (waiting, block) in blocks.items():
            early = ledger is not None and number in ledger.owed
            if ledger is None or not ledger.deliver(waiting):
                self._fault(f"query {query.name}: block {number} was through, but it was before")
            elif block is not None:
                query.rows_in += block.rows
                if not early and query.window is None:
                    query.take_wait(Wait.of(at, block.arrived, block.newest, block.rows))

    def _latency_missed(self, event: k.LatencyMissed) -> None:
        """The core keeps its own count of what is late; both counts must agree."""
        query = self.queries.get(event.query)
        if query is None or (query.missed_blocks, query.missed_rows) != (event.blocks, event.rows):
            known = query and (query.missed_blocks, query.missed_rows)
            self._fault(f"query {event.query}: {event.blocks} blocks of {event.rows} rows late by "
                        f"the core's account, {known} by the deliveries")

    def _count(
        self, group: RidingGroup, event: k.JobFinished, result: k.PathResult | k.ProbeResult
    ) -> None:
        """Add up what became of the rows; answers that a sink refused are not counted."""
        became = {"rows_out": event.rows_out, "rejected": result.rejected, "added": result.added}
        if isinstance(result, k.PanesResult):
            became |= {"summarised": result.summarised, "late": result.late}
        elif isinstance(result, k.ProbeResult):
            became |= {"late": result.late, "summarised": result.summarised}
        for measure, counts in became.items():
            for name, rows in counts.items():
                query = group.queries.get(name)
                if query is None:
                    self._fault(f"job {event.job}: rows of {name}, which did not ride")
                elif name not in event.failed:
                    setattr(query, measure, getattr(query, measure) + rows)
        for name, rows in event.rows_out.items():
            if rows and name in group.queries and name not in event.failed:
                group.queries[name].last_delivery = event.at
                self.run.deliver(event.at)

    def _answers_skipped(self, event: k.AnswersSkipped) -> None:
        for name, answers in event.answers.items():
            if name in self.queries:
                self.queries[name].skipped += answers
                self.run.skipped += answers

    def _answer(self, event: k.JobFinished, result: k.RefreshResult) -> None:
        """Count the answers of window aggregates."""
        for name, answers in result.answers.items():
            query = self.queries.get(name)
            if query is None or name in event.failed:
                continue
            query.answers += answers
            query.last_end = result.ends.get(name, query.last_end)
            rows = event.rows_out.get(name, 0)
            query.rows_out += rows
            if rows:
                query.last_delivery = event.at
                self.run.deliver(event.at)
                query.take_wait(Wait.of(event.at, result.arrived, query.last_end, rows))

    def _check_rows(self, flight: Flight, job: int, result: k.PathResult) -> None:
        known = [waiting.block.rows for waiting in flight.blocks if waiting]
        rows = flight.work.rows
        held = sum(known) if len(known) == len(flight.blocks) else rows
        if not held == rows == result.rows_in:
            self._fault(f"job {job}: blocks of {held} rows, decided for {rows}, "
                        f"{result.rows_in} read")

    def _check_drained(self, query: QueryMeasures) -> None:
        for member in query.members.values():
            numbers = [waiting.block.number for waiting in member.waiting()]
            if numbers and self.stream(member.stream).state != "failed":
                self._fault(
                    f"query {member.name}: the run drained, but {len(numbers)} blocks of "
                    f"{member.stream} were not delivered, from block {numbers[0]} on"
                )

    def _fault(self, text: str) -> None:
        self.faults_seen += 1
        if len(self._faults) < FAULTS_KEPT:
            self._faults.append(text)


_VERBS: dict[type[k.Event], Callable[[Summary, Any], None]] = {
    k.StartupStep: Summary._startup_step,
    k.EngineStarted: Summary._engine_started,
    k.EngineStopped: Summary._engine_stopped,
    k.BlockArrived: Summary._block_arrived,
    k.BlockHeld: Summary._block_held,
    k.WatermarkMoved: Summary._watermark_moved,
    k.FileSetAside: Summary._file_set_aside,
    k.StreamEnded: Summary._stream_ended,
    k.StreamFailed: Summary._stream_failed,
    k.StreamRetried: Summary._stream_retried,
    k.SpoolFull: Summary._spool_full,
    k.SpoolFreed: Summary._spool_freed,
    k.QueryAdded: Summary._query_added,
    k.QueryDropped: Summary._query_dropped,
    k.QueryFailed: Summary._query_failed,
    k.RidersFormed: Summary._riders_formed,
    k.PolicyChanged: Summary._policy_changed,
    k.PathCut: Summary._tick,
    k.ProbesReordered: Summary._probes_reordered,
    k.OrderChanged: Summary._order_changed,
    k.JobDecided: Summary._job_decided,
    k.Queued: Summary._queued,
    k.JobFinished: Summary._job_finished,
    k.LatencyMissed: Summary._latency_missed,
    k.JobProgressed: Summary._tick,
    k.JobFailed: Summary._job_failed,
    k.PeriodsChosen: Summary._tick,
    k.AnswersSkipped: Summary._answers_skipped,
    k.RelationAsked: Summary._tick,
    k.RelationRead: Summary._relation_read,
    k.RelationChanged: Summary._relation_changed,
    k.SynopsisBegun: Summary._tick,
    k.BlockHot: Summary._block_hot,
    k.BlockCold: Summary._block_cold,
    k.BlockReleased: Summary._block_released,
    k.Tick: Summary._tick,
    k.Warned: Summary._warned,
    k.Memory: Summary._memory,
}
