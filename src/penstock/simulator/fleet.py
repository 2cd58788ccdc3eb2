"""Many simulations at once: each is a function of its arguments, so they can run anywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from penstock.errors import RunError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def scatter(
    function: Callable[[_Item], _Answer], items: Iterable[_Item], processes: int | None = None
) -> Iterator[_Answer]:
    """The answers of a function for each item, in order, from as many processes as there are cores.

    Function, items and answers travel between processes, so the function is one of a module, and
    answers should be figures rather than whole results.

    >>> list(scatter(abs, [-2, 3], processes=1))
    [2, 3]
    """
    listed = list(items)
    workers = min(processes or os.cpu_count() or 1, len(listed))
    if workers <= 1:
        yield from map(function, listed)
        return
    # A fresh interpreter each: a fork would copy the caller's threads in the middle of their work.
    context = get_context("spawn")
    try:
        with ProcessPoolExecutor(workers, context, initializer=_die_quietly) as pool:
            yield from pool.map(function, listed)
    except BrokenProcessPool as error:
        raise RunError("a process of the fleet ended before its simulation did") from error


def _die_quietly() -> None:
    """Ctrl-C reaches every process of a terminal; one complaint about it is enough."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
