"""`penstock demo`: twenty-two standing queries over bursty packets."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from penstock.cli.shared import add_account_json, add_checkpoint, positive, read, teller

HELP = "see it at work"
ABOUT = "Twenty-two standing queries over bursty packets."
BRIEF = 120.0
"""Seconds of packets up to which the run counts as brief."""
EXAMPLES = """\
The application is copied to ./penstock-demo, where it can be read, changed and
run again with `penstock run penstock-demo/packets.sql`.
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--seconds", type=positive, default=30.0, metavar="N",
                        help="for how many seconds packets arrive (default: 30)")
    parser.add_argument("--rate", type=positive, metavar="N",
                        help="packets a second (default: what this machine carries with ease, by "
                             "a quick measurement)")
    add_account_json(parser)
    add_checkpoint(parser, "penstock-demo/checkpoint, emptied first")


def run(arguments: Namespace) -> int:
    """Copy the application, run it to its end, and show its answers."""
    from rich.text import Text

    from penstock import demo
    from penstock.cli.running import RunRequest, how_called, run_and_tell
    from penstock.demo.machine import suitable_rate

    out = teller(arguments.json)
    rate = arguments.rate or suitable_rate()
    folder = Path("penstock-demo")
    checkpoint = arguments.checkpoint or folder / "checkpoint"
    file = demo.prepare(folder, arguments.seconds, rate=rate, fresh=arguments.checkpoint is None)
    out.print(Text(demo.introduction(file, arguments.seconds, rate)))
    job = RunRequest(
        text=read(file),
        folder=folder.resolve(),
        title=file.name,
        checkpoint=checkpoint,
        file=file,
        until_drained=True,
        brief=arguments.seconds <= BRIEF,
    )
    show = partial(demo.show_answers, console=out, file=file, penstock=how_called())
    return run_and_tell(job, out, arguments.json, then=show)
