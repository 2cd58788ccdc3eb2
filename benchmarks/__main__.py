"""`python -m benchmarks NAME [--quick] [--out DIR]`; some take options of their own."""

from __future__ import annotations

from benchmarks import core, fanout, panes, response, simulator, sustained
from benchmarks.aggregates import program as aggregates
from benchmarks.bursts import program as bursts
from benchmarks.filters import program as filters
from benchmarks.joins import program as joins
from benchmarks.latency import program as latency
from benchmarks.multijoin import program as multijoin
from harness.program import run

PROGRAMS = {"aggregates": aggregates.run, "bursts": bursts.PROGRAM, "core": core.run,
            "fanout": fanout.run, "filters": filters.PROGRAM, "joins": joins.PROGRAM,
            "latency": latency.PROGRAM, "multijoin": multijoin.run, "panes": panes.run,
            "response": response.run, "simulator": simulator.run, "sustained": sustained.run}

if __name__ == "__main__":
    run("benchmarks", PROGRAMS)
