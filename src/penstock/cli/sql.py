"""`penstock sql`: a shell in which queries are added and dropped, and questions asked."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.answers import add_format
from penstock.cli.shared import add_checkpoint, add_spark, read, spark_arguments
from penstock.errors import CheckpointError

if TYPE_CHECKING:
    from penstock.api import Engine

HELP = "a shell: add queries, ask, look on"
ABOUT = "Add and drop queries, ask questions and look on, while it all runs."
EXAMPLES = """\
A statement ends with a semicolon. CREATE, DROP and SET change what runs; SELECT
asks a question once; SHOW, DESCRIBE and EXPLAIN tell what is declared. F2 shows
the run until a key is pressed, Tab completes names, Ctrl-D leaves: the run stops
and can be taken up again. Where another process runs on the checkpoint, the
shell only looks.

From a file or a pipe there is no prompt, and the first error ends it with exit
status 1. With --until-drained a question waits until all bounded inputs have
been read.

examples:
  penstock sql                                    begin with nothing
  penstock sql app.sql                            run an application, and go on typing
  penstock sql --checkpoint state                 take up a stopped run
  penstock sql --checkpoint state --look          only ask and show, start nothing
  penstock sql app.sql --until-drained < ask.sql  in a script
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("application", nargs="?", type=Path, metavar="app.sql",
                        help="a file of statements to begin with")
    parser.add_argument("--look", action="store_true",
                        help="only ask and show: start no run and change nothing")
    parser.add_argument("--until-drained", action="store_true",
                        help="read bounded inputs to their end before a question is answered")
    add_checkpoint(parser, "a new folder in .penstock")
    add_spark(parser)
    add_format(parser)


def run(arguments: Namespace) -> int:
    """Open the engine, begin with the application, and carry out what is typed or piped."""
    from penstock.cli.shell import Shell

    file: Path | None = arguments.application
    with _engine(arguments) as engine:
        engine.prepare()
        shell = Shell(engine, arguments, Path.cwd())
        if file is not None and not engine.reading:
            shell.begin(read(file), file.resolve().parent)
        elif engine.application.queries:
            shell.go_on()
        try:
            if sys.stdin.isatty():
                from penstock.cli.prompt import converse

                return converse(shell)
            return shell.carry_out(sys.stdin)
        finally:
            shell.leave()


def _engine(arguments: Namespace) -> Engine:
    """An engine of our own, or one that looks on where another process runs."""
    from penstock.api import Engine
    from penstock.cli.run import fresh_checkpoint

    file = arguments.application or Path("shell.sql")
    checkpoint = arguments.checkpoint or fresh_checkpoint(file, time.time())
    if not arguments.look:
        try:
            return Engine(checkpoint=checkpoint, **spark_arguments(arguments))
        except CheckpointError as error:
            if arguments.application is not None or "another engine" not in str(error):
                raise
            print(f"penstock: {error}; this shell looks on", file=sys.stderr)
    return Engine(checkpoint=checkpoint, reading=True, **spark_arguments(arguments))
