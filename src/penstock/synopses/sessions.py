"""Session windows from panes: rows of a key that follow one another with gaps below a bound.

A pane is no longer than the gap, so the rows of a key in one pane belong to one session. Two
neighbouring panes of a key do if the first row of the later one comes within the gap after the last
row of the earlier one. So the first and the last time of each pane and key say what a session is,
and its aggregates are those of its panes.

A session is due when the gap after its last row is over. State must end: at a multiple of
``longest`` a session that has lasted for that long is answered and cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

EVER = -(1 << 62)
"""Before all times: the beginning of a session that reaches back beyond the panes that are held."""
Times: TypeAlias = Iterable[tuple[int, int, int]]
"""Of one pane: the keys that have rows in it, with the first and the last time of their rows."""


@dataclass(frozen=True, slots=True)
class SessionRule:
    """What a session is; times are in microseconds."""

    gap: int
    longest: int
    """A session that has lasted so long is cut at the next multiple of this."""
    pane: int

    @property
    def reach(self) -> int:
        """How far back an answer may have to look."""
        return 2 * self.longest + 2 * self.gap


@dataclass(slots=True)
class _Run:
    """A session as far as the walk has come, from its end towards its beginning."""

    key: int
    first: int
    last: int
    bottom: int
    top: int


def due(
    rule: SessionRule, end: int, held: int, times: Callable[[int], Times]
) -> dict[tuple[int, int], list[int]]:
    """The sessions that are due when the pane before ``end`` has closed.

    That they were not due a gap earlier makes each due once. They are given as keys by the first
    and the last pane of the session, ``held`` panes at most. ``times(pane)`` tells of a pane.

    >>> rows = {0: [(7, 0, 4)], 1: [(7, 12, 19), (8, 11, 11)], 2: [], 3: [], 4: []}
    >>> due(SessionRule(gap=10, longest=480, pane=10), 3, 3, rows.__getitem__)
    {(1, 1): [8], (0, 1): [7]}
    """
    found: dict[tuple[int, int], list[int]] = {}
    for run in _runs(rule, end, held, times):
        panes = _answered(rule, end * rule.pane, run)
        if panes is not None:
            found.setdefault(panes, []).append(run.key)
    return found


def _runs(
    rule: SessionRule, end: int, held: int, times: Callable[[int], Times]
) -> Iterator[_Run]:
    """The sessions that may be due, found from the youngest pane back."""
    before = end * rule.pane - rule.gap
    """What had ended by then was due earlier."""
    running: dict[int, _Run] = {}
    for pane in range(end - 1, end - held - 1, -1):
        begin = pane * rule.pane
        for key, first, last in times(pane):
            run = running.get(key)
            if run is not None and run.first - last < rule.gap:
                run.first, run.bottom = first, pane
                continue
            if run is not None:
                yield running.pop(key)
            if last + rule.gap > before:
                running[key] = _Run(key, first, last, pane, pane)
        for key in [k for k, run in running.items() if run.first - begin >= rule.gap]:
            yield running.pop(key)
        if not running and begin + rule.gap <= before:
            return
    for run in running.values():
        run.first = EVER
        yield run


def _answered(rule: SessionRule, end: int, run: _Run) -> tuple[int, int] | None:
    """The panes of a session that are answered at a time, if any are."""
    over = run.last + rule.gap
    if over > end:  # it may go on
        if end % rule.longest or end - run.first < rule.longest:
            return None
        cut = end - rule.longest
    else:
        cut = (over - 1) // rule.longest * rule.longest
    since = cut if cut - run.first >= rule.longest else run.first
    bottom = max(run.bottom, since // rule.pane) if since > EVER else run.bottom
    return (bottom, run.top) if bottom <= run.top else None
