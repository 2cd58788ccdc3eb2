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
  penstock demo                 eighteen queries over bursty streams, about a minute
  penstock explain app.sql      what would be shared, and how
  penstock run app.sql          run it; Ctrl-C stops it and says how to go on
  penstock ask state "SELECT ..."   ask what a run holds, once

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

_ASK = """\
CHECKPOINT is the folder of a run, finished or under way: a question changes
nothing and may be asked beside a run. A window aggregate answers for its last
window, every other SELECT for all rows that the spool holds.

examples:
  penstock ask state "SELECT src, length FROM packets WHERE length > 1400"
  penstock ask state "SELECT src, SUM(length) FROM packets [WINDOW 1 MIN] GROUP BY src"
  penstock ask state "SELECT * FROM packets" --csv > packets.csv
"""

_DEMO = """\
The application is copied to ./penstock-demo, where it can be read, changed and
run again with `penstock run penstock-demo/packets.sql`.
"""

_DOCTOR = """\
Looks for Java, memory, cores, Python, PySpark, disk space and a free local port,
and runs a small job on Spark. Every fault comes with its remedy.
With a checkpoint it reads that instead, and names every file of it that is damaged or
missing. Exit status 1 when there is a fault.
"""

_EVENTS = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Exit status 1 when the books do not balance.

examples:
  penstock events state
  penstock events state/runs/20250101T000000.000000Z --json
"""

_SIMULATE = """\
The file describes queries by the costs and selectivities of their operators,
and what arrives; docs/reference/simulator.md has every key. Needs neither Spark
nor Java, except with --spark.

examples:
  penstock simulate workload.toml                             every policy there is
  penstock simulate workload.toml --policies 'chain, fifo, mixed(gamma=0.01)'
  penstock simulate workload.toml --seeds 20 --processes 8    means over 20 seeds
  penstock simulate workload.toml --json --no-figures | python3 -m json.tool
"""

_WHATIF = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Blocks arrive as they were recorded, jobs cost what the record
tells of them, and the engine decides anew. Needs neither Spark nor Java.

examples:
  penstock whatif state                                       every policy there is
  penstock whatif state --policies 'chain, edf, chain_flush(latency=2)'
  penstock whatif state --json --no-figures | python3 -m json.tool
"""


_ADVISE = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Exit status 1 when no policy would have met the limits.

examples:
  penstock advise state --memory '64 MB' --latency '2 seconds'
  penstock advise state --latency '500 ms' --json
"""


class CallFault(PenstockError):
    """The command line names something that is not there."""


def parser() -> ArgumentParser:
    """The parser of the whole command line."""
    top = _described(ArgumentParser("penstock"), _ABOUT, _EXAMPLES)
    top.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_ask(commands)
    _add_explain(commands)
    _add_demo(commands)
    _add_doctor(commands)
    _add_events(commands)
    _add_simulate(commands)
    _add_whatif(commands)
    _add_advise(commands)
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


def _add_ask(commands: _Commands[ArgumentParser]) -> None:
    ask = _described(commands.add_parser("ask", help="answer a question once"),
                     "Answer a SELECT once, from what a checkpoint holds now.", _ASK)
    ask.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="the folder of a run")
    ask.add_argument("question", metavar="SELECT", help="one SELECT over the application's streams")
    ask.add_argument("--master", metavar="URL",
                     help="the Spark master (default: all cores of this machine)")
    form = ask.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all rows as JSON, one per line")
    form.add_argument("--csv", action="store_true", help="all rows as CSV with a header")


def _add_explain(commands: _Commands[ArgumentParser]) -> None:
    explain = _described(commands.add_parser("explain", help="show the shared plan"),
                         "Show streams, paths and what is shared by whom.", _EXPLAIN)
    explain.add_argument("application", type=Path, metavar="app.sql", help="a file of statements")
    explain.add_argument("--json", action="store_true", help="the same as JSON, with every name")
    explain.add_argument("--import", action="store_true", dest="imports",
                         help="import the modules of Python functions to know them for certain, "
                              "as run does; without it none of your code runs")


def _add_demo(commands: _Commands[ArgumentParser]) -> None:
    demo = _described(commands.add_parser("demo", help="see it at work"),
                      "Eighteen standing queries over bursty packets.", _DEMO)
    demo.add_argument("--seconds", type=_positive, default=30.0, metavar="N",
                      help="so long the packets come (default: 30)")
    _add_checkpoint(demo, "penstock-demo/checkpoint, emptied first")


def _add_doctor(commands: _Commands[ArgumentParser]) -> None:
    doctor = _described(commands.add_parser("doctor", help="check this machine, or a checkpoint"),
                        "Check whether this machine has what a run needs, or whether a checkpoint "
                        "is whole.", _DOCTOR)
    doctor.add_argument("checkpoint", nargs="?", type=Path,
                        help="the checkpoint to read; nothing of it is changed")
    doctor.add_argument("--no-spark", action="store_true", help="do not start Spark")


def _add_events(commands: _Commands[ArgumentParser]) -> None:
    events = _described(commands.add_parser("events", help="account for a run"),
                        "Summarise the record of a run and check its books.", _EVENTS)
    _add_record(events)
    events.add_argument("--json", action="store_true", help="the same as JSON")


def _add_simulate(commands: _Commands[ArgumentParser]) -> None:
    simulate = _described(
        commands.add_parser("simulate", help="compare policies on a described workload"),
        "Run a described workload under several policies, in virtual time.", _SIMULATE)
    simulate.add_argument("workload", type=Path, metavar="workload.toml", help="a description")
    simulate.add_argument("--policies", metavar="LIST",
                          help="policies, separated by commas (default: the file's, or all)")
    simulate.add_argument("--seeds", type=_count, default=1, metavar="N",
                          help="run with so many seeds and show the means (default: 1)")
    simulate.add_argument("--out", type=Path, metavar="DIR",
                          help="where figures go (default: out/simulate/NAME)")
    simulate.add_argument("--no-figures", action="store_true", help="draw none")
    simulate.add_argument("--charts", action="store_true",
                          help="print the progress charts and their segments too")
    simulate.add_argument("--json", action="store_true", help="all figures as JSON")
    where = simulate.add_mutually_exclusive_group()
    where.add_argument("--processes", type=_count, metavar="N",
                       help="simulations at a time (default: one per core, if it is worth it)")
    where.add_argument("--spark", action="store_true", help="spread the simulations with Spark")
    simulate.add_argument("--master", metavar="URL", help="the Spark master; implies --spark")


def _add_advise(commands: _Commands[ArgumentParser]) -> None:
    advise = _described(
        commands.add_parser("advise", help="name the policy that would have met given limits"),
        "Replay a recorded run under all policies and name the best within limits.", _ADVISE)
    _add_record(advise)
    advise.add_argument("--memory", metavar="SIZE", help="the most that may wait, as '64 MB'")
    advise.add_argument("--latency", metavar="TIME",
                        help="the longest from arrival to delivery, as '2 seconds'")
    advise.add_argument("--json", action="store_true", help="all figures as JSON")


def _add_whatif(commands: _Commands[ArgumentParser]) -> None:
    whatif = _described(
        commands.add_parser("whatif", help="replay a recorded run under other policies"),
        "Tell what a recorded run would have been under other policies.", _WHATIF)
    _add_record(whatif)
    whatif.add_argument("--policies", metavar="LIST",
                        help="policies, separated by commas (default: all)")
    whatif.add_argument("--out", type=Path, metavar="DIR",
                        help="where the figure goes (default: out/whatif/RUN)")
    whatif.add_argument("--no-figures", action="store_true", help="draw none")
    whatif.add_argument("--json", action="store_true", help="all figures as JSON")


def _add_record(command: ArgumentParser) -> None:
    command.add_argument("run", type=Path, metavar="RUN", help="a checkpoint, a run, or a file")


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


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 100_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return value
