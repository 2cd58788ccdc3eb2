"""Functions of times: parts, arithmetic, time zones, and times as texts and numbers."""

from __future__ import annotations

from penstock.errors import TypeFault
from penstock.language import coercion, typed_calls
from penstock.language.admitted import Admitted
from penstock.language.call_arguments import (
    constant_interval,
    constant_string,
    day,
    double,
    moment,
    number,
    one_of,
    pattern,
    reading_pattern,
    untyped,
    whole,
    words_of,
    zone,
)
from penstock.language.places import Misfit
from penstock.model import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Call,
    Expression,
    Literal,
)

_PLAIN = "yyyy-MM-dd HH:mm:ss"
_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_LENGTHS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH",
            "QUARTER", "YEAR")
"""The units of TIMESTAMPDIFF and TIMESTAMPADD."""
_PARTS = {
    "DAY": "day", "DAYS": "day", "DAYOFWEEK": "dayofweek", "DOW": "dayofweek",
    "DAYOFYEAR": "dayofyear", "DOY": "dayofyear", "HOUR": "hour", "MINUTE": "minute",
    "MONTH": "month", "QUARTER": "quarter", "SECOND": "second", "WEEK": "week", "YEAR": "year",
}  # fmt: skip


def _part(part: str) -> Admitted[Expression]:
    return Admitted((moment,), typed_calls.gives(part, INT), 1, 1)


def _named_part(args: tuple[Expression, ...]) -> Expression:
    return Call(_PARTS[words_of(args[0])], args[1:], INT)


def _read_time(args: tuple[Expression, ...]) -> Expression:
    """TO_TIMESTAMP of a text, by a pattern where one is given; a number counts seconds."""
    value, *given = args
    if given:
        return Call("to_timestamp", (_text(value), reading_pattern(given[0])), TIMESTAMP)
    if coercion.is_number(value.type):
        return coercion.cast(value, TIMESTAMP)
    return moment(value)


def _read_day(args: tuple[Expression, ...]) -> Expression:
    return coercion.cast(_read_time(args), DATE) if len(args) > 1 else day(args[0])


def _text(value: Expression) -> Expression:
    if value.type not in (STRING, VOID):
        message = f"a pattern reads a STRING, not {coercion.article(value.type)}"
        raise Misfit(TypeFault, message)
    return coercion.cast(value, STRING)


def _seconds(args: tuple[Expression, ...]) -> Expression:
    if len(args) == 1:
        return Call("unix_timestamp", (moment(args[0]),), BIGINT)
    return Call("unix_timestamp", (_read_time(args),), BIGINT)


def _from_seconds(args: tuple[Expression, ...]) -> Expression:
    written = args[1] if len(args) > 1 else Literal(_PLAIN, STRING)
    return Call("date_format", (coercion.cast(args[0], TIMESTAMP), written), STRING)


def _with_precision(args: tuple[Expression, ...]) -> Expression:
    """TO_TIMESTAMP_LTZ(number, 0) counts seconds, with 3 milliseconds."""
    value, digits = args
    known = {0: "", 3: "timestamp_millis", 6: "timestamp_micros"}
    name = known.get(digits.value) if isinstance(digits, Literal) else None  # type: ignore[arg-type]
    if name is None:
        raise Misfit(TypeFault, "TO_TIMESTAMP_LTZ counts seconds (0), milliseconds (3) or "
                     "microseconds (6)")
    if not name:
        return coercion.cast(value, TIMESTAMP)
    return Call(name, (coercion.cast(whole_number(value), BIGINT),), TIMESTAMP)


def whole_number(value: Expression) -> Expression:
    """A whole number as a BIGINT."""
    if value.type.name not in (*coercion.INTEGERS, "VOID"):
        message = f"expected a whole number, not {coercion.article(value.type)}"
        raise Misfit(TypeFault, message)
    return coercion.cast(value, BIGINT)


def _converted(args: tuple[Expression, ...]) -> Expression:
    """CONVERT_TIMEZONE(from, to, time): a clock in one zone as the clock in another."""
    source, target, value = args
    utc = Call("to_utc_timestamp", (value, source), TIMESTAMP)
    return Call("from_utc_timestamp", (utc, target), TIMESTAMP)


def _days(function: str) -> typed_calls.Build:
    return typed_calls.gives(function, DATE)


def _apart(args: tuple[Expression, ...]) -> Expression:
    """DATEDIFF(end, start) in days."""
    return Call("datediff", args, INT)


def _truncated(args: tuple[Expression, ...]) -> Expression:
    unit, value = args[1], coercion.cast(args[0], TIMESTAMP)
    cut = typed_calls.date_trunc((unit, value))
    return coercion.cast(cut, DATE)


def _bucket(args: tuple[Expression, ...]) -> Expression:
    return Call("time_bucket", args, TIMESTAMP)


def _made(args: tuple[Expression, ...]) -> Expression:
    return Call("make_timestamp", args, TIMESTAMP)


def _made_day(args: tuple[Expression, ...]) -> Expression:
    nothing = tuple(Literal(0, INT) for _ in range(2))
    return coercion.cast(_made((*args, *nothing, Literal(0.0, DOUBLE))), DATE)


TIME: dict[str, Admitted[Expression]] = {
    "ADD_MONTHS": Admitted((day, whole), _days("add_months"), 2, 2),
    "CONVERT_TIMEZONE": Admitted((zone, zone, moment), _converted, 3, 3),
    "DATEDIFF": Admitted((day, day), _apart, 2, 2),
    "DATE_ADD": Admitted((day, whole), _days("date_add"), 2, 2),
    "DATE_FORMAT": Admitted((moment, pattern), typed_calls.gives("date_format", STRING), 2, 2),
    "DATE_FROM_UNIX_DATE": Admitted((whole,), _days("date_from_unix_date"), 1, 1),
    "DATE_PART": Admitted((one_of(*_PARTS), moment), _named_part, 2, 2),
    "DATE_SUB": Admitted((day, whole), _days("date_sub"), 2, 2),
    "DATE_TRUNC": Admitted((constant_string, moment), typed_calls.date_trunc, 2, 2),
    "DAY": _part("day"),
    "DAYNAME": Admitted((day,), typed_calls.gives("dayname", STRING), 1, 1),
    "DAYOFWEEK": _part("dayofweek"),
    "DAYOFYEAR": _part("dayofyear"),
    "FROM_UNIXTIME": Admitted((number, pattern), _from_seconds, 1, 2),
    "FROM_UTC_TIMESTAMP": Admitted(
        (moment, zone), typed_calls.gives("from_utc_timestamp", TIMESTAMP), 2, 2
    ),
    "HOUR": _part("hour"),
    "LAST_DAY": Admitted((day,), _days("last_day"), 1, 1),
    "MAKE_DATE": Admitted((whole,), _made_day, 3, 3),
    "MAKE_TIMESTAMP": Admitted((whole, whole, whole, whole, whole, double), _made, 6, 6),
    "MINUTE": _part("minute"),
    "MONTH": _part("month"),
    "MONTHNAME": Admitted((day,), typed_calls.gives("monthname", STRING), 1, 1),
    "MONTHS_BETWEEN": Admitted(
        (moment, moment), typed_calls.gives("months_between", DOUBLE), 2, 2
    ),
    "NEXT_DAY": Admitted((day, one_of(*_DAYS)), _days("next_day"), 2, 2),
    "QUARTER": _part("quarter"),
    "SECOND": _part("second"),
    "TIMESTAMPADD": Admitted(
        (one_of(*_LENGTHS), whole_number, moment),
        typed_calls.gives("timestampadd", TIMESTAMP), 3, 3,
    ),
    "TIMESTAMPDIFF": Admitted(
        (one_of(*_LENGTHS), moment, moment), typed_calls.gives("timestampdiff", BIGINT), 3, 3
    ),
    "TIMESTAMP_MICROS": Admitted(
        (whole_number,), typed_calls.gives("timestamp_micros", TIMESTAMP), 1, 1
    ),
    "TIMESTAMP_MILLIS": Admitted(
        (whole_number,), typed_calls.gives("timestamp_millis", TIMESTAMP), 1, 1
    ),
    "TIMESTAMP_SECONDS": Admitted((number,), _read_time, 1, 1),
    "TIME_BUCKET": Admitted((constant_interval, moment), _bucket, 2, 2),
    "TO_DATE": Admitted((untyped,), _read_day, 1, 2),
    "TO_TIMESTAMP": Admitted((untyped,), _read_time, 1, 2),
    "TO_TIMESTAMP_LTZ": Admitted((number, whole), _with_precision, 2, 2),
    "TO_UTC_TIMESTAMP": Admitted(
        (moment, zone), typed_calls.gives("to_utc_timestamp", TIMESTAMP), 2, 2
    ),
    "TRUNC": Admitted((day, constant_string), _truncated, 2, 2),
    "UNIX_DATE": Admitted((day,), typed_calls.gives("unix_date", INT), 1, 1),
    "UNIX_MICROS": Admitted((moment,), typed_calls.gives("unix_micros", BIGINT), 1, 1),
    "UNIX_MILLIS": Admitted((moment,), typed_calls.gives("unix_millis", BIGINT), 1, 1),
    "UNIX_TIMESTAMP": Admitted((untyped,), _seconds, 1, 2),
    "WEEK": _part("week"),
    "WEEKDAY": _part("weekday"),
    "YEAR": _part("year"),
}
"""Every function of times, under its first name."""
