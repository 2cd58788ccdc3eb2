"""`penstock results`: the answers that a query has delivered, and more as they come."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path

from penstock.cli.answers import add_format, writer
from penstock.cli.shared import CallFault, count

HELP = "show the answers of a query"
ABOUT = "Show the answers that a query has delivered."
EXAMPLES = """\
CHECKPOINT is the folder of a run, going on or stopped. The query delivers into
memory, which is the default, or into files; without QUERY the queries are
listed. What is shown has been committed: no answer is shown that a crash could
take back, and none is missing. Needs no Spark.

examples:
  penstock results state big                     the last 50 as a table
  penstock results state big --follow            and more as they come, until Ctrl-C
  penstock results state big --last 1000 --csv > big.csv
  penstock results state big --format arrow | python3 mine.py
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="the folder of a run")
    parser.add_argument("query", nargs="?", metavar="QUERY", help="the name of a query")
    parser.add_argument("--follow", action="store_true",
                        help="go on as answers are committed, until the run ends or Ctrl-C")
    parser.add_argument("--last", type=count, metavar="N", help="only the last N rows")
    add_format(parser)


def run(arguments: Namespace) -> int:
    """Read the answers and write them."""
    from penstock.api import Engine
    from penstock.view.answers import SHOWN

    with Engine(checkpoint=arguments.checkpoint, reading=True) as engine:
        out = writer(arguments, newest=True, most=arguments.last)
        if arguments.query is None:
            if arguments.follow or arguments.last:
                raise CallFault("name the query whose answers are to be shown")
            out.write(engine.ask("SHOW QUERIES"))
        elif arguments.follow:
            is_table = arguments.format == "table"
            with suppress(KeyboardInterrupt):
                for table in engine.follow(arguments.query, last=arguments.last):
                    if table.num_rows or not is_table:
                        out.write(table)
        else:
            # One more than is shown tells whether there are earlier ones.
            most = SHOWN + 1 if arguments.format == "table" else None
            out.write(engine.results(arguments.query, last=arguments.last or most))
        out.close()
    return 0
