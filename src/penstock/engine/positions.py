"""The positions of queries in their streams: what they may see, still owe, and need.

A host reports facts: what its log says of each query (`QueryPosition`) and what the spool of a
stream holds (`SpoolContents`). This module derives the rest, alike for every host.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.engine.aggregates.coverage import EVERYTHING
from penstock.events import kinds as ev
from penstock.model import Application, Block, Query
from penstock.plan import EARLIEST, Group, Member, Plan, members_of


@dataclass(slots=True)
class Intervals:
    """A set of whole numbers that mostly follow each other, as a list of ranges.

    >>> numbers = Intervals()
    >>> for number in (3, 1, 2, 7):
    ...     numbers.add(number)
    >>> numbers.ranges, 2 in numbers, 5 in numbers
    ([[1, 3], [7, 7]], True, False)
    >>> numbers.add(2, 5)
    >>> numbers.ranges
    [[1, 5], [7, 7]]
    """

    ranges: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Intervals:
        """The set of some numbers."""
        found = cls()
        for number in numbers:
            found.add(number)
        return found

    def add(self, low: int, high: int | None = None) -> None:
        """Put a number in, or all from ``low`` to ``high``."""
        high = low if high is None else high
        first = bisect.bisect_left(self.ranges, low - 1, key=lambda range: range[1])
        last = bisect.bisect_right(self.ranges, high + 1, key=lambda range: range[0])
        if met := self.ranges[first:last]:
            low, high = min(low, met[0][0]), max(high, met[-1][1])
        self.ranges[first:last] = [[low, high]]

    def __contains__(self, number: int) -> bool:
        """Whether the number is in."""
        place = bisect.bisect_right(self.ranges, [number, number])
        near = self.ranges[max(0, place - 1) : place + 1]
        return any(low <= number <= high for low, high in near)


@dataclass(slots=True)
class QueryPosition:
    """How far a query has come, according to the host's log."""

    start: dict[str, int] = field(default_factory=dict)
    """By stream, the first block that it may see."""
    had: dict[tuple[int, int], Intervals] = field(default_factory=dict)
    """By branch and input, the blocks that it has delivered."""
    answered: int | None = None
    """The end of the last window that it has answered, in microseconds; of a window join the time
    before which it has had all pairs."""
    partial: tuple[int, int] | None = None
    """A window join has had more: pairs whose later rows are before the first of these times, and
    which are less than the second apart."""
    rows: int = 0
    """Rows that it has delivered."""
    since: int = 0
    """Jobs up to this number are not its own; they may be those of an earlier namesake."""
    at: float = 0.0
    """When it began."""
    text: str = ""
    """A digest of its declaration: with another declaration it is another query."""

    def end(self, answered: int) -> None:
        """All answers up to a time are delivered."""
        self.answered = answered
        if self.partial is not None and self.partial[0] <= answered:
            self.partial = None

    def owes(self, member: Member, block: Block) -> bool:
        """Whether a member may see a block, and has not delivered it yet."""
        had = self.had.get((member.branch, member.input))
        mine = block.number >= self.start.get(block.stream, 0)
        return mine and not (had and block.number in had)


@dataclass(frozen=True, slots=True)
class SpoolContents:
    """What the spool of a stream holds."""

    blocks: Sequence[Block]
    """In the order of their numbers."""
    last: Block | None = None
    """The newest block that it ever held, even if that is gone."""
    lateness: int = 0
    """The microseconds by which a row of the stream may be late."""

    def whole_since(self) -> int | None:
        """The time from which on no row of the stream is missing; None if none ever was."""
        if self.last is None:
            return None
        if not self.blocks:
            gone = self.last.newest
        elif self.blocks[0].number == 0 or self.blocks[0].cutoff is None:
            return None
        else:
            gone = self.blocks[0].cutoff + self.lateness
        return None if gone is None else gone + 1


class KnownToCore(Protocol):
    """The part of the core that positions depend on."""

    @property
    def plan(self) -> Plan:
        """The plan in force."""

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""

    def is_alive(self, query: str) -> bool:
        """Whether a query takes new blocks."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Compares a host's log with the contents of its spools.

    >>> class Core:
    ...     def newest(self, stream): return 4
    >>> held = SpoolContents([Block("s", number, 1, 1, 0.0) for number in range(5)])
    >>> log = {"q": QueryPosition(start={"s": 1}, had={(0, 0): Intervals([[1, 2]])})}
    >>> positions = Positions(Core(), log, {"s": held}.get)
    >>> from penstock.language import bind
    >>> app = bind("CREATE STREAM s (a INT) FROM rate; CREATE QUERY q AS SELECT a FROM s;")
    >>> positions.backlog(app.queries["q"])
    ((0, 0, 3), (0, 0, 4))
    """

    core: KnownToCore
    log: Mapping[str, QueryPosition]
    """By query."""
    spool: Callable[[str], SpoolContents | None]
    """By stream; None if the stream cannot be read."""

    # --- what a host tells its core ----------------------------------------------------------

    def added(self, query: Query, at: float, has_fault: bool = False) -> ev.QueryAdded:
        """The event that adds a query at its position; a query with a fault owes nothing."""
        known = self.log[query.name]
        backlog = () if has_fault else self.backlog(query)
        return ev.QueryAdded.of(query, at, backlog, known.rows, known.at, self.since(query),
                                known.partial)

    def begun(self, group: Group, at: float) -> ev.SynopsisBegun:
        """The event that a group's synopsis begins empty, with the blocks to read again."""
        return ev.SynopsisBegun.of(group, at, self.reach(group))

    # --- queries -----------------------------------------------------------------------------

    def starts(
        self, queries: Iterable[Query], texts: Mapping[str, str]
    ) -> dict[str, dict[str, int]]:
        """Where queries begin that the log does not know by their present declaration."""
        return {query.name: self._start(query) for query in queries
                if not self._is_logged(query, texts)}

    def _start(self, query: Query) -> dict[str, int]:
        """By stream, the first block that a new query may see."""
        starts = {}
        for stream in query.streams:
            held = self.spool(stream)
            if held is None:
                continue
            if query.start == "earliest":
                starts[stream] = held.blocks[0].number if held.blocks else 0
            else:
                starts[stream] = self.core.newest(stream) + 1
        return starts

    def delivered(self, application: Application) -> Iterator[tuple[str, int]]:
        """Streams, each with the number of the newest block that a query has delivered."""
        texts = digests(application)
        for query in application.queries.values():
            if self._is_logged(query, texts):  # else its namesake read other streams, perhaps
                for (branch, input), had in self.log[query.name].had.items():
                    yield query.branches[branch].streams[input], had.ranges[-1][1]

    def _is_logged(self, query: Query, texts: Mapping[str, str]) -> bool:
        known = self.log.get(query.name)
        return known is not None and known.text == texts.get(query.name, "")

    def backlog(self, query: Query) -> tuple[tuple[int, int, int], ...]:
        """By branch and input, the blocks known to the core that are not delivered yet.

        A window join has had the blocks whose rows are all before the time it has come to.
        """
        position = self.log[query.name]
        since = position.answered if query.branches[0].join is not None else None
        return tuple((member.branch, member.input, block.number)
                     for member, stream in members_of(query) for block in self._known(stream)
                     if position.owes(member, block)
                     and not (since is not None and block.newest is not None
                              and block.newest < since))

    def since(self, query: Query) -> int | None:
        """A window aggregate answers for windows that end after this time; None means all.

        A new one begins with the first window of which the spool has every row. So does a window
        join, which answers with pairs whose later rows are not before this time.
        """
        length, position = _length(query), self.log[query.name]
        if length is None or position.answered is not None:
            return position.answered
        bounds: list[int | None] = []
        for stream in query.branches[0].streams:
            start = position.start.get(stream, 0)
            before = [block.watermark for block in self._known(stream) if block.number < start]
            held = self.spool(stream)
            whole = held.whole_since() if held is not None else None
            bounds += before[-1:]
            bounds += [None if whole is None else whole + length - 1]
        return max((bound for bound in bounds if bound is not None), default=None)

    def _known(self, stream: str) -> list[Block]:
        held, newest = self.spool(stream), self.core.newest(stream)
        return [block for block in held.blocks if block.number <= newest] if held else []

    # --- window aggregates -------------------------------------------------------------------

    def reach(self, group: Group) -> tuple[int, ...]:
        """The known blocks that the windows of a group's queries reach back to.

        Some of them may wait for these queries already; the core finds those. It also finds the
        pairs of a join again.
        """
        if group.paired:
            return ()
        queries = [self.core.plan.query(member.query) for member in group.members]
        oldest = [self._reaches(query) for query in queries]
        since = None if None in oldest else min(time for time in oldest if time is not None)
        return tuple(block.number for block in self._known(group.reads)
                     if since is None or block.newest is None or block.newest >= since)

    def _reaches(self, query: Query) -> int | None:
        """The start of a query's next window; None if it begins with the first row."""
        window, since = query.branches[0].window, self.since(query)
        return None if window is None or since is None else since - window.length

    def needs(self, group: Group, joining: Iterable[Query]) -> int | None:
        """The oldest pane that the queries that join a group read; None if none joins.

        If no other query of the group is alive, its synopsis has missed blocks: all is needed.
        """
        members = {member.query for member in group.members}
        mine = {query.name: query for query in joining if query.name in members}
        if mine and not any(self.core.is_alive(name) for name in members - mine.keys()):
            return EVERYTHING
        return min((self._oldest_pane(query, group) for query in mine.values()), default=None)

    def _oldest_pane(self, query: Query, group: Group) -> int:
        """The first pane of its first window; over pairs, the end of that window."""
        window, since = query.branches[0].window, self.since(query)
        assert window is not None
        length = 0 if group.paired else window.length // group.pane
        return EARLIEST if since is None else since // group.pane + 1 - length


def _length(query: Query) -> int | None:
    """How far the windows of a query reach back; None for one that has none."""
    branch = query.branches[0]
    if branch.window is not None:
        return branch.window.length
    if branch.join is None:
        return None
    return 1 if branch.join.rows else branch.join.reach  # its windows begin with what is held


def digests(application: Application) -> dict[str, str]:
    """A digest of the declaration of each query, and of the views that it reads."""
    texts = {(s.kind, s.name): s.text for s in application.statements}
    return {name: _digest("\0".join(
        [texts["query", name], *(texts["view", view] for view in query.views)]))
        for name, query in application.queries.items() if ("query", name) in texts}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
