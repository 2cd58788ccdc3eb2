"""What can be asked of `penstock`, and the help that says so."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from pathlib import Path

from penstock import __version__
from penstock.errors import PenstockError

_ABOUT = """\
Many continuous queries over bursty streams, answered by one Spark application
that reads and decodes each stream once.
"""

_EXAMPLES = """\
start here:
  penstock doctor               is everything there that a run needs?
  penstock demo                 a dozen queries over a bursty stream, about a minute
  penstock explain app.sql      what would be shared, and how
  penstock run app.sql          run it; Ctrl-C stops it and says how to go on

exit status: 0 all went well, 1 a query, a stream or the run failed, 2 the text
or the call is wrong.
"""

_RUN = """\
examples:
  penstock run app.sql                              until Ctrl-C
  penstock run app.sql --until-drained              bounded inputs to their end, then stop
  penstock run app.sql --checkpoint state           go on where an earlier run stopped
  penstock run app.sql --master spark://host:7077   on a cluster
"""

_EXPLAIN = """\
Needs neither Spark nor Java.

examples:
  penstock explain app.sql
  penstock explain app.sql --json | python3 -m json.tool
"""

_DEMO = """\
The application is copied to ./penstock-demo, where it can be read, changed and
run again with `penstock run penstock-demo/packets.sql`.
"""

_DOCTOR = """\
Looks for Java, memory, cores, Python, PySpark, disk space and a free local port,
and runs a small job on Spark. Every fault comes with its remedy.
"""

_EVENTS = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Exit status 1 when the books do not balance.

examples:
  penstock events state
  penstock events state/runs/20250101T000000.000000Z --json
"""


class CallFault(PenstockError):
    """The command line names something that is not there."""


def parser() -> ArgumentParser:
    """The parser of the whole command line."""
    top = _described(ArgumentParser("penstock"), _ABOUT, _EXAMPLES)
    top.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_explain(commands)
    _add_demo(commands)
    _add_doctor(commands)
    _add_events(commands)
    return top


_Commands = argparse._SubParsersAction  # argparse has no public name for it


def _add_run(commands: _Commands[ArgumentParser]) -> None:
    run = _described(commands.add_parser("run", help="run an application"),
                     "Run the standing queries of an application.", _RUN)
    run.add_argument("application", type=Path, metavar="app.sql", help="a file of statements")
    run.add_argument("--until-drained", action="store_true",
                     help="read bounded inputs to their end, answer, and stop")
    _add_checkpoint(run, "a new folder in .penstock")
    run.add_argument("--master", metavar="URL",
                     help="the Spark master (default: all cores of this machine)")
    run.add_argument("--operators", metavar="POLICY",
                     help="the policy that decides what runs next; overrides SET operators")


def _add_explain(commands: _Commands[ArgumentParser]) -> None:
    explain = _described(commands.add_parser("explain", help="show the shared plan"),
                         "Show streams, paths and what is shared by whom.", _EXPLAIN)
    explain.add_argument("application", type=Path, metavar="app.sql", help="a file of statements")
    explain.add_argument("--json", action="store_true", help="the same as JSON, with every name")


def _add_demo(commands: _Commands[ArgumentParser]) -> None:
    demo = _described(commands.add_parser("demo", help="see it at work"),
                      "A dozen standing queries over bursty packets.", _DEMO)
    demo.add_argument("--seconds", type=_positive, default=30.0, metavar="N",
                      help="so long the packets come (default: 30)")
    _add_checkpoint(demo, "penstock-demo/checkpoint, emptied first")


def _add_doctor(commands: _Commands[ArgumentParser]) -> None:
    doctor = _described(commands.add_parser("doctor", help="check this machine"),
                        "Check whether this machine has what a run needs.", _DOCTOR)
    doctor.add_argument("--no-spark", action="store_true", help="do not start Spark")


def _add_events(commands: _Commands[ArgumentParser]) -> None:
    events = _described(commands.add_parser("events", help="account for a run"),
                        "Summarise the record of a run and check its books.", _EVENTS)
    events.add_argument("run", type=Path, metavar="RUN", help="a checkpoint, a run, or a file")
    events.add_argument("--json", action="store_true", help="the same as JSON")


def _add_checkpoint(command: ArgumentParser, default: str) -> None:
    command.add_argument("--checkpoint", type=Path, metavar="DIR",
                         help=f"the folder from which a stopped run goes on (default: {default})")


def _described(command: ArgumentParser, about: str, examples: str) -> ArgumentParser:
    command.description, command.epilog = about, examples
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    return command


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value
