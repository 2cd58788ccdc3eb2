"""The contract of a sink.

A job counts at one moment: when its line is in the log of deliveries. Around this line a sink has
few verbs::

    fault(query)            may this query run?                         when it joins
    split(plan, members)    which answers do you take in one piece?     once per set of members
    stage(task, answers)    compute them and lay them ready             before the line
    publish(staged)         let the world see them                      after the line
    discard(job)            nothing of it is needed any more            after a failure, or the end
    recover(job, ...)       the driver died around the line: finish     at the next start
    give_up(job, reason)    stop waiting for somebody else's code       when a job is cancelled
    begin()                 go on with what earlier runs have left      when a run begins
    flush(within, ...)      wait until the world has seen everything    before a run ends
    end()                   let go of everything                        when it has ended

A sink is exactly-once if `stage` shows nothing to anybody, everything that `publish` needs outlives
the driver, and `publish` may be repeated. Files are such a sink: they wait in the staging folder of
their job, the commit notes where each goes, and a rename can be repeated. A sink that opens a
transaction elsewhere notes its name with `Staging.note`. The commit removes the staging folder when
all is published. A sink that acts in `stage`, as the console does, is at-least-once: after a crash
the job runs again.

To write a sink, subclass `AnswerSink` in a file of its own, and give it a line in the catalogue,
`penstock.sinks.SINKS`. Only `stage` must be written::

    class ListSink(AnswerSink):
        def stage(self, task, answers):
            collected = collect(task, answers)
            seen.extend(collected.table.to_pylist())
            return collected.staged
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from penstock.model import Query
from penstock.plan import Member, Plan
from penstock.planning.check import MEMBER
from penstock.spark.compile.worker_sinks import WorkerSink
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sink_folders import Folders
from penstock.spark.delivery.staging import Move, Staging
from penstock.spark.delivery.write_jobs import WriteJob, query_by_query
from penstock.spark.storage.files import Files


@dataclass(frozen=True, slots=True)
class SinkTools:
    """What sinks are made with."""

    staging: Staging
    """Where files wait until their job counts."""
    folders: Folders
    """The folders that queries deliver to, and what each holds."""
    files: Files
    results: str
    """The checkpoint's own folder for answers."""
    callback: Callable[[str, str], Callable[..., Any]]
    """Finds a function by its text, ``module:name``, and the query that names it."""
    say: Callable[[str], None] = print
    """Prints a line for people to read."""
    warn: Callable[[str, str], None] = lambda subject, text: None
    """Reports something that the user should know, from any thread."""
    fail: Callable[[str, str], None] = lambda query, reason: None
    """Reports that a query cannot go on, and why, from any thread."""


@dataclass(frozen=True, slots=True)
class WriteTask:
    """One write job of one job."""

    job: int
    number: int
    """Which of the job's write jobs it is."""
    members: tuple[Member, ...]
    """All members of the job, in the order in which ``@member`` numbers them."""
    write: WriteJob


@dataclass(frozen=True, slots=True)
class Staged:
    """What a sink has staged."""

    job: int
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows that each query gets."""
    moves: tuple[Move, ...] = ()
    """Files that wait in the staging folder. The commit notes them all before its line."""
    jobs: int = 0
    """Spark jobs that it took."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries that the sink cannot serve any more, and why; the others in the job count."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Rows of each query that a Python function rejected."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """The first error of each."""


@dataclass(frozen=True, slots=True)
class Published:
    """What became of staged answers."""

    bytes: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries whose answers could not be published, and why."""
    is_whole: bool = True
    """Whether everything is published; what is not is published at the next start."""


class AnswerSink:
    """Delivers answers to one kind of place. The module says when each verb is called."""

    stages_at_once: ClassVar[bool] = False
    """Whether write jobs of one job may be staged at the same time, in several threads. If not,
    they are staged one after the other, in the order of their queries."""

    def __init__(self, tools: SinkTools) -> None:
        """One sink serves all queries of its kind."""
        self.tools = tools

    def fault(self, query: Query) -> str:
        """Why a query cannot deliver here, if it cannot; OSError counts as a reason too."""
        return ""

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """Divide the members that deliver here into write jobs; `write_jobs` offers ways."""
        return query_by_query(plan, members)

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Compute answers and stage them. Any exception fails the job."""
        raise NotImplementedError

    def worker_sink(self, plan: Plan, task: WriteTask) -> WorkerSink | None:
        """How workers may hand the answers over, instead of giving them to Spark.

        They do so only if they need Spark for no column. Then `stage` finds in `answers.told()`
        what became of them.
        """
        return None

    def publish(self, staged: Staged) -> Published:
        """Let the world see what `stage` prepared; repeating it must have no further effect."""
        return Published()

    def discard(self, job: int) -> None:
        """Remove what a job prepared outside its staging folder, if there is anything."""

    def recover(self, job: int, warn: Callable[[str], None]) -> None:
        """Publish what a job that counts had staged when the driver died.

        Only jobs that left something in the staging folder are recovered. `discard` follows,
        unless OSError says that it cannot be done yet.
        """

    def give_up(self, job: int, reason: str) -> bool:
        """Stop waiting for user code; return False if the sink does not wait for any."""
        return False

    # A sink that publishes into a place of its own, and sends from there, needs these three, too.

    def begin(self) -> None:
        """A run begins; the jobs of earlier ones are recovered already."""

    def flush(self, within: float, patience: float) -> Mapping[str, str]:
        """Wait until everything published is sent; return by query why something is not.

        It is over ``within`` this many seconds, or when nothing has moved for ``patience``.
        """
        return {}

    def end(self) -> None:
        """The run has ended."""


# --- help for `stage` ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collected:
    """Answers in the driver."""

    table: pa.Table
    """The columns of the answers, without ``@member``."""
    staged: Staged


def collect(task: WriteTask, answers: Answers) -> Collected:
    """Bring answers into the driver, for sinks that hand them over there."""
    table = answers.table(task.write.members)
    if table is not None:
        rows = rows_of(table[MEMBER].to_numpy(), task.members)
        return Collected(table.drop_columns([MEMBER]), Staged(task.job, rows))
    frame, counter = counting(task, answers)
    table = frame.drop(MEMBER).toArrow()
    return Collected(table, Staged(task.job, counter(), jobs=1))


def counting(
    task: WriteTask, answers: Answers
) -> tuple[DataFrame, Callable[[], Mapping[str, int]]]:
    """The frame of a write job, and a function that counts each query's rows once it is computed.

    The sketch behind `approx_top_k` is exact as long as it tracks as many items as there are.
    """
    frame, observation, members = answers.project(task.write.members), Observation(), task.members
    if len(members) == 1:
        counted = frame.observe(observation, F.count(F.lit(1)).alias("rows"))
    else:
        top = F.expr(f"approx_top_k(`{MEMBER}`, {len(members)}, {len(members)})")
        counted = frame.observe(observation, top.alias("top"))
    return counted, lambda: _counts(observation, members)


def _counts(observation: Observation, members: Sequence[Member]) -> Mapping[str, int]:
    measured = observation.get
    if "rows" in measured:
        return {members[0].query: measured["rows"]} if measured["rows"] else {}
    counts: dict[str, int] = {}
    for item in measured["top"] or ():
        query = members[item["item"]].query
        counts[query] = counts.get(query, 0) + item["count"]
    return counts


def rows_of(numbers: np.ndarray, members: Sequence[Member]) -> dict[str, int]:
    """The rows of each query, by the ``@member`` of every row."""
    return by_query(np.bincount(numbers, minlength=len(members)), members)


def sum_of(counts: pa.ChunkedArray, members: int) -> np.ndarray:
    """The rows of every member, from what takers told: 64-bit numbers."""
    each = [np.frombuffer(one, np.int64) for one in counts.to_pylist()]
    return sum(each, np.zeros(members, np.int64))


def by_query(sizes: np.ndarray, members: Sequence[Member]) -> dict[str, int]:
    """The rows of each query that has any, by the rows of every member."""
    counts: dict[str, int] = {}
    for member, rows in zip(members, sizes.tolist(), strict=True):
        if rows:
            counts[member.query] = counts.get(member.query, 0) + rows
    return counts
