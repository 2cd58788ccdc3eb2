"""Whole applications out of nothing: streams, relations, data and queries that read them.

Expressions are drawn by type, so that every application binds. Constants come from the same small
pools as the data: filters then match something, and queries have predicates in common.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.spark import feeds
from tests.spark.oracle import Table

INT, BIGINT, DOUBLE, DECIMAL = "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)"
STRING, BOOLEAN, DATE, TIMESTAMP = "STRING", "BOOLEAN", "DATE", "TIMESTAMP"
TYPES = (INT, BIGINT, DOUBLE, DECIMAL, STRING, BOOLEAN, DATE, TIMESTAMP)
NUMBERS = (INT, BIGINT, DOUBLE, DECIMAL)
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)

POOLS: dict[str, list[Any]] = {
    INT: [1, 2, 3, 0, -1, 7, 80, 443, -(2**31), 2**31 - 1],
    BIGINT: [1, 2, 3, 0, -1, 5, 2**31, 2**53 + 1, -(2**63), 2**63 - 1],
    DOUBLE: [0.5, 1.0, 2.0, -0.25, 0.0, -0.0, 0.1, math.nan, math.inf, -math.inf, 1e308, 5e-324],
    DECIMAL: [Decimal(text) for text in
              ("1.50", "0.00", "0.01", "-1.50", "2.00", "2.25", "99999999.99", "-99999999.99")],
    STRING: ["a", "b", "ab", "", "A%", "a_b", 'say "hi"', "it's", "a,b", "a\nb", "x\r\ny", "é",
             "日本語", "😀", "e\u0301", " padded ", "\ttab", "back\\slash", "12", "-7", "null",
             "NULL", "a;b;c", "#", "{}", "2024-02-29"],
    BOOLEAN: [True, False],
    DATE: [date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(1900, 3, 1),
           date(2024, 12, 30)],
    TIMESTAMP: [NOON, NOON + timedelta(microseconds=1), NOON + timedelta(days=306, hours=11),
                datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),
                datetime(1950, 6, 1, 3, 4, 5, tzinfo=UTC)],
}  # fmt: skip
"""The values of each type, the most frequent ones of skewed data first."""

PATTERNS = ["a%", "%b", "%", "_", "", "a_b", "%a%b%", "%'%", "%\n%", "日%", "_%_", "A%"]


# --- data ----------------------------------------------------------------------------------------


def _row(chance: random.Random, types: Sequence[str], skewed: bool) -> tuple[Any, ...]:
    def value(type_: str) -> Any:
        if chance.random() < 0.15:
            return None
        if skewed and chance.random() < 0.7:
            return POOLS[type_][0]
        return chance.choice(POOLS[type_])

    return tuple(map(value, types))


def _rows(
    chance: random.Random, types: Sequence[str], count: int, skewed: bool
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for _ in range(count):
        twice = rows and chance.random() < 0.1
        rows.append(chance.choice(rows) if twice else _row(chance, types, skewed))
    return rows


@dataclass(frozen=True)
class Feed:
    """A stream or a relation, and how its rows lie in files."""

    table: Table
    format: str
    cuts: tuple[int, ...] = ()
    """Where one file ends and the next begins."""
    block: int = 1
    """Files in a block."""
    lateness: int | None = None
    """Seconds; None for a stream without a time column."""

    def blocks(self) -> list[tuple[tuple[Any, ...], ...]]:
        """The rows of each block."""
        bounds = [0, *self.cuts, len(self.table.rows)]
        starts = bounds[: -1 : self.block]
        ends = [*starts[1:], bounds[-1]]
        return [self.table.rows[a:b] for a, b in zip(starts, ends, strict=True)]

    def punctual(self) -> Table:
        """The table without its late rows, which no query sees."""
        if self.lateness is None:
            return self.table
        kept: list[tuple[Any, ...]] = []
        seen: datetime | None = None
        for rows in self.blocks():
            bound = seen - timedelta(seconds=self.lateness) if seen is not None else None
            kept += [r for r in rows if r[0] is None or bound is None or r[0] >= bound]
            seen = max((r[0] for r in kept if r[0] is not None), default=None)
        return replace(self.table, rows=tuple(kept))

    def statement(self, kind: str) -> str:
        """Its declaration; the folder is named as it is."""
        more = [f"maxFilesPerTrigger = {self.block}"] if kind == "STREAM" else []
        text = (f"CREATE {kind} {self.table.name} ({self.table.declaration})\n"
                f"  FROM {self.format} '{self.table.name}' "
                f"{feeds.options(self.format, *more)}")
        if self.lateness is not None:
            text += f"\n  TIME {self.table.columns[0][0]} LATENESS {self.lateness} SECONDS"
        return text + ";"


@dataclass(frozen=True)
class Question:
    """A query."""

    name: str
    select: str
    sink: str = ""


@dataclass(frozen=True)
class Drawn:
    """An application with its data."""

    streams: tuple[Feed, ...]
    relations: tuple[Feed, ...]
    queries: tuple[Question, ...]

    @property
    def sql(self) -> str:
        """Its text."""
        streams = [feed.statement("STREAM") for feed in self.streams]
        relations = [feed.statement("RELATION") for feed in self.relations]
        queries = [f"CREATE QUERY {q.name}{q.sink} AS\n  {q.select};" for q in self.queries]
        return "\n".join((*streams, *relations, *queries))

    def write(self, folder: Path) -> None:
        """The data into a folder, from which the relative paths start."""
        for feed in (*self.streams, *self.relations):
            feeds.write(feed.table, folder / feed.table.name, feed.format, feed.cuts)

    @property
    def tables(self) -> list[Table]:
        """What queries see."""
        return [*(s.punctual() for s in self.streams), *(r.table for r in self.relations)]

    def __repr__(self) -> str:
        """Its size; the text is long, and the data follows from the seed."""
        inputs = (*self.streams, *self.relations)
        sizes = {f.table.name: (len(f.table.rows), f.format, f.cuts, f.block) for f in inputs}
        return f"<{len(self.queries)} queries over {sizes}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # or Hypothesis would print all of the data


@st.composite
def _stream(draw: Any, name: str, format_: str) -> Feed:
    kinds = st.lists(st.sampled_from(TYPES), min_size=3, max_size=8, unique=True)
    types = [TIMESTAMP, *draw(kinds), *draw(st.lists(st.sampled_from(TYPES), max_size=2))]
    columns = tuple((f"{name}_{k}", type_) for k, type_ in enumerate(types))
    count = draw(st.sampled_from([90, 150, 120, 60, 40, 20, 1, 0]))
    chance = random.Random(draw(st.integers(0, 2**32 - 1)))
    rows = _rows(chance, types, count, skewed=draw(st.booleans()))
    cuts = tuple(sorted(draw(st.lists(st.integers(0, count), max_size=3))))
    block = draw(st.integers(1, len(cuts) + 1))
    feed = Feed(Table(name, columns, tuple(rows)), format_, cuts, block)
    kind = draw(st.sampled_from(["punctual", "punctual", "late", "timeless"]))
    if kind == "timeless":
        return feed
    spread, lateness = (30, 30) if kind == "punctual" else (60, 10)
    timed = [
        (_time(chance, number, spread) if r[0] is not None else None, *r[1:])
        for number, r in enumerate(rows)
    ]
    return replace(feed, table=replace(feed.table, rows=tuple(timed)), lateness=lateness)


def _time(chance: random.Random, number: int, spread: int) -> datetime:
    """Times advance by a second a row, out of order by less than the spread."""
    back = chance.randrange(spread * 1_000_000) if chance.random() < 0.3 else 0
    return NOON + timedelta(seconds=number, microseconds=-back)


@st.composite
def _relation(draw: Any, name: str, keys: Sequence[str]) -> Feed:
    types = [draw(st.sampled_from(keys)),
             *draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))]
    columns = tuple((f"{name}_{k}", type_) for k, type_ in enumerate(types))
    count = draw(st.sampled_from([20, 10, 5, 0]))
    chance = random.Random(draw(st.integers(0, 2**32 - 1)))
    rows = tuple(_rows(chance, types, count, skewed=False))
    format_ = draw(st.sampled_from(feeds.FORMATS))
    return Feed(Table(name, columns, rows), format_)


# --- expressions ---------------------------------------------------------------------------------


def literal(value: Any, type_: str) -> str:
    """A constant as it is written."""
    if value is None:
        return "NULL"
    if type_ == STRING:
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    if type_ == BOOLEAN:
        return "TRUE" if value else "FALSE"
    if type_ == DATE:
        return f"DATE '{value}'"
    if type_ == TIMESTAMP:
        return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    if type_ == DOUBLE:
        return f"{value:e}" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    return str(value)


Columns = Sequence[tuple[str, str]]


@dataclass
class Expressions:
    """Draws expressions over some columns."""

    draw: Callable[..., Any]
    columns: Columns
    _depth: int = field(default=0)

    def pick(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def constant(self, type_: str) -> str:
        return literal(self.pick(*POOLS[type_]), type_)

    def column(self, type_: str) -> str | None:
        names = [name for name, t in self.columns if t == type_]
        return self.pick(*names) if names else None

    def leaf(self, type_: str) -> str:
        column = self.column(type_)
        return column if column and self.pick(*[True] * 4, False) else self.typed(type_)

    def typed(self, type_: str) -> str:
        """A constant of exactly this type: a small number is an INT wherever it stands."""
        if type_ in (INT, STRING, BOOLEAN, DATE, TIMESTAMP):
            return self.small() if type_ == INT else self.constant(type_)
        return f"CAST({self.small()} AS {type_})"

    def small(self) -> str:
        return str(self.pick(0, 1, 2, 3, 10, 255))

    def value(self, type_: str, depth: int = 2) -> str:
        """An expression of a type."""
        if depth == 0 or self.pick(False, True):
            return self.leaf(type_)
        return self.pick(*_PRODUCTIONS[type_], *_ANY)(self, type_, depth - 1)

    # --- conditions ------------------------------------------------------------------------------

    def condition(self, depth: int = 2) -> str:
        kind = self.pick("or", "and", "not", *["simple"] * 7) if depth else "simple"
        if kind == "not":
            return f"NOT ({self.condition(depth - 1)})"
        if kind in ("and", "or"):
            return f"({self.condition(depth - 1)} {kind.upper()} {self.condition(depth - 1)})"
        texts = _TEXT_CONDITIONS if self.column(STRING) else ()
        return self.pick(*_CONDITIONS, *texts)(self, max(depth - 1, 0))

    def known(self) -> str:
        """A type that some column has."""
        return self.pick(*sorted({type_ for _, type_ in self.columns}))


def _comparison(e: Expressions, depth: int) -> str:
    type_ = e.known()
    sign = e.pick("=", "=", "=", "<", "<=", ">", ">=", "<>")
    return f"{e.value(type_, depth)} {sign} {e.constant(type_)}"


def _between_columns(e: Expressions, depth: int) -> str:
    type_ = e.known()
    other = e.pick(*NUMBERS) if type_ in NUMBERS else type_
    sign = e.pick("=", "<", ">=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    return f"{e.value(type_, depth)} {sign} {e.value(other, depth)}"


def _flipped(e: Expressions, depth: int) -> str:
    type_ = e.known()
    return f"{e.constant(type_)} {e.pick('<', '>=', '=')} {e.value(type_, depth)}"


def _range(e: Expressions, depth: int) -> str:
    type_ = e.known()
    column = e.value(type_, depth)
    if e.pick(True, False):
        word = e.pick("BETWEEN", "NOT BETWEEN")
        return f"{column} {word} {e.constant(type_)} AND {e.constant(type_)}"
    return f"({column} > {e.constant(type_)} AND {column} <= {e.constant(type_)})"


def _in(e: Expressions, depth: int) -> str:
    type_ = e.known()
    count = e.pick(1, 2, 3, 5)
    items = [e.constant(type_) for _ in range(count)]
    if e.pick(True, False, False, False):
        items.append("NULL")
    return f"{e.value(type_, depth)} {e.pick('IN', 'IN', 'NOT IN')} ({', '.join(items)})"


def _null(e: Expressions, depth: int) -> str:
    return f"{e.value(e.known(), depth)} {e.pick('IS NULL', 'IS NOT NULL')}"


def _like(e: Expressions, depth: int) -> str:
    text = e.value(STRING, depth)
    if e.pick(True, False, False):
        return f"{text} LIKE '{e.pick('a!_b', '!%%', '%!%', '%!%%', 'a!!%')}' ESCAPE '!'"
    return f"{text} {e.pick('LIKE', 'NOT LIKE', 'ILIKE')} {literal(e.pick(*PATTERNS), STRING)}"


def _text_test(e: Expressions, depth: int) -> str:
    function = e.pick("STARTSWITH", "ENDSWITH", "CONTAINS")
    return f"{function}({e.value(STRING, depth)}, {e.constant(STRING)})"


def _regex(e: Expressions, depth: int) -> str:
    pattern = e.pick("^[a-c]+", "[0-9]+", "b|日", "^a;", "[^a-z]")
    return f"REGEXP_LIKE({e.value(STRING, depth)}, '{pattern}')"


def _truth(e: Expressions, depth: int) -> str:
    tested = e.value(BOOLEAN, depth)
    return e.pick(tested, f"({tested}) IS TRUE", f"({tested}) IS NOT FALSE", f"NOT ({tested})")


_CONDITIONS = (_comparison, _comparison, _comparison, _between_columns, _flipped, _range, _range,
               _in, _in, _null, _truth)  # fmt: skip
_TEXT_CONDITIONS = (_like, _like, _text_test, _regex)


def _case(e: Expressions, type_: str, depth: int) -> str:
    otherwise = e.pick("", f" ELSE {e.value(type_, depth)}")
    if e.pick(True, False, False):
        subject = e.known()
        whens = [f"WHEN {e.constant(subject)} THEN {e.value(type_, depth)}" for _ in "12"]
        return f"CASE {e.value(subject, depth)} {' '.join(whens)}{otherwise} END"
    return f"CASE WHEN {e.condition(depth)} THEN {e.value(type_, depth)}{otherwise} END"


def _coalesce(e: Expressions, type_: str, depth: int) -> str:
    return f"COALESCE({e.value(type_, depth)}, {e.value(type_, depth)})"


def _nullif(e: Expressions, type_: str, depth: int) -> str:
    return f"NULLIF({e.value(type_, depth)}, {e.value(type_, depth)})"


def _extreme(e: Expressions, type_: str, depth: int) -> str:
    function = e.pick("GREATEST", "LEAST")
    return f"{function}({e.value(type_, depth)}, {e.value(type_, depth)})"


_ANY = (_case, _coalesce, _nullif, _extreme)

Production = Callable[[Expressions, str, int], str]


def _sum(*signs: str) -> Production:
    return lambda e, type_, depth: (
        f"/*try*/({e.value(type_, depth)} {e.pick(*signs)} {e.value(type_, depth)})"
    )


def _of(template: str, *types: str) -> Production:
    """A function of values of other types; ``{}`` stands for each of them."""
    return lambda e, type_, depth: template.format(*(e.value(other, depth) for other in types))


def _one_of(*templates: str, of: str) -> Production:
    return lambda e, type_, depth: _of(e.pick(*templates), of)(e, type_, depth)


_CALENDAR = ("YEAR({})", "QUARTER({})", "MONTH({})", "WEEK({})", "DAY({})", "DAYOFWEEK({})",
             "DAYOFYEAR({})")  # fmt: skip
_CLOCK = ("HOUR({})", "MINUTE({})", "SECOND({})", *_CALENDAR)
_TEXT = ("LOWER({})", "UPPER({})", "TRIM({})", "LTRIM({})", "RTRIM({})", "MD5({})",
         "SUBSTR({}, 2)", "SUBSTR({}, 1, 2)", "SUBSTR({}, 3, 0)", "SUBSTR({}, -2)",
         "REPLACE({}, 'a', '')", "REPLACE({}, 'b', 'bb')", "SPLIT_PART({}, ';', 2)",
         "SPLIT_PART({}, ',', -1)", "REGEXP_REPLACE({}, '[ab]', '<>')",
         "REGEXP_EXTRACT({}, '([a-z]+)[^a-z]*([a-z]*)', 2)")  # fmt: skip

_PRODUCTIONS: dict[str, tuple[Production, ...]] = {
    INT: (
        _sum("+", "-", "*", "%"),
        _of("/*try*/(ABS({}))", INT),
        _of("/*try*/(-({}))", INT),
        _of("LENGTH({})", STRING),
        _one_of(*_CALENDAR, of=DATE),
        _one_of(*_CLOCK, of=TIMESTAMP),
        _one_of("CAST({} AS INT)", of=BOOLEAN),
        _one_of("CAST({} AS INT)", of=BIGINT),
        _one_of("CAST({} AS INT)", of=STRING),
    ),
    BIGINT: (
        _sum("+", "-", "*", "%", "DIV"),
        _of("/*try*/({} + {})", INT, BIGINT),
        _one_of("FLOOR({})", "CEIL({})", of=DOUBLE),
        _of("UNIX_TIMESTAMP({})", TIMESTAMP),
        _of("CAST({} AS BIGINT)", INT),
    ),
    DOUBLE: (
        _sum("+", "-", "*", "/", "%"),
        _of("/*try*/({} / {})", INT, BIGINT),
        _of("SQRT(ABS({}))", DOUBLE),
        _of("ROUND({})", DOUBLE),
        _of("SIGN({})", INT),
        _of("CAST({} AS DOUBLE)", INT),
        _of("CAST({} AS DOUBLE)", DECIMAL),
    ),
    DECIMAL: (
        _sum("+", "-"),
        _of("/*try*/({} * 1.25)", DECIMAL),
        _of("/*try*/({} + {})", INT, DECIMAL),
        _one_of("ABS({})", "ROUND({}, 1)", "-({})", of=DECIMAL),
        _of("CAST({} AS DECIMAL(10,2))", INT),
    ),
    STRING: (
        _one_of(*_TEXT, of=STRING),
        _one_of(*_TEXT, of=STRING),
        _of("CONCAT({}, {})", STRING, STRING),
        _of("({} || '-' || {})", STRING, STRING),
        *(_of("CAST({} AS STRING)", other)
          for other in (INT, BIGINT, DECIMAL, BOOLEAN, DATE, TIMESTAMP)),
    ),
    BOOLEAN: (
        lambda e, type_, depth: f"({e.condition(depth)})",
        _of("CAST({} AS BOOLEAN)", INT),
    ),
    DATE: (
        _of("CAST({} AS DATE)", TIMESTAMP),
        lambda e, type_, depth: f"CAST({e.leaf(STRING)} AS DATE)",
    ),
    TIMESTAMP: (
        _one_of(*(f"DATE_TRUNC('{unit}', {{}})" for unit in
                  ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
                of=TIMESTAMP),
        _one_of("({} + INTERVAL '10' MINUTE)", "({} - INTERVAL '36' HOUR)", of=TIMESTAMP),
        _of("CAST({} AS TIMESTAMP)", DATE),
    ),
}
"""How a value of each type is made of others."""


# --- queries -------------------------------------------------------------------------------------


def _where(e: Expressions) -> str:
    conditions = [e.condition() for _ in range(e.pick(1, 1, 1, 0, 2))]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _named(type_: str, number: int, query: str) -> str:
    """A DECIMAL has as many digits as its expression asks for, so its name is the query's own."""
    return f"{type_.lower()}_{number}" if type_ != DECIMAL else f"decimal_{number}_{query}"


def _items(e: Expressions, types: Sequence[str], query: str) -> str:
    return ", ".join(
        f"{e.value(type_)} AS {_named(type_, number, query)}" for number, type_ in enumerate(types)
    )


@st.composite
def _selecting(draw: Any, query: str, tables: Sequence[tuple[Table, Sequence[Table]]]) -> str:
    """A SELECT for each stream, with the relations that it is joined with; more are a UNION ALL."""
    stream, relations = tables[0]
    kinds = [type_ for table in (stream, *relations) for _, type_ in table.columns]
    types = draw(st.lists(st.sampled_from([*kinds, *kinds, *TYPES]), min_size=1, max_size=4))
    selects = []
    for stream, relations in tables:
        columns = [(f"s.{name}", type_) for name, type_ in stream.columns]
        joins = []
        for number, relation in enumerate(relations):
            other = [(f"r{number}.{name}", type_) for name, type_ in relation.columns]
            joins.append(_join(Expressions(draw, columns), relation, number, other))
            columns += other
        e = Expressions(draw, columns)
        star = len(tables) == 1 and draw(st.sampled_from([*[False] * 6, True]))
        items = "*" if star else _items(e, types, query)
        selects.append(f"SELECT {items} FROM {stream.name} s{''.join(joins)}{_where(e)}")
    return "\n  UNION ALL ".join(selects)


def _join(e: Expressions, relation: Table, number: int, other: Columns) -> str:
    (name, type_), *_ = other
    key = e.column(type_) or e.value(type_, 1)
    on = f"{key} = {name}"
    more = Expressions(e.draw, [*e.columns, *other])
    if e.pick(True, False, False):
        on += f" AND {more.condition(1)}"
    elif e.pick(*[False] * 5, True):
        on = f"{key} < {name}"
    return f" {e.pick('JOIN', 'LEFT JOIN')} {relation.name} r{number} ON {on}"


@st.composite
def applications(draw: Any, format_: str) -> Drawn:
    """An application whose first stream has this format."""
    streams = [draw(_stream("one", format_))]
    if draw(st.booleans()):
        streams.append(draw(_stream("two", draw(st.sampled_from(feeds.FORMATS)))))
    keys = [type_ for _, type_ in streams[0].table.columns[1:]]
    names = ("lookup", "other")[: draw(st.integers(1, 2))]
    relations = [draw(_relation(name, keys)) for name in names]
    stored = [relation.table for relation in relations]
    queries = []
    for number in range(draw(st.integers(4, 8))):
        name = f"q{number}"
        form = draw(st.sampled_from(["filter", "filter", "filter", "join", "join", "union"]))
        sources = [draw(st.sampled_from(streams))]
        if form == "union":
            sources += draw(st.lists(st.sampled_from(streams), min_size=1, max_size=2))
        joined: list[list[Table]] = []
        for _ in sources:
            most = {"filter": 0, "join": len(stored), "union": 1}[form]
            least = 1 if form == "join" else 0
            joined.append(stored[: draw(st.integers(least, most))])
        tables = [(feed.table, r) for feed, r in zip(sources, joined, strict=True)]
        sink = draw(st.sampled_from(["", "", f" INTO parquet 'out-{name}'",
                                     " INTO parquet 'out-shared'"]))
        select = draw(_selecting(name, tables))
        queries.append(Question(name, select, "" if "SELECT *" in select else sink))
    return Drawn(tuple(streams), tuple(relations), tuple(queries))
