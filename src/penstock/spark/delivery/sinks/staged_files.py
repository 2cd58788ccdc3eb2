"""Files that wait in the staging folder until their job counts: the basis of several sinks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.arrow import arrow_type
from penstock.model import name_key, quoted
from penstock.planning.check import MEMBER
from penstock.spark.compile.columns import ours
from penstock.spark.compile.expressions import data_type
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.driver_files import is_writable, widened, write_files
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
    # The staging folder is ours alone, so tasks may put their files there directly.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""How Spark puts files into the staging folder."""
_BETWEEN = "\0"
"""Between the values of members in a literal; no name holds it."""
_FOLDER = re.compile(re.escape(FOLDER) + r"=(\d+)/")


class StagedFiles(AnswerSink):
    """Writes answers as files into the staging folder, and moves them once their job counts."""

    stages_at_once = True

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Write the files; the driver writes them itself if it holds the answers."""
        table = answers.table(task.write.members) if _is_local(task.write) else None
        columns = None if table is None else _table_columns(task, table)
        if table is not None and columns is not None and is_writable(task.write.format, columns):
            return self._stage_table(task, table[MEMBER].to_numpy(), columns)
        place = self._place(task)
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
