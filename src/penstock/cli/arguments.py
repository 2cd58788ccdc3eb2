"""The parser of the whole command line, assembled from the commands."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter

from penstock import __version__
from penstock.cli import (
    advise,
    ask,
    demo,
    doctor,
    events,
    explain,
    results,
    run,
    simulate,
    sql,
    whatif,
)

COMMANDS = (run, sql, results, ask, explain, demo, doctor, events, simulate, whatif, advise)
"""To add a command, add a file with `add` and `run`, and its name here.

A file imports what its command needs inside `run`: the help should not wait for these imports, and
only some commands need Spark.
"""

_ABOUT = """\
Many continuous queries over bursty streams, answered by one Spark application
that reads and decodes each stream once.
"""

_EXAMPLES = """\
start here:
  penstock doctor               is everything there that a run needs?
  penstock demo                 twenty-two queries over bursty streams, about a minute
  penstock explain app.sql      what would be shared, and how
  penstock run app.sql          run it; Ctrl-C stops it and says how to go on
  penstock sql app.sql          run it and go on typing: queries, questions, SHOW
  penstock results state q      the answers of a query
  penstock ask state "SELECT ..."   ask what a run holds, once

exit status: 0 all went well, 1 a query, a stream or the run failed, 2 the text
or the call is wrong.
"""


def parser() -> ArgumentParser:
    """The parser; what it parses carries the `run` of its command."""
    top = ArgumentParser("penstock", description=_ABOUT, epilog=_EXAMPLES,
                         formatter_class=RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        made = commands.add_parser(name, help=command.HELP, description=command.ABOUT,
                                   epilog=command.EXAMPLES,
                                   formatter_class=RawDescriptionHelpFormatter)
        command.add(made)
        made.set_defaults(call=command.run)
    return top
