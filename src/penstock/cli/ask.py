"""`penstock ask`: a question answered once, as a table, as JSON or as CSV."""

from __future__ import annotations

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.shared import add_master, console

if TYPE_CHECKING:
    import pyarrow

HELP = "answer a question once"
ABOUT = "Answer a SELECT once, from what a checkpoint holds now."
EXAMPLES = """\
CHECKPOINT is the folder of a run, finished or still going: a question changes
nothing and may be asked beside a run. A window aggregate answers for its last
window, every other SELECT for all rows that the spool holds.

examples:
  penstock ask state "SELECT src, length FROM packets WHERE length > 1400"
  penstock ask state "SELECT src, SUM(length) FROM packets [WINDOW 1 MIN] GROUP BY src"
  penstock ask state "SELECT * FROM packets" --csv > packets.csv
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="the folder of a run")
    parser.add_argument("question", metavar="SELECT",
                        help="one SELECT over the application's streams")
    add_master(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all rows as JSON, one per line")
    form.add_argument("--csv", action="store_true", help="all rows as CSV with a header")


def run(arguments: Namespace) -> int:
    """Bind the question, answer it, show the answer."""
    from rich.console import Console

    from penstock.api import Engine
    from penstock.view.answers import plain, shown

    with Engine(checkpoint=arguments.checkpoint, master=arguments.master, reading=True) as engine:
        engine.prepare()  # Spark starts while the question is bound
        with Console(stderr=True).status("asking", spinner="dots"):
            answer = engine.ask(arguments.question)
    if arguments.json:
        for row in answer.to_pylist():
            print(json.dumps(plain(row)))
    elif arguments.csv:
        _write_csv(answer)
    else:
        for part in shown(answer):
            console().print(part)
    return 0


def _write_csv(answer: pyarrow.Table) -> None:
    from penstock.view.answers import flat

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.column_names)
    for row in answer.to_pylist():
        writer.writerow("" if value is None else flat(value, json.dumps) for value in row.values())
