"""The verbs of the command line. Each imports what it needs: only some need Spark."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from penstock.cli.arguments import CallFault
from penstock.cli.running import Job, how_called, run_job

WIDE = 120
"""Columns of a table that goes to a file or a pipe."""


def run(arguments: Namespace) -> int:
    """`penstock run`."""
    file: Path = arguments.application
    text = read(file)
    job = Job(
        text=text,
        folder=file.resolve().parent,
        title=file.name,
        checkpoint=arguments.checkpoint or fresh_checkpoint(file, time.time()),
        file=file,
        until_drained=arguments.until_drained,
        master=arguments.master,
        operators=arguments.operators,
    )
    return run_job(job, console()).status


def ask(arguments: Namespace) -> int:
    """`penstock ask`."""
    from penstock.cli.asking import ask

    return ask(arguments, console())


def explain(arguments: Namespace) -> int:
    """`penstock explain`."""
    from penstock.cli.foreseen import notes
    from penstock.explain.plans import explain, explain_json
    from penstock.explain.refresh_preview import renewals
    from penstock.explain.segment_preview import segments
    from penstock.language import bind, load_function, read_signature
    from penstock.planning import plan
    from penstock.policies import operators, refresh

    load = load_function if arguments.imports else read_signature
    application = bind(read(arguments.application), folder=arguments.application.parent, load=load)
    doubts = notes(application, imported=arguments.imports)
    made = plan(application)
    renewed = renewals(made, application.settings.get("refresh", refresh.DEFAULT))
    cut = segments(made, application.settings.get("operators", operators.DEFAULT))
    if arguments.json:
        told = explain_json(application, made, cut, renewed)
        print(json.dumps({**told, "notes": doubts}, indent=2))
    else:
        print(explain(application, made, cut, renewed))
        print("".join(["notes\n", *(f"  {doubt}\n" for doubt in doubts)]) if doubts else "", end="")
    return 0


def demo(arguments: Namespace) -> int:
    """`penstock demo`."""
    from penstock import demo

    out = console()
    folder = Path("penstock-demo")
    checkpoint = arguments.checkpoint or folder / "checkpoint"
    file = demo.prepare(folder, arguments.seconds, anew=arguments.checkpoint is None)
    out.print(Text(demo.introduction(file, arguments.seconds)))
    job = Job(
        text=read(file),
        folder=folder.resolve(),
        title=file.name,
        checkpoint=checkpoint,
        file=file,
        until_drained=True,
    )
    show = partial(demo.show_answers, console=out, file=file, penstock=how_called())
    return run_job(job, out, then=show).status


def doctor(arguments: Namespace) -> int:
    """`penstock doctor`."""
    from penstock.doctor import examine, examine_checkpoint

    if arguments.checkpoint is not None:
        return examine_checkpoint(console(), arguments.checkpoint)
    return examine(console(), spark=not arguments.no_spark)


def events(arguments: Namespace) -> int:
    """`penstock events`."""
    from penstock.events import Summary, digest, read_events
    from penstock.view import Account

    summary = Summary.of(read_events(arguments.run))
    if arguments.json:
        print(json.dumps(digest(summary), indent=2))
    else:
        out = console()
        out.print(Account(summary))
        if summary.run.state == "running":
            out.print(Text(" the record has no end: the run goes on, or was cut off", "yellow"))
    return 1 if summary.accounting() else 0


def simulate(arguments: Namespace) -> int:
    """`penstock simulate`."""
    from penstock.cli.simulate import simulate

    return simulate(arguments, console())


def whatif(arguments: Namespace) -> int:
    """`penstock whatif`."""
    from penstock.cli.whatif import whatif

    return whatif(arguments, console())


def read(file: Path) -> str:
    """The text of an application."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CallFault(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CallFault(f"{file} is not text in UTF-8: {error.reason}") from error


def fresh_checkpoint(file: Path, now: float) -> Path:
    """A folder that no run has used, named after the application and the moment.

    >>> fresh_checkpoint(Path("apps/web.sql"), 0).as_posix()
    '.penstock/web-19700101-000000'
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return Path(".penstock") / f"{file.stem}-{stamp}"


def console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for a table."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDE)


def advise(arguments: Namespace) -> int:
    """`penstock advise`."""
    from penstock.cli.advise import advise_on

    return advise_on(arguments, console())
