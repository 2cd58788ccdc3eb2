"""What the answers should be: DuckDB runs the SELECT of a query over the rows that went into files.

The text is the user's own. DuckDB gets the meaning of Spark SQL from two things:

`MACROS` give functions of the same name their meaning in Spark: the type of the answer (``LENGTH``
is an INT), NULL in ``CONCAT``, "replace all" in ``REGEXP_REPLACE``, Sunday as day 1, NULL where a
FLOOR fits no BIGINT.

`translated` changes the text in four places: a backslash in a quoted constant is an escape in Spark
and a character in DuckDB; ``CAST`` gives NULL where it fails, which DuckDB calls ``TRY_CAST``; an
operation whose failure gives NULL is marked by whoever writes the query with a comment,
``/*try*/(a + b)``, which becomes ``TRY(a + b)``; ``DIV`` is ``//``.

Where the two have different opinions and neither is wrong, queries are not generated. These are:
a quotient of DECIMALs (a DOUBLE in DuckDB); casts that drop digits (DuckDB rounds, Spark cuts
off), those of a DOUBLE to STRING and of a year alone to DATE; ``SUBSTR`` from 0, ``REPLACE`` of
nothing; letters whose capital is two letters; ``$`` in a regular expression over texts that end
with a line end; products of DECIMAL columns (DuckDB stops at 18 digits); LN, EXP and POWER, whose
last bit depends on the library.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from penstock.arrow import arrow_type
from penstock.language.types import parse_text

MACROS = (
    *(f"{name}(x) AS CAST(system.main.{name}(x) AS INT)" for name in
      ("length", "year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute",
       "second")),
    "dayofweek(x) AS CAST(system.main.dayofweek(x) + 1 AS INT)",
    "floor(x) AS TRY_CAST(system.main.floor(x) AS BIGINT)",
    "ceil(x) AS TRY_CAST(system.main.ceil(x) AS BIGINT)",
    "sign(x) AS CAST(system.main.sign(x) AS DOUBLE)",
    "unix_timestamp(x) AS CAST(system.main.floor(epoch(x)) AS BIGINT)",
    "concat(a, b) AS CAST(a AS STRING) || CAST(b AS STRING)",
    "startswith(a, b) AS starts_with(a, b)",
    "endswith(a, b) AS suffix(a, b)",
    "regexp_like(a, b) AS regexp_matches(a, b)",
    "regexp_replace(a, b, c) AS system.main.regexp_replace(a, b, c, 'g')",
)

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|/\*try\*/\(|\bCAST\(|\bDIV\b", re.DOTALL)
_DUCKDB = {"/*try*/(": "TRY(", "CAST(": "TRY_CAST(", "DIV": "//"}


def translated(sql: str) -> str:
    r"""A SELECT of Penstock as DuckDB writes it.

    >>> translated(r"SELECT /*try*/(a DIV 2), CAST(b AS INT) FROM s WHERE c = 'CAST(\\'")
    "SELECT TRY(a // 2), TRY_CAST(b AS INT) FROM s WHERE c = 'CAST(\\'"
    """
    def replaced(match: re.Match[str]) -> str:
        text = match[0]
        return text.replace("\\\\", "\\") if text[0] == "'" else _DUCKDB[text]

    return _TOKEN.sub(replaced, sql)


@dataclass(frozen=True)
class Table:
    """The rows of a stream or a relation, as Python values."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Names and types, such as ``("a", "DECIMAL(10,2)")``."""
    rows: tuple[tuple[Any, ...], ...]

    @property
    def declaration(self) -> str:
        return ", ".join(f"{name} {type_}" for name, type_ in self.columns)

    def arrow(self, rows: Sequence[tuple[Any, ...]] | None = None) -> pa.Table:
        """Its rows, or some of them, in the types of the declaration."""
        rows = self.rows if rows is None else rows
        fields = [pa.field(name, arrow_type(parse_text(type_))) for name, type_ in self.columns]
        values = list(zip(*rows, strict=True)) or [()] * len(fields)
        arrays = [pa.array(v, f.type) for v, f in zip(values, fields, strict=True)]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


class Oracle:
    """DuckDB with the tables of an application."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._duckdb = duckdb.connect(config={"threads": 1})
        self._duckdb.execute("SET TimeZone = 'UTC'; SET ieee_floating_point_ops = false")
        for macro in MACROS:
            self._duckdb.execute(f"CREATE MACRO {macro}")
        for table in tables:
            self._duckdb.register("given", table.arrow())
            columns = ", ".join(
                f"{name} AT TIME ZONE 'UTC' AS {name}" if type_ == "TIMESTAMP" else name
                for name, type_ in table.columns
            )
            self._duckdb.execute(f"CREATE TABLE {table.name} AS SELECT {columns} FROM given")
            self._duckdb.unregister("given")

    def declare(self, sql: str) -> None:
        """Carry out a statement, such as that of a view."""
        self._duckdb.execute(translated(sql))

    def answer(self, sql: str) -> Counter[tuple[Any, ...]]:
        """The rows that the query should deliver."""
        return bag(self.rows(sql))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The same as they are, in no particular order."""
        return self._duckdb.execute(translated(sql)).fetchall()

    def close(self) -> None:
        self._duckdb.close()


def bag(rows: Iterable[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset; a value carries its type, so that 1, 1.0 and TRUE are three values.

    NaN equals itself, and -0.0 equals 0.0, as in both engines. A DECIMAL is its number.
    """
    return Counter(tuple(map(_settled, row)) for row in rows)


def answers(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """What Penstock delivered, as a multiset."""
    columns = [column.to_pylist() for column in table.columns]
    return bag(zip(*columns, strict=True))


def _settled(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", "NaN" if math.isnan(value) else value + 0.0)
    if isinstance(value, datetime):
        return ("datetime", value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, Decimal):
        return ("Decimal", value.normalize() + 0)
    return None if value is None else (type(value).__name__, value)


def difference(expected: Counter[tuple[Any, ...]], got: Counter[tuple[Any, ...]]) -> str:
    """How answers differ from what they should be; nothing when they do not."""
    if expected == got:
        return ""
    lines = [f"{expected.total()} rows expected, {got.total()} delivered"]
    for word, rows in (("missing", expected - got), ("too many", got - expected)):
        for row, count in list(rows.items())[:5]:
            shown = [value[1] if isinstance(value, tuple) else value for value in row]
            lines.append(f"  {word}: {count} x {shown!r}")
    return "\n".join(lines)
