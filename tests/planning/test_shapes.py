"""A shape with its constants put back means what the branch meant, and every look-up finds it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    PARAMETER,
    STRING,
    TIMESTAMP,
    Branch,
    Call,
    Column,
    Literal,
    Output,
    Type,
    walk,
)
from penstock.plan import Key
from penstock.planning.fanout import CODE, MEMBER, SHAPE, fan_out
from penstock.planning.keys import MOST_KEYS, candidates, choose, code, tagged
from penstock.planning.shapes import conjunction, fill, take

DECIMAL = Type("DECIMAL", precision=10, scale=2)
VALUES = {
    INT: st.one_of(st.integers(-3, 3), st.sampled_from([-(2**31), 2**31 - 1])),
    BIGINT: st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1, 2**53])),
    DOUBLE: st.one_of(
        st.integers(-3, 3).map(float),
        st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1.7e308, 5e-324, 0.1]),
    ),
    STRING: st.sampled_from(["", "a", "b", "ab", "é", "plumless", "buckeroo"]),  # one checksum
    BINARY: st.sampled_from([b"", b"\x00", b"ab"]),
    BOOLEAN: st.booleans(),
    DECIMAL: st.decimals(-5, 5, places=2),
    DATE: st.dates(date(1969, 12, 30), date(1970, 1, 3)),
    TIMESTAMP: st.datetimes(
        datetime(1969, 12, 31, 23, 59), datetime(1970, 1, 1, 0, 1), timezones=st.just(UTC)
    ),
}
COLUMNS = {f"{type_.name.lower()}{n}": Column(f"{type_.name.lower()}{n}", type_)
           for type_ in VALUES for n in range(2)}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def call(function, *args):
    return Call(function, args, BOOLEAN)


@st.composite
def comparisons(draw):
    column = draw(st.sampled_from(list(COLUMNS.values())))
    literal = Literal(draw(VALUES[column.type]), column.type)
    return call(draw(st.sampled_from(COMPARISONS)), column, literal)


@st.composite
def lists(draw):
    column = draw(st.sampled_from(list(COLUMNS.values())))
    values = draw(st.lists(st.one_of(VALUES[column.type], st.none()), min_size=1, max_size=6))
    return call("in", column, *(Literal(value, column.type) for value in values))


@st.composite
def sums(draw):
    column = draw(st.sampled_from([COLUMNS["int0"], COLUMNS["int1"]]))
    added = Call("add", (column, Literal(draw(st.integers(0, 2)), INT)), INT)
    return call(draw(st.sampled_from(COMPARISONS)), added, Literal(draw(VALUES[INT]), INT))


def nested(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda args: call("or", *args)),
        several.map(lambda args: call("and", *args)),
        inner.map(lambda arg: call("not", arg)),
    )


CONDITIONS = st.recursive(st.one_of(comparisons(), lists(), sums()), nested, max_leaves=4)
SELECTS = st.lists(
    st.one_of(st.sampled_from(list(COLUMNS.values())), st.just(Literal("rule-17", STRING))),
    min_size=1, max_size=3,
)  # fmt: skip
ROWS = st.fixed_dictionaries(
    {name: st.one_of(st.none(), VALUES[column.type]) for name, column in COLUMNS.items()}
)


@st.composite
def branches(draw):
    select = tuple(Output(f"c{n}", e) for n, e in enumerate(draw(SELECTS)))
    return Branch((), select, tuple(draw(st.lists(CONDITIONS, max_size=4))))


# --- a small evaluator with Spark's NULL and NaN ------------------------------------------------


def order(value):
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (0, value)


def evaluate(e, row):
    if isinstance(e, Column):
        return row[e.name]
    if isinstance(e, Literal):
        return e.value
    args = [evaluate(arg, row) for arg in e.args]
    if e.function == "in":
        found = [compare("eq", args[0], item) for item in args[1:]]
        return True if True in found else (None if None in found else False)
    if e.function == "or":
        return True if True in args else (None if None in args else False)
    if e.function == "and":
        return False if False in args else (None if None in args else True)
    if None in args:
        return None
    if e.function == "not":
        return not args[0]
    if e.function == "add":
        total = args[0] + args[1]
        return total if -(2**31) <= total < 2**31 else None
    return compare(e.function, *args)


def compare(function, left, right):
    if left is None or right is None:
        return None
    left, right = order(left), order(right)
    return {"eq": left == right, "ne": left != right, "lt": left < right,
            "le": left <= right, "gt": left > right, "ge": left >= right}[function]  # fmt: skip


def wanted(branch, row):
    return all(evaluate(condition, row) is True for condition in branch.where)


def row_code(lookup, row):
    """What Spark computes for a row, see penstock.spark.compile.fanout."""
    if lookup.key.expression is None:
        return tagged(0, lookup.tag)
    value = evaluate(lookup.key.expression, row)
    if value is None:
        return None
    literal = Literal(value, lookup.key.expression.type)
    if lookup.grid is None:
        return code(literal, lookup.tag)
    if isinstance(value, date):
        number = (code(literal, 0)) >> 3
    else:
        number = float(value)
    return tagged(lookup.grid.bin(float(number)), lookup.tag)


# --- properties ----------------------------------------------------------------------------------


@given(branches(), st.lists(ROWS, max_size=5))
def test_a_shape_filled_with_its_constants_means_what_the_branch_meant(branch, rows):
    for candidate in candidates(branch):
        shape, constants = take(branch, candidate.key, candidate.listed)
        filled = [fill(shape, values) for values in constants]
        for row in rows:
            met = [wanted(one, row) for one in filled]
            assert any(met) == wanted(branch, row)
            assert sum(met) <= 1, "a member meets a row once"
        for one in filled:
            assert [o.expression for o in one.select] == [o.expression for o in branch.select]


@settings(max_examples=200)
@given(st.lists(branches(), min_size=1, max_size=8), st.lists(ROWS, min_size=1, max_size=4))
def test_a_row_finds_every_member_that_wants_it_exactly_once(members, rows):
    fanout = fan_out(members)
    entries = fanout.table.to_pylist()
    for row in rows:
        codes = {row_code(lookup, row) for lookup in fanout.keys}
        found = []
        for entry in entries:
            shape = fanout.shapes[entry[SHAPE]]
            constants = [entry[f"@{slot}"] for slot in fanout.slots[entry[SHAPE]]]
            if entry[CODE] in codes and wanted(fill(shape, constants), row):
                found.append(entry[MEMBER])
        assert sorted(found) == [n for n, branch in enumerate(members) if wanted(branch, row)]


def test_a_thousand_rules_have_one_shape():
    port, length = COLUMNS["int0"], COLUMNS["int1"]
    rules = [
        Branch(
            (),
            (Output("rule", Literal(f"rule-{n}", STRING)), Output("port", port)),
            (call("eq", port, Literal(n, INT)), call("gt", length, Literal(n, INT))),
        )
        for n in range(1000)
    ]
    fanout = fan_out(rules)
    assert len(fanout.shapes) == 1
    assert fanout.table.num_rows == 1000
    assert [lookup.key for lookup in fanout.keys] == [Key("equal", port)]
    assert conjunction(fanout.shapes[0].where) == "int0 = ? AND int1 > ?"


def test_a_list_and_an_or_of_equalities_are_looked_up_like_an_equality():
    port = COLUMNS["int0"]
    one, two = Literal(1, INT), Literal(2, INT)
    shapes = {
        take(branch, found.key, found.listed)[0]
        for where in (call("eq", port, one), call("in", port, one, two, one),
                      call("or", call("eq", port, one), call("eq", port, two)))
        for branch in [Branch((), (), (where,))]
        for found in candidates(branch)[:1]
    }  # fmt: skip
    assert len(shapes) == 1


def test_a_list_that_is_not_looked_up_is_padded_to_few_lengths():
    port, length = COLUMNS["int0"], COLUMNS["int1"]
    items = [Literal(n, INT) for n in range(20)]
    shapes = {
        take(Branch((), (), (call("in", length, *items[:count]),)), Key("equal", port))[0]
        for count in (5, 6, 7, 8)
    }
    assert len(shapes) == 1


@pytest.mark.parametrize("function", ["like", "rlike", "regexp_extract", "date_trunc", "substr"])
def test_constants_that_spark_wants_constant_stay_in_the_shape(function):
    asked = Call(function, (COLUMNS["string0"], Literal("a%", STRING)), STRING)
    shape, constants = take(Branch((), (), (asked,)), Key("always"))
    assert shape.where == (asked,)
    assert constants == ((),)


def test_a_whole_constant_beside_a_decimal_stays():
    price = COLUMNS["decimal0"]
    asked = Call("multiply", (price, Literal(2, INT)), DECIMAL)
    assert take(Branch((), (Output("x", asked),)), Key("always"))[1] == ((),)


def test_null_is_no_parameter():
    asked = call("eq", COLUMNS["int0"], Literal(None, INT))
    branch = Branch((), (Output("x", Literal(None, INT)),), (asked,))
    shape, constants = take(branch, Key("always"))
    assert not any(isinstance(e, Column) and e.source == PARAMETER
                   for c in shape.where for e in walk(c))  # fmt: skip
    assert constants == ((),)


def test_an_equality_is_filed_under_the_column_whose_constants_differ_most():
    port, protocol = COLUMNS["int0"], COLUMNS["int1"]
    rules = [
        Branch((), (), (call("eq", protocol, Literal(n % 3, INT)),
                         call("eq", port, Literal(n, INT))))
        for n in range(100)
    ]  # fmt: skip
    chosen = choose([candidates(rule) for rule in rules])
    assert {candidate.key for candidate in chosen} == {Key("equal", port)}


def test_the_number_of_keys_is_bounded_and_the_rest_is_asked_of_every_row():
    columns = [Column(f"c{n}", INT) for n in range(20)]
    rules = [
        Branch((), (), (call("eq", column, Literal(1, INT)),))
        for column in columns for _ in range(1 + columns.index(column) % 3)
    ]  # fmt: skip
    fanout = fan_out(rules)
    assert len(fanout.keys) == MOST_KEYS
    assert Key("always") in {lookup.key for lookup in fanout.keys}


def test_both_bounds_of_a_range_are_one_key():
    src = COLUMNS["int0"]
    branch = Branch((), (), (call("ge", src, Literal(10, INT)), call("le", src, Literal(20, INT)),
                              call("ge", src, Literal(12, INT))))  # fmt: skip
    best = candidates(branch)[0]
    assert (best.key, best.low, best.high) == (Key("range", src), 12.0, 20.0)


def test_decimals_are_filed_as_ranges_because_their_doubles_may_differ_in_the_last_bit():
    price = COLUMNS["decimal0"]
    branch = Branch((), (), (call("eq", price, Literal(Decimal("0.10"), DECIMAL)),))
    best = candidates(branch)[0]
    assert best.key == Key("range", price)
    assert best.low < 0.1 < best.high
