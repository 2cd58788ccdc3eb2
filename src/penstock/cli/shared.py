"""What several commands share: arguments, the text of an application, standard output."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark import submit_options

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 120
"""Columns of a table that goes to a file or a pipe."""


FIGURES = Path("penstock-figures")
"""Where figures go if no folder is named: a name that no folder of the user's own has."""


class CallFault(PenstockError):
    """The command line names something that does not exist."""


def add_record(parser: ArgumentParser) -> None:
    """Declare the argument that names the record of a run."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a checkpoint, a run, or a file")


def add_checkpoint(parser: ArgumentParser, default: str) -> None:
    """Declare the argument that names the checkpoint of a run."""
    parser.add_argument("--checkpoint", type=Path, metavar="DIR",
                        help=f"the folder from which a stopped run resumes (default: {default})")


def add_spark(parser: ArgumentParser) -> None:
    """Declare the arguments that say where Spark runs, and with what."""
    parser.add_argument("--master", metavar="URL",
                        help="the Spark master (default: all cores of this machine)")
    parser.add_argument("--packages", metavar="GROUP:NAME:VERSION,...", default=(),
                        type=_parsed(submit_options.packages),
                        help="packages that Spark downloads, such as its connector for Kafka")
    parser.add_argument("--jars", metavar="FILE,...", default=(),
                        type=_parsed(submit_options.jars), help="jars for Spark")
    parser.add_argument("--conf", metavar="NAME=VALUE", action="append", default=[],
                        type=_parsed(submit_options.setting),
                        help="a setting of Spark; may be given several times")


def spark_arguments(arguments: Namespace) -> dict[str, Any]:
    """What `add_spark` has declared, as `penstock.Engine` takes it."""
    return {"master": arguments.master, "packages": arguments.packages, "jars": arguments.jars,
            "conf": dict(arguments.conf)}


def _parsed(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser for argparse, which shows the message of its own kind of error only."""
    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def add_account_json(parser: ArgumentParser) -> None:
    """Declare the option that makes the account of a run JSON."""
    parser.add_argument("--json", action="store_true",
                        help="at the end the account as JSON, as `penstock events --json` gives "
                             "it; all else goes to standard error")


def positive(text: str) -> float:
    """A positive number, such as of seconds or of packets a second."""
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number below a million")
    return value


def count(text: str) -> int:
    """A number of things, at least one."""
    value = int(text)
    if not 1 <= value <= 100_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 100,000")
    return value


def read(file: Path) -> str:
    """The text of an application."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CallFault(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CallFault(f"{file} is not text in UTF-8: {error.reason}") from error


def teller(as_json: bool) -> Console:
    """Where a run is shown: standard error if JSON goes to standard output."""
    from rich.console import Console

    return Console(stderr=True, highlight=False) if as_json else console()


def console() -> Console:
    """Standard output: as wide as the terminal, or else wide enough for a table."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDE)
