"""The deadlines of one group of aggregates: which tasks are due, and for which window end.

A deadline is a pane. A task's deadline moves only when the task has run: to the end that it
answered plus its period, even if it was late. So tasks that are not due lie in a heap. When a pane
closes, only the tasks that fall due with it are looked at.

Event time may jump, and then many panes close at once. The jump makes no task late; only the clock
does. Of the ends that fall due together, the first is expected now, and each later one a pane
later, as in a stream that keeps time. A task is late if its deadline lies before the pane that is
expected by now, and more panes have closed since it fell due. Only late tasks skip ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from penstock.policies.refresh import Due, QueryGroup, Task, WindowQuery


@dataclass(slots=True)
class Deadlines:
    """The deadlines of a group while it runs.

    >>> a, b = WindowQuery("a", window=10, period=2), WindowQuery("b", window=6, period=3)
    >>> deadlines = Deadlines(QueryGroup("g", (a, b)))
    >>> deadlines.adopt([Task("two", "g", (a,), 2), Task("three", "g", (b,), 3)])
    >>> deadlines.close(2)
    >>> [(due.task.id, due.end, due.left) for due in deadlines.due(at=2.0)]
    [('two', 2, 0)]
    >>> deadlines.start(["two"], ["a"], end=2)
    >>> deadlines.close(3)
    >>> deadlines.finish(["a"], end=2)
    >>> deadlines.close(4)
    >>> deadlines.close(5)
    >>> [(due.task.id, due.end, due.left) for due in deadlines.due(at=5.0)]
    [('two', 5, -1), ('three', 5, -2)]
    >>> deadlines.skipped(["two", "three"], end=5)
    {'a': 1, 'b': 1}

    A query that is answered *exactly* has an end of its own: the next multiple of its period whose
    window holds a row. No such end is skipped. While the query is late its ends queue up, and the
    panes that they need must be kept (`oldest`).
    """

    group: QueryGroup
    closed: int | None = None
    """All panes before this one are closed."""
    answered: dict[str, int] = field(default_factory=dict)
    """The end of the last window of each query that was answered, or was passed over for lack of
    rows."""
    _since: dict[str, int | None] = field(default_factory=dict)
    """For each query that has not been answered yet, the pane after which its ends lie."""
    _coming: dict[str, int] = field(default_factory=dict)
    """The next end of each exact query, if it is known; it stays until the query is answered."""
    _floor: dict[str, int] = field(default_factory=dict)
    """For each query of a new task, the first end whose panes still exist."""
    _late_at: int | None = None
    """The value of `closed` when a task was last seen to be late."""
    _before: int = 0
    """The value of `closed` before panes last closed."""
    _closed_at: float = -inf
    """When panes last closed."""
    _pace: tuple[int, float] | None = None
    """The first end that waits, and when it fell due. The panes after it are expected from then on,
    one after the other. None while only exact tasks wait."""
    _filled: Sequence[int] = ()
    """Closed panes that hold rows; a range as long as all panes are assumed to hold some."""
    _concluded: bool = False
    """Whether no further row comes."""
    _tasks: dict[str, Task] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _home: dict[str, str] = field(default_factory=dict)
    _deadline: dict[str, int] = field(default_factory=dict)
    _heap: list[tuple[int, int, str]] = field(default_factory=list)
    _due: dict[str, None] = field(default_factory=dict)
    _idle: dict[str, None] = field(default_factory=dict)
    """Exact tasks whose next windows have no row yet."""
    _busy: dict[str, int] = field(default_factory=dict)
    """Queries that are being answered, each with the end."""

    # --- what happens -------------------------------------------------------------------------

    def adopt(self, tasks: Sequence[Task]) -> None:
        """Work with these tasks from now on; a query's deadline follows from its last answer."""
        if self.closed is not None:
            self._floor = {
                name: min(self.closed, self._deadline.get(home, self._busy.get(name, self.closed)))
                for name, home in self._home.items()}
            self._deadline.clear()
        self._tasks = {task.id: task for task in tasks}
        self._places = {task.id: place for place, task in enumerate(tasks)}
        self._home = {query.name: task.id for task in tasks for query in task.queries}
        self.answered = {name: end for name, end in self.answered.items() if name in self._home}
        joined = None if self.closed is None else self.closed - 1
        self._since = {name: self._since.get(name, joined) for name in self._home}
        self._coming.clear()
        self._file_all()

    def close(
        self, end: int, filled: Sequence[int] | None = None, at: float = -inf
    ) -> None:
        """All panes before ``end`` are closed; ``filled`` are those that hold rows.

        Without ``filled`` all of them are assumed to hold rows. Panes that closed earlier need not
        be passed again. Without ``at``, every task that still waits when the next panes close is
        late.
        """
        if self.closed is None:
            self._closed_at = at
            self._begin(end, filled)
        elif end > self.closed:
            self._forget()
            self._fill(end, filled)
            self._before, self.closed, self._closed_at = self.closed, end, at
            if all(self._tasks[id].exactly for id in self._due):
                self._pace = None
            for id in list(self._idle):
                del self._idle[id]
                self._file(id)
            self._ripen()

    def conclude(self, end: int) -> None:
        """No further row comes: all panes before ``end`` are closed."""
        if not self._concluded:
            self._concluded = True
            self._file_all()
        self.close(end, ())

    def start(self, tasks: Sequence[str], queries: Sequence[str], end: int) -> None:
        """A refresh of these is active; they are not due until it has finished or failed."""
        for id in tasks:
            del self._due[id]
            for query in self._tasks[id].queries:
                if not query.exactly and query.name not in queries and self._may_end(query, end):
                    self.answered[query.name] = end
        self._busy.update(dict.fromkeys(queries, end))

    def finish(self, queries: Sequence[str], end: int) -> None:
        """These were answered: d(T) is the whole period again, even after a late refresh."""
        for name in queries:
            self._coming.pop(name, None)
            if name in self._home:
                self.answered[name] = end
        self.release(queries)

    def release(self, queries: Sequence[str]) -> None:
        """No refresh of these is active any more."""
        for name in queries:
            self._busy.pop(name, None)
        for id in dict.fromkeys(self._home[name] for name in queries if name in self._home):
            self._file(id)
        self._ripen()

    def since(self, query: str) -> int:
        """The pane after which a query's next end lies."""
        since = self.answered.get(query, self._since[query])
        assert since is not None, "no pane has closed"
        return since

    @property
    def last(self) -> int | None:
        """The newest pane that holds rows."""
        return self._filled[-1] if self._filled else None

    # --- what is due --------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether any task may run."""
        return bool(self._due)

    def due(self, at: float) -> list[Due]:
        """The tasks that may run, in plan order."""
        return [self._shown(id, at) for id in sorted(self._due, key=self._places.__getitem__)]

    def is_late(self, due: Sequence[Due]) -> bool:
        """Whether the group counts as late, given what is due now.

        It counts as late as soon as one of its tasks is late. It is in time again when no task has
        been late for as long as its longest period: by then every task was in time at least once.
        """
        if any(one.left < 0 for one in due):
            self._late_at = self.closed
        if self._late_at is None or self.closed is None:
            return False
        return self.closed - self._late_at < max(query.period for query in self.group.queries)

    def _shown(self, id: str, at: float) -> Due:
        task, end = self._tasks[id], self._deadline[id]
        left = end - self._expected(at)
        if left < 0 and not task.exactly:
            end = self._latest(task, end - left)
        return Due(task, end, left, self.group.pane)

    def _latest(self, task: Task, most: int) -> int:
        """The last end, up to a pane, at which one of a task's queries has a row in its window."""
        youngest = self._filled[self._filled_before(most) - 1]
        ends = [(query, min(most, youngest + query.window)) for query in task.queries]
        return max(end for query, end in ends if self._may_end(query, end))

    def _expected(self, at: float) -> int:
        """The pane that is expected by now: at most the first of those that closed last.

        A jump of event time makes no task late, however long the tasks wait that fell due with it.
        """
        assert self.closed is not None
        if self._pace is None:
            return self.closed
        (first, since), newest = self._pace, self._before + 1
        gone = (at - since) * 1e6 / self.group.pane
        return max(first, newest if gone >= newest - first else first + int(gone))

    def queries(self, task: str, end: int) -> list[WindowQuery]:
        """The queries of a task that a scan for this end answers: their windows hold a row."""
        given = self._tasks[task]
        if given.exactly:
            return [query for query in given.queries if self._next(query) == end]
        return [query for query in given.queries
                if self._may_end(query, end) and self._holds_row(end, query.window)]

    def _may_end(self, query: WindowQuery, end: int) -> bool:
        """Whether a query is to be answered for this end.

        It may have been answered for this end or a later one already, in an earlier run or before
        the tasks were rebuilt. Or it has only just joined, and asks only for later ends.
        """
        return end >= self._earliest(query)

    def _earliest(self, query: WindowQuery) -> int:
        after = self.since(query.name)
        return max(after + 1, self._floor.get(query.name, after))

    def skipped(self, tasks: Sequence[str], end: int) -> dict[str, int]:
        """How many answers a scan for this end skips because these tasks are late.

        The skipped ends lie a slide apart between the last answered end and this one, and their
        windows hold a row.
        """
        slides = {query.name: query.period for query in self.group.queries}
        late = [query for id in tasks if end > self._deadline[id] and not self._tasks[id].exactly
                for query in self._tasks[id].queries]
        missed = {query.name: self._missed(query, slides[query.name], end) for query in late}
        return {name: count for name, count in missed.items() if count}

    def _missed(self, query: WindowQuery, slide: int, end: int) -> int:
        count, left_out = 0, self._first(self.since(query.name) + slide, slide, query.window)
        while left_out is not None and left_out < end:
            count, left_out = count + 1, self._first(left_out + slide, slide, query.window)
        return count

    def oldest(self) -> int | None:
        """The first pane that a future answer may read; None while no pane has closed."""
        if self.closed is None:
            return None
        queries = [query for task in self._tasks.values() for query in task.queries]
        return min((self._needs(query) for query in queries), default=self.closed)

    def first_end(self) -> int | None:
        """The first end that may still be answered; None while no pane has closed."""
        if self.closed is None:
            return None
        queries = [query for task in self._tasks.values() for query in task.queries]
        return min((self._ends(query) for query in queries), default=self.closed)

    def _needs(self, query: WindowQuery) -> int:
        return self._ends(query) - query.window

    def _ends(self, query: WindowQuery) -> int:
        assert self.closed is not None
        end = self.closed
        if query.exactly:
            coming = self._next(query)
            end = end + 1 if coming is None else min(end + 1, coming)
        else:
            end = min(end, self._deadline.get(self._home[query.name], end))
        return min(end, self._busy.get(query.name, end))

    # --- when a task is due -------------------------------------------------------------------

    def _begin(self, end: int, filled: Sequence[int] | None) -> None:
        self.closed = end
        self._filled = range(end - 1, end) if filled is None else sorted(filled)
        first = self._filled[0] if self._filled else end - 1
        self._since = {name: first if since is None else since
                       for name, since in self._since.items()}
        self._before = min([end - 1, *(self.answered.get(name, since)
                                       for name, since in self._since.items()
                                       if since is not None)])
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
        """Put a task where its deadline belongs, unless a refresh of it is active."""
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
        """Move the tasks that have fallen due out of the heap."""
        assert self.closed is not None
        while self._heap and self._heap[0][0] <= self.closed:
            _, place, id = heappop(self._heap)
            if self._tasks[id].exactly:
                self._due[id] = None
            elif self._pass_over(id):
                heappush(self._heap, (self._deadline[id], place, id))
            else:
                self._due[id] = None
                self._pace = self._pace or (self._deadline[id], self._closed_at)

    def _pass_over(self, id: str) -> bool:
        """Move a deadline past windows without a row; return whether there were any."""
        assert self.closed is not None
        task, end = self._tasks[id], self._deadline[id]
        found = min((one for query in task.queries if (one := self._first(
            _onward(end, task.period, max(end, self._earliest(query))), task.period, query.window,
        )) is not None), default=_onward(end, task.period, self.closed + 1))
        for query in task.queries if found > end else ():
            self.answered[query.name] = max(self.since(query.name), found - task.period)
        self._deadline[id] = found
        return found > end

    def _reckoned(self, task: Task) -> int | None:
        """The deadline of a task; None while no row has come for its next window."""
        if task.exactly:
            ends = [end for query in task.queries if (end := self._next(query)) is not None]
            return min(ends, default=None)
        # One that has joined since the tasks were made waits for the others.
        before = [query for query in task.queries
                  if query.name in self.answered or query.name in self._floor]
        latest = min(max(self.since(query.name) + task.period, self._earliest(query))
                     for query in before or task.queries)
        if any(query.name in self.answered for query in before):
            return latest
        # A new task begins at a multiple of its period, so that it is in step with the others; but
        # not later than a period after the pane from which its queries count.
        return min(_multiple(task.period, min(map(self._earliest, task.queries))), latest)

    def _next(self, query: WindowQuery) -> int | None:
        """The next multiple of its period whose window holds a row; None while there is no row."""
        if query.name not in self._coming:
            first = _multiple(query.period, self.since(query.name) + 1)
            end = self._first(first, query.period, query.filled)
            if end is None:
                return None
            self._coming[query.name] = end
        end = self._coming[query.name]
        return None if self._is_beyond(query, end) else end

    def _is_beyond(self, query: WindowQuery, end: int) -> bool:
        """Whether no row can come into what an answer is about, and none has come after it."""
        return (self._concluded and query.covers > 0 and self.last is not None
                and end - query.covers > self.last)

    def _first(self, end: int, period: int, window: int) -> int | None:
        """The first end from this one on, in steps of a period, whose window holds a row."""
        while (at := self._filled_before(end - window)) < len(self._filled):
            if self._filled[at] < end:
                return end
            end = _onward(end, period, self._filled[at] + 1)
        return None

    def _holds_row(self, end: int, window: int) -> bool:
        return self._filled_before(end - window) < self._filled_before(end)

    def _filled_before(self, pane: int) -> int:
        """The number of filled panes before this one."""
        return bisect_left(self._filled, pane)

    def _forget(self) -> None:
        """Forget panes that no query needs."""
        oldest = self.oldest()
        if oldest is not None and self._filled and self._filled[0] < oldest:
            self._filled = self._filled[bisect_left(self._filled, oldest):]


def _onward(end: int, period: int, least: int) -> int:
    """The first end at or after ``least`` that is a whole number of periods after ``end``.

    >>> _onward(4, 3, 10), _onward(4, 3, 11)
    (10, 13)
    """
    return end - (end - least) // period * period


def _multiple(period: int, least: int) -> int:
    """The first multiple of a period at or after ``least``.

    >>> _multiple(5, 10), _multiple(5, 11), _multiple(5, -7)
    (10, 15, -5)
    """
    return -(-least // period) * period
