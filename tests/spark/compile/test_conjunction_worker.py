"""A conjunction in a worker: no order changes what is left, and profiles tell what was dropped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.compile import conjunction_worker
from penstock.spark.compile.conjunction_worker import Columns, Predicate, Sampling, evaluate
from penstock.spark.compile.python_worker import FunctionCall

NAMES = Columns(("id",), "@error", "@blamed")
TRUTH = {"t": True, "f": False, "n": None}
Verdicts = list[str]
"""By row, what a predicate does: true, false, null, or raise."""


def predicate(number: int, seen: list[int] | None = None) -> Predicate:
    """A predicate that does what a row says: its column holds its verdicts."""
    def decide(column: pa.Array) -> pa.Array:
        verdicts = column.to_pylist()
        if seen is not None:
            seen.extend([number] * len(verdicts))
        if "r" in verdicts:
            raise ValueError(f"p{number}")
        return pa.array([TRUTH[verdict] for verdict in verdicts], pa.bool_())

    call = FunctionCall(f"@py{number}", (f"p{number}",), decide, "arrow", pa.bool_())
    return Predicate(call, number)


def batches(rows: Sequence[Sequence[str]], size: int) -> list[pa.RecordBatch]:
    table = pa.table({
        "id": pa.array(range(len(rows)), pa.int64()),
        **{f"p{number}": pa.array([row[number] for row in rows], pa.string())
           for number in range(len(rows[0]))}})
    return table.to_batches(max_chunksize=size)


def told(parts: Any) -> list[tuple[int, str | None, int | None]]:
    return [(row["id"], row["@error"], row["@blamed"])
            for part in parts for row in part.to_pylist()]


def expected(rows: Sequence[Sequence[str]]) -> list[tuple[int, str | None, int | None]]:
    """In plain Python: a row goes if any predicate is false; else its first error is told."""
    found: list[tuple[int, str | None, int | None]] = []
    for id, row in enumerate(rows):
        if not {"f", "n"} & set(row):
            raising = [number for number, verdict in enumerate(row) if verdict == "r"]
            error = f"ValueError: p{raising[0]}" if raising else None
            found.append((id, error, raising[0] if raising else None))
    return found


row = st.lists(st.sampled_from("tttfnr"), min_size=4, max_size=4)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(row, min_size=1, max_size=12), size=st.integers(1, 12),
       part=st.integers(1, 20), cut=st.integers(1, 4), sampled=st.booleans(),
       own=st.sampled_from((0.0, 0.01, 0.3)), ahead=st.integers(0, 4))
def test_no_order_and_no_cut_changes_what_is_left_and_what_is_rejected(
    rows: list[list[str]], size: int, part: int, cut: int, sampled: bool, own: float,
    ahead: int,
) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr(conjunction_worker, "PART_ROWS", part)
    patch.setattr(conjunction_worker, "LEAST_AHEAD", 1)
    try:
        for order in permutations(range(4)):
            ordered = [predicate(number) for number in order]
            given_rows: Any = batches(rows, size)
            kept = Columns(("id", *(f"p{n}" for n in range(4))), "@error", "@blamed")
            for first, last in ((0, cut), (cut, 4)):
                asked = ordered[first:last]
                if asked:
                    unasked = tuple(tuple(range(n + 1, 4 - first)) for n in range(4 - first))
                    sampling = Sampling(
                        0.5, tuple(ordered[first:]), unasked, len(asked), seed=len(rows),
                        per_partition=own, enough=1, lookahead=ahead)
                    given_rows = list(evaluate(
                        asked, kept, given_rows, sampling if sampled else None))
            assert told(given_rows) == expected(rows)
    finally:
        patch.undo()


def test_each_predicate_sees_only_what_the_others_have_left() -> None:
    seen: list[int] = []
    rows = ["ttt"] * 2 + ["ftt"] * 5 + ["ttf"] * 3
    list(evaluate([predicate(n, seen) for n in (2, 0, 1)], NAMES, batches(rows, 4)))
    assert [seen.count(n) for n in range(3)] == [7, 2, 10]


def test_a_task_tells_rows_seconds_and_what_raised() -> None:
    rows = ["tt"] * 2 + ["ft"] * 5 + ["rt"] * 3 + ["rf"]
    reports: list[Any] = []
    profiles: list[Any] = []
    asked = [predicate(n) for n in (0, 1)]
    list(evaluate(asked, NAMES, batches(rows, 4), None, reports.append, profiles.append))
    (((steps, _, _),), ((raised, patterns, spent, _),)) = reports, profiles
    assert [(rows_in, left) for rows_in, left, _ in steps] == [(11, 6), (6, 5)]
    assert all(seconds > 0 for _, _, seconds in steps)
    assert (raised, patterns, spent) == ((4, 0), (), ())


def test_a_task_without_rows_tells_nothing() -> None:
    told: list[Any] = []
    assert list(evaluate([predicate(0)], NAMES, batches(["t"], 1)[:0], None, told.append,
                         told.append)) == []
    assert told == []


def test_the_whole_sample_is_profiled_if_the_rate_is_one() -> None:
    rows = ["ttt"] * 4 + ["ftf"] * 5 + ["ttf"] * 3 + ["rff"] * 2
    profiles: list[Any] = []
    order = [predicate(n) for n in (0, 1, 2)]
    sampling = Sampling(1.0, tuple(order), ((1, 2), (2,), ()), 3)
    list(evaluate(order, NAMES, batches(rows, 3), sampling, None, profiles.append))
    ((_, patterns, spent, _),) = profiles
    assert dict(patterns) == {0: 4, 0b101: 5, 0b100: 3, 0b110: 2}
    assert [rows for rows, _ in spent] == [14, 14, 14]


def test_a_row_that_comes_to_a_later_trip_is_profiled_there_and_not_twice() -> None:
    rows = ["fff"] * 5 + ["tff"] * 3 + ["ttt"] * 4
    order = [predicate(n) for n in (0, 1, 2)]
    found = []
    given_rows: Any = batches(rows, 3)
    kept = Columns(("id", "p0", "p1", "p2"), "@error", "@blamed")
    for first, last in ((0, 1), (1, 3)):
        profiles: list[Any] = []
        unasked = (((1, 2), (2,), ()), ((1,), ()))[first]
        sampling = Sampling(1.0, tuple(order[first:]), unasked, last - first)
        given_rows = list(evaluate(
            order[first:last], kept, given_rows, sampling, None, profiles.append))
        found.append(dict(profiles[0][1]))
    assert found == [{0b111: 5}, {0b11: 3, 0: 4}]


def test_what_is_not_asked_for_is_not_evaluated_on_the_sample() -> None:
    rows = ["fff"] * 5 + ["ttf"] * 3
    profiles: list[Any] = []
    order = [predicate(n) for n in (0, 1, 2)]
    sampling = Sampling(1.0, tuple(order), ((2,), (), ()), 3)
    list(evaluate(order, NAMES, batches(rows, 3), sampling, None, profiles.append))
    ((_, patterns, spent, _),) = profiles
    assert dict(patterns) == {0b101: 5, 0b100: 3}
    assert [rows for rows, _ in spent] == [8, 3, 8]


def test_the_sample_is_a_share_of_the_rows_whatever_the_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = ["f"] * 40_000
    for part in (100, 1 << 16):
        monkeypatch.setattr(conjunction_worker, "PART_ROWS", part)
        profiles: list[Any] = []
        order = [predicate(0)]
        list(evaluate(order, NAMES, batches(rows, 100), Sampling(0.02, tuple(order), ((),), 1),
                      None, profiles.append))
        ((_, patterns, _, _),) = profiles
        assert dict(patterns)[1] == pytest.approx(800, rel=0.2)


@pytest.mark.parametrize(("kind", "own"), [("ttf", (2, 0, 1)), ("ftt", ())])
def test_a_partition_goes_on_in_an_order_of_its_own_if_that_saves_much(
    kind: str, own: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conjunction_worker, "PART_ROWS", 50)
    ticks = count()
    monkeypatch.setattr(conjunction_worker, "perf_counter", lambda: float(next(ticks)))
    seen: list[int] = []
    order = [predicate(n, seen) for n in range(3)]
    sampling = Sampling(1.0, tuple(order), ((1, 2), (2,), ()), 3, per_partition=0.2, enough=50)
    profiles: list[Any] = []
    rows = [kind] * 400
    list(evaluate(order, NAMES, batches(rows, 50), sampling, None, profiles.append))
    ((_, patterns, _, found),) = profiles
    assert found == own
    assert sum(rows for _, rows in patterns) == 400
    shown = [seen.count(n) - 400 for n in range(3)]  # beside the sample, which all are shown
    assert shown == ([50, 50, 400] if own else [400, 0, 0])


@pytest.mark.parametrize(("rows", "own"), [(800, (2, 0, 1)), (799, ())])
def test_a_task_of_which_nothing_is_known_looks_ahead(
    rows: int, own: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 100 of its rows, if it has eight times as many. They are its sample."""
    ticks = count()
    monkeypatch.setattr(conjunction_worker, "perf_counter", lambda: float(next(ticks)))
    seen: list[int] = []
    order = [predicate(n, seen) for n in range(3)]
    sampling = Sampling(0.01, tuple(order), ((1, 2), (2,), ()), 3, enough=100, lookahead=100)
    profiles: list[Any] = []
    found = list(evaluate(order, NAMES, batches(["ttf"] * rows, 64), sampling, None,
                          profiles.append))
    assert sum(part.num_rows for part in found) == 0
    ((_, patterns, spent, told),) = profiles
    assert told == own
    sampled = sum(rows for _, rows in patterns)
    assert sampled == 100 if own else sampled < 30
    assert [rows for rows, _ in spent] == [sampled] * 3
    assert [seen.count(n) - sampled for n in range(3)] == ([0, 0, 800] if own else [799] * 3)


def test_pandas_functions_and_wrong_lengths() -> None:
    small = FunctionCall("@py0", ("p0",), lambda p: p == "t", "pandas", pa.bool_())
    short = FunctionCall("@py1", ("p0",), lambda p: p[:1], "arrow", pa.bool_())
    kept = told(evaluate([Predicate(small, 0), Predicate(short, 1)], NAMES,
                         batches(["t", "f", "t"], 3)))
    assert kept == [(id, "the function returned 1 values for 2 rows", 1) for id in (0, 2)]


def test_chunks_of_batches_are_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def note(column: pa.Array) -> Any:
        assert isinstance(column, pa.Array)
        sizes.append(len(column))
        return np.ones(len(column), bool)

    call = FunctionCall("@py0", ("p0",), note, "arrow", pa.bool_())
    monkeypatch.setattr(conjunction_worker, "PART_ROWS", 6)
    list(evaluate([Predicate(call, 0)], NAMES, batches(["t"] * 14, 4)))
    assert sizes == [8, 6]


def test_wide_rows_are_evaluated_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conjunction_worker, "PART_BYTES", 1)
    found = list(evaluate([predicate(0)], NAMES, batches(["t"] * 14, 4)))
    assert [part.num_rows for part in found] == [4, 4, 4, 2]
