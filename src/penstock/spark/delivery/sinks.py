"""Delivery: answers are staged, committed by one line of the log, and then moved into place."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.arrow import arrow_type
from penstock.engine.instructions import Job, RefreshJob, SegmentJob
from penstock.model import FILE_SINKS, Application, name_key, quoted
from penstock.plan import Member, Plan
from penstock.planning.check import MEMBER
from penstock.rendering import visible
from penstock.spark.aggregates.driver_answers import Held
from penstock.spark.aggregates.executor_panes import FarAnswers
from penstock.spark.aggregates.synopsis_store import Late
from penstock.spark.compile.columns import ours
from penstock.spark.compile.compiler import Answers, Summarised
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.python_worker import described
from penstock.spark.delivery.callbacks import Calls, GivenUp
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.sink_folders import Folders
from penstock.spark.delivery.staging import Move, Staging
from penstock.spark.delivery.text_formats import JSON, csv_columns
from penstock.spark.delivery.text_formats import options as text_options
from penstock.spark.delivery.write_jobs import QUERY, Unit, units
from penstock.spark.ingest.sources import plain
from penstock.spark.jobs.row_checks import check_delivered
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files, local_path, same_device

FOLDER = "@folder"
CONSOLE_ROWS = 20
"""Rows of a query that the console shows of one run."""
_FOLDER = re.compile(re.escape(FOLDER) + r"=(\d+)/")
_WRITE = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The staging folder is ours alone, so tasks may put their files there at once.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
Deliverable: TypeAlias = Answers | Held | FarAnswers
"""Answers wherever they are: not yet computed, in the driver, on the executors."""


@dataclass(slots=True)
class Delivered:
    """What a run delivered."""

    rows: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    """What a query's function raised first."""
    operators: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    jobs: int = 0
    bytes: int = 0

    def count(self, rows: Mapping[str, int]) -> None:
        """So many more rows of these queries."""
        for query, count in rows.items():
            self.rows[query] = self.rows.get(query, 0) + count


class Sinks:
    """Delivers the answers of runs."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        files: Files,
        deliveries: Deliveries,
        callback: Callable[[str, str], Callable[..., Any]],
        say: Callable[[str], None] = print,
    ) -> None:
        """``callback`` finds a callback sink's function by its text and query."""
        self._checkpoint, self._files, self._deliveries = checkpoint, files, deliveries
        self._callback, self._say = callback, say
        self.calls = Calls()
        self._staging = Staging(checkpoint, files, lambda: self.folders.known)
        self._results = str(checkpoint.folder("results"))
        self.folders = Folders(checkpoint, files)
        self._units: tuple[Plan, dict[tuple[Member, ...], tuple[Unit, ...]]] = Plan((), ()), {}

    def adopt(self, plan: Plan, application: Application) -> None:
        """Deliver by this plan from now on; a run under way goes on by its own."""
        self.folders.adopt(application)
        self._units = plan, {}

    # --- a run -------------------------------------------------------------------------------

    def deliver(self, job: Job, plan: Plan, answers: Deliverable) -> Delivered:
        """Compute the answers, stage them, commit the run and move the files into place."""
        done = Delivered()
        wanted = self._units_of(plan, job.members)
        again = len(wanted) > 1 or answers.has_rejects
        if again:
            answers = answers.kept()
        try:
            moves = [move for number, unit in enumerate(wanted)
                     for move in self._stage(job, number, unit, answers, done)]
            if isinstance(answers, Answers):
                moves += self._stage_rejects(job, answers, done)
                answers.check()
            if isinstance(job, SegmentJob):
                check_delivered(job, plan, done.rows, done.rejected)
        except Exception:
            self._staging.clear(job.number)  # another run will try again
            raise
        finally:
            if again:
                answers.let_go()
        done.operators = answers.counts()
        self._commit(job, moves, done)
        return done

    def deliver_nothing(self, job: SegmentJob) -> None:
        """Commit a run that has no answers."""
        if not job.again:
            self._commit(job, [], Delivered())

    def summarise(self, job: SegmentJob, rows: Summarised, late: Mapping[str, Late]) -> Delivered:
        """Commit a run whose rows are in panes now; what Python rejected goes aside.

        So do the rows that are ``late`` for one query alone.
        """
        done = Delivered()
        if rows.python is not None:
            done.operators = rows.python.counts()
        if not job.again:
            moves = self._stage_rejects(job, rows.python, done) if rows.python else []
            moves += self._stage_late(job, rows, late, done)
            self._commit(job, moves, done)
        return done

    def _units_of(self, plan: Plan, members: tuple[Member, ...]) -> tuple[Unit, ...]:
        adopted, known = self._units
        if plan is not adopted:  # queries came or went after the run was ordered
            return self._made(plan, members)
        if members not in known:
            known[members] = self._made(plan, members)
        return known[members]

    def _made(self, plan: Plan, members: tuple[Member, ...]) -> tuple[Unit, ...]:
        sinks = [plan.query(member.query).sink for member in members]
        folders = {sink.target or "" for sink in sinks if sink.kind in FILE_SINKS}
        alone = {folder: not same_device(self._results, folder) for folder in folders}
        return units(plan, members, self.folders.shared, self._results, alone)

    def _stage(
        self, job: Job, number: int, unit: Unit, answers: Deliverable, done: Delivered
    ) -> list[Move]:
        """Compute one unit; files wait in the staging folder."""
        if unit.kind == "noop" and (counted := answers.rows(unit.members)) is not None:
            done.count(counted)
            return []
        table = answers.table(unit.members) if _is_driver_able(unit) else None
        if table is not None:
            return self._stage_table(job, number, unit, table, done)
        observation = Observation()
        frame = _counting(answers.project(unit.members), observation, len(job.members))
        done.jobs += 1
        if unit.kind == "noop":
            frame.write.format("noop").mode("overwrite").save()
        elif unit.kind == "console":
            self._show(unit, frame.drop(MEMBER).toArrow())
        elif unit.kind == "callback":
            self._call(job, unit, frame.drop(MEMBER).toArrow(), done)
        else:
            place = self._staging.place(job.number, str(number), unit.folders[0])
            self._write(job, unit, frame, place)
        rows = _counts(observation, job.members)
        done.count(rows)
        if unit.kind not in FILE_SINKS:
            return []
        if not rows:
            self._files.remove(place)  # a run without moves leaves no files behind
            return []
        return self._moves(job, number, unit, place)

    def _stage_table(
        self, job: Job, number: int, unit: Unit, table: pa.Table, done: Delivered
    ) -> list[Move]:
        """Stage a unit that the driver holds: no job is needed."""
        if unit.kind == "console":
            self._show(unit, table.drop_columns([MEMBER]))
        elif unit.kind == "callback":
            self._call(job, unit, table.drop_columns([MEMBER]), done)
        done.count(_held_counts(table, job.members))
        if unit.kind not in FILE_SINKS or not table.num_rows:
            return []
        place = self._staging.place(job.number, str(number), unit.folders[0])
        for home, part in _homes(job.members, unit, table):
            _write_table(f"{place}/{FOLDER}={home}", _held_columns(job.members, unit, part))
        return self._moves(job, number, unit, place)

    def _write(self, job: Job, unit: Unit, frame: DataFrame, place: str) -> None:
        columns = _in_dataset(frame, unit)
        if unit.shared:
            names = [member.query for member in job.members]
            columns = [_of_member(names).alias(QUERY), *columns]
        if len(unit.folders) > 1:
            homes = dict(zip(unit.members, unit.homes, strict=True))
            columns.append(_of_member([homes.get(m, -1) for m in job.members]).alias(FOLDER))
        written = frame.select(*columns)
        named = len(written.columns) - (len(unit.folders) > 1)
        if unit.kind == "csv":
            written = written.select(*csv_columns(written))
        writer = written.write.mode("overwrite").options(**_WRITE, **text_options(unit.kind, named))
        if len(unit.folders) > 1:
            writer = writer.partitionBy(FOLDER)
        writer.format(unit.kind).save(place)

    def _moves(self, job: Job, number: int, unit: Unit, place: str) -> list[Move]:
        """Which staged file goes where."""
        moves = []
        for move in self._staging.moves(job.number, str(number), place):
            match = _FOLDER.search(move.source)
            home = int(match.group(1)) if match else 0
            queries = tuple(dict.fromkeys(
                m.query for m, at in zip(unit.members, unit.homes, strict=True) if at == home))
            folder = self._staging.seen(unit.folders[home])
            moves.append(replace(move, folder=folder, queries=queries))
        return moves

    def _show(self, unit: Unit, table: pa.Table) -> None:
        query = unit.members[0].query
        rows = table.to_pylist()
        for row in rows[:CONSOLE_ROWS]:
            told = ", ".join(f"{name}={value}" for name, value in row.items())
            self._say(visible(f"{query}: {told}"))
        if len(rows) > CONSOLE_ROWS:
            self._say(f"{visible(query)}: ... and {len(rows) - CONSOLE_ROWS} more rows")

    def _call(
        self, job: Job, unit: Unit, table: pa.Table, done: Delivered
    ) -> None:
        query = unit.members[0].query
        try:
            self.calls.call(job.number, self._callback(unit.target, query), query, table)
        except GivenUp as error:
            if not str(error):
                raise  # the engine stops: the next run calls it again
            done.failed[query] = f"its callback {unit.target} did not return {error}"
        except BaseException as error:  # whatever a user's function may do to us
            done.failed[query] = f"its callback {unit.target} raised {described(error)}"

    def _stage_rejects(
        self, job: Job, answers: Answers, done: Delivered
    ) -> list[Move]:
        """Rows for which a Python function raised, with the error, in the checkpoint's rejects."""
        rejected = answers.rejected()
        if not rejected:
            return []
        moves = []
        rejects = answers.rejects().select("error", "row")
        for number, query in enumerate(dict.fromkeys(member.query for member in job.members)):
            done.rejected[query] = rejected
            staged = self._stage_aside(job, "rejects", number, query, rejects, done)
            done.errors[query] = self._first_error(job, number, query)
            moves += staged
        return moves

    def _stage_late(
        self, job: SegmentJob, rows: Summarised, late: Mapping[str, Late], done: Delivered
    ) -> list[Move]:
        """Rows of windows that a query has answered already, in the checkpoint's late rows."""
        return [move for number, (query, own) in enumerate(late.items())
                for move in self._stage_aside(job, "late", number, query,
                                              rows.before(own.group, own.before), done)]

    def _stage_aside(
        self, job: Job, kind: str, number: int, query: str, rows: DataFrame,
        done: Delivered,
    ) -> list[Move]:
        """Rows of a query that are no answers, in the checkpoint's folder of their kind."""
        unit, folder = f"{kind}-{number}", str(self._checkpoint.folder(kind, query))
        place = self._staging.place(job.number, unit, folder)
        done.jobs += 1
        rows.write.mode("overwrite").options(**_WRITE, **JSON).json(place)
        return [replace(move, folder=self._staging.seen(folder))
                for move in self._staging.moves(job.number, unit, place)]

    def _first_error(self, job: Job, number: int, query: str) -> str:
        """The error of the first of some staged rejects."""
        folder = str(self._checkpoint.folder("rejects", query))
        place = self._staging.place(job.number, f"rejects-{number}", folder)
        for path, size in sorted(self._files.data(place)):
            local = local_path(path)
            if local is not None and size:  # a task without rejects leaves an empty file
                with local.open(encoding="utf-8") as file:
                    return str(json.loads(file.readline()).get("error", ""))
        return ""

    # --- commit and recovery -----------------------------------------------------------------

    def _commit(self, job: Job, moves: Sequence[Move], done: Delivered) -> None:
        if moves:
            self._staging.write(job.number, moves)
        self._log(job, done)
        moved = [self._move(job.number, move, done) for move in moves]
        if all(moved):
            self._settle(job.number)

    def _log(self, job: Job, done: Delivered) -> None:
        """The moment at which a run counts."""
        rows = {query: count for query, count in done.rows.items() if query not in done.failed}
        if isinstance(job, RefreshJob):
            ends = {query: end for query, end in job.ends.items() if query not in done.failed}
            self._deliveries.answer(job.number, ends, rows)
            return
        members = [(m.query, m.branch) for m in job.members if m.query not in done.failed]
        group = job.group if not done.failed else -job.number
        self._deliveries.commit(job.number, group, members, [b.number for b in job.blocks], rows)

    def _move(self, run: int, move: Move, done: Delivered) -> bool:
        """Put a file into place; where that fails it waits in the staging folder for a restart."""
        try:
            self._staging.finish(run, move)
            done.bytes += move.size
            return True
        except OSError as error:
            for query in move.queries:
                done.failed[query] = (f"its answers could not be put into "
                                      f"{move.folder}: {plain(error)}")
            return False

    def _settle(self, run: int) -> None:
        self._staging.clear(run)
        self._deliveries.settled(run)

    def recover(self, warn: Callable[[str, str], None]) -> None:
        """Finish the deliveries that were committed; remove the traces of those that were not."""
        runs = self._staging.runs()
        for run in runs:
            try:
                if run in self._deliveries.committed:
                    self._staging.redo(run, partial(warn, "sink"))
                self._settle(run)
            except OSError as error:
                warn("sink", f"answers of run {run} still wait in the checkpoint: {plain(error)}")
        waiting = self._staging.runs()
        if not waiting:
            self.folders.forget_empty()
        self._deliveries.recovered(waiting, max(runs, default=0))


def added(job: SegmentJob, out: Mapping[str, int], rejected: Mapping[str, int]) -> dict[str, int]:
    """Rows that joins made out of one, where more came out than went in."""
    branches = Counter(member.query for member in job.members)
    more = {query: out.get(query, 0) + rejected.get(query, 0) - job.rows * count
            for query, count in branches.items()}
    return {query: count for query, count in more.items() if count > 0}


def _is_driver_able(unit: Unit) -> bool:
    """Whether the driver could deliver a unit by itself, if it held the answers."""
    if unit.kind in FILE_SINKS:
        return unit.kind == "parquet" and local_path(unit.folders[0]) is not None
    return True


def _homes(
    members: Sequence[Member], unit: Unit, table: pa.Table
) -> list[tuple[int, pa.Table]]:
    """A unit's rows by the folder that they go to."""
    if len(unit.folders) == 1:
        return [(0, table)]
    homes = dict(zip(unit.members, unit.homes, strict=True))
    of_member = pa.array([homes.get(member, -1) for member in members])
    folder = of_member.take(table[MEMBER].combine_chunks())
    parts = ((n, table.filter(pc.equal(folder, n))) for n in range(len(unit.folders)))
    return [(n, part) for n, part in parts if part.num_rows]


def _held_columns(members: Sequence[Member], unit: Unit, table: pa.Table) -> pa.Table:
    """The columns as they are written; in a shared folder all of its dataset."""
    present = {name_key(name): name for name in table.column_names if name != MEMBER}
    wanted = ([(field.name, arrow_type(field.type)) for field in unit.columns] or
              [(name, table.schema.field(name).type) for name in present.values()])
    columns = {}
    if unit.shared:
        names = pa.array([member.query for member in members])
        columns[QUERY] = names.take(table[MEMBER].combine_chunks())
    for name, kind in wanted:
        known = present.get(name_key(name))
        columns[name] = (table[known].cast(kind) if known is not None
                         else pa.nulls(table.num_rows, kind))
    return pa.table(columns)


def _write_table(folder: str, table: pa.Table) -> None:
    place = local_path(folder)
    assert place is not None
    place.mkdir(parents=True)
    try:
        pq.write_table(table, place / "part-00000.parquet", compression="snappy")
    except OSError as error:  # it tells neither the folder nor, in plain words, the reason
        why = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, why, folder) from error


def _held_counts(table: pa.Table, members: Sequence[Member]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in table[MEMBER].value_counts().to_pylist():
        query = members[item["values"]].query
        counts[query] = counts.get(query, 0) + item["counts"]
    return counts


def _in_dataset(frame: DataFrame, unit: Unit) -> list[Column]:
    """The answers' columns; in a shared folder all of its dataset, NULL where not known here."""
    present = {name_key(name): name for name in frame.columns if name != MEMBER}
    if not unit.columns:
        return [F.col(quoted(name)) for name in present.values()]
    return [
        (F.col(quoted(present[name_key(field.name)])) if name_key(field.name) in present
         else F.lit(None)).cast(data_type(field.type)).alias(field.name)
        for field in unit.columns
    ]


def _counting(frame: DataFrame, observation: Observation, members: int) -> DataFrame:
    """Count the rows of every member as they pass.

    The sketch behind `approx_top_k` is exact as long as it tracks as many items as there are.
    """
    if members == 1:
        return frame.observe(observation, F.count(F.lit(1)).alias("rows"))
    top = F.expr(f"approx_top_k(`{MEMBER}`, {members}, {members})")
    return frame.observe(observation, top.alias("top"))


def _counts(observation: Observation, members: Sequence[Member]) -> Mapping[str, int]:
    measured = observation.get
    if "rows" in measured:
        return {members[0].query: measured["rows"]} if measured["rows"] else {}
    counts: dict[str, int] = {}
    for item in measured["top"] or ():
        query = members[item["item"]].query
        counts[query] = counts.get(query, 0) + item["count"]
    return counts


def _of_member(values: Sequence[str] | Sequence[int]) -> Column:
    """The value that belongs to a row's member."""
    return F.get(F.array(*[F.lit(value) for value in values]), ours(MEMBER))
