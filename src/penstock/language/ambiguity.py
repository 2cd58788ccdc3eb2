"""In how many ways a regular expression may have to be tried before a text is found not to match.

Java's matcher goes back: it tries every way in which repetitions may share a text among them. With
``a*a*b`` there are as many as a text of a's has pairs of places, and with a dozen such repetitions
one row occupies a machine for ever. Two repetitions share a text when both take some character that
everything required between them takes too. The longest chain of such repetitions is what counts:
for a text of a thousand characters each unbounded one is a factor of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10
from typing import TypeAlias

ALL = (1 << 129) - 1
"""The set of all characters: a bit for each of ASCII, and one for all others."""
MOST_DIGITS = 9.0
"""The most ways, as a power of ten, for a text of a thousand characters."""
_TEXT = 1000
_COPIES = 32
"""A group is examined this many times: more copies that share a text are refused in any case."""
_MOST_ATOMS = 3000


@dataclass(frozen=True, slots=True)
class One:
    """One character out of a set."""

    chars: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """An anchor, or what is looked at without being taken."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, so many times; ``keeps`` says that it never gives back what it took."""

    part: Node
    least: int
    most: int | None
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several sequences; a single one is a group."""

    ways: tuple[tuple[Node, ...], ...]


Node: TypeAlias = One | Nothing | Repeat | Choice


@dataclass(frozen=True, slots=True)
class _Atom:
    """A place in the expression, after those that may precede it."""

    chars: int
    before: frozenset[int]
    required: bool
    """Whether a character of the set is taken here in any case."""
    digits: float = 0.0
    """The ways to pass it, as a power of ten."""
    anchor: bool = False


def digits(tree: Choice) -> float:
    """The number of ways to try a text of a thousand characters, as a power of ten.

    >>> a = Repeat(One(1 << 97), 0, None)
    >>> digits(Choice(((a, a, One(1 << 98)),)))  # a*a*b, looked for at every place
    9.0
    """
    graph = _Graph()
    start: frozenset[int] = frozenset()
    if not all(way[:1] == (Nothing(),) for way in tree.ways):
        start = frozenset((graph.add(_Atom(ALL, start, False, log10(_TEXT))),))
    graph.build(tree, start)
    return graph.longest()


class _Graph:
    """The places of an expression in an order in which each comes after those before it."""

    def __init__(self) -> None:
        self.atoms: list[_Atom] = []
        self.ends: frozenset[int] = frozenset()

    def add(self, atom: _Atom) -> int:
        if len(self.atoms) >= _MOST_ATOMS:
            raise OverflowError("the regular expression has too many repeated groups")
        self.atoms.append(atom)
        return len(self.atoms) - 1

    def build(self, tree: Choice, start: frozenset[int]) -> None:
        self.ends = self._node(tree, start)

    def _node(self, node: Node, before: frozenset[int]) -> frozenset[int]:
        """Add a node; answer the places where it may end."""
        if isinstance(node, Nothing):
            return frozenset((self.add(_Atom(0, before, False, anchor=True)),))
        if isinstance(node, One):
            return frozenset((self.add(_Atom(node.chars, before, True)),))
        if isinstance(node, Choice):
            return self._choice(node, before)
        return self._repeat(node, before)

    def _choice(self, node: Choice, before: frozenset[int]) -> frozenset[int]:
        alike = _alike(node.ways)
        if alike > 1:
            chars = _chars(node)
            before = frozenset((self.add(_Atom(chars, before, False, log10(alike))),))
        return frozenset().union(*(self._sequence(way, before) for way in node.ways))

    def _sequence(self, nodes: Sequence[Node], before: frozenset[int]) -> frozenset[int]:
        for node in nodes:
            before = self._node(node, before)
        return before

    def _repeat(self, node: Repeat, before: frozenset[int]) -> frozenset[int]:
        most = _TEXT if node.most is None else min(node.most, _TEXT)
        ways = log10(_TEXT if node.most is None else 1 + most - min(node.least, most))
        ways = 0.0 if node.keeps else ways
        if node.keeps or _is_fixed(node.part):
            required = node.least > 0 and most > 0
            return frozenset((self.add(_Atom(_chars(node), before, required, ways)),))
        before = frozenset((self.add(_Atom(_chars(node), before, False, ways)),))
        ends = before if node.least == 0 else frozenset()
        for copy in range(1, min(most, _COPIES) + 1):
            before = self._node(node.part, before)
            if copy >= min(node.least, _COPIES):
                ends |= before
        return ends

    def longest(self) -> float:
        """The ways of the longest chain of places that share a text."""
        tail = self._tail()
        counted = [k for k, a in enumerate(self.atoms) if a.digits and k not in tail]
        after = self._after()
        reached = {k: self._reach(k, after) for k in counted}
        best: dict[int, float] = {}
        for k in counted:
            back = self._reach(k, [atom.before for atom in self.atoms])
            shared = (best[i] for i in counted if i < k and i in back and k in reached[i]
                      and self.atoms[i].chars & self.atoms[k].chars)
            best[k] = self.atoms[k].digits + max(shared, default=0.0)
            if best[k] > MOST_DIGITS + 1e-9:
                return best[k]
        return max(best.values(), default=0.0)

    def _after(self) -> list[frozenset[int]]:
        following: list[set[int]] = [set() for _ in self.atoms]
        for k, atom in enumerate(self.atoms):
            for earlier in atom.before:
                following[earlier].add(k)
        return [frozenset(places) for places in following]

    def _reach(self, start: int, steps: Sequence[frozenset[int]]) -> set[int]:
        """The places that a text of the characters of one place leads to from it."""
        chars = self.atoms[start].chars
        found, rest = set(), list(steps[start])
        while rest:
            k = rest.pop()
            if k not in found:
                found.add(k)
                if not self.atoms[k].required or self.atoms[k].chars & chars:
                    rest.extend(steps[k])
        return found

    def _tail(self) -> set[int]:
        """The places after which nothing is required: they end with a match."""
        tail: set[int] = set()
        rest = list(self.ends)
        while rest:
            k = rest.pop()
            atom = self.atoms[k]
            if k not in tail and not atom.anchor:
                tail.add(k)
                if not atom.required:
                    rest.extend(atom.before)
        return tail


def _chars(node: Node) -> int:
    """All characters that a node may take."""
    if isinstance(node, One):
        return node.chars
    if isinstance(node, Repeat):
        return _chars(node.part)
    if isinstance(node, Choice):
        found = 0
        for part in (part for way in node.ways for part in way):
            found |= _chars(part)
        return found
    return 0


def _is_fixed(node: Node) -> bool:
    """Whether a node takes a text in one way only."""
    if isinstance(node, Choice):
        return len(node.ways) == 1 and all(map(_is_fixed, node.ways[0]))
    if isinstance(node, Repeat):
        return node.least == node.most and _is_fixed(node.part)
    return True


def _alike(ways: Sequence[Sequence[Node]]) -> int:
    """How many of several sequences may begin with a character that another begins with."""
    firsts = [_first(way) for way in ways]
    seen = twice = 0
    for first in firsts:
        twice |= seen & first
        seen |= first
    return max(1, len([first for first in firsts if first & twice]))


def _first(nodes: Sequence[Node]) -> int:
    """The characters that a sequence may begin with; all of them if it may be empty."""
    found = 0
    for node in nodes:
        found |= _chars(node)
        if any(_required(node)):
            return found
    return ALL


def _required(node: Node) -> Iterator[bool]:
    yield isinstance(node, One)
    if isinstance(node, Repeat):
        yield node.least > 0 and any(_required(node.part))
    if isinstance(node, Choice):
        yield all(any(any(_required(part)) for part in way) for way in node.ways)
