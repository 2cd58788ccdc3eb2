"""Delivery: sinks stage the answers of a job, one line of the log commits it, sinks publish them.

The line is the moment at which a job counts. If the line was never written, what was staged is
removed. If it was written, what was staged is published, if necessary by the next run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from pyspark import SparkContext

from penstock.engine.instructions import Job, ProbeJob, RefreshJob, SegmentJob
from penstock.errors import RunError
from penstock.model import Application, Query
from penstock.plan import Member, Plan
from penstock.spark.aggregates.synopsis_store import LateRows
from penstock.spark.compile.compiler import Summarised
from penstock.spark.compile.worker_sinks import WorkerSink
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.asides import Asides
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.sink_folders import Folders
from penstock.spark.delivery.sinks import make_sinks
from penstock.spark.delivery.sinks.base import AnswerSink, Published, SinkTools, Staged, WriteTask
from penstock.spark.delivery.staging import Staging
from penstock.spark.delivery.write_jobs import WriteJob, write_jobs
from penstock.spark.ingest.sources import plain
from penstock.spark.jobs.row_checks import check_delivered
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files

WRITERS = 4
"""Write jobs of one job that may be staged at the same time."""


@dataclass(slots=True)
class Delivered:
    """What a job delivered."""

    rows: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    """The first error that a query's function raised."""
    operators: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    jobs: int = 0
    bytes: int = 0

    def add_staged(self, staged: Staged) -> None:
        """Add what a sink has staged, but for its rows: several sinks may get the same ones."""
        self.jobs += staged.jobs
        self.failed |= staged.failed
        self.rejected |= staged.rejected
        self.errors |= staged.errors

    def add_published(self, published: Published) -> None:
        """Add what a sink has published."""
        self.bytes += published.bytes
        self.failed |= published.failed


_StagedBy: TypeAlias = tuple[AnswerSink, Staged]
_Numbered: TypeAlias = tuple[int, WriteJob]


class Delivery:
    """Delivers the answers of jobs."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        files: Files,
        deliveries: Deliveries,
        callback: Callable[[str, str], Callable[..., Any]],
        say: Callable[[str], None] = print,
        warn: Callable[[str, str], None] = lambda subject, text: None,
        fail: Callable[[str, str], None] = lambda query, reason: None,
    ) -> None:
        """``callback`` finds the function that a query names as its sink.

        ``warn`` takes a subject and a text, ``fail`` a query and a reason, from any thread.
        """
        self._deliveries = deliveries
        self.folders = Folders(checkpoint, files)
        self._staging = Staging(checkpoint, files, lambda: self.folders.known)
        results = str(checkpoint.folder("results"))
        checkpoint.folder("staging")  # who only reads answers makes no folder
        tools = SinkTools(self._staging, self.folders, files, results, callback, say, warn, fail)
        self._sinks = make_sinks(tools)
        self._asides = Asides(tools)
        self._writes: tuple[Plan, dict[tuple[Member, ...], tuple[WriteJob, ...]]]
        self._writes = Plan((), ()), {}

    def adopt(self, plan: Plan, application: Application) -> None:
        """Deliver by this plan from now on; an active job goes on by its own."""
        self.folders.adopt(application)
        self._writes = plan, {}

    def faults(self, queries: Iterable[Query]) -> dict[str, str]:
        """By query, why its sink cannot take its answers. A folder is tried once for all."""
        tried: dict[tuple[str, str], str] = {}
        found: dict[str, str] = {}
        for query in chain.from_iterable(query.by_sink for query in queries):
            sink = query.sink.kind, query.sink.folder or f"{query.name} {query.sink.target or ''}"
            if sink not in tried:
                tried[sink] = self._sinks[query.sink.kind].fault(query)
            if tried[sink]:
                found.setdefault(query.name, tried[sink])
        return found

    def give_up(self, job: int, reason: str) -> bool:
        """Stop waiting for user code; return False if no sink waits for it in this job."""
        return any([sink.give_up(job, reason) for sink in self._distinct()])

    # --- a job -------------------------------------------------------------------------------

    def worker_sink(self, job: SegmentJob, plan: Plan) -> WorkerSink | None:
        """How Python workers may hand the answers of a job to their only sink, if they may."""
        writes = self._writes_of(plan, job.members)
        if len(writes) != 1:
            return None
        (write,) = writes
        return self._sinks[write.kind].worker_sink(
            plan, WriteTask(job.number, 0, job.members, write))

    def deliver(self, job: Job, plan: Plan, answers: Answers) -> Delivered:
        """Have answers computed and staged, commit the job, and have them published."""
        done = Delivered()
        with self._discarding(job.number):
            staged = self._stage_all(job, plan, answers, done)
            self._note(job.number, staged)
        done.operators = answers.counts()
        self._commit(job, staged, done)
        return done

    def deliver_nothing(self, job: SegmentJob | ProbeJob) -> None:
        """Commit a job that has no answers."""
        if isinstance(job, ProbeJob) or not job.again:
            self._commit(job, [], Delivered())

    def summarise(
        self, job: SegmentJob, rows: Summarised, late: Mapping[str, LateRows]
    ) -> Delivered:
        """Commit a job whose rows are now in panes; rows that Python rejected are set aside.

        So are the rows that are ``late`` for one query only.
        """
        done = Delivered()
        if rows.python is not None:
            done.operators = rows.python.counts()
        if job.again:
            return done
        with self._discarding(job.number):
            staged = self._stage_asides(job, rows, late, done)
            self._note(job.number, staged)
        self._commit(job, staged, done)
        return done

    def _writes_of(self, plan: Plan, members: tuple[Member, ...]) -> tuple[WriteJob, ...]:
        splits = {kind: sink.split for kind, sink in self._sinks.items()}
        adopted, known = self._writes
        if plan is not adopted:  # queries came or went after the job was ordered
            return write_jobs(plan, members, splits)
        if members not in known:
            known[members] = write_jobs(plan, members, splits)
        return known[members]

    def _stage_all(
        self, job: Job, plan: Plan, answers: Answers, done: Delivered
    ) -> list[_StagedBy]:
        writes = self._writes_of(plan, job.members)
        again = len(writes) > 1 or answers.has_rejects
        held = answers.persisted() if again else answers
        try:
            written = self._stage_writes(job, plan, writes, held)
            staged = [one for _, one in written]
            rejects = self._asides.stage_rejects(job.number, job.members, held)
            staged.append((self._asides, rejects))
            for _, one in staged:
                done.add_staged(one)
            done.rows = _rows_of(plan, [(write, one) for write, (_, one) in written], done.failed)
            held.check()
            if isinstance(job, SegmentJob):
                check_delivered(job, plan, done.rows, done.rejected)
        finally:
            if again:
                held.unpersist()
        return staged

    def _stage_asides(
        self, job: SegmentJob, rows: Summarised, late: Mapping[str, LateRows], done: Delivered
    ) -> list[_StagedBy]:
        asides = [] if rows.python is None else [
            self._asides.stage_rejects(job.number, job.members, rows.python, alike=True)]
        asides.append(self._asides.stage_late(job.number, rows, late))
        for one in asides:
            done.add_staged(one)
        return [(self._asides, one) for one in asides]

    def _stage_writes(
        self, job: Job, plan: Plan, writes: Sequence[WriteJob], answers: Answers
    ) -> list[tuple[WriteJob, _StagedBy]]:
        """Have all write jobs staged.

        Staged files are not taken apart: those of a query hold rows of others too. So sinks that
        act at once, and may fail a query by that, get the answers of queries with several sinks
        first. The other sinks then leave out the queries that have failed.
        """
        several = {m.query for m in job.members if plan.query(m.query).also}
        waiting, first, failed = list(enumerate(writes)), [], set[str]()
        for number, write in [one for one in waiting if several and self._acts_for(one, several)]:
            waiting.remove((number, write))
            if left := write.without(failed):
                first.append((left, self._stage(job, number, left, answers)))
                failed |= several & first[-1][1][1].failed.keys()
        rest = [(number, left) for number, write in waiting if (left := write.without(failed))]
        staged = list(zip([write for _, write in rest], self._stage_rest(job, rest, answers),
                          strict=True))
        for query, why in [one for _, (_, done) in staged for one in done.failed.items()]:
            if query in several:  # the job is tried again, at last for this query alone
                raise RunError(why)
        return first + staged

    def _acts_for(self, numbered: _Numbered, queries: Collection[str]) -> bool:
        _, write = numbered
        return not self._sinks[write.kind].stages_at_once and any(
            member.query in queries for member in write.members)

    def _stage_rest(
        self, job: Job, writes: Sequence[_Numbered], answers: Answers
    ) -> list[_StagedBy]:
        """Have write jobs staged, several at once if their sinks allow it.

        The first one goes alone. If Spark computes, it computes what the others read, and the
        counts are known when it ends.
        """
        if not writes:
            return []
        (first, write), *others = writes
        staged = {first: self._stage(job, first, write, answers)}
        beside = [one for one in others if self._sinks[one[1].kind].stages_at_once]
        with ThreadPoolExecutor(WRITERS, "penstock-write") as pool:
            act = _of_this_job(self._stage) if beside else self._stage
            begun = {number: pool.submit(act, job, number, write, answers)
                     for number, write in beside}
            staged |= {number: self._stage(job, number, write, answers)
                       for number, write in others if number not in begun}
        staged |= {number: one.result() for number, one in begun.items()}
        return [staged[number] for number, _ in writes]

    def _stage(
        self, job: Job, number: int, write: WriteJob, answers: Answers
    ) -> _StagedBy:
        """Have one write job computed and staged."""
        sink = self._sinks[write.kind]
        return sink, sink.stage(WriteTask(job.number, number, job.members, write), answers)

    @contextmanager
    def _discarding(self, job: int) -> Iterator[None]:
        """Remove everything staged by a job that fails: another job will try again."""
        try:
            yield
        except Exception:
            self._discard(job)
            raise

    def _discard(self, job: int) -> None:
        for sink in self._distinct():
            sink.discard(job)
        self._staging.clear(job)

    def _distinct(self) -> list[AnswerSink]:
        return list(dict.fromkeys([*self._sinks.values(), self._asides]))

    # --- commit and recovery -----------------------------------------------------------------

    def _note(self, job: int, staged: Sequence[_StagedBy]) -> None:
        """Note where all files go, in one file that has to be on disk."""
        moves = [move for _, one in staged for move in one.moves]
        if moves:
            self._staging.write(job, moves)

    def _commit(
        self, job: Job, staged: Sequence[_StagedBy], done: Delivered
    ) -> None:
        self._log(job, done)
        published = [_published(sink, one) for sink, one in staged]
        for one in published:
            done.add_published(one)
        if all(one.is_whole for one in published):
            with suppress(OSError):  # leftovers are removed at the next start
                self._settle(job.number)

    def _log(self, job: Job, done: Delivered) -> None:
        """Write the line that makes a job count."""
        rows = {query: count for query, count in done.rows.items() if query not in done.failed}
        if isinstance(job, RefreshJob):
            ends = {query: end for query, end in job.ends.items() if query not in done.failed}
            self._deliveries.commit(job.number, rows=rows, ends=ends)
            return
        if isinstance(job, ProbeJob):
            self._deliveries.commit(
                job.number, rows=rows,
                ends={query: end for query, end in job.ends.items() if query not in done.failed},
                partial={query: part for query, part in job.partial.items()
                         if query not in done.failed})
            return
        members = [m for m in job.members if m.query not in done.failed]
        self._deliveries.commit(
            job.number, rows=rows, riders=job.riders if not done.failed else -job.number,
            members=members, blocks=[block.number for block in job.blocks])

    def _settle(self, job: int) -> None:
        self._discard(job)
        self._deliveries.settled(job)

    def recover(self, warn: Callable[[str, str], None]) -> None:
        """Finish the deliveries that were committed; remove the traces of those that were not."""
        jobs = self._staging.runs()
        for job in jobs:
            try:
                if job in self._deliveries.committed:
                    for sink in self._distinct():
                        sink.recover(job, partial(warn, "sink"))
                self._settle(job)
            except OSError as error:
                warn("sink", f"answers of job {job} still wait in the checkpoint: {plain(error)}")
        waiting = self._staging.runs()
        if not waiting:
            self.folders.forget_empty()
        self._deliveries.recovered(waiting, max(jobs, default=0))
        for sink in self._distinct():
            sink.begin()

    # --- the end -----------------------------------------------------------------------------

    def flush(self, within: float, patience: float) -> dict[str, str]:
        """Wait until all sinks are through; return by query why something of it still waits."""
        waiting: dict[str, str] = {}
        for sink in self._distinct():
            waiting |= sink.flush(within, patience)
        return waiting

    def end(self) -> None:
        """No sink acts any more."""
        for sink in self._distinct():
            sink.end()


def _rows_of(
    plan: Plan, staged: Iterable[tuple[WriteJob, Staged]], failed: Collection[str]
) -> dict[str, int]:
    """Rows that each query gets; RunError if its sinks do not all get the same number."""
    by_sink: dict[tuple[str, int], Counter[str]] = {}
    for write, one in staged:
        by_sink.setdefault((write.kind, write.place), Counter()).update(one.rows)
    rows: dict[str, int] = {}
    for counts in by_sink.values():
        for query, count in counts.items():
            rows[query] = max(count, rows.get(query, 0))
    for query in (name for name in rows if plan.query(name).also and name not in failed):
        per = [counts[query] for counts in by_sink.values() if query in counts]
        if len(per) < len(plan.query(query).sinks) or len(set(per)) > 1:
            raise RunError(f"the sinks of query {query} got different numbers of rows: {per}")
    return rows


def _of_this_job(act: Callable[..., _StagedBy]) -> Callable[..., _StagedBy]:
    """A function for other threads whose Spark jobs are in this thread's group and pool.

    Spark keeps such properties per thread.
    """
    context: Any = SparkContext._active_spark_context
    if context is None:
        return act
    properties = context._jsc.sc().getLocalProperties().clone()

    def acting(*args: Any) -> _StagedBy:
        context._jsc.sc().setLocalProperties(properties)
        return act(*args)

    return acting


def _published(sink: AnswerSink, staged: Staged) -> Published:
    """Have a sink publish. The job counts already, so only the sink's queries may fail."""
    try:
        return sink.publish(staged)
    except Exception as error:
        why = f"its answers could not be published: {plain(error)}"
        return Published(failed=dict.fromkeys(staged.rows, why), is_whole=False)


def added(job: SegmentJob, out: Mapping[str, int], rejected: Mapping[str, int]) -> dict[str, int]:
    """Rows that joins added, if more rows came out than went in."""
    branches = Counter(member.query for member in job.members)
    more = {query: out.get(query, 0) + rejected.get(query, 0) - job.rows * count
            for query, count in branches.items()}
    return {query: count for query, count in more.items() if count > 0}
