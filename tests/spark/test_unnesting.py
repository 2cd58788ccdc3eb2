"""Arrays and maps in FROM: every row that plain Python makes of them, whatever the blocks are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.arrow import arrow_schema
from penstock.language import bind

pytestmark = pytest.mark.spark

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
DECLARED = """
CREATE STREAM s (ts TIMESTAMP, n INT, a ARRAY<INT>, m MAP<STRING, INT>, text STRING)
  FROM parquet 's' OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 1 MINUTE;
CREATE RELATION hosts (id INT, site STRING) FROM csv 'hosts.csv' OPTIONS (header = true);
"""
Row = tuple[Any, ...]
ROWS: list[Row] = [
    (BEGIN + timedelta(seconds=n), n,
     [None, [], [n], [n, None, n % 3], [1, 1, 2]][n % 5],
     [None, {}, {"a": n}, {"a": 1, "b": None}][n % 4],
     ["1,2-3", "", None][n % 3])
    for n in range(40)]
SITES = {1: "Lisbon", 2: "Porto"}


def elements(row: Row, outer: bool = False) -> list[Any]:
    return list(row[2] or ()) or ([None] if outer else [])


def entries(row: Row) -> list[tuple[Any, Any]]:
    return list((row[3] or {}).items())


def counted() -> Iterator[Row]:
    """By windows of ten seconds, how often each element stands in an array."""
    sizes = Counter(((row[0] - BEGIN) // timedelta(seconds=10), v)
                    for row in ROWS for v in elements(row))
    return ((v, count) for (_, v), count in sizes.items())


QUERIES: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "inner_one": ("SELECT n, x FROM s LATERAL VIEW explode(a) t AS x",
                  lambda: ((r[1], v) for r in ROWS for v in elements(r))),
    "outer_one": ("SELECT n, x FROM s LATERAL VIEW OUTER explode(a) t AS x",
                  lambda: ((r[1], v) for r in ROWS for v in elements(r, True))),
    "standard": ("SELECT n, x FROM s CROSS JOIN UNNEST(a) AS t (x) WHERE x > 1 AND n > 5",
                 lambda: ((r[1], v) for r in ROWS for v in elements(r)
                          if v is not None and v > 1 and r[1] > 5)),
    "standard_too": ("SELECT n, x FROM s CROSS JOIN UNNEST(a) AS t (x) WHERE x = 1",
                     lambda: ((r[1], v) for r in ROWS for v in elements(r) if v == 1)),
    "left_one": ("SELECT n, x FROM s LEFT JOIN UNNEST(a) AS t (x) ON TRUE WHERE x IS NULL",
                 lambda: ((r[1], v) for r in ROWS for v in elements(r, True) if v is None)),
    "places": ("SELECT n, p, x FROM s LATERAL VIEW posexplode(a) t AS p, x",
               lambda: ((r[1], p, v) for r in ROWS for p, v in enumerate(elements(r)))),
    "ordinals": ("SELECT n, x, p FROM s, UNNEST(a) WITH ORDINALITY AS t (x, p)",
                 lambda: ((r[1], v, p) for r in ROWS for p, v in enumerate(elements(r), 1))),
    "maps": ("SELECT n, k, v FROM s LATERAL VIEW explode(m) t AS k, v",
             lambda: ((r[1], k, v) for r in ROWS for k, v in entries(r))),
    "twice": ("SELECT n, x, y FROM s CROSS JOIN UNNEST(STRING_TO_ARRAY(text, ',')) AS b (x) "
              "CROSS JOIN UNNEST(STRING_TO_ARRAY(b.x, '-')) AS c (y)",
              lambda: ((r[1], x, y) for r in ROWS if r[4] is not None
                       for x in r[4].split(",") for y in x.split("-"))),
    "placed": ("SELECT n, x, site FROM s CROSS JOIN UNNEST(a) AS t (x) JOIN hosts ON id = x",
               lambda: ((r[1], v, SITES[v]) for r in ROWS for v in elements(r) if v in SITES)),
    "windows": ("SELECT x, COUNT(*) AS c FROM s CROSS JOIN UNNEST(a) AS t (x) "
                "GROUP BY x, TUMBLE(ts, INTERVAL '10' SECOND)", counted),
}


def put(folder: Path) -> None:
    columns = bind(DECLARED).streams["s"].columns
    (folder / "s").mkdir()
    for number, first in enumerate(range(0, len(ROWS), 15)):
        rows = [dict(zip((c.name for c in columns), row, strict=True))
                for row in ROWS[first : first + 15]]
        for row in rows:
            row["m"] = None if row["m"] is None else list(row["m"].items())
        table = pa.Table.from_pylist(rows, schema=arrow_schema(columns))
        pq.write_table(table, folder / "s" / f"{number}.parquet")
    (folder / "hosts.csv").write_text("id,site\n1,Lisbon\n2,Porto\n")


def test_every_element_becomes_a_row(tmp_path: Path, engine: Any) -> None:
    put(tmp_path)
    opened = engine()
    opened.execute(DECLARED + "".join(
        f"CREATE QUERY {name} AS {text};\n" for name, (text, _) in QUERIES.items()),
        folder=tmp_path)
    summary = opened.run()
    assert (summary.run.state, summary.failures()) == ("drained", []), summary.run.reason
    for name, (_, oracle) in QUERIES.items():
        found = opened.results(name)
        kept = [c for c in found.column_names if not c.startswith("window_")]
        rows = zip(*(found[c].to_pylist() for c in kept), strict=True)
        assert Counter(rows) == Counter(oracle()), name
    asked = opened.ask("SELECT n, x FROM s LATERAL VIEW explode(a) t AS x WHERE x = 1")
    wanted = Counter((r[1], v) for r in ROWS for v in elements(r) if v == 1)
    assert Counter(zip(*(c.to_pylist() for c in asked.columns), strict=True)) == wanted
