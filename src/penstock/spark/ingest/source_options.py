"""The options of a source, with values from the environment filled in."""

from __future__ import annotations

import os

from penstock.errors import SourceError
from penstock.model import Relation, Sink, Stream, Variable

CORRUPT = "@corrupt"
"""The column with the text of a row that could not be read."""


def opened(source: Stream | Relation | Sink) -> dict[str, str]:
    """The options to open a source with, now; a variable that is not set is an error."""
    return {name: _held(name, value) if isinstance(value, Variable) else value
            for name, value in source.options}


def _held(option: str, variable: Variable) -> str:
    value = os.environ.get(variable.name)
    if value is None:
        raise SourceError(f"the environment variable {variable.name}, which option {option} "
                          "names, is not set")
    return value
