"""Every statement of the golden file that is understood runs, all in one application."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.arrow import arrow_schema
from penstock.language import bind
from tests.language import kit

pytestmark = pytest.mark.spark

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
NAMES = ("", "a,b", '{"a": 1}', "2024-01-01 00:00:00")
DECLARED = (kit.GOLDEN / "declarations.sql").read_text().partition("CREATE RELATION sites")[0]
DECLARED = DECLARED.replace("FROM json 'data/readings'", "FROM parquet 'data/readings' TIME at")


def readings(number: int) -> dict[str, Any]:
    """A row with every kind of value, or with none."""
    if number % 5 == 4:
        return {"at": BEGIN + timedelta(seconds=number)}
    return {
        "at": BEGIN + timedelta(seconds=number), "tiny": number, "small": number, "n": number - 3,
        "big": 1_700_000_000 + number, "single": number / 4, "real": number / 8,
        "price": Decimal(number), "name": NAMES[number % 4],
        "raw": b"x", "ok": number % 2 == 0, "day": date(2024, 1, 31), "tags": [("a", number)],
        "path": [number, None, 5], "nested": {"a": number, "b": {"c": "x"}},
    }


def put(folder: Path) -> None:
    streams = bind(DECLARED).streams
    packets = [{"ts": BEGIN + timedelta(seconds=7 * n), "src": n % 5, "dst": (n + 1) % 5,
                "port": (22, 23, 80)[n % 3], "length": 100 * n} for n in range(60)]
    for name, rows in (("packets", packets), ("readings", [readings(n) for n in range(20)])):
        (folder / "data" / name).mkdir(parents=True)
        table = pa.Table.from_pylist(rows, schema=arrow_schema(streams[name].columns))
        pq.write_table(table, folder / "data" / name / "1.parquet")
    (folder / "data" / "hosts.csv").write_text("id,site\n1,Lisbon\n2,Porto\n")


def statements() -> dict[str, str]:
    """By the name of a query, what is understood of the golden file."""
    application = kit.declared()
    found = {}
    for case in kit.cases(kit.GOLDEN / "spellings.sql"):
        if kit.outcome(case.text, application).startswith("QUERY"):
            text = case.text.removeprefix("INSERT INTO parquet 'out/spark' ")
            found[case.title.replace(" ", "_")] = text
    return found


def test_what_is_understood_runs(spark: Any, tmp_path: Path, engine: Any) -> None:
    put(tmp_path)
    queries = statements()
    assert len(queries) > 80
    opened = engine()
    opened.execute(DECLARED + "".join(
        f"CREATE QUERY {name} AS {text};\n" for name, text in queries.items()), folder=tmp_path)
    summary = opened.run()
    assert (summary.run.state, summary.failures()) == ("drained", []), summary.run.reason
    silent = {name for name in queries if not summary.queries[name].rows_out}
    assert silent == set()
