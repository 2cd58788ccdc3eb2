"""The time of a row as Spark computes it, and which times are accepted.

A row whose time is far ahead of the clock is rejected: it would move the stream's time, and make
every later row late. The past has no bound, since old data are replayed. Only years before 1 and
after 9999 are refused, which Spark, Arrow and Python do not all support.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.model import EPOCH_UNITS, Stream, quoted

_FIRST = round(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
_LAST = round(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000
_PLAUSIBLE = 1_000_000_000 * 1_000_000
"""Microseconds: a time before 2001 may have been read in the wrong unit."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """The times that are accepted, in microseconds."""

    first: int
    last: int

    @classmethod
    def of(cls, stream: Stream, now: float) -> Bounds:
        """Up to as far ahead of the clock as the stream allows."""
        return cls(_FIRST, min(_LAST, round((now + stream.max_ahead) * 1e6)))

    def hold(self, oldest: int | None, newest: int | None) -> bool:
        """Whether a range of times lies within."""
        return (oldest is None or oldest >= self.first) and (
            newest is None or newest <= self.last)


def micros(stream: Stream) -> Column:
    """A row's own time in microseconds; NULL if it has none, or one far out of bounds."""
    own = _own(stream)
    if not stream.unit:
        return F.unix_micros(own.cast("timestamp"))
    nanos = EPOCH_UNITS[stream.unit]
    if not _is_whole(stream):
        return F.round(own * F.lit(nanos / 1000)).try_cast("bigint")
    whole = own.cast("bigint")
    if nanos >= 1000:
        return F.try_multiply(whole, F.lit(nanos // 1000).cast("bigint"))
    below = whole - F.pmod(whole, F.lit(1000))  # not a DOUBLE, which has too few digits
    return (below.cast("decimal(20,0)") / F.lit(1000).cast("decimal(4,0)")).cast("bigint")


def fault(stream: Stream, bounds: Bounds) -> Column:
    """Why a row's time is refused; NULL if it is accepted, or the row has none."""
    own = _own(stream)
    first, last = (_in_unit(stream, bound) for bound in (bounds.first, bounds.last))
    what = F.concat(F.lit(f"its {stream.time}, "), own.cast("string"), F.lit(", is "))
    ahead = F.lit(f"more than {stream.max_ahead:g} seconds ahead of the clock")
    return F.when(own > last, F.concat(what, ahead)).when(
        own < first, F.concat(what, F.lit("before the year 1")))


def far_ahead(stream: Stream, bounds: Bounds) -> Column:
    """The time in microseconds, as a DOUBLE, of a row that is too far ahead."""
    own = _own(stream)
    if stream.unit:
        value = own.cast("double") * F.lit(EPOCH_UNITS[stream.unit] / 1000)
    else:
        value = F.unix_micros(own.cast("timestamp")).cast("double")
    return F.when(own > _in_unit(stream, bounds.last), value)


def unit_hint(
    stream: Stream, farthest: float | None, newest: int | None, bounds: Bounds
) -> str | None:
    """What to declare if the times look like numbers in another unit.

    >>> stream = Stream("s", (), "json", time="ts")
    >>> bounds = Bounds.of(stream, now=1.8e9)
    >>> unit_hint(stream, 1.7e12 * 1e6, None, bounds)
    'ts looks like MILLISECONDS since 1970: declare it BIGINT, and TIME ts UNIT MILLISECONDS'
    >>> unit_hint(stream, 253370764800 * 1e6, None, bounds)
    """
    units = list(EPOCH_UNITS)
    at = units.index(stream.unit) if stream.unit else 0
    wrong: str | None = None
    for step, unit in enumerate(units[at + 1 :], start=1):
        if farthest is not None and _PLAUSIBLE <= farthest / 1000**step <= bounds.last:
            wrong = unit
    for step, unit in enumerate(reversed(units[:at]), start=1):
        if newest is not None and _PLAUSIBLE <= newest * 1000**step <= bounds.last:
            wrong = unit
    if wrong is None:
        return None
    declare = f"TIME {stream.time} UNIT {wrong}"
    declare = declare if stream.unit else f"it BIGINT, and {declare}"
    return f"{stream.time} looks like {wrong} since 1970: declare {declare}"


def _own(stream: Stream) -> Column:
    assert stream.time is not None
    return F.col(quoted(stream.time))


def _is_whole(stream: Stream) -> bool:
    (column,) = (c for c in stream.columns if c.name == stream.time)
    return column.type.name in ("INT", "BIGINT")


def _in_unit(stream: Stream, bound: int) -> Column:
    """A bound as a value of the time's own column, so that nothing overflows."""
    if not stream.unit:
        return F.timestamp_micros(F.lit(bound))
    value = bound * 1000 // EPOCH_UNITS[stream.unit]
    if not _is_whole(stream):
        return F.lit(float(value))
    return F.lit(max(-_LARGEST, min(_LARGEST, value))).cast("bigint")
