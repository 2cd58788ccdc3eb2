"""Who writes the answers of a job: the driver if they are few, the executors if they are many.

Every Spark job has a fixed cost of 0.1 to 0.3 s, and executors need one for each kind of sink. Few
answers come to the driver in one job, and the driver writes them all in milliseconds.
"""

from __future__ import annotations

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.stage_costs import StageCosts
from penstock.plan import Plan

MOST_ROWS = 100_000
"""Rows that are expected at most. The driver takes about a microsecond for each column of a row, so
that this many are where the executors' fixed cost begins to be the smaller one."""
MOST_BYTES = 32 << 20
"""Bytes that are expected at most, if answers are as wide as the rows that they come from."""
MOST_ROWS_IN = 1_000_000
"""Rows that go in at most: the estimate may be wrong, and then all of them may come out."""
WANTED_BY = 10
"""Members that want a row at most, as long as nothing is measured: in a fan-out each row usually
concerns a few of them. The first job takes long enough without one Spark job per sink."""


def fit_driver(job: ActiveJob, costs: StageCosts, plan: Plan) -> bool:
    """Whether the driver takes the answers of a job, and writes them.

    Executors keep what was too much for the driver: a job that has failed is tried again there.
    What a Python function rejects comes to the driver too, so its rows count as if all came out.
    Answers that nobody keeps are only counted, which executors do best.
    """
    if not job.is_final or job.path.end != "sink" or job.retried:
        return False
    if all(plan.query(member.query).sink.kind == "noop" for member in job.members):
        return False
    rows_in = job.rows
    measured = costs.rows_out(rows_in, job.path, job.first)
    rows = rows_in * min(len(job.members), WANTED_BY) if measured is None else measured
    if job.path.expensive:
        rows = max(rows, rows_in)
    size = rows * sum(entry.bytes for entry in job.entries) / max(rows_in, 1)
    return rows_in <= MOST_ROWS_IN and rows <= MOST_ROWS and size <= MOST_BYTES
