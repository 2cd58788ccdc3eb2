"""Answers that workers hand to their sink: each once, with its columns, and rejects apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.compile.answer_worker import AnswerCounter, Handing, Pick, hand_over

Row = tuple[int, int, str | None]
"""The member, a value, and the error of a reject."""
BACK = pa.schema([("@in0", pa.int32()), ("@member", pa.int32()), ("@error", pa.string()),
                  ("rows", pa.binary())])
PICKS = (Pick("all", pa.int32(), (("@in0", (0, 1, 2)),)),
         Pick("wide", pa.int64(), (("@in0", (0, 1, 2)),)),
         Pick("some", pa.int32(), (("@in0", (1, 2)),)), Pick("none", pa.string(), ()))


class Kept(AnswerCounter):
    """Counts, and keeps what it is given."""

    def __init__(self, kept: list[dict[str, Any]]) -> None:
        super().__init__(3)
        self.kept = kept

    def take(self, answers: pa.RecordBatch) -> None:
        super().take(answers)
        assert answers.schema.types[1:] == [pick.type for pick in PICKS]
        self.kept += answers.to_pylist()


def trip(rows: list[Row], size: int, batches: object) -> Iterator[pa.RecordBatch]:
    table = pa.table({"@in0": pa.array([value for _, value, _ in rows], pa.int32()),
                      "@member": pa.array([member for member, _, _ in rows], pa.int32()),
                      "@error": pa.array([error for _, _, error in rows], pa.string())})
    yield from table.to_batches(max_chunksize=size)


@given(rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9),
                               st.sampled_from([None, None, "raised"]))),
       size=st.integers(1, 9))
def test_answers_go_to_the_taker_and_rejects_come_back(rows: list[Row], size: int) -> None:
    kept: list[dict[str, Any]] = []
    handing = Handing("@member", "@error", PICKS, 3, BACK)
    back = list(hand_over(partial(trip, rows, size), handing, partial(Kept, kept), ()))
    assert all(batch.schema == BACK for batch in back)
    *rejects, told = [row for batch in back for row in batch.to_pylist()]
    answers = [(member, value) for member, value, error in rows if error is None]
    assert kept == [{"@member": member, "all": value, "wide": value,
                     "some": value if member else None, "none": None}
                    for member, value in answers]
    assert [(row["@member"], row["@in0"], row["@error"]) for row in rejects] == [
        row for row in rows if row[2]]
    assert all(row["rows"] is None for row in rejects)
    assert np.frombuffer(told["rows"], np.int64).tolist() == np.bincount(
        [member for member, _ in answers], minlength=3).tolist()
