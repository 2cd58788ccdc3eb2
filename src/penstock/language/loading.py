"""Finding the Python function behind ``CREATE FUNCTION f FROM 'module:name'``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.functions import PythonFunction


def load(module: str, attribute: str, folder: str) -> PythonFunction:
    """The function, from the application's folder first; ValueError says why it cannot be had.

    The module is imported once per process, as any other, so a changed file needs a new process.
    """
    function = load_attribute(module, attribute, folder)
    if not isinstance(function, PythonFunction):
        raise ValueError(
            f"{module}:{attribute} is not declared with penstock.predicate or penstock.scalar"
        )
    return function


def load_attribute(module: str, attribute: str, folder: str) -> Any:
    """Whatever a module holds under a name; ValueError says why it cannot be had."""
    with _first_on_path(folder):
        try:
            found = importlib.import_module(module)
        except Exception as error:  # the module is the user's: it may raise anything
            raise ValueError(f"cannot import {module}: {_reason(error)}") from error
        except SystemExit as error:
            raise ValueError(f"cannot import {module}: it leaves the program") from error
    value = getattr(found, attribute, None)
    if value is None:
        raise ValueError(f"{module} has no {attribute}")
    return value


@contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
