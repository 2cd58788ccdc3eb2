"""`python -m experiments [NAME] [--quick] [--out DIR]`; without a name all of them."""

from __future__ import annotations

from experiments import aggregates, chain, filters, joins, prb
from harness.program import run

PROGRAMS = {
    "aggregates": aggregates.PROGRAM,
    "chain": chain.run,
    "filters": filters.run,
    "joins": joins.run,
    "prb": prb.run,
}

if __name__ == "__main__":
    run("experiments", PROGRAMS)
