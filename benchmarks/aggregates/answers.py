"""Whether the answers are right: a sample of windows is computed anew from the packets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.aggregates.traffic import BEGIN, Window

SAMPLE = 40
"""Windows that are looked at."""

EXPECTED = {
    "SUM(length)": "sum(length)",
    "MEDIAN(length)": "median(length)",
    "COUNT(DISTINCT port)": "count(DISTINCT port)",
    "TOPK(port, 10)": "list_slice(list_sort(list({'n': -n, 'port': port})), 1, 10)",
}
"""Aggregates of the benchmark, as DuckDB has them."""


def wrong(
    data: Path, answers: Path, asked: Sequence[Window], seconds: int, aggregate: str, by: str
) -> list[str]:
    """The windows of a sample whose answers in a folder are not those of the packets."""
    rng = np.random.default_rng(11)
    faults = []
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"CREATE VIEW packets AS FROM '{data}/*.parquet'")
        db.execute(f"CREATE TABLE answers AS FROM '{answers}/*.parquet'")
        for number in rng.integers(0, len(asked), SAMPLE).tolist():
            ends = asked[number].ends(seconds)
            end = BEGIN + 1_000_000 * ends[int(rng.integers(len(ends)))]
            given = _given(db, number, end, aggregate, by)
            wanted = _wanted(db, end, asked[number], aggregate, by)
            if given != wanted:
                faults.append(f"q{number} at {end}: {len(given)} rows, {len(wanted)} expected")
    return faults


def _given(db: Any, number: int, end: int, aggregate: str, by: str) -> list[Any]:
    found = db.execute(
        f"SELECT {by}, answer FROM answers WHERE query = 'q{number}' "
        f"AND epoch_us(window_end) = {end} ORDER BY {by}").fetchall()
    if not aggregate.startswith("TOPK"):
        return list(found)
    return [(key, [tuple(one.values()) for one in listed]) for key, listed in found]


def _wanted(db: Any, end: int, window: Window, aggregate: str, by: str) -> list[Any]:
    first = end - 1_000_000 * window.length
    rows = f"SELECT * FROM packets WHERE ts >= make_timestamptz({first}) " \
           f"AND ts < make_timestamptz({end})"
    if aggregate.startswith("TOPK"):
        rows = f"SELECT {by}, port, count(*) AS n FROM ({rows}) GROUP BY ALL"
    found = db.execute(f"SELECT {by}, {EXPECTED[aggregate]} FROM ({rows}) "
                       f"GROUP BY {by} ORDER BY {by}").fetchall()
    if not aggregate.startswith("TOPK"):
        return list(found)
    return [(key, [(one["port"], -one["n"]) for one in listed]) for key, listed in found]
