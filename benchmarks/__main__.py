"""`python -m benchmarks NAME [--quick] [--out DIR]`."""

from __future__ import annotations

from benchmarks import core, fanout, panes, response, simulator, sustained
from benchmarks.aggregates import program as aggregates
from benchmarks.bursts import program as bursts
from harness.program import run

PROGRAMS = {"aggregates": aggregates.run, "bursts": bursts.run, "core": core.run,
            "fanout": fanout.run, "panes": panes.run, "response": response.run,
            "simulator": simulator.run, "sustained": sustained.run}

if __name__ == "__main__":
    run("benchmarks", PROGRAMS)
