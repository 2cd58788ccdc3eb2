"""Which conditions of a query may be evaluated in any order: its conjunction.

A condition may move if it is a call of a deterministic Python function, and if no condition that
must stay is written before it. Such a condition is decided by its own row alone, so in any order
the same rows are left (`penstock.spark.compile.conjunction_worker` says what becomes of errors).
SQL conditions come first in any case: Spark evaluates them without moving a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from penstock.model import Expression, PythonCall, is_expensive, walk


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a query that call Python, in the order in which they are planned."""

    movable: tuple[PythonCall, ...]
    """The conjunction."""
    fixed: tuple[Expression, ...]
    """What comes after it, as written."""

    @property
    def all(self) -> tuple[Expression, ...]:
        """The conjunction, then the others."""
        return (*self.movable, *self.fixed)

    def written(self, where: Sequence[Expression]) -> tuple[int, ...]:
        """The place of each of them among all conditions, as written."""
        return tuple(where.index(condition) for condition in self.all)


def conditions(where: Sequence[Expression]) -> Conditions:
    """The conditions among these that call Python.

    >>> from penstock.model import BOOLEAN, Call
    >>> f, g, h = (PythonCall(name, (), BOOLEAN) for name in "fgh")
    >>> sometimes = PythonCall("sometimes", (), BOOLEAN, deterministic=False)
    >>> found = conditions([f, Call("not", (g,), BOOLEAN), h, sometimes, g])
    >>> [call.function for call in found.movable]
    ['f', 'h']
    >>> len(found.fixed)
    3
    """
    expensive = tuple(dict.fromkeys(one for one in where if is_expensive(one)))
    free = takewhile(_is_deterministic, expensive)
    movable = tuple(one for one in free if isinstance(one, PythonCall) and is_predicate(one))
    return Conditions(movable, tuple(one for one in expensive if one not in movable))


def is_predicate(condition: Expression) -> bool:
    """Whether a condition is one call of a Python function, so that a worker can decide it alone.

    Its arguments come from SQL.
    """
    return isinstance(condition, PythonCall) and not any(map(is_expensive, condition.args))


def _is_deterministic(condition: Expression) -> bool:
    return all(part.deterministic for part in walk(condition) if isinstance(part, PythonCall))
