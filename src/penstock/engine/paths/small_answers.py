"""Who writes the answers of a job: the driver if they are few, the executors if they are many.

Every Spark job has a fixed cost of 0.1 to 0.3 s, and executors need one job for each kind of sink.
If answers are few, one job brings them to the driver, which writes them all in milliseconds.
"""

from __future__ import annotations

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.stage_costs import StageCosts
from penstock.plan import Plan

MOST_ROWS = 100_000
"""The most rows that may be expected. The driver takes about a microsecond for each column of a
row. From this many rows on, the executors' fixed cost is the smaller one."""
MOST_BYTES = 32 << 20
"""The most bytes that may be expected, if answers are as wide as the rows that they come from."""
MOST_ROWS_IN = 1_000_000
"""The most rows that may go in: the estimate may be wrong, and then all of them may come out."""
WANTED_BY = 10
"""While nothing is measured, at most this many members are assumed to want a row: in a fan-out a
row usually concerns few of them. The first job takes long enough without one Spark job per sink."""


def fit_driver(job: ActiveJob, costs: StageCosts, plan: Plan) -> bool:
    """Whether the driver takes the answers of a job and writes them.

    A job that has failed is retried on the executors: its answers may have been too much for the
    driver. Rows that a Python function rejects come to the driver too, so its rows count as if all
    came out. Answers that nobody keeps are only counted, which executors do best.
    """
    if not job.is_final or job.path.end != "sink" or job.retried:
        return False
    if all(sink.kind == "noop" for member in job.members
           for sink in plan.query(member.query).sinks):
        return False
    rows_in = job.rows
    measured = costs.rows_out(rows_in, job.path, job.first)
    rows = rows_in * min(len(job.members), WANTED_BY) if measured is None else measured
    if job.path.expensive:
        rows = max(rows, rows_in)
    size = rows * sum(entry.bytes for entry in job.entries) / max(rows_in, 1)
    return rows_in <= MOST_ROWS_IN and rows <= MOST_ROWS and size <= MOST_BYTES
