"""Window aggregates out of nothing: a stream with every trouble, queries, and what DuckDB says."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.spark.applications import Feed
from tests.spark.oracle import Oracle, Table

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LATENESS = 5
COLUMNS = (("ts", "TIMESTAMP"), ("src", "INT"), ("port", "INT"), ("length", "INT"),
           ("weight", "DOUBLE"), ("price", "DECIMAL(10,2)"), ("name", "STRING"))
HOSTS = Table("hosts", (("id", "INT"), ("site", "STRING")),
              ((0, "a"), (1, "b"), (1, "c"), (3, None), (None, "d")))
AGGREGATES = {
    "COUNT(*)": "COUNT(*)", "COUNT(length)": "COUNT(length)",
    "COUNT(DISTINCT port)": "COUNT(DISTINCT port)", "SUM(length)": "SUM(length)::BIGINT",
    "SUM(weight)": "SUM(weight)", "SUM(price)": "SUM(price)", "AVG(length)": "AVG(length)",
    "AVG(price)": "AVG(price)", "MIN(name)": "MIN(name)", "MAX(weight)": "MAX(weight)",
    "MIN(price)": "MIN(price)", "MAX(ts)": "MAX(ts)", "STDDEV(length)": "STDDEV_SAMP(length)",
    "VARIANCE(weight)": "VAR_SAMP(weight)", "STDDEV_POP(weight)": "STDDEV_POP(weight)",
    "MEDIAN(length)": "QUANTILE_CONT(length, 0.5)",
    "PERCENTILE(weight, 0.9)": "QUANTILE_CONT(weight, 0.9)",
    "SUM(length) FILTER (WHERE port > 100)": "(SUM(length) FILTER (WHERE port > 100))::BIGINT",
    "SUM(length) / COUNT(*)": "SUM(length) / COUNT(*)",
    "MAX(length) - MIN(length)": "MAX(length) - MIN(length)",
    "COALESCE(SUM(length), -1)": "COALESCE(SUM(length), -1)::BIGINT",
    "CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END":
        "CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END",
}
"""As Penstock and as DuckDB writes them."""


def _beside(value: str, by: str, order: str) -> str:
    """MIN_BY and MAX_BY for DuckDB, with what decides between equals."""
    return (f"(LIST({value} ORDER BY {by} {order}, {value} {order}) FILTER (WHERE {by} IS NOT NULL "
            f"AND {value} IS NOT NULL))[1]")


ORDERED = {
    "COUNT_IF(port > 100)": "COUNT(*) FILTER (WHERE port > 100)",
    "BOOL_AND(length > 300)": "BOOL_AND(length > 300)",
    "ANY(length > 1400) FILTER (WHERE port = 80)":
        "BOOL_OR(length > 1400) FILTER (WHERE port = 80)",
    "MIN_BY(length, price)": _beside("length", "price", "ASC"),
    "MAX_BY(name, weight)": _beside("name", "weight", "DESC"),
    "FIRST(name)": _beside("name", "ts", "ASC"),
    "LAST(length)": _beside("length", "ts", "DESC"),
    "LAST(price) FILTER (WHERE port > 100)":
        _beside("price", "ts", "DESC").replace("(WHERE", "(WHERE port > 100 AND"),
    "COLLECT_LIST(length, 3)":
        "(LIST(length ORDER BY ts, length) FILTER (WHERE length IS NOT NULL))[1:3]",
    "ARRAY_JOIN(COLLECT_LIST(port, 100), '-')":
        "ARRAY_TO_STRING(LIST(port ORDER BY ts, port) FILTER (WHERE port IS NOT NULL), '-')",
}
"""The same of those that look at the order of rows, or at conditions."""
SHAPES: tuple[tuple[tuple[str, ...], str, bool], ...] = (
    ((), "", False), (("src",), "", False), (("src",), "port > 100", False),
    (("src", "port"), "", False), (("src % 3",), "name LIKE 'h%' OR src = 1", False),
    (("CASE WHEN length > 500 THEN 'long' ELSE name END", "src"), "", False),
    (("name",), "odd(length)", False), ((), "odd(length) AND src < 6", False),
    (("site",), "", True), (("src",), "length IS NOT NULL AND port > 22", True))
"""What is grouped by, which rows count, and whether they are joined with a relation."""
HAVINGS = ("", "", "COUNT(*) > 2", "SUM(length) > 900 AND MAX(weight) IS NOT NULL")
WINDOWS = ((10, 3), (10, 4), (7, 2.5), (12, 12), (6, 9), (30, 10), (20, 5), (45, 15))


def generated(chance: random.Random, count: int) -> tuple[tuple[Any, ...], ...]:
    """Few sources send most; times jump, come out of order, too late, or not at all."""
    rows = []
    clock = BEGIN
    for number in range(count):
        clock += timedelta(milliseconds=chance.randrange(400))
        if number in (count // 3, count // 2):
            clock += timedelta(seconds=chance.choice([47, 3600]))
        back = chance.choice([0, 0, 0, chance.random() * 4, chance.random() * 20])
        whole = round((clock - timedelta(seconds=back)).timestamp() * 2) / 2
        exact = clock - timedelta(seconds=back)
        at = datetime.fromtimestamp(whole, UTC) if chance.random() < 0.2 else exact
        rows.append((
            at if chance.random() > 0.03 else None,
            _perhaps(chance, min(int(chance.paretovariate(0.8)) - 1, 9)),
            _perhaps(chance, chance.choice([22, 80, 80, 80, 443, 8080])),
            _perhaps(chance, chance.randrange(1500)),
            _perhaps(chance, chance.randrange(-400, 400) / 4),
            _perhaps(chance, Decimal(chance.randrange(-9999, 9999)) / 100),
            _perhaps(chance, chance.choice(["host", "Host", "", "h"])),
        ))  # fmt: skip
    return tuple(rows)


def _perhaps(chance: random.Random, value: Any) -> Any:
    return value if chance.random() > 0.08 else None


def feed(seed: int, count: int = 900, files: int = 6) -> Feed:
    """The stream, in files of about the same size, one to a block."""
    cuts = tuple(count * n // files for n in range(1, files))
    rows = generated(random.Random(seed), count)
    return Feed(Table("packets", COLUMNS, rows), "parquet", cuts, lateness=LATENESS)


@dataclass(frozen=True)
class Ask:
    """A window aggregate."""

    name: str
    items: tuple[str, ...]
    """Aggregates, and expressions over them: of `AGGREGATES`."""
    window: float
    slide: float
    form: str = "slide"
    """slide, exactly, hop."""
    keys: tuple[str, ...] = ()
    where: str = ""
    having: str = ""
    joined: bool = False
    sink: str = ""
    stream: str = "packets"

    @property
    def sql(self) -> str:
        """Its declaration."""
        with_gaps = self.slide > self.window  # which HOP does not take
        form = "exactly" if self.form == "hop" and with_gaps else self.form
        how = {"slide": "SLIDE", "exactly": "SLIDE EXACTLY"}.get(form)
        window = f"[WINDOW {_ms(self.window)} {how} {_ms(self.slide)}] " if how else ""
        keys = list(self.keys)
        if form == "hop":
            keys.append(f"TUMBLE(ts, {_ms(self.window)})" if self.window == self.slide
                        else f"HOP(ts, {_ms(self.slide)}, {_ms(self.window)})")
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return (f"CREATE QUERY {self.name}{self.sink} AS SELECT {self._selected(self.items)} "
                f"FROM {self.stream} {window}{self._rest(grouped)};")

    def _selected(self, items: Iterable[str]) -> str:
        keys = [f"{key} AS k{n}" for n, key in enumerate(self.keys)]
        return ", ".join([*keys, *(f"{item} AS v{n}" for n, item in enumerate(items))])

    def _rest(self, grouped: str) -> str:
        join = "JOIN hosts ON src = id" if self.joined else ""
        where = f" WHERE {self.where}" if self.where else ""
        having = f" HAVING {self.having}" if self.having else ""
        return f"{join}{where}{grouped}{having}"

    @property
    def oracle(self) -> str:
        """The same for DuckDB: every row meets the ends of its windows."""
        window, slide = round(self.window * 1_000_000), round(self.slide * 1_000_000)
        text = self._rest(f" GROUP BY e, {', '.join(self.keys) or 'e'}")
        text = text.replace("odd(length)", "length & 1 = 1")
        selected = self._selected({**AGGREGATES, **ORDERED}.get(i, i) for i in self.items)
        return (
            f"SELECT make_timestamp(e - {window}) AS s, make_timestamp(e) AS e_, {selected} FROM ("
            f"SELECT *, unnest(generate_series((epoch_us(ts) // {slide} + 1) * {slide}, "
            f"epoch_us(ts) + {window}, {slide})) AS e FROM {self.stream} WHERE ts IS NOT NULL) "
            f"{text}")

def _ms(seconds: float) -> str:
    return f"INTERVAL '{seconds:g}' SECOND" if seconds == int(seconds) else f"{seconds * 1000:g} ms"


def asks(seed: int, count: int) -> list[Ask]:
    """Queries of every kind."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        window, slide = chance.choice(WINDOWS)
        keys, where, joined = SHAPES[number % len(SHAPES)]
        made.append(Ask(
            f"q{number}", tuple(chance.sample(sorted(AGGREGATES), chance.randrange(1, 5))),
            window, slide, chance.choice(["slide", "slide", "exactly", "hop"]), keys, where,
            chance.choice(HAVINGS), joined))
    return made


# --- comparing -----------------------------------------------------------------------------------


def check(
    ask: Ask, found: pa.Table, oracle: Oracle, among: Callable[[datetime], bool] | None = None
) -> None:
    """Every answer is there once, and is the oracle's but for the last bits of a fraction.

    ``among`` tells for which ends it should be there, if not for all.
    """
    columns = [column.to_pylist() for column in found.columns]
    got = keyed(zip(*columns, strict=True), len(ask.keys))
    wanted = {key: values for key, values in keyed(oracle.rows(ask.oracle), len(ask.keys)).items()
              if among is None or among(key[1])}
    assert got.keys() == wanted.keys(), (
        f"{ask.sql}\nmissing {sorted(wanted.keys() - got.keys(), key=repr)[:5]}\n"
        f"too many {sorted(got.keys() - wanted.keys(), key=repr)[:5]}")
    for key, values in wanted.items():
        assert all(map(alike, got[key], values)), f"{ask.sql}\n{key}: {got[key]}, not {values}"


def keyed(
    rows: Iterable[Sequence[Any]], keys: int
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Answers by window and group; none of them twice."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        plain = tuple(map(_plain, row))
        key = plain[: 2 + keys]
        assert key not in found, f"{key} was answered twice"
        found[key] = plain[2 + keys:]
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    return float(value) if isinstance(value, Decimal) else value


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(one == other)
