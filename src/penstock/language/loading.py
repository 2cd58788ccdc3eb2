"""Finding the Python function behind ``CREATE FUNCTION f FROM 'module:name'``."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from penstock.functions import PythonFunction

_LOCK = threading.RLock()
_OWN: dict[str, dict[str, ModuleType]] = {}
"""By folder: its modules whose names another application's modules have in `sys.modules`."""


def load(module: str, attribute: str, folder: str) -> PythonFunction:
    """The function, from the application's folder first; ValueError says why it cannot be had.

    The module is imported once per process and folder, so a changed file needs a new process.
    """
    function = load_attribute(module, attribute, folder)
    if not isinstance(function, PythonFunction):
        raise ValueError(
            f"{module}:{attribute} is not declared with penstock.predicate or penstock.scalar"
        )
    return function


def load_attribute(module: str, attribute: str, folder: str) -> Any:
    """Whatever a module holds under a name; ValueError says why it cannot be had."""
    with _LOCK, _own_modules(folder), _first_on_path(folder):
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


def modules_in(folder: str) -> list[ModuleType]:
    """The loaded modules that lie in a folder itself, also those that others hide."""
    hidden = [module for own in list(_OWN.values()) for module in own.values()]
    home = os.path.abspath(folder)
    return [module for module in [*list(sys.modules.values()), *hidden] if _home(module) == home]


@contextmanager
def _own_modules(folder: str) -> Iterator[None]:
    """Let a folder's own modules stand in `sys.modules` for a moment.

    Two applications in one process may each have a ``detectors.py``. The first to come stays in
    `sys.modules`; while something of the other is loaded, the other's modules stand there.
    """
    home = os.path.abspath(folder)
    names = _names(home)
    hidden = {name: module for name, module in sys.modules.items()
              if name.partition(".")[0] in names and not _is_under(module, home)}
    for name in hidden:
        del sys.modules[name]
    known = _OWN.get(home, {})
    sys.modules.update({name: known[name] for name in hidden if name in known})
    try:
        yield
    finally:
        for name, module in hidden.items():
            if name in sys.modules:
                _OWN.setdefault(home, {})[name] = sys.modules[name]
            sys.modules[name] = module


def _names(folder: str) -> set[str]:
    """The top names of loaded modules that a folder has modules for; one of data is none."""
    loaded = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
    here = _files(folder)
    return {name for name in loaded - {"__main__", "penstock"} if f"{name}.py" in here or (
        name in here and any(f.endswith(".py") for f in _files(os.path.join(folder, name))))}


def _files(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _is_under(module: ModuleType | None, folder: str) -> bool:
    file = _file(module)
    return file is None or os.path.abspath(file).startswith(folder + os.sep)


def _home(module: ModuleType | None) -> str | None:
    file = _file(module)
    return os.path.dirname(os.path.abspath(file)) if file else None


def _file(module: ModuleType | None) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


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
