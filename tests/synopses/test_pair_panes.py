"""Panes of pairs: a window holds the pairs whose rows both lie in it, however panes are merged."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model import BIGINT, INT, Aggregate, Column
from penstock.synopses import Question, Synopsis, gathered
from penstock.synopses.pair_panes import pair_pane

VALUE = Column("v", INT)
ASKED = (Aggregate("COUNT", (), BIGINT), Aggregate("SUM", (VALUE,), BIGINT),
         Aggregate("COUNT_DISTINCT", (VALUE,), BIGINT))
FAMILIES = gathered(ASKED)
LENGTHS = (1, 3, 12)


def tables(pairs: list[tuple[int, int, int, int]]) -> dict:
    """The pane tables of pairs: the panes of both rows, a key and a value."""
    panes = [pair_pane(earlier, later) for earlier, later, _, _ in pairs]
    keys = pa.array([key for _, _, key, _ in pairs], pa.int32())
    values = pa.array([value for _, _, _, value in pairs], pa.int32())
    ones = pa.array([1] * len(pairs), pa.int64())
    found = {}
    for family in FAMILIES:
        made = {"pane": pa.array(panes, pa.int64()), "k0": keys}
        if family.kind == "frequencies":
            made["cell"] = values
        for number, measure in enumerate(family.measures):
            made[f"m{number}"] = values.cast(pa.int64()) if measure.kind == "sum" else ones
        found[family] = pa.table(made)
    return found


def brute(pairs: list[tuple[int, int, int, int]], end: int, length: int) -> dict:
    held: dict[int, list[int]] = {}
    for earlier, later, key, value in pairs:
        if end - length <= earlier and later < end:
            held.setdefault(key, []).append(value)
    return {key: (len(v), sum(v), len(set(v))) for key, v in held.items()}


pair_lists = st.lists(st.lists(st.tuples(
    st.integers(0, 11), st.integers(0, 11), st.integers(1, 3), st.integers(0, 4)), max_size=12),
    min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(batches=pair_lists, begin=st.integers(-20, 20))
def test_windows_hold_the_pairs_with_both_rows_in_them_after_any_merging(batches, begin):
    synopsis = Synopsis([INT], FAMILIES, span=12, paired=True)
    known: list[tuple[int, int, int, int]] = []
    for step, batch in enumerate(batches):
        now = begin + 6 * step  # a coming window ends here or later
        pairs = [(max(now + later - apart, now - 30), now + later, key, value)
                 for later, apart, key, value in batch]
        known += pairs
        synopsis.add(tables(pairs))
        for end in range(now, now + 6):
            answers = synopsis.scan(end, [Question(length, ASKED) for length in LENGTHS])
            for length, answer in zip(LENGTHS, answers, strict=True):
                rows = answer.to_pydict()
                found = dict(zip(rows["key0"], zip(rows["agg0"], rows["agg1"], rows["agg2"],
                                                   strict=True), strict=True))
                assert found == brute(known, end, length)
        synopsis.settle(now + 6)
        synopsis.forget(now + 6 - 12)


def test_settled_pairs_need_one_pane_for_each_pane_of_their_earlier_rows():
    synopsis = Synopsis([INT], FAMILIES, span=40, paired=True)
    for later in range(40):
        synopsis.add(tables([(earlier, later, 1, 1) for earlier in range(later + 1)]))
        synopsis.settle(later + 1)
    (ring, _) = synopsis._rings.values()
    assert len(ring._panes) == 40
