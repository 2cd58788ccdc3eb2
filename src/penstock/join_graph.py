"""The graph of a join of streams: whom equalities connect, and how each reaches the others.

Equalities that follow from others count like those that are written. What is equal is therefore
kept in *classes*: ``a.k = b.k AND b.k = c.k`` is one class over three streams, and each of them is
a neighbour of the two others. So a join on one key is a star, whichever equalities say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

from penstock.model import BOOLEAN, Call, Column, Expression, walk

Class: TypeAlias = tuple[Expression, ...]
"""Expressions that equalities make equal, each over one stream, in the order of the streams."""
Shape: TypeAlias = Literal["star", "acyclic", "cyclic"]


def sources(expression: Expression) -> set[int]:
    """The streams and relations that an expression looks at."""
    return {part.source for part in walk(expression) if isinstance(part, Column)}


def classes_of(equalities: Iterable[Expression]) -> tuple[Class, ...]:
    """What equalities make equal, in the order in which it is first mentioned.

    Each of their sides is over one stream.

    >>> a, b, c = (Column("k", BOOLEAN, source) for source in range(3))
    >>> found = classes_of([Call("eq", (c, b), BOOLEAN), Call("eq", (b, a), BOOLEAN)])
    >>> [[column.source for column in one] for one in found]
    [[0, 1, 2]]
    """
    merged: list[list[Expression]] = []
    for equality in equalities:
        assert isinstance(equality, Call), "an equality is a call"
        met = [one for one in merged if any(side in one for side in equality.args)]
        joined = list(dict.fromkeys(chain(*met, equality.args)))
        place = merged.index(met[0]) if met else len(merged)
        merged = [one for one in merged if one not in met]
        merged.insert(place, joined)
    return tuple(tuple(sorted(one, key=lambda side: min(sources(side)))) for one in merged)


@dataclass(frozen=True)  # no slots: the neighbours are looked up once and kept
class JoinGraph:
    """Streams as vertices; there is an edge where an equality connects two of them.

    >>> def column(name, source):
    ...     return Column(name, BOOLEAN, source)
    >>> chain = JoinGraph(3, ((column("k", 0), column("k", 1)), (column("m", 1), column("m", 2))))
    >>> chain.parents(0), chain.parents(1), chain.shape
    ((None, 0, 1), (1, None, 1), 'star')
    >>> chain.valid(0, (2, 1))  # stream 2 can be probed once rows of stream 1 are known
    (1, 2)
    """

    streams: int
    classes: tuple[Class, ...]

    @staticmethod
    def of(streams: int, equalities: Iterable[Expression]) -> JoinGraph:
        """The graph of some equalities between streams."""
        return JoinGraph(streams, classes_of(equalities))

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """By stream, those that it shares a class with, in order."""
        found: list[set[int]] = [set() for _ in range(self.streams)]
        for one in self._members:
            for stream in one:
                found[stream] |= one - {stream}
        return tuple(tuple(sorted(some)) for some in found)

    def keys(self, stream: int, other: int) -> tuple[Expression, ...]:
        """What a row of a stream must equal a row of a neighbour in."""
        return tuple(self._side(one, stream) for one, members in self._pairs
                     if {stream, other} <= members)

    def equalities(self, stream: int, others: Iterable[int]) -> tuple[Expression, ...]:
        """What must hold of a row that is added to rows of other streams.

        One equality for each class suffices, since those rows meet in it already.
        """
        among = set(others)
        found = []
        for one, members in self._pairs:
            if stream in members and (there := sorted(members & among)):
                sides = self._side(one, there[0]), self._side(one, stream)
                found.append(Call("eq", sides, BOOLEAN))
        return tuple(found)

    def reachable(self, root: int) -> tuple[int, ...]:
        """The streams that are connected with one, itself among them, nearest first."""
        found = [root]
        for stream in found:
            found += [other for other in self.neighbours[stream] if other not in found]
        return tuple(found)

    def parents(self, root: int) -> tuple[int | None, ...]:
        """By stream, the one through which the root reaches it: a spanning tree.

        It is the shallowest, so that a stream is probed with rows of the root itself if it can be.
        Equalities outside of the tree are checked when the rows are joined.
        """
        found: dict[int, int | None] = {root: None}
        for stream in self.reachable(root):
            for other in self.neighbours[stream]:
                found.setdefault(other, stream)
        return tuple(found.get(stream) for stream in range(self.streams))

    def valid(self, root: int, order: Sequence[int]) -> tuple[int, ...]:
        """An order of the other streams in which each comes after those that lead to it.

        Those go before it where they are not there yet; the others stay as they are. So do streams
        that nothing leads to, as in a replay that does not know the equalities.
        """
        parents, found = self.parents(root), [root]
        for stream in order:
            path: list[int] = []
            through: int | None = stream
            while through is not None and through not in found:
                path.append(through)
                through = parents[through]
            found += reversed(path)
        return tuple(found[1:])

    @cached_property
    def shape(self) -> Shape:
        """A star has a stream that all others are joined to; a class counts as a star."""
        edges = {frozenset((self._hub(one), stream))
                 for one in self._members for stream in one if stream != self._hub(one)}
        if len(edges) > self.streams - 1:
            return "cyclic"
        degrees = Counter(chain(*edges))
        return "star" if max(degrees.values(), default=0) == self.streams - 1 else "acyclic"

    def _hub(self, members: set[int]) -> int:
        """Of the streams of a class, the one that is in most classes."""
        return max(sorted(members), key=lambda stream: sum(stream in one for one in self._members))

    @cached_property
    def _members(self) -> tuple[set[int], ...]:
        return tuple(set().union(*map(sources, one)) for one in self.classes)

    @property
    def _pairs(self) -> Iterable[tuple[Class, set[int]]]:
        return zip(self.classes, self._members, strict=True)

    @staticmethod
    def _side(one: Class, stream: int) -> Expression:
        return next(side for side in one if sources(side) == {stream})
