"""The order of section 5.2 of the chain paper: which queue's head must begin first.

The paper's structure Q holds, for each queue, the timestamp t_h of its head, the latency r_q that
its query was promised, and the work p_q from there to the output. It is ordered by t_h + r_q - p_q.
Here it is two heaps: heads whose latest start is still ahead, in that order, and heads whose latest
start has come, in the order of their deadlines. So a decision looks at no other queue.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TypeAlias

_ROOM = 64
"""Outdated entries stay in a heap until there are this many of them and they are the majority."""

Start: TypeAlias = tuple[float, float, int, float]
"""For the head of a queue: its latest start, its deadline, the queue's number in the order that
decides among equals, and the seconds of work left."""


class LatestStarts:
    """The heads of the ready queues, by their latest starts.

    >>> starts = LatestStarts(3)
    >>> starts.put(0, deadline=9.0, left=4.0)
    >>> starts.put(1, deadline=8.0, left=1.0)
    >>> for now in (4.0, 6.0, 7.0):
    ...     print(*starts.due(now))
    None 5.0
    (5.0, 9.0, 0, 4.0) 7.0
    (7.0, 8.0, 1, 1.0) inf
    """

    __slots__ = ("_current", "_due", "_later", "_soon")

    def __init__(self, queues: int) -> None:
        """Begin with no queue ready."""
        self._current: list[Start | None] = [None] * queues
        self._later: list[Start] = []
        self._due: list[tuple[float, int, Start]] = []
        self._soon = -inf

    def put(self, queue: int, deadline: float, left: float) -> None:
        """A queue is ready, and its head has ``left`` seconds of work before a deadline."""
        start = (deadline - left, deadline, queue, left)
        if start != self._current[queue]:  # a host may repeat what is known
            self._current[queue] = start
            if deadline < inf:
                heappush(self._later, start)

    def drop(self, queue: int) -> None:
        """A queue is not ready."""
        self._current[queue] = None

    def due(self, soon: float) -> tuple[Start | None, float]:
        """Of the heads whose latest start has come, the one with the earliest deadline, if any.

        And the next latest start that is still ahead; infinite if there is none.
        """
        if soon < self._soon:  # the clocks of threads may differ a little
            self._later.extend(start for _, _, start in self._due)
            self._due.clear()
            heapify(self._later)
        self._soon = soon
        later, due, current = self._later, self._due, self._current
        while later:
            start = later[0]
            if current[start[2]] is not start:
                heappop(later)  # its queue has changed since
            elif start[0] <= soon:
                heappush(due, (start[1], start[2], heappop(later)))
            else:
                break
        while due and current[due[0][1]] is not due[0][2]:
            heappop(due)
        if len(later) > 2 * len(current) + _ROOM:
            self._later = later = [start for start in later if current[start[2]] is start]
            heapify(later)
        return due[0][2] if due else None, later[0][0] if later else inf
