"""Files that wait in the staging folder until their job counts: what several sinks are made of."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.arrow import arrow_type
from penstock.model import name_key, quoted
from penstock.planning.check import MEMBER
from penstock.spark.compile.columns import ours
from penstock.spark.compile.expressions import data_type
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sinks.base import (
    AnswerSink,
    Published,
    Staged,
    WriteTask,
    counting,
    rows_of,
)
from penstock.spark.delivery.staging import Move
from penstock.spark.delivery.text_formats import csv_columns
from penstock.spark.delivery.text_formats import options as text_options
from penstock.spark.delivery.write_jobs import QUERY, WriteJob
from penstock.spark.ingest.sources import plain
from penstock.spark.storage.files import local_path

FOLDER = "@folder"
"""The column by which one job writes into several folders."""
COMMITTER = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The staging folder is ours alone, so tasks may put their files there at once.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""How Spark puts files into the staging folder."""
_FOLDER = re.compile(re.escape(FOLDER) + r"=(\d+)/")


class StagedFiles(AnswerSink):
    """Writes answers as files into the staging folder, and moves them once their job counts."""

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Write the files; the driver does it by itself where it holds the answers."""
        table = answers.table(task.write.members) if _can_driver_write(task.write) else None
        if table is not None:
            return self._stage_table(task, table)
        place = self._place(task)
        frame, counted = counting(task, answers)
        _write(task, frame, place)
        rows = counted()
        if not rows:
            self.tools.files.remove(place)  # a job without moves leaves no files behind
            return Staged(task.job, jobs=1)
        return Staged(task.job, rows, self._moves(task, place), jobs=1)

    def _stage_table(self, task: WriteTask, table: pa.Table) -> Staged:
        """Stage what the driver holds: no Spark job is needed."""
        if not table.num_rows:
            return Staged(task.job)
        place = self._place(task)
        for home, part in _homes(task, table):
            _write_table(f"{place}/{FOLDER}={home}", _table_columns(task, part))
        return Staged(task.job, rows_of(table, task.members), self._moves(task, place))

    def _place(self, task: WriteTask) -> str:
        return self.tools.staging.place(task.job, str(task.number), task.write.folders[0])

    def _moves(self, task: WriteTask, place: str) -> tuple[Move, ...]:
        """Which staged file goes where."""
        moves, write, staging = [], task.write, self.tools.staging
        for move in staging.moves(task.job, str(task.number), place):
            match = _FOLDER.search(move.source)
            home = int(match.group(1)) if match else 0
            queries = tuple(dict.fromkeys(
                m.query for m, at in zip(write.members, write.homes, strict=True) if at == home))
            folder = staging.seen(write.folders[home])
            moves.append(replace(move, folder=folder, queries=queries))
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
    """The answers' columns; in a shared folder all of its dataset, NULL where not known here."""
    present = {name_key(name): name for name in frame.columns if name != MEMBER}
    if not write.columns:
        return [F.col(quoted(name)) for name in present.values()]
    return [
        (F.col(quoted(present[name_key(field.name)])) if name_key(field.name) in present
         else F.lit(None)).cast(data_type(field.type)).alias(field.name)
        for field in write.columns
    ]


def _of_member(values: Sequence[str] | Sequence[int]) -> Column:
    """The value that belongs to a row's member."""
    return F.get(F.array(*[F.lit(value) for value in values]), ours(MEMBER))


# --- what the driver writes ----------------------------------------------------------------------


def _can_driver_write(write: WriteJob) -> bool:
    return write.format == "parquet" and local_path(write.folders[0]) is not None


def _homes(task: WriteTask, table: pa.Table) -> list[tuple[int, pa.Table]]:
    """The rows by the number of the folder that they go to."""
    write = task.write
    if len(write.folders) == 1:
        return [(0, table)]
    homes = dict(zip(write.members, write.homes, strict=True))
    of_member = pa.array([homes.get(member, -1) for member in task.members])
    folder = of_member.take(table[MEMBER].combine_chunks())
    parts = ((n, table.filter(pc.equal(folder, n))) for n in range(len(write.folders)))
    return [(n, part) for n, part in parts if part.num_rows]


def _table_columns(task: WriteTask, table: pa.Table) -> pa.Table:
    """The columns as they are written; in a shared folder all of its dataset."""
    present = {name_key(name): name for name in table.column_names if name != MEMBER}
    wanted = ([(field.name, arrow_type(field.type)) for field in task.write.columns] or
              [(name, table.schema.field(name).type) for name in present.values()])
    columns = {}
    if task.write.shared:
        queries = pa.array([member.query for member in task.members])
        columns[QUERY] = queries.take(table[MEMBER].combine_chunks())
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
