"""`penstock ask`: a question answered once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from penstock.cli.answers import add_format, writer
from penstock.cli.shared import add_spark, spark_arguments

HELP = "answer a question once"
ABOUT = "Answer a SELECT once, from what a checkpoint holds now."
EXAMPLES = """\
CHECKPOINT is the folder of a run, finished or still going: a question changes
nothing and may be asked beside a run. A window aggregate answers for its last
window, every other SELECT for all that is held: the rows in the spool, and the
answers of a query that is named. SHOW, DESCRIBE and EXPLAIN are answered too.

examples:
  penstock ask state "SELECT src, length FROM packets WHERE length > 1400"
  penstock ask state "SELECT src, SUM(length) FROM packets [WINDOW 1 MIN] GROUP BY src"
  penstock ask state "SELECT src, COUNT(*) FROM packets GROUP BY src ORDER BY 2 DESC LIMIT 9"
  penstock ask state "SELECT * FROM my_query ORDER BY ts" --csv > answers.csv
  penstock ask state "SHOW QUERIES"
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="the folder of a run")
    parser.add_argument("question", metavar="SELECT",
                        help="one SELECT over the application's streams")
    add_spark(parser)
    add_format(parser)


def run(arguments: Namespace) -> int:
    """Bind the question, answer it, show the answer."""
    from rich.console import Console

    from penstock.api import Engine
    from penstock.language import shows

    with Engine(checkpoint=arguments.checkpoint, reading=True,
                **spark_arguments(arguments)) as engine:
        if not shows(arguments.question):
            engine.prepare()  # Spark starts while the question is bound
        with Console(stderr=True).status("asking", spinner="dots"):
            answer = engine.ask(arguments.question)
    out = writer(arguments)
    out.write(answer)
    out.close()
    return 0
