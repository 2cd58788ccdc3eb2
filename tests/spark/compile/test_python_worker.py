"""What a Python worker does with functions that raise, lie about their length, or guard others."""

from __future__ import annotations

import math
import sys
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.planning.conjunctions import COMPARISONS
from penstock.spark.compile.python_worker import ConstantTest, FunctionCall, answers, evaluate


def run(*steps, x=(1, 2, 3, 4), error=None):
    batch = pa.RecordBatch.from_pydict({
        "x": pa.array(x, pa.int64()),
        "@error": pa.array(error or [None] * len(x), pa.string()),
    })  # fmt: skip
    return [row for out in evaluate(steps, ["x"], ["@error"], [batch]) for row in out.to_pylist()]


def step(function, type_=None, form="arrow", result="@py0", args=("x",), errors=("@error",)):
    return FunctionCall(result, args, function, form, type_ or pa.int64(), errors)


def raise_for_three(x):
    if 3 in x.to_pylist():
        raise ValueError("three")
    return pc.multiply(x, 10)


def test_only_the_rows_for_which_a_function_raises_carry_the_error():
    told = run(step(raise_for_three))
    assert [row["@py0"] for row in told] == [10, 20, None, 40]
    assert [row["@error"] for row in told] == [None, None, "ValueError: three", None]


def test_every_row_may_fail():
    told = run(step(lambda x: 1 / 0))
    assert {row["@error"] for row in told} == {"ZeroDivisionError: division by zero"}


@pytest.mark.parametrize(("answer", "error"), [
    (lambda x: pa.array([1]), "the function returned 1 values for 4 rows"),
    (lambda x: 7, "the function returned int, not one value per row"),
    (lambda x: None, "the function returned NoneType, not one value per row"),
    (lambda x: "text", "the function returned str, not one value per row"),
])  # fmt: skip
def test_an_answer_that_is_not_one_value_per_row_is_an_error_of_the_batch(answer, error):
    assert [row["@error"] for row in run(step(answer))] == [error] * 4


def test_a_value_that_does_not_fit_the_declared_type_rejects_its_row():
    told = run(step(lambda x: pc.multiply(x, 100), pa.int8()))
    assert [row["@py0"] for row in told] == [100, None, None, None]
    assert "ArrowInvalid" in told[1]["@error"]


@pytest.mark.parametrize("answer", [
    lambda x: x, lambda x: x.to_pylist(), lambda x: x.to_numpy(), lambda x: pa.chunked_array([x]),
    lambda x: x.to_pandas(),
])  # fmt: skip
def test_arrow_numpy_pandas_and_lists_are_columns(answer):
    assert [row["@py0"] for row in run(step(answer))] == [1, 2, 3, 4]


def test_pandas_functions_take_series():
    told = run(step(lambda x: x.rank().astype("int64") + x.shift(0), form="pandas"))
    assert [row["@py0"] for row in told] == [2, 4, 6, 8]


def test_rows_with_an_error_stay_and_are_not_shown_again():
    told = run(step(raise_for_three), error=[None, None, "before", None])
    assert [row["@error"] for row in told] == [None, None, "before", None]


def test_an_error_keeps_a_row_from_the_calls_of_the_same_condition_only():
    seen = []

    def note(x):
        seen.append(x.to_pylist())
        return x

    batch = batch_of([2, 3])
    steps = [step(raise_for_three, errors=("@raised1", "@raised2")),
             step(note, result="@py1", errors=("@raised2",)),
             step(note, result="@py2", errors=("@raised3",))]
    (out,) = evaluate(steps, ["x"], ["@raised1", "@raised2", "@raised3"], [batch])
    assert seen == [[2], [2, 3]]
    assert [out[name].null_count for name in ("@raised1", "@raised2", "@raised3")] == [1, 1, 2]


def test_a_function_cannot_end_the_worker():
    assert run(step(lambda x: sys.exit(3)))[0]["@error"] == "SystemExit: 3"


def test_no_rows_no_call():
    assert run(step(lambda x: 1 / 0), x=()) == []


def measured(*steps, batches):
    told = []
    for _ in evaluate(steps, ["x"], ["@error"], map(batch_of, batches), told.append):
        pass
    return told


def batch_of(x):
    return pa.RecordBatch.from_pydict({
        "x": pa.array(x, pa.int64()), "@error": pa.array([None] * len(x), pa.string())})


def test_a_task_tells_the_rows_and_the_seconds_of_every_step():
    ten = step(raise_for_three)
    ((steps, moved, moving),) = measured(
        ten, step(lambda x: x, result="@py1"), batches=[[1, 2, 3, 4], [], [6, 8, 9]])
    assert [(rows, left) for rows, left, _ in steps] == [(7, 7), (6, 6)]
    assert all(seconds > 0 for _, _, seconds in steps)
    assert moved == 3, "the first batch waits for more than its rows"
    assert moving > 0


def test_the_time_in_which_rows_move_is_no_part_of_a_step():
    def slow(rows):
        for batch in ([1, 2], [3, 4]):
            time.sleep(0.2)
            yield batch_of(batch)

    told = []
    for _ in evaluate([step(lambda x: x)], ["x"], ["@error"], slow(None), told.append):
        time.sleep(0.1)
    ((((_, _, seconds),), moved, moving),) = told
    assert seconds < 0.1 < 0.3 <= moving
    assert moved == 2


def test_a_task_without_rows_tells_nothing():
    assert measured(step(lambda x: x), batches=[[], []]) == []


# --- comparisons with a constant ------------------------------------------------------------------

VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-2**63, 2**63 - 1) | st.integers(-2, 2),
    pa.float32(): st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, -math.inf]),
    pa.decimal128(7, 2): st.integers(-300, 300).map(lambda n: Decimal(n) / 100),
    pa.string(): st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
    pa.date32(): st.integers(-9, 9).map(lambda days: date(2026, 1, 1) + timedelta(days)),
    pa.timestamp("us", "UTC"): st.integers(-9, 9).map(
        lambda us: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)),
}
SIGNS = dict(zip(COMPARISONS, ("=", "<>", "<", "<=", ">", ">="), strict=True))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), type_=st.sampled_from(list(VALUES)))
def test_a_worker_compares_as_sql_does(data, type_):
    """NaN, minus zero and NULL too: DuckDB orders them as Spark does."""
    some = st.none() | VALUES[type_]
    values = pa.array(data.draw(st.lists(some, max_size=6)), type_)
    constant = data.draw(VALUES[type_].filter(lambda value: value == value))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        table = pa.table({"v": values, "c": pa.array([constant] * len(values), type_)})
        connection.register("t", table)
        for comparison, sign in SIGNS.items():
            test = ConstantTest(comparison, pa.scalar(constant, type_))
            wanted = connection.execute(f"SELECT v {sign} c FROM t").fetchall()
            assert [(one,) for one in test.holds(values).to_pylist()] == wanted, comparison


def test_of_a_value_that_decides_a_condition_only_the_verdict_is_told():
    call = FunctionCall("@py0", ("x",), raise_for_three, "arrow", pa.int64(),
                        test=ConstantTest("gt", pa.scalar(15, pa.int64())))
    holds, texts = answers(call, [pa.array([1, 2, 3, None])], 4)
    assert holds.to_pylist() == [False, True, None, None] and holds.type == pa.bool_()
    assert texts.to_pylist() == [None, None, "ValueError: three", None]
