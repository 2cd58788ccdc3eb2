"""Running an application on the command line: show it, and stop it on request."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from threading import enumerate as enumerate_threads
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from penstock.cli.entry import BROKEN
from penstock.events import Summary, digest
from penstock.model import Application
from penstock.sinks import SINKS
from penstock.spark.submit_options import SubmitOptions
from penstock.view import Watch, show_account, watch
from penstock.view.answers import shown

if TYPE_CHECKING:
    from penstock.api import Engine

GLANCE = 0.25
"""Seconds between two updates of the view."""
STOP_WITHIN, CLOSE_WITHIN = 8.0, 4.0
"""Seconds that a run may take to stop when it is told to, and that Spark may then take to end."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """An application and how to run it."""

    text: str
    folder: Path
    title: str
    checkpoint: Path
    file: Path
    """The path of the application, for the command that resumes the run."""
    until_drained: bool = False
    brief: bool = False
    """Whether it lasts no longer than a minute or two."""
    spark: Mapping[str, Any] = field(default_factory=dict)
    """Where Spark runs and with what, as `penstock.Engine` takes it."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """By family, the policies that replace those that the application sets."""


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended."""

    summary: Summary
    interrupted: bool

    @property
    def status(self) -> int:
        """The exit status: 1 when a query or a stream failed, 3 when the run itself broke.

        Whoever ends this process may end Spark too. Then the run counts as stopped.
        """
        if self.summary.run.state == "broken" and not self.interrupted:
            return BROKEN
        return 1 if self.summary.run.state == "failed" or self.summary.failures() else 0


def run_job(
    job: RunRequest, console: Console, then: Callable[[Engine], None] | None = None
) -> RunEnding:
    """Run an application to its end or until a signal, show it meanwhile, and account for it.

    ``then`` is called if the run has ended by itself, while the engine is still open.
    """
    from penstock.api import Engine

    with Engine(checkpoint=job.checkpoint, **job.spark) as engine:
        engine.prepare(brief=job.brief)  # Spark starts meanwhile
        _declare(engine, job, console)
        with Interrupts() as interrupts:
            told = _follow(engine, job, console, interrupts)
            outcome = RunEnding(engine.status(), interrupts.count > 0)
            _report(outcome, job, console, told, engine.application)
        if then is not None and not outcome.interrupted:
            then(engine)
        leaving = Timer(CLOSE_WITHIN, _leave, [outcome.status])
        leaving.daemon = True
        if outcome.interrupted:
            leaving.start()
    leaving.cancel()
    if outcome.interrupted and _is_held_up():
        _leave(outcome.status)
    return outcome


def run_and_tell(
    job: RunRequest, out: Console, as_json: bool, then: Callable[[Engine], None] | None = None
) -> int:
    """Run an application, print its account as JSON if asked to, and return the exit status."""
    ending = run_job(job, out, then)
    if as_json:
        print(json.dumps(digest(ending.summary), indent=2))
    return ending.status


def _is_held_up() -> bool:
    """Whether a job that does not return would keep the process alive."""
    return any(thread.name.startswith("penstock-run") for thread in enumerate_threads())


def _leave(status: int) -> None:
    """End at once: everything that must outlive the process is in the checkpoint."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _declare(engine: Engine, job: RunRequest, console: Console) -> None:
    """Bind everything before anything starts, and print what the text asks to be shown."""
    for table in engine.load(job.text, folder=job.folder):
        for part in shown(table, table.num_rows):
            console.print(part)
    for family, text in job.policies.items():
        quoted = text.replace("'", "''")
        engine.execute(f"SET {family} = '{quoted}'")


def _follow(
    engine: Engine, job: RunRequest, console: Console, interrupts: Interrupts
) -> Collection[str]:
    """Start a run and show it until it ends; return the failures and warnings that were shown."""
    with closing(watch(console, job.title)) as view:
        try:
            _start(engine, job, view)
            while not engine.wait(GLANCE) and not interrupts.count:
                view.show(engine.status())
            view.show(engine.status())
        finally:
            if interrupts.count:
                console.print(Text("stopping; press Ctrl-C again to leave at once", "yellow"))
            engine.stop(STOP_WITHIN if interrupts.count else None)
        return view.told


def _start(engine: Engine, job: RunRequest, view: Watch) -> None:
    """Start in another thread: in the main thread a SparkContext would take over the signals."""
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(engine.start, until_drained=job.until_drained)
        while not wait([starting], timeout=GLANCE).done:
            view.show(engine.status())
        starting.result()


def _report(
    outcome: RunEnding, job: RunRequest, console: Console, told: Collection[str],
    application: Application,
) -> None:
    show_account(console, outcome.summary, told=told)
    penstock = how_called()
    readable = [query.name for query in application.queries.values()
                if any(SINKS[sink.kind].is_readable for sink in query.sinks)]
    if readable:
        more = f" (or another of {len(readable)} queries)" if len(readable) > 1 else ""
        see = f"{penstock} results {job.checkpoint} {shlex.quote(readable[0])}"
        console.print(Text(f" see them: {see}{more}"), soft_wrap=True)
    console.print(Text(f" the record: {penstock} events {job.checkpoint}"), soft_wrap=True)
    if outcome.interrupted:
        again = f"{penstock} run {job.file} --checkpoint {job.checkpoint}"
        if words := shlex.join(_started_with(job.spark)):
            again += f" {words}"
        console.print(Text(f" to go on from here: {again}", "bold"), soft_wrap=True)


def _started_with(spark: Mapping[str, Any]) -> list[str]:
    """The options of the command line by which Spark was started."""
    if not spark:
        return []
    master = ["--master", spark["master"]] if spark["master"] else []
    more = SubmitOptions(spark["packages"], spark["jars"], spark["conf"])
    return [*master, *more.words()]


def how_called() -> str:
    """The command as it can be typed here: `make` does not put the environment on the path."""
    if shutil.which("penstock") or Path(sys.argv[0]).name != "penstock":
        return "penstock"
    return os.path.relpath(sys.argv[0])


class Interrupts:
    """Counts Ctrl-C and SIGTERM instead of ending at the first; the second one leaves at once."""

    def __init__(self) -> None:
        """Nobody has asked to stop."""
        self.count = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        """Take the signals over."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the signals back to their previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            # No clean-up: a checkpoint survives a driver that vanishes, and Spark's JVM ends when
            # the pipe from its parent closes.
            os._exit(128 + number)
