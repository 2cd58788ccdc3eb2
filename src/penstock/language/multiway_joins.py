"""Multiway joins: three or more streams that equalities connect, over one window.

Equalities that follow from each other are reduced to those with the first stream of their class. So
queries that write the same join in different ways share it. All other conditions are selections
over the rows of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.errors import NotYet, TypeFault
from penstock.join_graph import JoinGraph, classes_of, sources
from penstock.language.places import Misfit
from penstock.model import BOOLEAN, Call, Expression, Window, WindowJoin, is_expensive

_BOUNDED = "write WINDOW 1 MIN at the end: all rows of a result are less than that apart"


def multiway_join(
    conditions: Iterable[Expression], names: Sequence[str], window: Window | int | None
) -> tuple[WindowJoin, tuple[Expression, ...]]:
    """The join of streams with these names, and the conditions that select among its results."""
    if window is None:
        raise Misfit(TypeFault, "a join of three or more streams needs a window", _BOUNDED)
    if isinstance(window, int):
        raise Misfit(NotYet, "windows of ROWS over three or more streams are not supported yet",
                     "write a window of time, such as WINDOW 1 MIN")
    given = list(conditions)
    keys = [condition for condition in given if _is_key(condition, len(names))]
    if number := unjoined(keys, len(names)):
        raise Misfit(TypeFault, f"no equality joins {names[number]} to {names[0]}",
                     f"write WHERE {names[0]}.id = {names[number]}.id, or join it through another")
    reduced = [Call("eq", (one[0], other), BOOLEAN)
               for one in classes_of(keys) for other in one[1:]]
    on = tuple(equality for equality in reduced if len(sources(equality)) == 2)
    own = [equality for equality in reduced if len(sources(equality)) == 1]
    selected = (*own, *(condition for condition in given if condition not in keys))
    return WindowJoin(on, 1 - window.length, window.length - 1), selected


def _is_key(condition: Expression, streams: int) -> bool:
    """Whether a condition is an equality between two of the streams."""
    if not isinstance(condition, Call) or condition.function != "eq" or is_expensive(condition):
        return False
    one, other = (sources(side) for side in condition.args)
    return len(one) == len(other) == 1 and one != other and max(one | other) < streams


def unjoined(conditions: Iterable[Expression], streams: int) -> int:
    """The first stream that no equality connects with the first of all; 0 if there is none."""
    keys = [condition for condition in conditions if _is_key(condition, streams)]
    reached = JoinGraph.of(streams, keys).reachable(0)
    return next((number for number in range(streams) if number not in reached), 0)
