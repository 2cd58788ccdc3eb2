"""`penstock events`: summarise the record of a run and check its books."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from penstock.cli.shared import add_record, console

HELP = "account for a run"
ABOUT = "Summarise the record of a run and check its books."
EXAMPLES = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Exit status 1 when the books do not balance.

examples:
  penstock events state
  penstock events state/runs/20250101T000000.000000Z --json
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_record(parser)
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(arguments: Namespace) -> int:
    """Summarise the record; the status is 1 if the books do not balance."""
    from rich.text import Text

    from penstock.events import Summary, digest, read_events
    from penstock.view import RunTotals

    summary = Summary.of(read_events(arguments.run))
    if arguments.json:
        print(json.dumps(digest(summary), indent=2))
    else:
        out = console()
        out.print(RunTotals(summary))
        if summary.run.state == "running":
            out.print(Text(" the record has no end: the run goes on, or was cut off", "yellow"))
    return 1 if summary.accounting() else 0
