"""Files that wait in the staging folder until their job counts: the basis of several sinks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle  # the pickler with which Spark ships functions
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StructType,
)

from penstock.arrow import arrow_type
from penstock.model import name_key, quoted
from penstock.plan import Plan
from penstock.planning.check import MEMBER
from penstock.planning.outputs import distinct, merged
from penstock.spark.compile import python_worker, worker_batches
from penstock.spark.compile.columns import ours
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.worker_sinks import WorkerSink
from penstock.spark.delivery import worker_files
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.driver_files import is_writable, widened, write_files
from penstock.spark.delivery.sinks.base import (
    AnswerSink,
    Published,
    Staged,
    WriteTask,
    by_query,
    counting,
    rows_of,
)
from penstock.spark.delivery.staging import Move
from penstock.spark.delivery.text_formats import csv_columns
from penstock.spark.delivery.text_formats import options as text_options
from penstock.spark.delivery.worker_files import (
    WRITTEN,
    FileLayout,
    FileWriter,
    written_files,
)
from penstock.spark.delivery.write_jobs import QUERY, WriteJob
from penstock.spark.ingest.sources import plain
from penstock.spark.storage.files import local_path

FOLDER = "@folder"
"""The column by which one job writes into several folders."""
COMMITTER = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The staging folder is ours alone, so tasks may put their files there directly.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""How Spark puts files into the staging folder."""
_BETWEEN = "\0"
"""Between the values of members in a literal; no name holds it."""
for _module in (worker_files, worker_batches, python_worker):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]
_FOLDER = re.compile(re.escape(FOLDER) + r"=(\d+)/")


class StagedFiles(AnswerSink):
    """Writes answers as files into the staging folder, and moves them once their job counts."""

    stages_at_once = True

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Write the files; the driver writes them itself if it holds the answers."""
        told = answers.told()
        if told is not None:
            return self._staged_by_workers(task, told, self._place(task))
        table = answers.table(task.write.members) if _is_local(task.write) else None
        columns = None if table is None else _table_columns(task, table)
        if table is not None and columns is not None and is_writable(task.write.format, columns):
            return self._stage_table(task, table[MEMBER].to_numpy(), columns)
        place = self._place(task)
        if _is_local(task.write) and task.write.format == "parquet":
            frame = _of_dataset(answers.project(task.write.members), task.write)
            if _are_arrows(frame.schema):
                work = partial(worker_files.write_task, _layout(task, str(local_path(place))))
                told = frame.mapInArrow(work, WRITTEN).toArrow()
                return self._staged_by_workers(task, told, place)
        frame, counted = counting(task, answers)
        _write(task, frame, place)
        rows = counted()
        if not rows:
            self.tools.files.remove(place)  # a job without moves leaves no files
            return Staged(task.job, jobs=1)
        return Staged(task.job, rows, self._moves(task, place), jobs=1)

    def _stage_table(self, task: WriteTask, members: np.ndarray, columns: pa.Table) -> Staged:
        """Stage what the driver holds, without a Spark job."""
        if not columns.num_rows:
            return Staged(task.job)
        write, unit, staging = task.write, str(task.number), self.tools.staging
        homes = {f"part-{task.number:05d}-{home:05d}.{write.format}": (home, rows)
                 for home, rows in _homes(task, members, columns)}
        sizes = write_files(self._place(task), write.format,
                            {name: rows for name, (_, rows) in homes.items()})
        queries = _queries_of_homes(write)
        moves = tuple(staging.move(
            task.job, unit, name, folder=staging.seen(write.folders[home]), queries=queries[home],
            size=sizes[name], is_durable=True) for name, (home, _) in homes.items())
        return Staged(task.job, rows_of(members, task.members), moves)

    def worker_sink(self, plan: Plan, task: WriteTask) -> WorkerSink | None:
        """Workers write Parquet files into folders of this machine."""
        write = task.write
        columns = write.columns or tuple(merged(distinct(map(plan.branch, write.members))))
        if write.format != "parquet" or not _is_local(write) or not _are_arrows(
                *(data_type(column.type) for column in columns)):
            return None
        folder = str(local_path(self._place(task)))
        return WorkerSink(partial(FileWriter, _layout(task, folder)),
                          WRITTEN, columns)

    def _staged_by_workers(self, task: WriteTask, table: pa.Table, place: str) -> Staged:
        """What Python workers have written into Parquet files, and tell of them."""
        write, unit, staging = task.write, str(task.number), self.tools.staging
        told = written_files(table)
        _remove_others(str(local_path(place)), {file.name for file in told})
        queries = _queries_of_homes(write)
        moves = tuple(staging.move(
            task.job, unit, file.name, folder=staging.seen(write.folders[file.home]),
            queries=queries[file.home], size=file.bytes) for file in told)
        counts = sum((file.rows for file in told), np.zeros(len(task.members), np.int64))
        return Staged(task.job, by_query(counts, task.members), moves, jobs=1)

    def _place(self, task: WriteTask) -> str:
        return self.tools.staging.place(task.job, str(task.number), task.write.folders[0])

    def _moves(self, task: WriteTask, place: str) -> tuple[Move, ...]:
        """The staged files, each with its destination."""
        moves, write, staging = [], task.write, self.tools.staging
        queries = _queries_of_homes(write)
        for move in staging.moves(task.job, str(task.number), place):
            match = _FOLDER.search(move.source)
            home = int(match.group(1)) if match else 0
            folder = staging.seen(write.folders[home])
            moves.append(replace(move, folder=folder, queries=queries[home]))
        return tuple(moves)

    def publish(self, staged: Staged) -> Published:
        """Move the files into place; one that cannot be moved waits for the next start."""
        size, is_whole = 0, True
        failed: dict[str, str] = {}
        for move in staged.moves:
            try:
                self.tools.staging.finish(staged.job, move)
                size += move.size
            except OSError as error:
                is_whole = False
                why = f"its answers could not be put into {move.folder}: {plain(error)}"
                failed |= dict.fromkeys(move.queries, why)
        return Published(size, failed, is_whole)

    def recover(self, job: int, warn: Callable[[str], None]) -> None:
        """Finish the moves; all sinks that stage files have noted theirs in one place."""
        self.tools.staging.redo(job, warn)


# --- what Python workers write -------------------------------------------------------------------


def _layout(task: WriteTask, place: str) -> FileLayout:
    write, homes = task.write, dict(zip(task.write.members, task.write.homes, strict=True))
    return FileLayout(
        place, task.number, len(task.members),
        tuple(homes.get(member, -1) for member in task.members) if len(write.folders) > 1 else (),
        QUERY if write.shared else "",
        tuple(member.query for member in task.members) if write.shared else ())


def _are_arrows(*kinds: DataType) -> bool:
    """Whether Arrow writes values of these types into Parquet as Spark does."""
    for kind in kinds:
        match kind:
            case StructType():
                is_arrows = _are_arrows(*(field.dataType for field in kind))
            case ArrayType():
                is_arrows = _are_arrows(kind.elementType)
            case MapType():
                is_arrows = _are_arrows(kind.keyType, kind.valueType)
            case _:
                is_arrows = not isinstance(kind, DayTimeIntervalType | NullType)
        if not is_arrows:
            return False
    return True


def _of_dataset(frame: DataFrame, write: WriteJob) -> DataFrame:
    """``@member`` and the columns as they are written, but for the name of the query."""
    return frame.select(ours(MEMBER), *_frame_columns(frame, write))


def _remove_others(folder: str, names: Collection[str]) -> None:
    """Remove what failed attempts have left: nobody would know where it belongs."""
    with suppress(FileNotFoundError):
        for file in Path(folder).iterdir():
            if file.name not in names:
                file.unlink()


# --- what Spark writes ---------------------------------------------------------------------------


def _write(task: WriteTask, frame: DataFrame, place: str) -> None:
    write, several = task.write, len(task.write.folders) > 1
    columns = _frame_columns(frame, write)
    if write.shared:
        names = [member.query for member in task.members]
        columns = [_of_member(names).alias(QUERY), *columns]
    if several:
        homes = dict(zip(write.members, write.homes, strict=True))
        columns.append(_of_member([homes.get(m, -1) for m in task.members]).alias(FOLDER))
    written = frame.select(*columns)
    options = text_options(write.format, len(written.columns) - several)
    if write.format == "csv":
        written = written.select(*csv_columns(written))
    writer = written.write.mode("overwrite").options(**COMMITTER, **options)
    if several:
        writer = writer.partitionBy(FOLDER)
    writer.format(write.format).save(place)


def _frame_columns(frame: DataFrame, write: WriteJob) -> list[Column]:
    """The answers' columns; in a shared folder all of its dataset, NULL if not known here."""
    present = {name_key(name): name for name in frame.columns if name != MEMBER}
    if not write.columns:
        return [F.col(quoted(name)) for name in present.values()]
    return [
        (F.col(quoted(present[name_key(field.name)])) if name_key(field.name) in present
         else F.lit(None)).cast(data_type(field.type)).alias(field.name)
        for field in write.columns
    ]


def _of_member(values: Sequence[str] | Sequence[int]) -> Column:
    """The value that belongs to a row's member, as text.

    The values are one literal: a literal for each of a thousand members took 0.5 s a job.
    """
    return F.get(F.split(F.lit(_BETWEEN.join(map(str, values))), _BETWEEN), ours(MEMBER))


# --- what the driver writes ----------------------------------------------------------------------


def _is_local(write: WriteJob) -> bool:
    return local_path(write.folders[0]) is not None


def _queries_of_homes(write: WriteJob) -> dict[int, tuple[str, ...]]:
    """By the number of a folder, the queries that deliver to it."""
    found: dict[int, dict[str, None]] = {}
    for member, home in zip(write.members, write.homes, strict=True):
        found.setdefault(home, {})[member.query] = None
    return {home: tuple(queries) for home, queries in found.items()}


def _homes(
    task: WriteTask, members: np.ndarray, columns: pa.Table
) -> list[tuple[int, pa.Table]]:
    """The rows, by the number of the folder that they go to."""
    write = task.write
    if len(write.folders) == 1:
        return [(0, columns)]
    homes = dict(zip(write.members, write.homes, strict=True))
    folder = np.array([homes.get(member, -1) for member in task.members])[members]
    order = np.argsort(folder, kind="stable")
    found, starts = np.unique(folder[order], return_index=True)
    ends = [*starts[1:], len(order)]
    ordered = columns.take(pa.array(order))
    return [(int(home), ordered.slice(start, end - start))
            for home, start, end in zip(found, starts, ends, strict=True)]


def _table_columns(task: WriteTask, table: pa.Table) -> pa.Table | None:
    """The columns as they are written; in a shared folder, all of its dataset.

    None if only Spark can convert them to the types of the dataset.
    """
    present = {name_key(name): name for name in table.column_names if name != MEMBER}
    wanted = ([(field.name, arrow_type(field.type)) for field in task.write.columns] or
              [(name, table.schema.field(name).type) for name in present.values()])
    columns = {}
    if task.write.shared:
        queries = pa.array([member.query for member in task.members])
        columns[QUERY] = queries.take(table[MEMBER].combine_chunks())
    for name, kind in wanted:
        known = present.get(name_key(name))
        column = pa.nulls(table.num_rows, kind) if known is None else widened(table[known], kind)
        if column is None:
            return None
        columns[name] = column
    return pa.table(columns)
