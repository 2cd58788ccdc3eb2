"""Checks of a job's row counts against its blocks before the commit: no row goes missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from penstock.engine.instructions import SegmentJob
from penstock.errors import RunError
from penstock.plan import Plan


def check_read(job: SegmentJob, rows: int, read: int) -> None:
    """Refuse a job that has read fewer rows of its blocks than there are.

    Spark may count some rows twice, so more rows are no fault here; `check_delivered` finds real
    duplicates. If no row was read, Spark saw that none can be wanted (``WHERE FALSE``): a missing
    file raises an error of its own.
    """
    if 0 < read < rows:
        raise RunError(f"{_blocks(job)} have {rows} rows to read, but {read} were read")


def check_probed(join: str, rows: int, read: int) -> None:
    """Refuse a probe that has read fewer rows than its scans take, as `check_read` does."""
    if 0 < read < rows:
        raise RunError(f"a probe of {join} has {rows} rows to read, but {read} were read")


def check_delivered(
    job: SegmentJob, plan: Plan, out: Mapping[str, int], rejected: Mapping[str, int]
) -> None:
    """Refuse a job if a query that asks for every row did not get all of them."""
    rows = sum(block.rows for block in job.blocks)
    branches = Counter(member.query for member in job.members)
    some = {m.query for m in job.members if plan.branch(m).where or plan.branch(m).lookups}
    for query, count in branches.items():
        found = out.get(query, 0) + rejected.get(query, 0)
        if query not in some and found != rows * count:
            raise RunError(f"query {query} asks for every row, and of the {rows * count} of "
                           f"{_blocks(job)} it got {found}")


def _blocks(job: SegmentJob) -> str:
    numbers = ", ".join(str(block.number) for block in job.blocks[:5])
    more = ", ..." if len(job.blocks) > 5 else ""
    return f"the blocks {numbers}{more} of stream {job.blocks[0].stream}"
