"""Any split of rows into blocks, in any order, dense or sparse, answers as plain Python does."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.arrow import arrow_type
from penstock.errors import PlanError
from penstock.model import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Aggregate,
    Column,
    Field,
    Type,
)
from penstock.synopses import Question, Synopsis, gathered
from tests.synopses.reference import Row, answers, partials, same

FLOAT, SMALLINT = Type("FLOAT"), Type("SMALLINT")
DECIMAL, WIDE = Type("DECIMAL", precision=9, scale=2), Type("DECIMAL", precision=19, scale=2)
ARRAY = Type("ARRAY", element=INT)
STRUCT = Type("STRUCT", fields=(Field("a", INT), Field("b", STRING)))
PAIR = Type("STRUCT", fields=(Field("order", INT), Field("value", STRING)))
VALUES: dict[Type, list[Any]] = {
    PAIR: [{"order": n % 3, "value": v} for n, v in enumerate(("b", "a", "", "b", "c", "é"))],
    ARRAY: [[], [1], [1, None], [1, -2], [0, 9]],
    STRUCT: [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "y"}, {"a": 0, "b": "z"}],
    INT: [*range(-3, 4), -(2**31), 2**31 - 1],
    SMALLINT: [-2, 0, 5],
    BIGINT: [-1, 0, 1, 2**53 + 1, -(2**63), 2**63 - 1, 2**62, -(2**62)],
    DOUBLE: [-1.5, -0.0, 0.0, 0.25, 3.0, 1e9, 1e9 + 0.5, math.nan, math.inf, -math.inf],
    FLOAT: [-1.5, -0.0, 0.0, math.nan],
    STRING: ["", "a", "b", "ab", "é", "\U0001f600", "\uffff"],
    BINARY: [b"", b"\x00", b"\xff", b"a"],
    BOOLEAN: [True, False],
    DECIMAL: [Decimal("-1.10"), Decimal("0.00"), Decimal("2.35"), Decimal("9999999.99")],
    DATE: [date(1969, 12, 30) + timedelta(days=n) for n in range(4)],
    TIMESTAMP: [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in (-1, 0, 7)],
}
COLUMNS = {type_: Column(type_.name.lower(), type_) for type_ in VALUES}
COLUMNS[PAIR] = Column("pair", PAIR)
NUMBERS = (INT, SMALLINT, BIGINT, DOUBLE, FLOAT, DECIMAL)
SPAN = 6


def result(function: str, type_: Type) -> Type:
    if function in ("MIN", "MAX"):
        return type_
    if type_ is DECIMAL and function in ("SUM", "AVG"):
        return WIDE if function == "SUM" else Type("DECIMAL", precision=13, scale=6)
    if function == "SUM":
        return DOUBLE if type_ in (DOUBLE, FLOAT) else BIGINT
    return BIGINT if function.startswith("COUNT") else DOUBLE


def listed(value: Type, figure: str, type_: Type) -> Type:
    fields = (Field("value", value), Field(figure, type_))
    return Type("ARRAY", element=Type("STRUCT", fields=fields))


def catalogue() -> list[Aggregate]:
    """Every exact aggregate over every type it takes."""
    found = [Aggregate("COUNT", (), BIGINT)]
    for type_, column in COLUMNS.items():
        if type_ is PAIR:
            found += [Aggregate(f, (column,), STRING) for f in ("MIN_BY", "MAX_BY")]
            strings = Type("ARRAY", element=STRING)
            found += [Aggregate("COLLECT_LIST", (column,), strings, (n,)) for n in (1, 3)]
            continue
        functions = ["COUNT", "MIN", "MAX", "COUNT_DISTINCT"]
        if type_ in NUMBERS:
            functions += ["SUM", "AVG", "STDDEV", "VARIANCE", "STDDEV_POP", "VAR_POP"]
        found += [Aggregate(f, (column,), result(f, type_)) for f in functions]
        found.append(Aggregate("TOPK", (column,), listed(type_, "count", BIGINT), (2,)))
        if type_ in NUMBERS:
            found += [Aggregate("PERCENTILE", (column,), DOUBLE, (p,)) for p in (0.0, 0.3, 0.5, 1)]
            weighed = listed(STRING, "sum", result("SUM", type_))
            found.append(Aggregate("TOPK", (COLUMNS[STRING], column), weighed, (3,)))
    return found


EXACT = catalogue()


def row() -> st.SearchStrategy[Row]:
    columns = {c.name: st.none() | st.sampled_from(VALUES[type_]) for type_, c in COLUMNS.items()}
    return st.fixed_dictionaries({"pane": st.integers(-3, 9), **columns})


def synopsis(keys: Sequence[Column], aggregates: Sequence[Aggregate], filled: float) -> Synopsis:
    return Synopsis([key.type for key in keys], gathered(aggregates), SPAN, filled)


def added(
    held: Synopsis, keys: Sequence[Column], aggregates: Sequence[Aggregate], rows: Sequence[Row]
) -> None:
    held.add({family: partials(rows, family, keys) for family in gathered(aggregates)})


def as_groups(table: pa.Table, keys: int) -> dict[Any, list[Any]]:
    columns = [column.to_pylist() for column in table.columns]
    rows = list(zip(*columns, strict=True))
    found = {tuple(map(same, r[:keys])): list(r[keys:]) for r in rows}
    assert len(found) == table.num_rows, "a group stands there twice"
    return found


def close(got: Any, wanted: Any, scale: float = 0.0) -> bool:
    if isinstance(wanted, float) and isinstance(got, float):
        if math.isnan(wanted) or math.isnan(got) or math.isinf(wanted):
            return same(wanted) == same(got)
        return math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-6 + scale)
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(close, got, wanted))
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(close(got[k], wanted[k]) for k in wanted)
    return bool(got == wanted)


def check(got: dict[Any, Any], wanted: dict[Any, Any], asked: Sequence[Aggregate]) -> None:
    assert got.keys() == wanted.keys()
    for key, values in wanted.items():
        for aggregate, mine, right in zip(asked, got[key], values, strict=True):
            assert close(mine, right), (aggregate.function, aggregate.args, key, mine, right)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    rows = draw(st.lists(row(), max_size=25))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    shuffled = draw(st.permutations(rows))
    edges = [0, *cuts, len(rows)]
    blocks = [shuffled[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    keys = draw(st.sampled_from([
        (), (COLUMNS[INT],), (COLUMNS[DOUBLE],), (COLUMNS[STRUCT], COLUMNS[ARRAY]),
        (COLUMNS[STRING], COLUMNS[BOOLEAN]),
        (COLUMNS[DECIMAL], COLUMNS[TIMESTAMP], COLUMNS[DATE])]))
    aggregates = draw(st.lists(st.sampled_from(EXACT), min_size=1, max_size=6, unique=True))
    return rows, blocks, keys, aggregates, draw(st.sampled_from([0.0, 0.25, 9.0]))


@given(cases(), st.integers(-3, 10), st.lists(st.integers(1, SPAN), min_size=1, max_size=4))
@settings(max_examples=150)
def test_blocks_in_any_order_give_the_answers_of_plain_python(
    case: tuple[Any, ...], end: int, lengths: list[int]
) -> None:
    rows, blocks, keys, aggregates, filled = case
    held = synopsis(keys, aggregates, filled)
    for block in blocks:
        added(held, keys, aggregates, block)
    found = held.scan(end, [Question(length, tuple(aggregates)) for length in lengths])
    for length, table in zip(lengths, found, strict=True):
        check(as_groups(table, len(keys)), answers(rows, keys, aggregates, end, length), aggregates)
        types = [arrow_type(t) for t in (*(k.type for k in keys), *(a.type for a in aggregates))]
        assert [field.type for field in table.schema] == types


@pytest.mark.parametrize("filled", [0.0, 0.25, 9.0])
def test_every_aggregate_over_every_type_at_once(filled: float) -> None:
    rng, keys = random.Random(8), (COLUMNS[BOOLEAN],)
    rows = [{"pane": rng.randrange(-3, 9), **{
        c.name: rng.choice([None, *VALUES[t]]) for t, c in COLUMNS.items()}} for _ in range(300)]
    held = synopsis(keys, EXACT, filled)
    for start in range(0, 300, 60):
        added(held, keys, EXACT, rows[start : start + 60])
    for table, length in zip(held.scan(5, [Question(n, tuple(EXACT)) for n in (1, 2, 6)]),
                             (1, 2, 6), strict=True):
        check(as_groups(table, 1), answers(rows, keys, EXACT, 5, length), EXACT)


@given(cases())
@settings(max_examples=60)
def test_many_lengths_in_one_scan_are_the_scans_of_each(case: tuple[Any, ...]) -> None:
    rows, _, keys, aggregates, filled = case
    held = synopsis(keys, aggregates, filled)
    added(held, keys, aggregates, rows)
    questions = [Question(length, tuple(aggregates)) for length in (5, 1, 3, 5)]
    together = held.scan(6, questions)
    for question, table in zip(questions, together, strict=True):
        assert as_groups(table, len(keys)).keys() == as_groups(
            held.scan(6, [question])[0], len(keys)).keys()
        check(as_groups(table, len(keys)), as_groups(held.scan(6, [question])[0], len(keys)),
              aggregates)


@given(st.lists(st.lists(row(), max_size=8), max_size=12), st.sampled_from([0.0, 0.25, 9.0]))
@settings(max_examples=60)
def test_forgetting_changes_no_answer_that_can_still_be_asked(
    blocks: list[list[Row]], filled: float
) -> None:
    keys = (COLUMNS[INT], COLUMNS[STRING])
    aggregates = [a for a in EXACT if a.function in ("SUM", "MAX", "PERCENTILE")][:6]
    aggregates += [a for a in EXACT if a.function == "TOPK"][:2]
    held, rows = synopsis(keys, aggregates, filled), []
    for number, block in enumerate(blocks):
        placed = [{**r, "pane": number + r["pane"] % 2} for r in block]
        added(held, keys, aggregates, placed)
        rows += [r for r in placed if r["pane"] >= held.first]
        held.forget(number - 2)
        held._compact([ring.alive(held.first) for ring in held._rings.values()])
        (table,) = held.scan(number + 1, [Question(3, tuple(aggregates))])
        check(as_groups(table, 2), answers(rows, keys, aggregates, number + 1, 3), aggregates)


def test_keys_that_no_pane_holds_leave_the_memory() -> None:
    key, value = COLUMNS[INT], COLUMNS[STRING]
    aggregates = [a for a in EXACT if a.args == (value,)]
    held, sizes = synopsis((key,), aggregates, 0.25), []
    for pane in range(60):
        names = range(100 * pane, 100 * pane + 100)
        rows = [{"pane": pane, "int": n, "string": f"value {n}"} for n in names]
        added(held, (key,), aggregates, rows)
        held.forget(pane - 3)
        sizes.append(held.nbytes)
    assert held.keys <= 2 * 400 + 164
    assert max(sizes[30:]) <= 1.2 * max(sizes[10:30])


def test_rows_of_forgotten_panes_are_passed_by() -> None:
    count = Aggregate("COUNT", (), BIGINT)
    held = synopsis((), [count], 0.25)
    held.forget(5)
    added(held, (), [count], [{"pane": 4}, {"pane": 5}])
    assert held.scan(6, [Question(3, (count,))])[0].to_pydict() == {"agg0": [1]}


def test_a_window_without_rows_has_no_answer() -> None:
    count = Aggregate("COUNT", (), BIGINT)
    held = synopsis((), [count], 0.25)
    assert held.scan(6, [Question(3, (count,))])[0].num_rows == 0
    added(held, (), [count], [{"pane": 0}])
    assert held.scan(6, [Question(3, (count,))])[0].num_rows == 0


def test_a_window_longer_than_the_span_is_refused() -> None:
    count = Aggregate("COUNT", (), BIGINT)
    held = synopsis((), [count], 0.25)
    with pytest.raises(PlanError, match="7 panes over 6"):
        held.scan(6, [Question(7, (count,))])
    held = Synopsis([], gathered([count]), SPAN + 1, 0.25)
    assert held.scan(6, [Question(7, (count,))])[0].num_rows == 0


def test_a_table_that_cannot_be_read_changes_no_answer() -> None:
    distinct = Aggregate("COUNT_DISTINCT", (COLUMNS[INT],), BIGINT)
    aggregates = [Aggregate("COUNT", (), BIGINT), distinct]
    families = gathered(aggregates)
    assert len(families) == 2
    held = synopsis((), aggregates, 0.25)
    tables = {f: partials([{"pane": 0, "int": 1}], f, ()) for f in families}
    with pytest.raises(KeyError):
        held.add({**tables, families[1]: tables[families[1]].drop_columns(["m0"])})
    assert held.scan(1, [Question(1, tuple(aggregates))])[0].num_rows == 0


def test_the_max_synopsis_of_the_papers_second_figure() -> None:
    """Eight panes; the oldest, which holds the maximum 8, expires as 7 arrives."""
    column = COLUMNS[INT]
    highest = Aggregate("MAX", (column,), INT)
    held = Synopsis([], gathered([highest]), span=8)
    for pane, value in enumerate([8, 4, 6, 5, 3, 6, 2, 5]):
        added(held, (), [highest], [{"pane": pane, "int": value}])
    windows = [Question(length, (highest,)) for length in (8, 6)]
    assert [t["agg0"].to_pylist() for t in held.scan(8, windows)] == [[8], [6]]
    added(held, (), [highest], [{"pane": 8, "int": 7}])
    held.forget(1)
    assert [t["agg0"].to_pylist() for t in held.scan(9, windows)] == [[7], [7]]


def test_a_sum_that_leaves_64_bits_and_comes_back_is_right() -> None:
    column = COLUMNS[BIGINT]
    total = Aggregate("SUM", (column,), BIGINT)
    held = synopsis((), [total], 0.25)
    most = 2**63 - 1
    values = ((0, -2), (1, most), (1, most), (2, -(2**63)))
    rows = [{"pane": pane, "bigint": value} for pane, value in values]
    added(held, (), [total], rows)
    found = held.scan(3, [Question(n, (total,)) for n in (1, 2, 3)])
    assert [t["agg0"].to_pylist() for t in found] == [[-(2**63)], [2**63 - 2], [2**63 - 4]]
    assert held.scan(2, [Question(1, (total,))])[0]["agg0"].to_pylist() == [None]


def test_a_variance_keeps_its_digits_beside_large_values() -> None:
    column = COLUMNS[DOUBLE]
    spread = Aggregate("VARIANCE", (column,), DOUBLE)
    held = synopsis((), [spread], 0.25)
    added(held, (), [spread], [{"pane": n, "double": 1e12 + n} for n in range(4)])
    (table,) = held.scan(4, [Question(4, (spread,))])
    assert table["agg0"].to_pylist() == pytest.approx([5 / 3])


@pytest.mark.parametrize("values", [(math.inf, -math.inf), (1e308, 1e308), (math.nan, 1.0)])
def test_what_floats_cannot_hold_follows_their_arithmetic(values: tuple[float, float]) -> None:
    column = COLUMNS[DOUBLE]
    asked = [a for a in EXACT if a.args == (column,) and a.function in ("SUM", "AVG", "MAX")]
    held = synopsis((), asked, 0.25)
    rows = [{"pane": pane, "double": value} for pane, value in enumerate(values)]
    added(held, (), asked, rows)
    (table,) = held.scan(2, [Question(2, tuple(asked))])
    check(as_groups(table, 0), answers(rows, (), asked, 2, 2), asked)


@pytest.mark.parametrize(("values", "total"), [
    ((-(2**63), -1), None), ((-(2**63), 0), -(2**63)), ((2**63 - 1, 1), None),
    ((2**63 - 1, 0), 2**63 - 1)])
def test_a_sum_is_null_from_the_first_number_that_64_bits_cannot_hold(
    values: tuple[int, int], total: int | None
) -> None:
    asked = Aggregate("SUM", (COLUMNS[BIGINT],), BIGINT)
    held = synopsis((), [asked], 0.25)
    added(held, (), [asked], [{"pane": n, "bigint": value} for n, value in enumerate(values)])
    assert held.scan(2, [Question(2, (asked,))])[0]["agg0"].to_pylist() == [total]


def test_a_group_lives_as_long_as_its_youngest_pane_in_whatever_order_panes_come() -> None:
    key, count = COLUMNS[INT], Aggregate("COUNT", (), BIGINT)
    held = synopsis((key,), [count], 0.25)
    for pane in (5, 3):
        added(held, (key,), [count], [{"pane": pane, "int": 1}])
    added(held, (key,), [count], [{"pane": 3, "int": n} for n in range(2, 300)])
    held.forget(4)
    assert held.keys == 1
    assert held.scan(6, [Question(2, (count,))])[0].to_pydict() == {"key0": [1], "agg0": [1]}


def test_a_scan_knows_values_that_came_after_the_last_one() -> None:
    asked = tuple(a for a in EXACT if a.args == (COLUMNS[INT],) and not a.function.startswith("C"))
    held, rows = synopsis((), asked, 0.25), []
    for value in (3, -1, 2, -3):
        rows.append({"pane": 0, "int": value})
        added(held, (), asked, rows[-1:])
        (table,) = held.scan(1, [Question(1, asked)])
        check(as_groups(table, 0), answers(rows, (), asked, 1, 1), asked)


def test_a_pane_of_few_cells_among_many_takes_little_room() -> None:
    key, count = COLUMNS[INT], Aggregate("COUNT", (), BIGINT)
    held = synopsis((key,), [count], 0.25)
    added(held, (key,), [count], [{"pane": 0, "int": n} for n in range(10)])
    added(held, (key,), [count], [{"pane": 1, "int": n} for n in range(10_000)])
    before = held.nbytes
    added(held, (key,), [count], [{"pane": 0, "int": 9_999}])
    assert held.nbytes - before < 1_000
    assert held.scan(1, [Question(1, (count,))])[0].num_rows == 11
