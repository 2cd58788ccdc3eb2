"""What a run has counted is held against its blocks before it counts."""

from __future__ import annotations

import pytest

from penstock.engine.instructions import SegmentJob
from penstock.errors import RunError
from penstock.language import bind
from penstock.model import Block
from penstock.plan import Member, Plan
from penstock.planning import plan as planned
from penstock.spark.jobs.row_checks import check_delivered, check_read

PLAN: Plan = planned(bind("""
    CREATE STREAM s (n INT) FROM rate;
    CREATE QUERY every AS SELECT n FROM s;
    CREATE QUERY twice AS SELECT n FROM s UNION ALL SELECT n + 1 AS n FROM s;
    CREATE QUERY some AS SELECT n FROM s WHERE n > 5;
"""))
BLOCKS = (Block("s", 3, 60, 240, 1.0), Block("s", 4, 40, 160, 1.0))


def run(*members: Member) -> SegmentJob:
    return SegmentJob(number=7, kind="segment", segment="p:0", path="p", riders=1,
                      members=members, blocks=BLOCKS)


@pytest.mark.parametrize("read", [100, 101, 250])
def test_a_run_that_has_read_the_rows_of_its_blocks_counts(read):
    check_read(run(), 100, read)


def test_a_run_of_which_nothing_had_to_be_read_counts():
    check_read(run(), 100, 0)


@pytest.mark.parametrize("read", [99, 1])
def test_a_run_that_has_read_fewer_rows_is_refused(read):
    told = f"blocks 3, 4 of stream s have 100 rows to read, but {read} were read"
    with pytest.raises(RunError, match=told):
        check_read(run(), 100, read)


@pytest.mark.parametrize(("query", "out", "rejected", "fits"), [
    ("every", 100, 0, True), ("every", 97, 3, True), ("every", 99, 0, False),
    ("every", 101, 0, False), ("twice", 200, 0, True), ("twice", 199, 0, False),
    ("some", 0, 0, True), ("some", 42, 0, True),
])
def test_a_query_that_asks_for_every_row_gets_every_row(query, out, rejected, fits):
    branches = PLAN.query(query).branches
    asked = run(*(Member(query, number) for number in range(len(branches))))
    if fits:
        check_delivered(asked, PLAN, {query: out}, {query: rejected})
    else:
        with pytest.raises(RunError, match=f"query {query} asks for every row"):
            check_delivered(asked, PLAN, {query: out}, {query: rejected})
