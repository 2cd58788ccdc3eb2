"""The Spark host: it carries out the core's instructions as Spark jobs and reports their cost.

One thread, the loop, owns the core: every event goes through its inbox. Ingest works in Spark's
streaming threads, and jobs in a small pool of workers. Both only put events into the inbox.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock import policies
from penstock.clock import Clock, SteadyClock
from penstock.engine import (
    Cancel,
    Cool,
    Core,
    Drain,
    Finish,
    Forget,
    Instruction,
    Job,
    Note,
    Pause,
    ProbeJob,
    ReadRelation,
    RefreshJob,
    Release,
    Resume,
    SegmentJob,
    StoreVersions,
    Trim,
    Wake,
)
from penstock.engine.positions import Positions, digests
from penstock.engine.timeouts import written
from penstock.errors import CheckpointError, PenstockError, RunError, SourceError
from penstock.events import kinds as ev
from penstock.language import durations, sizes
from penstock.model import Application, Query, Stream, name_key
from penstock.plan import Group
from penstock.planning import plan as planned
from penstock.spark.aggregates.large_groups import LargeGroups
from penstock.spark.aggregates.synopsis_store import SynopsisStore
from penstock.spark.compile.compiler import Compiler
from penstock.spark.compile.references import References
from penstock.spark.compile.relation_versions import RelationVersions, remove
from penstock.spark.compile.relations import Relations
from penstock.spark.defaults import setting, settings
from penstock.spark.delivery.commit import Delivery
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.sink_folders import at_home
from penstock.spark.driver_memory import measured
from penstock.spark.ingest import sources
from penstock.spark.ingest.sources import plain
from penstock.spark.ingest.stream_ingest import Ingest
from penstock.spark.jobs.intermediate import IntermediateStore
from penstock.spark.jobs.panes import Panes
from penstock.spark.jobs.probes import Probes
from penstock.spark.jobs.refreshes import Refreshes
from penstock.spark.jobs.rows_read import BlockReaders
from penstock.spark.jobs.segments import Order, Segments
from penstock.spark.jobs.task_progress import tasks_done
from penstock.spark.provided import Provided
from penstock.spark.questions import Questions
from penstock.spark.session import lost
from penstock.spark.stopping import TICK, HostShutdown
from penstock.spark.storage.checkpoint import Checkpoint, folder_name
from penstock.spark.storage.files import Files
from penstock.spark.storage.spool import Spool, contents_of
from penstock.spark.warm_up import WarmUp


class SparkHost(HostShutdown):
    """Runs one application on Spark until it is drained or stopped."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: Checkpoint,
        application: Application,
        clock: Clock,
        on_event: Callable[[ev.Event], None],
        until_drained: bool,
        provided: Provided,
    ) -> None:
        """Recover what an earlier run left in the checkpoint; nothing is read yet."""
        super().__init__()
        self._spark, self._checkpoint = spark, checkpoint
        self._wall, self._clock = clock, SteadyClock(clock)
        self._on_event, self._until_drained = on_event, until_drained
        self.application = application = at_home(application)
        self._cores = spark.sparkContext.defaultParallelism
        self._files = Files(spark)
        self._deliveries = Deliveries(checkpoint.log(checkpoint.deliveries))
        self._provided = provided
        relations = Relations(spark, checkpoint, self._warn)
        self._versions = RelationVersions(spark, checkpoint, relations)
        self._needs = References(application, relations, provided, self._versions)
        self._delivery = Delivery(checkpoint, self._files, self._deliveries, self._needs.callback,
                                  warn=self._report_warning, fail=self._report_failure)
        self._windows = SynopsisStore(spark, sizes.bytes(self._setting("synopses")),
                                LargeGroups(checkpoint))
        self.questions = Questions(spark, checkpoint, self._windows.find, provided)
        self._parts = IntermediateStore(spark)
        self._spools: dict[str, Spool] = {}
        self._ingests: dict[str, Ingest] = {}
        self._faults: dict[str, str] = {}
        self._inbox: queue.Queue[ev.Event | Callable[[], None]] = queue.Queue()
        self._core = Core(policies.read(application.settings),
                          settings(application, until_drained))
        means: dict[str, Any] = {
            "spark": self._spark, "job_group": self._job_group, "clock": self._clock,
            "spools": self._spools, "parts": self._parts,
            "delivery": self._delivery, "report": self._report, "cores": self._cores,
            "settings": self._core.settings, "readers": BlockReaders()}
        self._segments = Segments(**means)
        self._panes = Panes(**means, windows=self._windows, outgrow=self._outgrow)
        self._refreshes = Refreshes(self._clock, self._windows, self._delivery)
        self._probes = Probes(spark, self._job_group, self._clock, self._spools, self._delivery,
                              self._windows)
        self._positions = Positions(
            self._core, self._deliveries.positions, partial(contents_of, self._spools))
        self._workers = ThreadPoolExecutor(self._core.settings.slots + 2, "penstock-run")
        self._loop = threading.Thread(target=self._run_loop, name="penstock-loop", daemon=True)
        self._wakes: set[float] = set()
        self._to_release: list[Release] = []
        self._to_remove: list[Path] = []
        """The rows of versions of relations that no block needs any more."""
        self._warm_up: WarmUp | None = None
        self._ended, self._measured = threading.Event(), 0.0

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, then begin to read the streams and to answer."""
        self._delivery.recover(self._warn)
        for name in [name for name in self._deliveries.positions
                     if name not in self.application.queries]:
            self._deliveries.leave(name)  # it was dropped while no run was going
        self._adopt(self.application)
        self._warm_up = WarmUp(self._spark, self.application, self._core.plan, self._compiler,
                               self._segments, self._panes, self._probes)
        wanted = self._streams_of(self.application.queries.values())
        opened = self._open(wanted, self.application)
        # A block without a manifest would be read again, and its rows delivered twice.
        for stream, number in self._positions.delivered(self.application):
            if stream in self._spools:
                self._spools[stream].refuse_before(number)
        extents = {s: sources.extent(self._files, self.application.streams[s])
                   for s in wanted if s not in self._faults}
        settings = self._core.settings
        self._handle(ev.EngineStarted(
            at=self._clock.now(), streams=tuple(wanted),
            policies=policies.texts(self.application.settings), cores=self._cores,
            # A folder that is not drained has no end: more files may come.
            totals={s: e.total for s, e in extents.items()
                    if e.unit == "rows" or self._until_drained},
            unit={s: e.unit for s, e in extents.items()}, checkpoint=str(self._checkpoint.root),
            progress={s: spool.last.progress for s, spool in self._spools.items() if spool.last},
            slots=settings.slots, overlap=settings.overlap, gather=settings.gather,
            hold=settings.hold, memory=settings.memory, keep_from=settings.keep_from,
            quantum=settings.quantum, until_drained=settings.until_drained,
            paced=settings.paced))
        for name in wanted:
            for block in self._spools[name].held() if name in self._spools else ():
                self._handle(ev.BlockHeld(at=self._clock.now(), block=block))
        self._recover_versions()
        live = not settings.only_the_end_counts
        if live:
            self._on_event(ev.StartupStep(at=self._clock.now(), step=self._warm_up.step))
        self._join(list(self.application.queries.values()))
        self._loop.start()
        waiting = [name for name in opened if live and self._can_wait(name)]
        self._begin([name for name in opened if name not in waiting])
        if live:
            self._warm_up.start(partial(self._tell_warm, waiting), len(waiting) == len(opened))
        else:  # the first blocks are batched meanwhile
            self._workers.submit(self._compiler.build_fanouts)

    def stop(self, within: float | None = None) -> None:
        """Let active jobs finish, and end; see `HostShutdown.stop`."""
        if self._warm_up is not None:
            self._warm_up.close()
        super().stop(within)

    def _can_wait(self, stream: str) -> bool:
        return stream not in self._faults and self._ingests[stream].can_wait

    def _tell_warm(self, waiting: list[str]) -> None:
        """Have the loop report that warm-up has ended, and begin the streams that waited for it."""
        self._inbox.put(partial(self._be_warm, waiting))

    def _be_warm(self, waiting: list[str]) -> None:
        self._on_event(ev.StartupStep(at=self._clock.now(), step=""))
        self._begin([name for name in waiting if name in self._ingests])

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; return True if it has come."""
        return self._ended.wait(timeout)

    def change(self, application: Application) -> None:
        """Continue with another set of queries; the answers of the others do not change."""
        self._ask(lambda: self._change(at_home(application)))

    # --- the loop ----------------------------------------------------------------------------

    def _ask(self, act: Callable[[], None], within: float | None = None) -> None:
        """Have the loop do something, and wait until it is done; raise what it raises.

        TimeoutError means that the loop has not done it ``within`` this many seconds.
        """
        asked: Future[None] = Future()
        until = time.monotonic() + (inf if within is None else within)

        def answer() -> None:
            try:
                act()
                asked.set_result(None)
            except BaseException as error:
                asked.set_exception(error)

        self._inbox.put(answer)
        while not asked.done():
            ended = self._ended.is_set() or not self._loop.is_alive()
            wait([asked], timeout=0.01 if ended else 0.1)
            if ended and not asked.done():
                raise RunError("the run has ended")
            if time.monotonic() > until and not asked.done():
                raise TimeoutError("the engine's loop does not answer")
        asked.result()

    def _run_loop(self) -> None:
        while not self._ended.is_set():
            try:
                item = self._inbox.get(timeout=self._patience())
            except queue.Empty:
                item = ev.Tick(at=self._clock.now())
            try:
                if callable(item):
                    item()
                else:
                    self._handle(item)
                self._look_after()
            except PenstockError as error:
                self._end("failed", str(error))
            except Exception as error:
                self._end("broken", lost(self._spark) or f"{type(error).__name__}: {plain(error)}")

    def _patience(self) -> float:
        now = self._clock.now()
        due = min(self._wakes, default=now + TICK)
        self._wakes = {at for at in self._wakes if at > now}
        return max(0.001, min(TICK, due - now))

    def _handle(self, event: ev.Event) -> None:
        if isinstance(event, ev.BlockArrived) and self._core.preempts:
            self._report_progress(event.at)
        self._give(event)

    def _report_progress(self, at: float) -> None:
        """Tell the core the progress of jobs that a new block might preempt."""
        for job in self._core.paths.active:
            self._give(ev.JobProgressed(at=at, job=job,
                                        done=tasks_done(self._spark, self._job_group(job))))

    def _give(self, event: ev.Event) -> None:
        if isinstance(event, ev.JobFinished):
            self._feed(event)
        began = time.perf_counter()
        instructions = self._core.handle(event)
        spent = time.perf_counter() - began
        self._on_event(event)
        for instruction in instructions:
            self._carry_out(instruction, spent)
        self._release()
        self._measure(event.at)

    def _release(self) -> None:
        """Delete blocks that neither the core nor panes on the executors still need."""
        due, self._to_release = self._to_release, []
        for block in due:
            if self._windows.reads(block.stream, block.number):
                self._to_release.append(block)
                continue
            self._spools[block.stream].release(block.number)
            self._on_event(ev.BlockReleased(at=self._clock.now(), stream=block.stream,
                                            number=block.number))
        while self._to_remove and not self._to_release:  # panes may still read them
            remove(self._to_remove.pop())

    def _carry_out(self, instruction: Instruction, spent: float) -> None:
        match instruction:
            case Note(event=ev.JobDecided() as decided):
                self._on_event(replace(decided, seconds=spent))
            case Note(event=event):
                self._on_event(event)
            case SegmentJob() | RefreshJob() | ProbeJob():
                if self._warm_up is not None:
                    self._warm_up.stop()
                self._submit(self._execute, instruction, self._work(instruction))
            case Cancel(job=job, limit=limit):
                self._cancel(job, f"within {written(limit)}")
            case Trim():
                self._windows.trim(instruction)
            case Cool(stream=stream, number=number):
                if self._spools[stream].cool(number):
                    self._on_event(ev.BlockCold(at=self._clock.now(), stream=stream, number=number))
            case Forget(job=job):
                self._parts.forget(job)
            case Release():
                self._to_release.append(instruction)
            case Drain(stream=stream, reason=reason):
                self._drain(stream, reason)
            case ReadRelation():
                self._submit(self._read_relation, instruction)
            case StoreVersions(history=history):
                self._to_remove += self._versions.store(history, self.application.relations)
            case Pause():
                self._room.clear()
            case Resume():
                self._room.set()
            case Wake(at=at):
                self._wakes.add(at)
            case Finish(outcome=outcome, reason=reason):
                self._finish(outcome, reason)

    def _finish(self, outcome: ev.Outcome, reason: str) -> None:
        """End as soon as all sinks are through, which another thread waits for."""
        patience = durations.seconds(self._setting("retry"))
        threading.Thread(target=self._end_flushed, args=(outcome, reason, patience),
                         daemon=True).start()

    def _end_flushed(self, outcome: ev.Outcome, reason: str, patience: float) -> None:
        for query, why in self._delivery.flush(inf, patience).items():
            self._report_failure(query, why)
        self._inbox.put(partial(self._end, outcome, reason))

    def _end(self, outcome: ev.Outcome, reason: str) -> None:
        if not self._ended.is_set():
            self._on_event(ev.EngineStopped(at=self._clock.now(), outcome=outcome, reason=reason))
            self._ended.set()

    def _measure(self, at: float) -> None:
        if at - self._measured >= 2 * TICK:
            self._measured = at
            self._checkpoint.check_own()
            self._on_event(measured(self._spark, at, self._windows.nbytes))

    # --- relations that change ---------------------------------------------------------------

    def refresh(self, relations: Iterable[str]) -> None:
        """Have relations read again now."""
        for name in relations:
            self._inbox.put(ev.RelationAsked(at=self._clock.now(), relation=name))

    def _recover_versions(self) -> None:
        """Tell the core of the versions that an earlier run has left."""
        known = self._versions.recover(self.application.relations)
        for name, versions in known.versions.items():
            for one in versions:
                self._handle(ev.RelationChanged(
                    at=self._clock.now(), relation=name, version=one.number, digest=one.digest,
                    rows=one.rows, since=one.since, earlier=True))

    def _read_relation(self, order: ReadRelation) -> None:
        """Read a relation, in a thread of its own."""
        self._spark.sparkContext.setJobGroup(
            self._job_group(0), f"penstock relation {order.relation}")
        self._inbox.put(self._read_now(order))

    def _read_now(self, order: ReadRelation) -> ev.RelationRead:
        return self._versions.read(
            order, self.application.relations[order.relation], self._clock)

    # --- jobs --------------------------------------------------------------------------------

    def _work(self, job: Job) -> Callable[[], ev.JobFinished]:
        """The function that carries out a job, bound to the plan under which it was ordered."""
        plan = self._core.planned
        if isinstance(job, RefreshJob):
            return partial(self._refreshes.run, job, plan, self._windows.of(job.group))
        if isinstance(job, ProbeJob) and job.group:
            return partial(self._probes.summarise, job, plan, self._compiler,
                           self._windows.of(job.group))
        if isinstance(job, ProbeJob):
            return partial(self._probes.run, job, plan, self._compiler)
        path = plan.path(job.path)
        executor = self._panes if path.end == "panes" else self._segments
        compiler = self._compiler.at(path, job.blocks[0])
        return partial(executor.run, Order(job, plan, compiler, self._windows.now))

    def _execute(self, job: Job, work: Callable[[], ev.JobFinished]) -> None:
        """Carry out a job, in a thread of its own, and report how it ended."""
        event: ev.Event
        try:
            self._describe(job)
            event = work()
        except Exception as error:
            if not (reason := self._fault(job.number, error)):
                return
            event = ev.JobFailed(at=self._clock.now(), job=job.number, kind=job.kind,
                                 reason=reason)
            if isinstance(job, SegmentJob):
                self._segments.give_up(job)
        self._cancelled.pop(job.number, None)
        self._inbox.put(event)

    def _report(self, event: ev.Event) -> None:
        self._inbox.put(event)

    def _describe(self, job: Job) -> None:
        """Let Spark know what this thread runs, and in which pool."""
        what = (job.group if isinstance(job, RefreshJob) else
                job.join if isinstance(job, ProbeJob) else job.segment)
        urgent = isinstance(job, SegmentJob) and job.urgent
        context = self._spark.sparkContext
        context.setJobGroup(self._job_group(job.number), f"penstock job {job.number}: {what}")
        context.setLocalProperty("spark.scheduler.pool", "urgent" if urgent else "segments")

    # --- streams -----------------------------------------------------------------------------

    def _streams_of(self, queries: Iterable[Query]) -> list[str]:
        """The streams that queries read or derive."""
        return list(dict.fromkeys(stream for query in queries for stream in (
            *query.streams, *([query.name] if query.derives else []))))

    def _feed(self, event: ev.JobFinished) -> None:
        """A job is through: its files are in the feeds of derived streams."""
        for query in event.rows_out if isinstance(event.rows_out, Mapping) else ():
            ingest = self._ingests.get(query)
            if ingest is not None and ingest.feed is not None:
                ingest.feed.publish(event.job)

    def _drain(self, stream: str, reason: str) -> None:
        ingest = self._ingests.get(stream)
        if ingest is not None and ingest.feed is not None:
            ingest.feed.end(reason)

    def _open(self, streams: list[str], application: Application) -> list[str]:
        """Open the sources of new streams; those that cannot be read are noted.

        The others get a spool and an ingest. If a damaged checkpoint raises an error, none of them
        stays open, so that the engine goes on as before.
        """
        fresh = [name for name in streams if name not in self._ingests]
        faults = dict(self._faults)
        try:
            for name in fresh:
                self._open_one(application.streams[name])
        except BaseException:
            self._faults = faults
            for name in fresh:
                self._close_one(name)
            raise
        return fresh

    def _open_one(self, stream: Stream) -> None:
        try:
            begun = (self._checkpoint.root / "spool" / folder_name(stream.name)).is_dir()
            sources.check(self._spark, self._files, stream, begun=begun)
            if self._until_drained:
                sources.check_end(stream)
        except SourceError as error:
            self._faults[stream.name] = str(error)
            return
        spool = self._spools[stream.name] = Spool(
            self._spark, self._checkpoint, self._files, stream)
        spool.check_offsets()
        ingest = self._ingests[stream.name] = Ingest(
            self._spark, self._checkpoint, self._files, spool, self._clock, self._wall,
            self._inbox.put, durations.seconds(self._setting("retry")), self._room,
            self._provided.frames.get(name_key(stream.name)))
        try:
            ingest.open(self._until_drained)
        except CheckpointError:
            raise
        except Exception as error:  # whatever a file system reports about the source
            self._faults[stream.name] = plain(error)
        self._clock.reach(spool.last.arrived if spool.last else 0.0)  # new rows are later

    def _close_one(self, name: str) -> None:
        ingest, spool = self._ingests.pop(name, None), self._spools.pop(name, None)
        if ingest is not None:
            ingest.stop()
        if spool is not None:
            spool.close()

    def _begin(self, streams: list[str]) -> None:
        for name in streams:
            if name in self._faults:
                self._inbox.put(ev.StreamFailed(at=self._clock.now(), stream=name,
                                                reason=self._faults[name]))
                continue
            interval = durations.seconds(self._setting("trigger"))
            try:
                self._ingests[name].start(self._until_drained, interval)
            except CheckpointError:
                raise
            except Exception as error:  # whatever Spark reports about the source
                self._inbox.put(ev.StreamFailed(at=self._clock.now(), stream=name,
                                                reason=plain(error)))

    # --- queries -----------------------------------------------------------------------------

    def _adopt(self, application: Application) -> None:
        self.application = self._needs.application = application
        made = planned(application)
        first = self._deliveries.last_job if not self._loop.is_alive() else None
        self._core.adopt(made, first)
        self._compiler = Compiler(self._spark, application, made, self._needs.relation,
                                  self._needs.function,
                                  history=lambda: self._core.relations.history)
        self._delivery.adopt(made, application)

    def _join(self, queries: list[Query]) -> None:
        """Add queries at their positions: after what they have delivered, or at their beginning."""
        for name in self._core.relations.unread:
            self._handle(self._read_now(self._core.relations.order(name)))
        faults = self._delivery.folders.refused(self.application)
        texts = digests(self.application)
        if starts := self._positions.starts(queries, texts):
            self._deliveries.join(starts, self._clock.now(), texts, self._core.last_job)
        faults |= {query.name: fault for query in queries
                   if query.name not in faults and (fault := self._needs.fault(query))}
        faults |= self._delivery.faults(query for query in queries if query.name not in faults)
        for query in queries:
            added = self._positions.added(query, self._clock.now(),
                                          has_fault=query.name in faults)
            self._windows.join(query, added.since, self._until_drained)
            self._handle(added)
        self._begin_synopses(queries)
        for name in [query.name for query in queries if query.name in faults]:
            self._handle(ev.QueryFailed(at=self._clock.now(), query=name, reason=faults[name]))
        self._handle(ev.Tick(at=self._clock.now()))

    def _begin_synopses(self, joining: Sequence[Query]) -> None:
        """Back-fill the synopses of new groups, and of those that grew, from the spool."""
        needs = partial(self._positions.needs, joining=joining)
        for group in self._windows.adopt(self._core.plan, needs):
            self._begin_synopsis(group)

    def _begin_synopsis(self, group: Group) -> None:
        self._windows.of(group.id).begun = True
        self._handle(self._positions.begun(group, self._clock.now()))

    def _outgrow(self, group: Group) -> None:
        """Have the loop move a synopsis to the executors."""
        self._inbox.put(partial(self._move_away, group))

    def _move_away(self, group: Group) -> None:
        """Have a synopsis that is too large for the driver rebuilt on the executors."""
        kept = self._windows.find(group.id)  # its queries may have left meanwhile
        if kept is not None and kept.far is None:
            self._warn(f"synopsis {group.id}", "it is too large for the driver, and moves to the "
                       "executors; SET synopses gives the driver more")
            self._windows.begin(self._core.plan.group(group.id), far=True)
            self._begin_synopsis(self._core.plan.group(group.id))

    def _change(self, application: Application) -> None:
        old, fresh = self.application.queries, application.queries
        gone = [name for name in old if name not in fresh or fresh[name] != old[name]]
        added = [query for name, query in fresh.items()
                 if name not in old or fresh[name] != old[name]]
        self._delivery.folders.check(application, added)
        opened = self._open(self._streams_of(added), application)  # if it fails nothing has changed
        for name in gone:
            self._handle(ev.QueryDropped(at=self._clock.now(), query=name))
            self._deliveries.leave(name)
        before = policies.texts(self.application.settings)
        self._adopt(application)
        for family, text in policies.texts(application.settings).items():
            if text != before[family]:
                chosen = policies.FAMILIES[family].read(text)
                self._core.use(family, chosen, self._clock.now(), text)
        self._core.allow(durations.seconds(self._setting("timeout")))
        self._join(added)
        self._begin(opened)

    def _warn(self, subject: str, text: str) -> None:
        self._on_event(ev.Warned(at=self._clock.now(), subject=subject, text=text))

    def _report_warning(self, subject: str, text: str) -> None:
        self._report(ev.Warned(at=self._clock.now(), subject=subject, text=text))

    def _report_failure(self, query: str, reason: str) -> None:
        self._report(ev.QueryFailed(at=self._clock.now(), query=query, reason=reason))

    def _setting(self, name: str) -> str:
        return setting(self.application, name)
