"""Session windows from panes: rows of a key that follow one another with gaps below a bound.

A *slice* is as long as the gap, and consists of panes. So the rows of a key in one slice belong to
one session. Two slices do if the first row of the later one comes within the gap after the last row
of the earlier one. So the first and the last time of each slice and key say what a session is, and
its aggregates are those of its panes.

A session is due when the gap after its last row is over. State must end: at a multiple of
``longest`` a session that has lasted for that long is answered and cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from penstock.model import Aggregate

EVER = -(1 << 62)
"""Before all times: the beginning of a session that reaches back beyond the slices that are held.
"""
Times: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of one slice: the keys that have rows in it, and the first and the last time of their rows."""


@dataclass(frozen=True, slots=True)
class SessionRule:
    """What a session is; times are in microseconds."""

    gap: int
    longest: int
    """A session that has lasted so long is cut at the next multiple of this."""
    panes: int = 1
    """How many panes a gap has."""
    times: tuple[Aggregate, ...] = ()
    """MIN and MAX of the rows' time."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of some keys, each with the first and the last of its slices."""

    keys: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray


def due(
    rule: SessionRule, end: int, held: int, keys: int, times: Callable[[int], Times]
) -> Sessions:
    """The sessions that are due when the slice before ``end`` has closed.

    That they were not due a gap earlier makes each due once. ``held`` slices are looked at, at
    most. Keys are numbers below ``keys``, and ``times(slice)`` tells of a slice.

    >>> slices = {0: [(7, 0, 4)], 1: [(7, 12, 19), (8, 11, 11)], 2: []}
    >>> told = lambda slice: tuple(np.array(slices[slice], np.int64).reshape(-1, 3).T)
    >>> found = due(SessionRule(gap=10, longest=480), 3, 3, 9, told)
    >>> list(zip(found.keys.tolist(), found.firsts.tolist(), found.lasts.tolist()))
    [(8, 1, 1), (7, 0, 1)]
    """
    runs = _runs(rule.gap, end, held, keys, times)
    key, since, last, bottom, top = np.hstack(runs) if runs else np.empty((5, 0), np.int64)
    over, now = last + rule.gap, end * rule.gap
    goes_on = over > now
    cut = np.where(goes_on, now - rule.longest, (over - 1) // rule.longest * rule.longest)
    is_cut = cut - since >= rule.longest
    bottom = np.where(is_cut, np.maximum(bottom, cut // rule.gap), bottom)
    lasting = (now - since >= rule.longest) & (now % rule.longest == 0)
    found = (~goes_on | lasting) & (bottom <= top)
    return Sessions(key[found], bottom[found], top[found])


def _runs(
    gap: int, end: int, held: int, keys: int, times: Callable[[int], Times]
) -> Sequence[np.ndarray]:
    """The sessions that may be due, found from the youngest slice back.

    In rows: the keys, the first and the last times, and the first and the last slices.
    """
    before = (end - 1) * gap
    """What was over by then was due earlier."""
    running = np.zeros((5, keys), np.int64)
    running[0] = np.arange(keys)
    runs = np.zeros(keys, bool)
    found: list[np.ndarray] = []

    def over(which: np.ndarray) -> None:
        found.append(running[:, which])
        runs[which] = False

    for number in range(end - 1, end - held - 1, -1):
        key, first, last = times(number)
        joins = runs[key] & (running[1, key] - last < gap)
        running[1, key[joins]] = first[joins]
        running[3, key[joins]] = number
        over(key[runs[key] & ~joins])
        begins = ~joins & (last + gap > before)
        slices = np.full(np.count_nonzero(begins), number)
        running[1:, key[begins]] = first[begins], last[begins], slices, slices
        runs[key[begins]] = True
        over(np.flatnonzero(runs & (running[1] - number * gap >= gap)))
        if not runs.any() and number <= end - 2:
            return found
    rest = np.flatnonzero(runs)
    running[1, rest] = EVER
    over(rest)
    return found
