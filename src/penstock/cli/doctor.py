"""`penstock doctor`: whether this machine can run Penstock, or whether a checkpoint is intact."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from penstock.cli.shared import console

HELP = "check this machine, or a checkpoint"
ABOUT = ("Check whether this machine has what a run needs, or whether a checkpoint "
         "is whole.")
EXAMPLES = """\
Looks for Java, memory, cores, Python, PySpark, disk space and a free local port,
and runs a small job on Spark. Every fault comes with its remedy.
With a checkpoint it reads that instead, and names every file of it that is damaged or
missing. Exit status 1 when there is a fault.
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("checkpoint", nargs="?", type=Path,
                        help="the checkpoint to check; nothing in it is changed")
    parser.add_argument("--no-spark", action="store_true", help="do not start Spark")
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(arguments: Namespace) -> int:
    """Check, and name every fault with its remedy."""
    from penstock.doctor import checkpoint_findings, examine, examine_checkpoint, findings

    folder, spark = arguments.checkpoint, not arguments.no_spark
    if arguments.json:
        found = list(checkpoint_findings(folder) if folder else findings(spark=spark))
        told = [{"what": one.what, "state": one.state, "text": one.text,
                 "remedy": one.remedy or None} for one in found]
        faults = sum(one.fault for one in found)
        print(json.dumps({"faults": faults, "findings": told}, indent=2))
        return 1 if faults else 0
    if folder is not None:
        return examine_checkpoint(console(), folder)
    return examine(console(), spark=spark)
