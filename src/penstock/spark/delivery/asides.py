"""Rows that are no answers: rejects of Python functions, and rows too late for a single query.

They are staged and moved like the files of a sink, into folders of the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.plan import Member
from penstock.spark.aggregates.synopsis_store import LateRows
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

    def stage_rejects(self, job: int, members: Sequence[Member], answers: Answers) -> Staged:
        """Rows for which a Python function raised, with the error, in the folder ``rejects``."""
        rejected = answers.rejected() if answers.has_rejects else 0
        if not rejected:
            return Staged(job)
        queries = list(dict.fromkeys(member.query for member in members))
        rejects = answers.rejects()
        if isinstance(rejects, pa.Table):
            moves, errors = self._write_table(job, queries, rejects)
        else:
            moves, errors = self._write_frame(job, queries, rejects)
        spark_jobs = 0 if isinstance(rejects, pa.Table) else len(queries)
        return Staged(job, moves=tuple(moves), jobs=spark_jobs,
                      rejected=dict.fromkeys(queries, rejected), errors=errors)

    def _write_table(
        self, job: int, queries: Sequence[str], rejects: pa.Table
    ) -> tuple[list[Move], dict[str, str]]:
        """The driver has the rejects, and writes them as Spark would."""
        staging, rows, moves = self.tools.staging, rejects.select(["error", "row"]), []
        for number, query in enumerate(queries):
            folder, unit = staging.own_folder("rejects", query), f"rejects-{number}"
            sizes = write_files(staging.place(job, unit, folder), "json", {REJECTS_FILE: rows})
            moves.append(staging.move(job, unit, REJECTS_FILE, folder=staging.seen(folder),
                                      size=sizes[REJECTS_FILE], is_durable=True))
        return moves, dict.fromkeys(queries, rows["error"][0].as_py())

    def _write_frame(
        self, job: int, queries: Sequence[str], rejects: DataFrame
    ) -> tuple[list[Move], dict[str, str]]:
        rows = rejects.select("error", "row")
        moves = [move for number, query in enumerate(queries)
                 for move in self._write_aside(job, "rejects", number, query, rows)]
        return moves, {query: self._first_error(job, number, query)
                       for number, query in enumerate(queries)}

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
