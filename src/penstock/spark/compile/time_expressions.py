"""Functions of times as Spark columns: none throws, and none leaves the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from penstock.model import Call, Literal
from penstock.spark.compile.data_types import (
    Args,
    Entry,
    in_calendar,
    plain,
    text_of,
    where,
)

_EPOCH = date(1970, 1, 1)
_FIRST, _LAST = ((day - _EPOCH).days for day in (date.min, date.max))
_MOST_YEARS = 10_000
"""More of them lead out of the calendar from any day in it."""
_PER_YEAR = {
    "YEAR": 1, "QUARTER": 4, "MONTH": 12, "WEEK": 53, "DAY": 366, "HOUR": 366 * 24,
    "MINUTE": 366 * 24 * 60, "SECOND": 366 * 86_400, "MILLISECOND": 366 * 86_400_000,
    "MICROSECOND": 366 * 86_400_000_000,
}  # fmt: skip
_MOST_MILLIS = 10**15


def _bounded(value: SparkColumn, largest: int) -> SparkColumn:
    """A number that Spark can compute with, else NULL."""
    return where((value >= F.lit(-largest)) & (value <= F.lit(largest)), value)


def _add_interval(call: Call, args: Args) -> SparkColumn:
    return in_calendar(F.try_add(args[0], args[1]), call.type)


def _date_trunc(call: Call, args: Args) -> SparkColumn:
    return F.date_trunc(text_of(call.args[0]), in_calendar(args[1], call.type))


def _extract_second(call: Call, args: Args) -> SparkColumn:
    return F.extract(F.lit("SECOND"), args[0])


def _day(number: SparkColumn) -> SparkColumn:
    """The day with this number since 1970, counted as a BIGINT."""
    inside = where((number >= F.lit(_FIRST)) & (number <= F.lit(_LAST)), number)
    return F.date_from_unix_date(inside.cast("int"))


def _days_later(sign: int) -> Entry:
    def build(call: Call, args: Args) -> SparkColumn:
        days = F.unix_date(args[0]).cast("bigint")
        return _day(days + F.lit(sign).cast("bigint") * args[1].cast("bigint"))

    return build


def _months_later(call: Call, args: Args) -> SparkColumn:
    return in_calendar(F.add_months(args[0], _bounded(args[1], 12 * _MOST_YEARS)), call.type)


def _time_later(call: Call, args: Args) -> SparkColumn:
    unit = text_of(call.args[0])
    most = _MOST_YEARS * _PER_YEAR[unit]
    moved = F.timestamp_add(unit, _bounded(args[1], most), args[2])
    return in_calendar(moved, call.type)


def _apart(call: Call, args: Args) -> SparkColumn:
    return F.timestamp_diff(text_of(call.args[0]), args[1], args[2])


def _zoned(function: Callable[[SparkColumn, str], SparkColumn]) -> Entry:
    def build(call: Call, args: Args) -> SparkColumn:
        return in_calendar(function(args[0], text_of(call.args[1])), call.type)

    return build


def _millis(call: Call, args: Args) -> SparkColumn:
    return in_calendar(F.timestamp_millis(_bounded(args[0], _MOST_MILLIS)), call.type)


def _micros(call: Call, args: Args) -> SparkColumn:
    return in_calendar(F.timestamp_micros(_bounded(args[0], 1000 * _MOST_MILLIS)), call.type)


def _read(call: Call, args: Args) -> SparkColumn:
    return in_calendar(F.try_to_timestamp(args[0], F.lit(text_of(call.args[1]))), call.type)


def _written(call: Call, args: Args) -> SparkColumn:
    return F.date_format(args[0], text_of(call.args[1]))


def _made(call: Call, args: Args) -> SparkColumn:
    *parts, seconds = args
    made = F.try_make_timestamp(*parts, seconds.try_cast("decimal(16,6)"))  # type: ignore[call-overload]
    return in_calendar(made, call.type)


def _bucket(call: Call, args: Args) -> SparkColumn:
    length = call.args[0]
    assert isinstance(length, Literal) and isinstance(length.value, timedelta)
    width = F.lit(length.value // timedelta(microseconds=1)).cast("bigint")
    micros = F.unix_micros(args[1])
    return in_calendar(F.timestamp_micros(micros - F.pmod(micros, width)), call.type)


def _next_day(call: Call, args: Args) -> SparkColumn:
    return in_calendar(F.next_day(args[0], text_of(call.args[1])), call.type)


TIME: dict[str, Entry] = {
    "add_interval": _add_interval,
    "add_months": _months_later,
    "date_add": _days_later(1),
    "date_format": _written,
    "date_from_unix_date": lambda call, args: _day(args[0].cast("bigint")),
    "date_sub": _days_later(-1),
    "date_trunc": _date_trunc,
    "datediff": plain(F.datediff),
    "day": plain(F.dayofmonth),
    "dayname": plain(F.dayname),
    "dayofweek": plain(F.dayofweek),
    "dayofyear": plain(F.dayofyear),
    "extract_second": _extract_second,
    "from_utc_timestamp": _zoned(F.from_utc_timestamp),
    "hour": plain(F.hour),
    "last_day": plain(F.last_day),
    "make_timestamp": _made,
    "minute": plain(F.minute),
    "month": plain(F.month),
    "monthname": plain(F.monthname),
    "months_between": plain(F.months_between),
    "next_day": _next_day,
    "quarter": plain(F.quarter),
    "second": plain(F.second),
    "time_bucket": _bucket,
    "timestamp_micros": _micros,
    "timestamp_millis": _millis,
    "timestampadd": _time_later,
    "timestampdiff": _apart,
    "to_timestamp": _read,
    "to_utc_timestamp": _zoned(F.to_utc_timestamp),
    "unix_date": plain(F.unix_date),
    "unix_micros": plain(F.unix_micros),
    "unix_millis": plain(F.unix_millis),
    "unix_timestamp": plain(F.unix_timestamp),
    "week": plain(F.weekofyear),
    "weekday": plain(F.weekday),
    "year": plain(F.year),
}
"""How Spark computes each function of times."""
