"""Our types and those of Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.arrow import TYPES, arrow_schema, arrow_type, fields_of, type_of
from penstock.model import Field, Type

SIMPLE = st.sampled_from([Type(name) for name in TYPES if name not in ("INTERVAL", "VOID")])
DECIMALS = st.integers(1, 38).flatmap(lambda precision: st.builds(
    Type, st.just("DECIMAL"), st.just(precision), st.integers(0, precision)))


def nested(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.lists(st.builds(Field, st.text(min_size=1), inner), min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda one: Type("ARRAY", element=one), inner),
        st.builds(lambda key, one: Type("MAP", key=key, element=one), SIMPLE, inner),
        st.builds(lambda some: Type("STRUCT", fields=tuple(some)), fields))


ALL = st.recursive(SIMPLE | DECIMALS, nested, max_leaves=5)


@given(ALL)
def test_every_type_comes_back_from_arrow(type_: Type) -> None:
    assert type_of(arrow_type(type_)) == type_


@given(st.lists(st.builds(Field, st.text(), ALL), max_size=4))
def test_so_do_columns(columns: list[Field]) -> None:
    assert list(fields_of(arrow_schema(columns))) == columns


@pytest.mark.parametrize(("kind", "name"), [
    (pa.uint8(), "SMALLINT"), (pa.uint16(), "INT"), (pa.uint32(), "BIGINT"),
    (pa.float16(), "FLOAT"), (pa.large_string(), "STRING"), (pa.string_view(), "STRING"),
    (pa.dictionary(pa.int8(), pa.string()), "STRING"), (pa.binary(4), "BINARY"),
    (pa.large_binary(), "BINARY"), (pa.date64(), "DATE"), (pa.timestamp("ns"), "TIMESTAMP"),
    (pa.timestamp("s", "Asia/Tokyo"), "TIMESTAMP"), (pa.large_list(pa.int8()), "ARRAY<TINYINT>"),
    (pa.list_(pa.bool_(), 3), "ARRAY<BOOLEAN>"), (pa.decimal256(38, 2), "DECIMAL(38,2)"),
])
def test_a_type_of_arrows_own_becomes_one_that_holds_its_values(
    kind: pa.DataType, name: str
) -> None:
    assert str(type_of(kind)) == name


@pytest.mark.parametrize("kind", [
    pa.uint64(), pa.null(), pa.time32("s"), pa.duration("us"), pa.decimal256(50, 2),
    pa.decimal128(5, -2), pa.list_(pa.uint64()), pa.month_day_nano_interval(),
])
def test_a_type_that_nothing_here_holds_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="column 'x': there is no type for"):
        fields_of(pa.schema([("x", kind)]))
