"""Functions of the language on Spark beside plain Python and DuckDB: NULL, empty and bad input."""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

from penstock.arrow import arrow_schema
from penstock.language import bind

pytestmark = pytest.mark.spark

APPLICATION = bind("""
CREATE STREAM s (s STRING, n INT, d DOUBLE, ts TIMESTAMP, day DATE, a ARRAY<INT>,
  m MAP<STRING, INT>) FROM rate
""")
ROWS: list[dict[str, Any]] = [
    dict.fromkeys("s n d ts day a m".split()),
    {"s": "", "n": 0, "d": 0.0, "ts": datetime(1970, 1, 1, tzinfo=UTC), "day": date(1970, 1, 1),
     "a": [], "m": {}},
    {"s": "a,b,,c", "n": 3, "d": 2.5, "ts": datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=UTC),
     "day": date(2024, 1, 31), "a": [3, None, 1, 3], "m": {"a": 1, "b": None}},
    {"s": '{"user": {"id": 7}, "tags": ["x", "y"]}', "n": -2, "d": -1.25,
     "ts": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "day": date(1999, 12, 31),
     "a": [5], "m": {"z": 26}},
    {"s": "2024-03-31 01:30:00", "n": 2**31 - 1, "d": 1e300,
     "ts": datetime(2024, 3, 31, 1, 30, tzinfo=UTC), "day": date(9999, 12, 31),
     "a": [None], "m": {"a": 9}},
    {"s": "{not json", "n": -(2**31), "d": float("inf"),
     "ts": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "day": date(1, 1, 1),
     "a": [2, 1, 2], "m": {"b": -1}},
]  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def known(*names: str) -> Callable[[Callable[[Row], Any]], Callable[[Row], Any]]:
    """NULL where one of these columns is NULL."""
    return lambda oracle: lambda row: None if any(row[n] is None for n in names) else oracle(row)


def within(value: Callable[[], datetime | date]) -> datetime | date | None:
    """A time, or NULL where the calendar has none."""
    try:
        return value()
    except (OverflowError, ValueError):
        return None


def read(text: str, pattern: str) -> datetime | None:
    try:
        return datetime.strptime(text, pattern).replace(tzinfo=UTC)
    except ValueError:
        return None


def clock(time: datetime, zone: str) -> datetime | None:
    local = within(lambda: time.astimezone(ZoneInfo(zone)))
    return local.replace(tzinfo=UTC) if isinstance(local, datetime) else None


def at_path(text: str, *path: str) -> str | None:
    try:
        value = json.loads(text)
        for name in path:
            value = value[name]
    except (ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def months_on(day: date, months: int) -> date | None:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def unique(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def sliced(values: list[Any], start: int, length: int) -> list[Any]:
    begin = start - 1 if start > 0 else len(values) + start
    return values[begin : begin + length] if begin >= 0 else []


def nulls_first(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda v: (v is not None, v or 0))


CASES: dict[str, Callable[[Row], Any]] = {
    "DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss.SSSSSS')": known("ts")(
        lambda r: r["ts"].isoformat(" ", "microseconds")[:26]),
    "DATE_FORMAT(day, 'dd/MM/yyyy')": known("day")(
        lambda r: f"{r['day'].day:02}/{r['day'].month:02}/{r['day'].year:04}"),
    "DATE_FORMAT(day, 'D')": known("day")(lambda r: str(r["day"].timetuple().tm_yday)),
    "TO_TIMESTAMP(s, 'yyyy-MM-dd HH:mm:ss')": known("s")(
        lambda r: read(r["s"], "%Y-%m-%d %H:%M:%S")),
    "TO_DATE(s, 'yyyy-MM-dd HH:mm:ss')": known("s")(
        lambda r: (found := read(r["s"], "%Y-%m-%d %H:%M:%S")) and found.date()),
    "UNIX_TIMESTAMP(s, 'yyyy-MM-dd HH:mm:ss')": known("s")(
        lambda r: (found := read(r["s"], "%Y-%m-%d %H:%M:%S")) and int(found.timestamp())),
    "FROM_UNIXTIME(n)": known("n")(
        lambda r: (EPOCH + timedelta(seconds=r["n"])).strftime("%Y-%m-%d %H:%M:%S")),
    "TIMESTAMP_MILLIS(n)": known("n")(lambda r: EPOCH + timedelta(milliseconds=r["n"])),
    "TIMESTAMP_SECONDS(d)": known("d")(lambda r: within(lambda: EPOCH + timedelta(
        seconds=r["d"]))),
    "UNIX_MILLIS(ts)": known("ts")(lambda r: (r["ts"] - EPOCH) // timedelta(milliseconds=1)),
    "UNIX_MICROS(ts)": known("ts")(lambda r: (r["ts"] - EPOCH) // timedelta(microseconds=1)),
    "UNIX_DATE(day)": known("day")(lambda r: (r["day"] - EPOCH.date()).days),
    "FROM_UTC_TIMESTAMP(ts, 'Asia/Tokyo')": known("ts")(lambda r: clock(r["ts"], "Asia/Tokyo")),
    "ts AT TIME ZONE 'Europe/Lisbon'": known("ts")(lambda r: clock(r["ts"], "Europe/Lisbon")),
    "TO_UTC_TIMESTAMP(ts, 'Asia/Tokyo')": known("ts")(lambda r: within(
        lambda: r["ts"] - timedelta(hours=9))),
    "DATE_ADD(day, n)": known("day", "n")(lambda r: within(
        lambda: r["day"] + timedelta(days=r["n"]))),
    "DATE_SUB(day, n)": known("day", "n")(lambda r: within(
        lambda: r["day"] - timedelta(days=r["n"]))),
    "ADD_MONTHS(day, n)": known("day", "n")(lambda r: months_on(r["day"], r["n"])),
    "LAST_DAY(day)": known("day")(lambda r: r["day"].replace(
        day=calendar.monthrange(r["day"].year, r["day"].month)[1])),
    "DATEDIFF(day, '2024-01-01')": known("day")(lambda r: (r["day"] - date(2024, 1, 1)).days),
    "TRUNC(day, 'MM')": known("day")(lambda r: r["day"].replace(day=1)),
    "WEEKDAY(day)": known("day")(lambda r: r["day"].weekday()),
    "DAYNAME(day)": known("day")(lambda r: calendar.day_abbr[r["day"].weekday()]),
    "TIMESTAMPADD(HOUR, n, ts)": known("ts", "n")(lambda r: within(
        lambda: r["ts"] + timedelta(hours=r["n"]))),
    "TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', ts)": known("ts")(
        lambda r: int((r["ts"] - EPOCH) / timedelta(seconds=1))),
    "TIME_BUCKET(INTERVAL '5' MINUTE, ts)": known("ts")(lambda r: EPOCH + (
        r["ts"] - EPOCH) // timedelta(minutes=5) * timedelta(minutes=5)),
    "MAKE_DATE(2024, n, 31)": known("n")(lambda r: within(lambda: date(2024, r["n"], 31))),
    "SPLIT(s, ',')": known("s")(lambda r: r["s"].split(",")),
    "SPLIT(s, '[,:]', 2)": known("s")(lambda r: re.split("[,:]", r["s"], maxsplit=1)),
    "STRING_TO_ARRAY(s, '.')": known("s")(lambda r: r["s"].split(".")),
    "CONCAT_WS('-', s, n)": lambda r: "-".join(str(v) for v in (r["s"], r["n"]) if v is not None),
    "CONCAT_WS('-', SPLIT(s, ','), 'x')": lambda r: "-".join(
        [*(r["s"].split(",") if r["s"] is not None else []), "x"]),
    "GET_JSON_OBJECT(s, '$.user.id')": known("s")(lambda r: at_path(r["s"], "user", "id")),
    "GET_JSON_OBJECT(s, '$.tags')": known("s")(lambda r: at_path(r["s"], "tags")),
    "INSTR(s, 'b')": known("s")(lambda r: r["s"].find("b") + 1),
    "POSITION('2' IN s)": known("s")(lambda r: r["s"].find("2") + 1),
    "LEFT(s, 2)": known("s")(lambda r: r["s"][:2]),
    "RIGHT(s, 2)": known("s")(lambda r: r["s"][-2:]),
    "LPAD(s, 8, '*')": known("s")(lambda r: r["s"][:8].rjust(8, "*")),
    "RPAD(s, 8)": known("s")(lambda r: r["s"][:8].ljust(8)),
    "REVERSE(s)": known("s")(lambda r: r["s"][::-1]),
    "REPEAT(s, 2)": known("s")(lambda r: r["s"] * 2),
    "TRANSLATE(s, 'ab', 'AB')": known("s")(lambda r: r["s"].translate(str.maketrans("ab", "AB"))),
    "REGEXP_COUNT(s, '[0-9]')": known("s")(lambda r: len(re.findall("[0-9]", r["s"]))),
    "REGEXP_EXTRACT_ALL(s, '([a-z]),', 1)": known("s")(lambda r: re.findall("([a-z]),", r["s"])),
    "HEX(s)": known("s")(lambda r: r["s"].encode().hex().upper()),
    "SIZE(a)": known("a")(lambda r: len(r["a"])),
    "CARDINALITY(m)": known("m")(lambda r: len(r["m"])),
    "ARRAY_CONTAINS(a, 3)": known("a")(
        lambda r: True if 3 in r["a"] else None if None in r["a"] else False),
    "ELEMENT_AT(a, 1)": known("a")(lambda r: r["a"][0] if r["a"] else None),
    "ELEMENT_AT(a, -1)": known("a")(lambda r: r["a"][-1] if r["a"] else None),
    "ELEMENT_AT(a, n)": known("a", "n")(lambda r: r["a"][r["n"] - 1]
                                        if 0 < r["n"] <= len(r["a"]) else r["a"][r["n"]]
                                        if 0 < -r["n"] <= len(r["a"]) else None),
    "ELEMENT_AT(m, 'a')": known("m")(lambda r: r["m"].get("a")),
    "ARRAY_DISTINCT(a)": known("a")(lambda r: unique(r["a"])),
    "ARRAY_JOIN(a, '/')": known("a")(lambda r: "/".join(str(v) for v in r["a"] if v is not None)),
    "ARRAY_JOIN(a, '/', '?')": known("a")(
        lambda r: "/".join("?" if v is None else str(v) for v in r["a"])),
    "ARRAY_MAX(a)": known("a")(lambda r: max((v for v in r["a"] if v is not None), default=None)),
    "ARRAY_POSITION(a, 1)": known("a")(lambda r: r["a"].index(1) + 1 if 1 in r["a"] else 0),
    "ARRAY_REMOVE(a, 3)": known("a")(lambda r: [v for v in r["a"] if v != 3]),
    "ARRAY_COMPACT(a)": known("a")(lambda r: [v for v in r["a"] if v is not None]),
    "ARRAY_APPEND(a, 7)": known("a")(lambda r: [*r["a"], 7]),
    "ARRAY_UNION(a, ARRAY(1, 9))": known("a")(lambda r: unique([*r["a"], 1, 9])),
    "ARRAY_INTERSECT(a, ARRAY(1, 3))": known("a")(
        lambda r: [v for v in unique(r["a"]) if v in (1, 3)]),
    "ARRAY_EXCEPT(a, ARRAY(1, 3))": known("a")(
        lambda r: [v for v in unique(r["a"]) if v not in (1, 3)]),
    "SORT_ARRAY(a)": known("a")(lambda r: nulls_first(r["a"])),
    "SORT_ARRAY(a, FALSE)": known("a")(lambda r: nulls_first(r["a"])[::-1]),
    "SLICE(a, 2, 2)": known("a")(lambda r: sliced(r["a"], 2, 2)),
    "SLICE(a, -2, 2)": known("a")(lambda r: sliced(r["a"], -2, 2)),
    "SLICE(a, 0, 2)": lambda r: None,
    "SLICE(a, 1, -1)": lambda r: None,
    "REVERSE(a)": known("a")(lambda r: r["a"][::-1]),
    "MAP_KEYS(m)": known("m")(lambda r: list(r["m"])),
    "MAP_VALUES(m)": known("m")(lambda r: list(r["m"].values())),
    "MAP_CONTAINS_KEY(m, 'a')": known("m")(lambda r: "a" in r["m"]),
    "MAP('x', n)['x']": lambda r: r["n"],
    "NAMED_STRUCT('x', n).x": lambda r: r["n"],
    "TO_JSON(a)": known("a")(lambda r: json.dumps(r["a"], separators=(",", ":"))),
    "NVL2(n, 'some', 'none')": lambda r: "none" if r["n"] is None else "some",
    "ZEROIFNULL(n)": lambda r: r["n"] or 0,
    "NULLIFZERO(n)": lambda r: r["n"] or None,
    "PMOD(n, 7)": known("n")(lambda r: r["n"] % 7),
    "PMOD(n, 0)": lambda r: None,
    "n & 6": known("n")(lambda r: r["n"] & 6),
    "n | 6": known("n")(lambda r: r["n"] | 6),
    "n ^ 6": known("n")(lambda r: r["n"] ^ 6),
    "~n": known("n")(lambda r: ~r["n"]),
    "EQUAL_NULL(n, NULL)": lambda r: r["n"] is None,
}

TWINS = {
    "LEFT(s, 2)": "s[:2]",
    "CBRT(d)": "CBRT(d)",
    "DEGREES(d)": "DEGREES(d)",
    "ATAN2(d, 2)": "ATAN2(d, 2)",
    "ATAN(d)": "ATAN(d)",
    "TANH(d)": "TANH(d)",
    "BIT_COUNT(n)": "BIT_COUNT(n::BIGINT)",
    "LAST_DAY(day)": "CASE WHEN day < DATE '9999-12-01' THEN LAST_DAY(day) ELSE day END",
    "DAYNAME(day)": "DAYNAME(day)[:3]",
    "MONTHNAME(day)": "MONTHNAME(day)[:3]",
    "SHA2(s)": "SHA256(s)",
    "SHA1(s)": "SHA1(s)",
    "BASE64(s)": "BASE64(s::BLOB)",
    "CONCAT_WS('-', s, n)": "CONCAT_WS('-', s, n)",
    "OCTET_LENGTH(s)": "OCTET_LENGTH(s::BLOB)",
    "TIMESTAMPDIFF(DAY, '1970-01-01', ts)":
        "CASE WHEN epoch(ts) < 0 THEN 0 ELSE DATE_DIFF('day', DATE '1970-01-01', ts) END",
    "ARRAY_DISTINCT(ARRAY_COMPACT(SORT_ARRAY(a)))": "LIST_SORT(LIST_DISTINCT(a))",
    "ARRAY_MAX(a)": "LIST_MAX(a)",
    "ARRAY_MIN(a)": "LIST_MIN(a)",
    "SIZE(a)": "LEN(a)",
    "REVERSE(a)": "LIST_REVERSE(a)",
    "TO_JSON(a)": "TO_JSON(a)::VARCHAR",
    "MONTHS_BETWEEN(DATE_TRUNC('month', ts), '1970-01-01')":
        "DATE_DIFF('month', DATE '1970-01-01', ts)",
}  # fmt: skip
"""What DuckDB calls the same."""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_pylist(
        [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in ROWS],
        schema=arrow_schema(APPLICATION.streams["s"].columns))


def computed(spark, table: pa.Table, texts: list[str]) -> pa.Table:
    from penstock.spark.compile.expressions import column

    select = ", ".join(f"{text} AS c{n}" for n, text in enumerate(texts))
    outputs = bind(f"SELECT {select} FROM s", APPLICATION).queries["q1"].branches[0].select
    frame = spark.createDataFrame(table).coalesce(1)
    return frame.select(*(column(o.expression, o.name) for o in outputs)).toArrow()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_functions_answer_as_plain_python_does(spark, table, ansi):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        found = computed(spark, table, list(CASES))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    for n, (text, oracle) in enumerate(CASES.items()):
        assert found[f"c{n}"].to_pylist() == [oracle(row) for row in ROWS], text


def test_functions_answer_as_duckdb_does(spark, table):
    mine = computed(spark, table, list(TWINS))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("s", table)
        theirs = connection.execute(f"SELECT {', '.join(TWINS.values())} FROM s").fetchall()
    for n, text in enumerate(TWINS):
        expected = [row[n] for row in theirs]
        if any(isinstance(value, float) for value in expected):
            expected = [value if value is None else pytest.approx(value) for value in expected]
        assert mine[f"c{n}"].to_pylist() == expected, text
