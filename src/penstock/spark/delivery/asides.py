"""Rows that are no answers: rejects of Python functions, and rows too late for a single query.

They are staged and moved like the files of a sink, into folders of the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from penstock.plan import Member
from penstock.planning.check import MEMBER
from penstock.spark.aggregates.synopsis_store import LateRows
from penstock.spark.compile.columns import ours
from penstock.spark.compile.compiler import Summarised
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.driver_files import write_files
from penstock.spark.delivery.sinks.base import Staged
from penstock.spark.delivery.sinks.staged_files import COMMITTER, StagedFiles
from penstock.spark.delivery.staging import Move
from penstock.spark.delivery.text_formats import JSON
from penstock.spark.storage.files import local_path

REJECTS_FILE = "part-00000.json"
"""The rejects of a query that the driver writes."""


class Asides(StagedFiles):
    """Stages the rows of a job that do not reach its queries."""

    def stage_rejects(
        self, job: int, members: Sequence[Member], answers: Answers, *, alike: bool = False
    ) -> Staged:
        """Rows for which a Python function raised, with the error, in the folder ``rejects``.

        Each query has those of its members. Queries whose members are ``alike`` all have the same
        ones, which the answers hold once.
        """
        if not (answers.has_rejects and answers.rejected()):
            return Staged(job)
        numbers: dict[str, list[int]] = {}
        for number, member in enumerate(members):
            numbers.setdefault(member.query, []).append(0 if alike else number)
        rejects = answers.rejects()
        spark_jobs = 0
        if isinstance(rejects, pa.Table):
            own = {query: rejects.filter(pc.is_in(
                rejects[MEMBER], value_set=pa.array(having, rejects[MEMBER].type)))
                   for query, having in numbers.items()}
            sizes = {query: rows.num_rows for query, rows in own.items() if rows.num_rows}
            moves, errors = self._write_table(job, {query: own[query] for query in sizes})
        else:
            together = alike or len(numbers) == 1
            sizes = (dict.fromkeys(numbers, answers.rejected()) if together
                     else _sizes(rejects, numbers))
            spark_jobs = len(sizes) + (not together)
            moves, errors = self._write_frame(
                job, {query: rejects.where(ours(MEMBER).isin(numbers[query])) for query in sizes})
        return Staged(job, moves=tuple(moves), jobs=spark_jobs, rejected=sizes, errors=errors)

    def _write_table(
        self, job: int, rejects: Mapping[str, pa.Table]
    ) -> tuple[list[Move], dict[str, str]]:
        """The driver has the rejects, and writes them as Spark would."""
        staging, moves = self.tools.staging, []
        for number, (query, rows) in enumerate(rejects.items()):
            folder, unit = staging.own_folder("rejects", query), f"rejects-{number}"
            told = rows.select(["error", "row"])
            sizes = write_files(staging.place(job, unit, folder), "json", {REJECTS_FILE: told})
            moves.append(staging.move(job, unit, REJECTS_FILE, folder=staging.seen(folder),
                                      size=sizes[REJECTS_FILE], is_durable=True))
        return moves, {query: rows["error"][0].as_py() for query, rows in rejects.items()}

    def _write_frame(
        self, job: int, rejects: Mapping[str, DataFrame]
    ) -> tuple[list[Move], dict[str, str]]:
        moves = [move for number, (query, rows) in enumerate(rejects.items())
                 for move in self._write_aside(
                     job, "rejects", number, query, rows.select("error", "row"))]
        return moves, {query: self._first_error(job, number, query)
                       for number, query in enumerate(rejects)}

    def stage_late(self, job: int, rows: Summarised, late: Mapping[str, LateRows]) -> Staged:
        """Rows of windows that a query has already answered, in the folder ``late``."""
        moves = [move for number, (query, own) in enumerate(late.items())
                 for move in self._write_aside(job, "late", number, query,
                                               rows.before(own.group, own.before))]
        return Staged(job, moves=tuple(moves), jobs=len(late))

    def _write_aside(
        self, job: int, kind: str, number: int, query: str, rows: DataFrame
    ) -> list[Move]:
        staging = self.tools.staging
        folder, unit = staging.own_folder(kind, query), f"{kind}-{number}"
        place = staging.place(job, unit, folder)
        rows.write.mode("overwrite").options(**COMMITTER, **JSON).json(place)
        return [replace(move, folder=staging.seen(folder))
                for move in staging.moves(job, unit, place)]

    def _first_error(self, job: int, number: int, query: str) -> str:
        """The error of the first of some staged rejects."""
        staging = self.tools.staging
        place = staging.place(job, f"rejects-{number}", staging.own_folder("rejects", query))
        for path, size in sorted(self.tools.files.data(place)):
            local = local_path(path)
            if local is not None and size:  # a task without rejects leaves an empty file
                with local.open(encoding="utf-8") as file:
                    return str(json.loads(file.readline()).get("error", ""))
        return ""


def _sizes(rejects: DataFrame, numbers: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """How many rejects each query has, if any."""
    counted = {row[MEMBER]: row["count"] for row in rejects.groupBy(ours(MEMBER)).count().collect()}
    found = {query: sum(counted.get(number, 0) for number in set(having))
             for query, having in numbers.items()}
    return {query: size for query, size in found.items() if size}
