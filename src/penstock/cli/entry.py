"""From the command line to a command, and from its outcome to an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from penstock.cli.arguments import parser
from penstock.cli.shared import CallFault
from penstock.errors import (
    CheckpointError,
    FunctionError,
    LanguageError,
    PenstockError,
    PolicyError,
    WorkloadError,
)

FAILED, WRONG, BROKEN, INTERRUPTED = 1, 2, 3, 130

_CALLERS_FAULT = (
    CallFault, CheckpointError, FunctionError, LanguageError, PolicyError, WorkloadError)
"""Errors in what the user wrote or asked; all others lie in the machine or in the data."""


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the command line, and return the exit status."""
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.call(arguments)
        return status
    except PenstockError as error:
        _complain(str(error))
        return WRONG if isinstance(error, _CALLERS_FAULT) else FAILED
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output has closed it; Python must not complain while it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        _complain(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return BROKEN
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED


def _complain(message: str) -> None:
    print(f"penstock: {message}", file=sys.stderr)
