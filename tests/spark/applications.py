"""Whole applications out of nothing: streams, relations, data and queries that read them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.spark import feeds
from tests.spark.expressions import DECIMAL, NOON, POOLS, TIMESTAMP, TYPES, Columns, Expressions
from tests.spark.oracle import Table

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
        """The table without its late rows, which no window takes."""
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
        return [*(s.table for s in self.streams), *(r.table for r in self.relations)]

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
