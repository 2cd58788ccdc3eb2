"""Pane tables of Arrow rows are those of plain Python, however the rows are cut into parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.arrow import arrow_schema, arrow_type
from penstock.model import BIGINT, DOUBLE, INT, Aggregate, Column, Field, Type
from penstock.spark.aggregates.arrow_groupings import fits
from penstock.spark.aggregates.arrow_measures import Kept
from penstock.spark.aggregates.arrow_panes import (
    TIME,
    ArrowGrouping,
    Reader,
    pane_batches,
    pane_tables,
)
from penstock.spark.aggregates.pane_groupings import PaneGrouping
from penstock.spark.compile import worker_batches
from penstock.synopses import Family, Measure, Question, Synopsis, gathered
from tests.synopses.reference import Row, answers, partials, same
from tests.synopses.test_synopsis import COLUMNS, EXACT, as_groups, check, close, row

PANE = 2_500_000
FIELDS = [Field(c.name, type_) for type_, c in COLUMNS.items()]
WIDE = Type("DECIMAL", precision=38, scale=2)


def asked() -> list[Aggregate]:
    """Every exact aggregate whose families Arrow can group."""
    return [a for a in EXACT if all(fits(PaneGrouping(PANE, (), ((0, f),))) for f in gathered([a]))]


ASKED = asked()


def test_all_types_but_nested_ones_are_grouped_in_arrow() -> None:
    left_out = {a.args[0].type.name for a in EXACT if a not in ASKED}
    assert left_out == {"ARRAY", "STRUCT"}
    counted = [a.function for a in ASKED if a.args and a.args[0].type.name == "STRUCT"]
    assert counted == ["COUNT"]


def grouping(family: Family, keys: Sequence[Column], *where: str | None) -> ArrowGrouping:
    """A family whose arguments are columns of the rows, for a reader of each condition."""
    kept = tuple(Kept(m.kind, "" if m.arg is None else _column(m.kind, m.arg),
                      arrow_type(m.stored)) for m in family.measures)
    by = [(f"k{n}", key.name) for n, key in enumerate(keys)]
    if family.cell is not None:
        by.append(("cell", family.args[0].name))
    return ArrowGrouping(PANE, tuple(by), tuple(Reader(one, kept) for one in where))


def _column(kind: str, arg: Column) -> str:
    """Spark has made doubles of the decimals whose spread is wanted."""
    return "@double" if kind == "moments" and arg.type.name == "DECIMAL" else arg.name


def batches(rows: Sequence[Row], cuts: Sequence[int] = ()) -> list[pa.RecordBatch]:
    """The rows as Spark would give them."""
    found = pa.Table.from_pylist(
        [{c.name: r[c.name] for c in COLUMNS.values()} for r in rows], schema=arrow_schema(FIELDS))
    times = pa.array([r["pane"] * PANE + n % PANE for n, r in enumerate(rows)], pa.int64())
    whole = found.append_column(TIME, times).append_column(
        "@double", found["decimal"].cast(pa.float64()))
    bounds = [0, *sorted(cuts), len(rows)]
    return [batch for first, end in zip(bounds, bounds[1:], strict=False)
            for batch in whole.slice(first, end - first).to_batches()]


def held(table: pa.Table, measures: int) -> dict[Any, list[Any]]:
    """What a pane table has in each cell, each cell once."""
    rows = [list(r.values()) for r in table.to_pylist()]
    found = {tuple(map(same, r[:-measures])): r[-measures:] for r in rows}
    assert len(found) == len(rows)
    return found


KEYS = st.lists(st.sampled_from([c for c in COLUMNS.values()
                                 if c.type.name not in ("ARRAY", "STRUCT")]), max_size=3)


@settings(deadline=None, max_examples=60)
@given(st.lists(row(), min_size=1, max_size=30), KEYS, st.data())
def test_a_pane_table_is_that_of_plain_python(
    rows: list[Row], keys: list[Column], data: st.DataObject
) -> None:
    (family, *_) = gathered([data.draw(st.sampled_from(ASKED)), data.draw(st.sampled_from(ASKED))])
    ((whole, part),) = pane_tables([grouping(family, keys, None, "boolean")], batches(rows))
    for found, mine in ((whole, rows), (part, [r for r in rows if r["boolean"]])):
        wanted = partials(mine, family, keys)
        assert found.schema.types[-len(family.measures):] == [
            arrow_type(m.stored) for m in family.measures]
        got, right = (held(t, len(family.measures)) for t in (found, wanted))
        assert got.keys() == right.keys()
        for cell, values in right.items():
            assert all(map(alike, got[cell], values)), (cell, got[cell], values)


def alike(got: Any, wanted: Any) -> bool:
    """Whether two measures give the same answer; without a spread the mean gives none."""
    if isinstance(wanted, dict) and math.isnan(wanted.get("spread", 0.0)):
        return math.isnan(got["spread"]) and got["count"] == wanted["count"]
    return close(got, wanted)


@settings(deadline=None, max_examples=40)
@given(st.lists(row(), max_size=30), KEYS, st.data())
def test_however_the_rows_are_cut_the_answers_are_those_of_plain_python(
    rows: list[Row], keys: list[Column], data: st.DataObject
) -> None:
    exact = data.draw(st.lists(st.sampled_from(ASKED), min_size=1, max_size=6, unique_by=id))
    families = gathered(exact)
    groupings = [grouping(family, keys, None, "boolean") for family in families]
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_batches, "MOST_ROWS", data.draw(st.sampled_from([1, 7, 100])))
        packed = list(pane_batches(groupings, batches(rows, cuts)))
    for reader, mine in enumerate((rows, [r for r in rows if r["boolean"]])):
        synopsis = Synopsis([key.type for key in keys], families, 16)
        for batch in packed:
            found = dict(zip(batch["number"].to_pylist(), batch["table"], strict=True))
            synopsis.add({family: pa.ipc.open_stream(found[2 * n + reader].as_buffer()).read_all()
                          for n, family in enumerate(families) if 2 * n + reader in found})
        (table,) = synopsis.scan(10, [Question(16, tuple(exact))])
        check(as_groups(table, len(keys)), answers(mine, keys, exact, 10, 16), exact)


def measured(values: Sequence[Any], type_: Type, kind: Any) -> Any:
    """A measure of values that are in one cell."""
    rows = pa.table({TIME: pa.array([0] * len(values), pa.int64()),
                     "x": pa.array(values, arrow_type(type_))})
    stored = arrow_type(Measure(kind, Column("x", type_)).stored)
    made = ArrowGrouping(PANE, (), (Reader(None, (Kept(kind, "x", stored),)),))
    ((found,),) = pane_tables([made], rows.to_batches())
    return found["m0"].to_pylist()[0]


def test_a_sum_of_decimals_is_exact_up_to_38_digits_and_null_beyond() -> None:
    most, next_to_it = Decimal("9" * 36 + ".99"), Decimal("9" * 36 + ".98")
    one = Decimal("0.01")
    assert measured([most, -one], WIDE, "sum") == next_to_it
    assert measured([most, one], WIDE, "sum") is None
    assert measured([most.copy_negate(), -one], WIDE, "sum") is None
    assert measured([most.copy_negate(), most, None, one], WIDE, "sum") == one
    assert measured([None], WIDE, "sum") == 0


def test_a_sum_of_bigint_comes_in_halves_that_may_leave_64_bits() -> None:
    found = measured([2**63 - 1, 2**63 - 1, -5], BIGINT, "sum")
    assert (found["high"] << 32) + found["low"] == 2 * (2**63 - 1) - 5


def test_a_spread_loses_no_digits_beside_large_values() -> None:
    found = measured([1e9, 1e9 + 1], DOUBLE, "moments")
    assert found == {"count": 2.0, "mean": 1e9 + 0.5, "spread": 0.5}


def test_cells_far_apart_in_time_and_value_take_no_more_room_than_they_need() -> None:
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)]
    micros = [(t - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) for t in times]
    ends = [-(2**63), 2**63 - 1]
    rows = pa.table({TIME: micros, "a": ends, "b": ends, "c": pa.array([True, None], pa.bool_())})
    made = ArrowGrouping(1, (("k0", "a"), ("k1", "b"), ("k2", "c")),
                         (Reader(None, (Kept("rows", "", pa.int64()),)),))
    ((found,),) = pane_tables([made], rows.to_batches())
    assert found.to_pylist() == [
        {"pane": m, "k0": e, "k1": e, "k2": c, "m0": 1}
        for m, e, c in zip(micros, ends, (True, None), strict=True)]


def test_rows_that_nobody_wants_make_no_cell() -> None:
    rows = pa.table({TIME: [0, 1], "x": pa.array([1, 2], pa.int32()),
                     "w": pa.array([False, None], pa.bool_())})
    kept = (Kept("rows", "", pa.int64()), Kept("max", "x", arrow_type(INT)))
    made = ArrowGrouping(PANE, (("k0", "x"),), (Reader("w", kept),))
    ((found,),) = pane_tables([made], rows.to_batches())
    assert found.num_rows == 0
    assert found.schema.types == [pa.int64(), pa.int32(), pa.int64(), pa.int32()]
