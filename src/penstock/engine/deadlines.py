"""The deadlines of one group of aggregates: which tasks are due, and for which window end.

Deadlines are panes. A task's deadline moves only when it has run: to the end that it answered plus
its period, even if it was late. So the tasks that are not due lie in a heap, and a pane that closes
looks at those that fall due with it and at no others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from penstock.policies.refresh import Due, Group, Query, Task


@dataclass(slots=True)
class Deadlines:
    """What is known of a group while it runs.

    >>> a, b = Query("a", window=10, period=2), Query("b", window=6, period=3)
    >>> deadlines = Deadlines(Group("g", (a, b)))
    >>> deadlines.adopt([Task("two", "g", (a,), 2), Task("three", "g", (b,), 3)])
    >>> deadlines.close(2)
    >>> [(due.task.id, due.end, due.left) for due in deadlines.due()]
    [('two', 2, 0)]
    >>> deadlines.start(["two"], ["a"], end=2)
    >>> deadlines.close(3)
    >>> deadlines.finish(["a"], end=2)
    >>> deadlines.close(5)
    >>> [(due.task.id, due.end, due.left) for due in deadlines.due()]
    [('two', 5, -1), ('three', 5, -2)]

    A query that is answered *exactly* has an end of its own: the next multiple of its period whose
    window holds a row. None is left out. While it is late its ends wait one behind the other, and
    the panes they need are to be kept (`oldest`).
    """

    group: Group
    closed: int | None = None
    """The pane before which all are closed."""
    answered: dict[str, int] = field(default_factory=dict)
    """The last window end of each query that was answered."""
    _since: dict[str, int | None] = field(default_factory=dict)
    """The pane after which the ends of a query lie that was not answered yet."""
    _coming: dict[str, int] = field(default_factory=dict)
    """The next end of exact queries, where it is known: it stays until they are answered."""
    _begun: int = 0
    """Where the first panes closed that were told."""
    _filled: Sequence[int] = ()
    """Closed panes that hold rows; a range as long as all are taken to."""
    _tasks: dict[str, Task] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _home: dict[str, str] = field(default_factory=dict)
    _deadline: dict[str, int] = field(default_factory=dict)
    _heap: list[tuple[int, int, str]] = field(default_factory=list)
    _due: dict[str, None] = field(default_factory=dict)
    _idle: dict[str, None] = field(default_factory=dict)
    """Exact tasks for whose next windows no row has come yet."""
    _busy: dict[str, int] = field(default_factory=dict)
    """Queries that are being answered, and for which end."""

    # --- what happens -------------------------------------------------------------------------

    def adopt(self, tasks: Sequence[Task]) -> None:
        """Work with these tasks from now on; a query's deadline follows from its last answer."""
        self._tasks = {task.id: task for task in tasks}
        self._places = {task.id: place for place, task in enumerate(tasks)}
        self._home = {query.name: task.id for task in tasks for query in task.queries}
        self.answered = {name: end for name, end in self.answered.items() if name in self._home}
        joined = None if self.closed is None else self.closed - 1
        self._since = {name: self._since.get(name, joined) for name in self._home}
        self._coming.clear()
        self._file_all()

    def close(self, end: int, filled: Sequence[int] | None = None) -> None:
        """All panes before ``end`` are closed; ``filled`` are those that hold rows.

        Without ``filled`` all are taken to. Panes that closed earlier need not be told again.
        """
        if self.closed is None:
            self._begin(end, filled)
        elif end > self.closed:
            self._forget()
            self._fill(end, filled)
            self.closed = end
            for id in list(self._idle):
                del self._idle[id]
                self._file(id)
            self._ripen()

    def start(self, tasks: Sequence[str], queries: Sequence[str], end: int) -> None:
        """These are under way; they are not due until they have finished or failed."""
        for id in tasks:
            del self._due[id]
        self._busy.update(dict.fromkeys(queries, end))

    def finish(self, queries: Sequence[str], end: int) -> None:
        """These were answered: d(T) is the whole period again, even after a late run."""
        for name in queries:
            self._coming.pop(name, None)
            if name in self._home:
                self.answered[name] = end
        self.release(queries)

    def release(self, queries: Sequence[str]) -> None:
        """These are under way no longer."""
        for name in queries:
            self._busy.pop(name, None)
        for id in dict.fromkeys(self._home[name] for name in queries if name in self._home):
            self._file(id)
        self._ripen()

    @property
    def last(self) -> int | None:
        """The youngest pane that holds rows."""
        return self._filled[-1] if self._filled else None

    # --- what is due --------------------------------------------------------------------------

    def due(self) -> list[Due]:
        """The tasks that may be run, in plan order."""
        return [self._shown(id) for id in sorted(self._due, key=self._places.__getitem__)]

    def _shown(self, id: str) -> Due:
        assert self.closed is not None
        task, deadline = self._tasks[id], self._deadline[id]
        end = deadline if task.exactly else self.closed
        return Due(task, end, deadline - self.closed, self.group.pane)

    def queries(self, task: str, end: int) -> list[Query]:
        """The queries of a task that a run for this end answers."""
        given = self._tasks[task]
        if given.exactly:
            return [query for query in given.queries if self._next(query) == end]
        # Some may have been answered for this end, or for later ones: in an earlier run, or before
        # the tasks were made anew. Others have only just joined, and ask for later ends alone.
        return [query for query in given.queries if self.answered.get(query.name, end - 1) < end]

    def oldest(self) -> int | None:
        """The first pane that any coming answer may read; None while no pane has closed."""
        if self.closed is None:
            return None
        queries = [query for task in self._tasks.values() for query in task.queries]
        return min((self._needs(query) for query in queries), default=self.closed)

    def _needs(self, query: Query) -> int:
        assert self.closed is not None
        end = self.closed
        if query.exactly:
            coming = self._next(query)
            end = end + 1 if coming is None else min(end + 1, coming)
        return min(end, self._busy.get(query.name, end)) - query.window

    # --- when a task is due -------------------------------------------------------------------

    def _begin(self, end: int, filled: Sequence[int] | None) -> None:
        self.closed = self._begun = end
        self._filled = range(end - 1, end) if filled is None else sorted(filled)
        first = self._filled[0] if self._filled else end - 1
        self._since = {name: first if since is None else since
                       for name, since in self._since.items()}
        self._file_all()

    def _fill(self, end: int, filled: Sequence[int] | None) -> None:
        if filled is None:
            first = self._filled[0] if self._filled else end - 1
            self._filled = range(first, end)
        else:
            assert self.closed is not None
            told = [pane for pane in sorted(filled) if pane >= self.closed]
            self._filled = [*self._filled, *told]

    def _file_all(self) -> None:
        self._heap, self._due, self._idle = [], {}, {}
        if self.closed is not None:
            for id in self._tasks:
                self._file(id)
            self._ripen()

    def _file(self, id: str) -> None:
        """Put a task where its deadline belongs, unless it is under way."""
        task = self._tasks[id]
        if self._busy and any(query.name in self._busy for query in task.queries):
            return
        deadline = self._reckoned(task)
        if deadline is None:
            self._idle[id] = None
        else:
            self._deadline[id] = deadline
            heappush(self._heap, (deadline, self._places[id], id))

    def _ripen(self) -> None:
        """Move what has fallen due out of the heap."""
        assert self.closed is not None
        while self._heap and self._heap[0][0] <= self.closed:
            self._due[heappop(self._heap)[2]] = None

    def _reckoned(self, task: Task) -> int | None:
        """The deadline of a task; None while no row has come for its next window."""
        if task.exactly:
            ends = [end for query in task.queries if (end := self._next(query)) is not None]
            return min(ends, default=None)
        last = [self.answered[query.name] for query in task.queries
                if query.name in self.answered]
        if last:
            return min(last) + task.period
        # New tasks begin at a multiple of their period, so that they are in step with the others.
        first = min(self._after(query) for query in task.queries) + 1
        return _multiple(task.period, max(first, self._begun))

    def _next(self, query: Query) -> int | None:
        """The next multiple of its period whose window holds a row; None: no row for it yet."""
        if query.name in self._coming:
            return self._coming[query.name]
        end, filled = _multiple(query.period, self._after(query) + 1), self._filled
        while (at := bisect_left(filled, end - query.window)) < len(filled):
            if filled[at] < end:
                self._coming[query.name] = end
                return end
            end = _multiple(query.period, filled[at] + 1)
        return None

    def _after(self, query: Query) -> int:
        """The pane after which the query's next end lies."""
        after = self.answered.get(query.name, self._since[query.name])
        assert after is not None, "no pane has closed"
        return after

    def _forget(self) -> None:
        """Let go of what is known of panes that nobody needs."""
        oldest = self.oldest()
        if oldest is not None and self._filled and self._filled[0] < oldest:
            self._filled = self._filled[bisect_left(self._filled, oldest):]


def _multiple(period: int, least: int) -> int:
    """The first multiple of a period from a pane on.

    >>> _multiple(5, 10), _multiple(5, 11), _multiple(5, -7)
    (10, 15, -5)
    """
    return -(-least // period) * period
