"""Predicates of several members in a worker: each sees a row once, and each member gets its own."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.compile import conjunction_worker
from penstock.spark.compile.conjunction_worker import Sampling
from penstock.spark.compile.shared_worker import (
    BITS,
    SharedColumns,
    SharedPredicate,
    evaluate_shared,
)
from tests.spark.compile.test_conjunction_worker import batches, predicate, row

Found = list[tuple[int, int, str | None]]


def shared(number: int, members: list[list[int]], seen: list[int] | None = None) -> SharedPredicate:
    """A predicate with the members who ask for it; each has written them in its own order."""
    return SharedPredicate(predicate(number, seen), tuple(
        (member, asked.index(number)) for member, asked in enumerate(members)
        if number in asked))


def names(members: int, wanted: tuple[str, ...] = ()) -> SharedColumns:
    return SharedColumns(("id",), (), wanted, members, "@member", "@error", "@reject")


def delivered(parts: Any) -> Found:
    return sorted((row["@member"], row["id"], row["@error"])
                  for part in parts for row in part.to_pylist())


def expected(rows: list[list[str]], members: list[list[int]]) -> Found:
    """In plain Python, member by member."""
    found: Found = []
    for member, asked in enumerate(members):
        for id, verdicts in enumerate(rows):
            mine = [verdicts[number] for number in asked]
            if not {"f", "n"} & set(mine):
                error = f"ValueError: p{asked[mine.index('r')]}" if "r" in mine else None
                found.append((member, id, error))
    return sorted(found)


asked = st.lists(st.permutations(range(4)).flatmap(
    lambda order: st.integers(1, 4).map(lambda size: list(order[:size]))), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(row, min_size=1, max_size=12), members=asked, size=st.integers(1, 12),
       part=st.integers(1, 20), own=st.sampled_from((0.0, 0.01)), ahead=st.integers(0, 4))
def test_every_member_gets_what_it_would_get_alone_in_any_order(
    rows: list[list[str]], members: list[list[int]], size: int, part: int, own: float,
    ahead: int,
) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr(conjunction_worker, "LEAST_AHEAD", 1)
    patch.setattr(conjunction_worker, "PART_ROWS", part)
    needed = sorted({number for some in members for number in some})
    try:
        for order in permutations(needed):
            asked = [shared(number, members) for number in order]
            later = tuple(tuple(range(n + 1, len(asked))) for n in range(len(asked)))
            sampling = Sampling(0.5, tuple(one.predicate for one in asked), later, len(asked),
                                per_partition=own, enough=1, lookahead=ahead)
            found = evaluate_shared(asked, names(len(members)), batches(rows, size), sampling)
            assert delivered(found) == expected(rows, members)
    finally:
        patch.undo()


def test_a_predicate_sees_each_row_once_and_only_those_that_somebody_wants() -> None:
    seen: list[int] = []
    members = [[0, 1], [0, 2], [1, 2]]
    rows = [list(one) for one in ["ttt"] * 2 + ["ftt"] * 5 + ["fft"] * 3]
    found = evaluate_shared([shared(n, members, seen) for n in (0, 1, 2)], names(3),
                            batches(rows, 4))
    assert delivered(found) == expected(rows, members)
    assert [seen.count(n) for n in range(3)] == [10, 10, 7], "three rows: nobody asks for the third"


def test_rows_that_sql_refuses_to_a_member_are_not_its_own() -> None:
    members = [[0], [0]]
    table = pa.Table.from_batches(batches([["t"]] * 4, 4)).append_column(
        "@wanted0", pa.array([0, 1, 2, 3], pa.int64()))
    found = evaluate_shared([shared(0, members)], names(2, ("@wanted0",)), table.to_batches())
    assert delivered(found) == [(0, 1, None), (0, 3, None), (1, 2, None), (1, 3, None)]


def test_there_may_be_more_members_than_bits_in_a_number() -> None:
    members = [[number % 4] for number in range(2 * BITS + 7)]
    rows = [list(one) for one in ("tfff", "fttf", "tttt", "ffff")]
    found = evaluate_shared([shared(n, members) for n in range(4)], names(len(members)),
                            batches(rows, 3))
    assert delivered(found) == expected(rows, members)


def test_what_a_sample_says_is_of_all_predicates() -> None:
    members = [[0], [1]]
    rows = [list(one) for one in ["ff"] * 3 + ["tf"] * 2 + ["tt"] * 4]
    profiles: list[Any] = []
    order = [shared(n, members) for n in (0, 1)]
    sampling = Sampling(1.0, tuple(one.predicate for one in order), ((1,), ()), 2)
    list(evaluate_shared(order, names(2), batches(rows, 3), sampling, None, profiles.append))
    ((_, patterns, spent, _),) = profiles
    assert dict(patterns) == {0b11: 3, 0b10: 2, 0: 4}
    assert [rows for rows, _ in spent] == [9, 9]


def test_what_only_rejects_are_shown_with_is_null_for_answers() -> None:
    columns = SharedColumns(("id",), ("p0", "p1"), (), 1, "@member", "@error", "@reject")
    members = [[0]]
    for rows, shown in ((["tx", "rx", "fx"], [None, {"p0": "r", "p1": "x"}]),
                        (["tx", "tx"], [None, None])):
        (found,) = evaluate_shared([shared(0, members)], columns,
                                   batches([list(one) for one in rows], 5))
        assert found["@reject"].to_pylist() == shown
