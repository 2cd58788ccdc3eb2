"""Constants move between types only where they stay the same."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.language import durations, sizes
from penstock.language.literals import RANGES, convert, integer, number
from penstock.language.types import parse_schema, parse_text
from penstock.model import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Literal, Type

DECIMAL = Type("DECIMAL", precision=38, scale=10)


@pytest.mark.parametrize(
    "text, value",
    [
        ("2024", datetime(2024, 1, 1)),
        ("2024-3", datetime(2024, 3, 1)),
        ("2024-03-04", datetime(2024, 3, 4)),
        (" 2024-03-04 05:06 ", datetime(2024, 3, 4, 5, 6)),
        ("2024-03-04T05:06:07Z", datetime(2024, 3, 4, 5, 6, 7)),
        ("2024-03-04 5:6:7.1234567", datetime(2024, 3, 4, 5, 6, 7, 123456)),
        ("2024-03-04 05:06:07 -0130", datetime(2024, 3, 4, 6, 36, 7)),
        ("2024-03-04 24:00:00", None),
        ("2024-02-30", None),
        ("12:00", None),
        ("now", None),
        ("2024-03-04 05:06:07 Europe/Paris", None),
        ("", None),
        ("9999-12-31 23:00:00-05:00", None),
    ],
)
def test_a_quoted_time(text, value):
    literal = convert(Literal(text, STRING), TIMESTAMP)
    assert literal == (Literal(value.replace(tzinfo=UTC), TIMESTAMP) if value else None)


@given(st.integers(-(2**70), 2**70), st.sampled_from(sorted(RANGES)))
def test_an_integer_converts_when_it_fits(value, name):
    converted = convert(integer(value), Type(name))
    fits = -RANGES[name] <= value < RANGES[name]
    assert converted == (Literal(value, Type(name)) if fits else None)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27
    )
)
def test_a_decimal_keeps_every_digit(value):
    converted = convert(number(f"{abs(value):f}"), DECIMAL)
    assert converted is not None
    assert converted.value == abs(value)


def test_38_digits_are_kept():
    digits = "9" * 38
    assert convert(
        Literal(digits, STRING), Type("DECIMAL", precision=38, scale=0)
    ).value == Decimal(digits)


@pytest.mark.parametrize(
    "literal, to",
    [
        (Literal(1.5, DOUBLE), INT),
        (Literal(0.1, DOUBLE), Type("FLOAT")),
        (Literal("x", STRING), INT),
        (Literal("1.5", STRING), INT),
        (Literal(True, Type("BOOLEAN")), INT),
        (Literal(5, INT), STRING),
        (Literal(date(2024, 1, 1), Type("DATE")), BIGINT),
        (Literal(b"1", Type("BINARY")), INT),
    ],
)
def test_no_conversion_that_changes_the_value(literal, to):
    assert convert(literal, to) is None


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("10 MIN", 600),
        ("10 minutes", 600),
        ("500 ms", 0.5),
        ("1 HOUR", 3600),
        ("INTERVAL '10' MINUTE", 600),
        ("1.5h", 5400),
        (" 2  days ", 172800),
        ("1 week", 604800),
        ("7us", 7e-6),
        (".5 s", 0.5),
    ],
)
def test_durations(text, seconds):
    assert durations.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "5", "min", "-1 s", "5 parsecs", "1 s 2", "1e400 s", "'1 s", "1_0 s", "9" * 30 + " d"],
)
def test_no_durations(text):
    with pytest.raises(ValueError):
        durations.seconds(text)


@pytest.mark.parametrize(
    "text, size",
    [
        ("512 MB", 512 << 20),
        ("2GB", 2 << 30),
        ("1.5 k", 1536),
        ("7", 7),
        ("1 TiB", 1 << 40),
        ("5 bytes", 5),
    ],
)
def test_sizes(text, size):
    assert sizes.bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1 MB", "5 XB", "1 MB 2", "9" * 30])
def test_no_sizes(text):
    with pytest.raises(ValueError):
        sizes.bytes(text)


TYPES = st.recursive(
    st.sampled_from(
        [INT, BIGINT, STRING, TIMESTAMP, DOUBLE, DECIMAL, Type("BINARY"), Type("DATE")]
    ),
    lambda inner: st.one_of(
        inner.map(lambda t: Type("ARRAY", element=t)),
        inner.map(lambda t: Type("MAP", key=STRING, element=t)),
        st.dictionaries(st.sampled_from(["a", "b c", "d`e", "select", "é"]), inner, min_size=1).map(
            lambda fields: parse_struct(fields)
        ),
    ),
    max_leaves=6,
)


def parse_struct(fields) -> Type:
    from penstock.model import Field

    return Type("STRUCT", fields=tuple(Field(name, type_) for name, type_ in fields.items()))


@given(TYPES)
def test_a_type_is_read_as_it_is_written(type_):
    assert parse_text(str(type_)) == type_
    if type_.name in ("STRUCT", "ARRAY", "MAP"):
        assert parse_schema(str(type_)) == type_
