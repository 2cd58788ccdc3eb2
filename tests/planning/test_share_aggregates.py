"""Window aggregates that share a synopsis, and groups made of other groups."""

from __future__ import annotations

from math import gcd

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.aggregates.coverage import families_of
from penstock.engine.instructions import SegmentJob
from penstock.errors import RunError
from penstock.language import bind
from penstock.model import Application, Block
from penstock.plan import Group, Plan
from penstock.planning import plan
from penstock.spark.aggregates.synopsis_store import GroupSynopsis, SynopsisStore, merged
from penstock.synopses import Question, Synopsis

STREAM = """
    CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, protocol INT, length INT)
        FROM parquet 'p' TIME ts;
"""


def planned(*queries: str) -> Plan:
    text = "".join(f"CREATE QUERY q{n} AS {query};" for n, query in enumerate(queries))
    return plan(bound(text))


def bound(text: str) -> Application:
    return bind(STREAM + text)


def aggregate(what: str, window: str = "10 s SLIDE 5 s", rest: str = "") -> str:
    return f"SELECT {what} FROM packets [WINDOW {window}] {rest}"


def shared(made: Plan) -> list[list[str]]:
    return [[member.query for member in group.members] for group in made.groups]


def test_windows_and_aggregates_may_differ_within_a_group_and_nothing_else() -> None:
    made = planned(
        aggregate("src, SUM(length)", rest="GROUP BY src"),
        aggregate("src, MAX(length)", "1 min SLIDE EXACTLY 7 s", "GROUP BY src"),
        aggregate("dst, SUM(length)", rest="GROUP BY dst"),
        aggregate("src, SUM(length)", rest="WHERE length > 5 GROUP BY src"),
        aggregate("src, AVG(length)", rest="WHERE 5 < length GROUP BY src"),
    )
    assert shared(made)[0] == ["q0", "q1"]
    assert ["q2"] in shared(made)
    assert len(made.paths) == 1, "one pass over a block makes the panes of all"
    assert made.paths[0].end == "panes"


def test_conditions_in_another_order_are_the_same_conditions() -> None:
    made = planned(aggregate("SUM(length)", rest="WHERE src > 1 AND dst > 2"),
                   aggregate("SUM(length)", rest="WHERE dst > 2 AND src > 1"))
    assert shared(made) == [["q0", "q1"]]


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), min_size=1, max_size=5))
def test_every_window_and_slide_is_made_of_whole_panes(windows: list[tuple[int, int]]) -> None:
    made = planned(*(aggregate("COUNT(*)", f"{length * 500} ms SLIDE {slide * 500} ms")
                     for length, slide in windows))
    (group,) = made.groups
    assert group.pane == 500_000 * gcd(*(n for pair in windows for n in pair))
    assert group.span * group.pane == max(length for length, _ in windows) * 500_000


def parts(made: Plan) -> dict[str, list[str]]:
    named = {group.id: group.members[0].query for group in made.groups}
    return {named[group.id]: [named[part] for part in group.parts] for group in made.groups}


def test_a_group_by_fewer_keys_is_made_of_one_by_more() -> None:
    made = planned(aggregate("src, dst, SUM(length)", rest="GROUP BY src, dst"),
                   aggregate("src, SUM(length)", rest="GROUP BY src"),
                   aggregate("SUM(length)", "30 s SLIDE 15 s"))
    assert parts(made) == {"q0": [], "q1": ["q0"], "q2": ["q0"]}


def test_a_list_of_values_is_made_of_the_values() -> None:
    made = planned(aggregate("MAX(length)", rest="WHERE protocol = 6"),
                   aggregate("MAX(length)", rest="WHERE protocol = 17"),
                   aggregate("MAX(length)", rest="WHERE protocol IN (6, 17)"),
                   aggregate("MAX(length)", rest="WHERE protocol IN (6, 17, 1)"))
    assert parts(made) == {"q0": [], "q1": [], "q2": ["q0", "q1"], "q3": []}


def test_nothing_is_derived_from_what_does_not_measure_it_or_has_longer_panes() -> None:
    made = planned(aggregate("src, SUM(length)", rest="GROUP BY src"),
                   aggregate("MAX(length)"),
                   aggregate("SUM(length)", "12 s SLIDE 2 s", "WHERE src = 1"),
                   aggregate("SUM(length)", "10 s", "WHERE src IN (1, 2)"))
    assert parts(made) == {"q0": [], "q1": [], "q2": [], "q3": []}


ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 2),
                          st.integers(1, 9)), max_size=40)


@given(ROWS)
def test_panes_made_of_finer_groups_are_those_made_of_the_rows(
    rows: list[tuple[int, int, int, int]]
) -> None:
    """The panes of the finer group are half as long."""
    made = planned(aggregate("src, dst, SUM(length), MAX(length), MEDIAN(length)",
                             "10 s SLIDE 5 s", "GROUP BY src, dst"),
                   aggregate("dst, SUM(length), MAX(length), MEDIAN(length)", "20 s",
                             "GROUP BY dst"))
    finer, whole = (synopsis(group) for group in made.groups)
    assert [part.group for part in whole.parts({finer.group.id: finer})] == [finer.group]
    fine = [(pane, (src, dst), length) for pane, src, dst, length in rows]
    coarse = [(pane // 4, (dst,), length) for pane, _, dst, length in rows]
    derived = synopsis(whole.group)
    derived.near.add(merged(derived, [(finer, tables(finer, fine))]))
    whole.near.add(tables(whole, coarse))
    question = [Question(n, whole.group.aggregates) for n in (1, 2)]
    for end in range(4):
        for a, b in zip(derived.near.scan(end, question), whole.near.scan(end, question),
                        strict=True):
            assert a.sort_by("key0").equals(b.sort_by("key0"))


def synopsis(group: Group) -> GroupSynopsis:
    families = families_of(group)
    return GroupSynopsis(group, families, Synopsis([key.type for key in group.keys], families, 2))


def test_a_train_tried_again_block_by_block_counts_no_block_for_more_than_its_rows() -> None:
    made = planned(aggregate("src, SUM(length)", rest="GROUP BY src"))
    kept = synopsis(made.groups[0])
    blocks = [Block("packets", number, rows, 0, 0.0) for number, rows in enumerate((20, 1, 9))]
    kept.take(blocks, {4: 12, 5: 14})
    counts = [sum(kept.brought([block.number]).values()) for block in blocks]
    assert counts == [20, 1, 5]
    assert kept.brought([0, 1, 2]) == {4: 12, 5: 14}


def test_a_train_with_a_block_that_is_in_the_panes_is_refused() -> None:
    made = planned(aggregate("COUNT(*)"))
    (group,) = made.groups
    kept = synopsis(group)
    blocks = tuple(Block("packets", number, 5, 0, 0.0) for number in range(3))
    kept.take(blocks[:2], {0: 10})
    run = SegmentJob(number=3, kind="panes", segment="", path=group.path, riders=1,
                     members=group.members, blocks=blocks)
    with pytest.raises(RunError, match="block 0 are in its panes already"):
        SynopsisStore(None, 1, None).take(run, made, None, {group.id: kept})


def tables(kept: GroupSynopsis, rows: list[tuple[int, tuple[int, ...], int]]) -> dict:
    """The pane tables of rows (pane, keys, length), as the pane job makes them."""
    made = {}
    for family in kept.families:
        cells: dict[tuple, list[int]] = {}
        for pane, keys, length in rows:
            cell = (length,) if family.kind == "frequencies" else ()
            cells.setdefault((pane, *keys, *cell), []).append(length)
        columns = ["pane", *(f"k{n}" for n in range(len(kept.group.keys))),
                   *(["cell"] if family.kind == "frequencies" else [])]
        types = [pa.int64(), *[pa.int32()] * (len(columns) - 1)]
        table = {name: pa.array([key[n] for key in cells], kind)
                 for n, (name, kind) in enumerate(zip(columns, types, strict=True))}
        of = {"rows": len, "count": len, "sum": sum, "max": max}
        for n, measure in enumerate(family.measures):
            kind = pa.int32() if measure.kind == "max" else pa.int64()
            table[f"m{n}"] = pa.array([of[measure.kind](v) for v in cells.values()], kind)
        made[family] = pa.table(table)
    return made
