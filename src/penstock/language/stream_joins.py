"""Window joins of two streams: which conditions make rows a pair, and how far apart they may be.

The conditions of ON and WHERE are one pool. Comparisons of the two times are bounds, equalities
between the two sides are the join predicate, and everything else is a selection over pairs. A join
without an equality takes the other conditions over both sides as its predicate. If only Python
functions look at both sides, all rows within reach of each other are pairs, and the functions
select among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import gcd

from penstock.errors import Refused, TypeFault
from penstock.language.comparisons import FLIPPED
from penstock.language.places import Misfit
from penstock.language.windows import Clause
from penstock.model import (
    MOST_PAIR_PANES,
    SHORTEST_PANE,
    Call,
    Column,
    Expression,
    Literal,
    Window,
    WindowJoin,
    is_expensive,
    walk,
)
from penstock.rendering import span

_LEFT, _RIGHT = 0, 1
RENEWALS = 60
"""How often per window an aggregate over a join is answered, if no SLIDE says how often."""
_BOUNDED = "write WINDOW 1 MIN, or ON ... AND b.ts BETWEEN a.ts - INTERVAL '1' MINUTE AND a.ts"

_UNTIMED = "write WINDOW 1 MIN; other bounds compare the TIME of both streams, and one has none"


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How far the right row's time may be from the left one's, as far as that is said."""

    lower: int | None = None
    upper: int | None = None

    def meet(self, other: _Bounds) -> _Bounds:
        """What both allow."""
        lowers = [one for one in (self.lower, other.lower) if one is not None]
        uppers = [one for one in (self.upper, other.upper) if one is not None]
        return _Bounds(max(lowers, default=None), min(uppers, default=None))


def window_join(
    conditions: Iterable[Expression], times: Sequence[Column | None], window: Window | None
) -> tuple[WindowJoin, tuple[Expression, ...]]:
    """The join of two streams, and the conditions that select among its pairs.

    ``times`` are the columns that hold the times of the two streams, where they have such. With a
    ``window``, rows are less than its length apart, whichever is the later.
    """
    bounds, others = _of_window(window), []
    for condition in conditions:
        said = _bounds(condition, times)
        if said is not None:
            bounds = bounds.meet(said)
        else:
            others.append(condition)
    if bounds.lower is None or bounds.upper is None:
        missing = "a bound" if bounds == _Bounds() else "a second bound"
        hint = _BOUNDED if None not in times else _UNTIMED
        raise Misfit(TypeFault, f"a join of streams needs {missing} on how far apart its rows are",
                     hint)
    if bounds.lower > bounds.upper:
        raise Misfit(TypeFault, "no two rows are that far apart: the bounds exclude each other")
    on, selected = _predicate(others)
    return WindowJoin(on, bounds.lower, bounds.upper), selected


def is_bounded(conditions: Iterable[Expression], times: Sequence[Column | None]) -> bool:
    """Whether the conditions of two streams say how far apart their rows are, both ways."""
    bounds = _Bounds()
    for condition in conditions:
        bounds = bounds.meet(_bounds(condition, times) or _Bounds())
    return bounds.lower is not None and bounds.upper is not None


def _predicate(
    conditions: Iterable[Expression],
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The join predicate, and the conditions that select among the pairs."""
    keys, cross, rest, called = [], [], [], False
    for condition in conditions:
        if (key := _key(condition)) is not None:
            keys.append(key)
        elif _sides(condition) == {_LEFT, _RIGHT} and not is_expensive(condition):
            cross.append(condition)
        else:
            rest.append(condition)
            called = called or _sides(condition) == {_LEFT, _RIGHT}
    if not keys and not cross and not called:
        raise Misfit(TypeFault, "a join of streams needs a condition over both of them",
                     "write WHERE a.id = b.id")
    on, selected = (keys, (*cross, *rest)) if keys else (cross, tuple(rest))
    return tuple(dict.fromkeys(on)), selected


def row_join(
    conditions: Iterable[Expression], rows: int
) -> tuple[WindowJoin, tuple[Expression, ...]]:
    """The join of two streams over their latest rows, and the conditions that select pairs."""
    on, selected = _predicate(conditions)
    return WindowJoin(on, 0, rows - 1, rows=True), selected


def join_window(clause: Clause) -> Window | int:
    """The window of a join, as a clause at the end of the query gives it: of time, or of rows."""
    _check_clause(clause)
    if clause.rows is not None:
        if clause.slides:
            raise Misfit(Refused, "a window of ROWS has no SLIDE",
                         "a pair is answered when its later row comes")
        return clause.rows
    assert clause.window is not None
    if clause.window.slide != clause.window.length or clause.window.exactly:
        raise Misfit(Refused, "a join has no SLIDE", "a pair is answered when its later row comes")
    return clause.window


def aggregated_window(clause: Clause) -> Window:
    """The window of an aggregate over a join: both rows of a pair lie in it.

    Without SLIDE the answer is renewed at least `RENEWALS` times per window.
    """
    _check_clause(clause)
    if clause.window is None:
        raise Misfit(Refused, "an aggregate over a join answers for a stretch of time, and a "
                     "window of ROWS has none", "write a window of time, such as WINDOW 1 MIN")
    window = clause.window
    if not clause.slides:
        window = replace(window, slide=_renewed(window.length))
    pane = gcd(window.length, window.slide)
    if pane % SHORTEST_PANE or window.length // pane > MOST_PAIR_PANES:
        raise Misfit(Refused, f"a window of {span(window.length)} with a slide of "
                     f"{span(window.slide)} is cut too finely for an aggregate over a join",
                     "write a SLIDE that divides the window, in whole milliseconds")
    return window


def _check_clause(clause: Clause) -> None:
    if clause.bracketed:
        raise Misfit(Refused, "a stream of a join has no window of its own",
                     "write WINDOW ... at the end, without brackets")


def _renewed(length: int) -> int:
    """The longest slide in whole milliseconds of which at least `RENEWALS` make a window."""
    whole = length // SHORTEST_PANE
    parts = (parts for parts in range(RENEWALS, 2 * RENEWALS) if whole % parts == 0)
    return length // next(parts, 1) if length % SHORTEST_PANE == 0 else length


def _of_window(window: Window | None) -> _Bounds:
    return _Bounds() if window is None else _Bounds(1 - window.length, window.length - 1)


def _bounds(condition: Expression, times: Sequence[Column | None]) -> _Bounds | None:
    """What a comparison of the two times says; None for any other condition."""
    if not isinstance(condition, Call) or condition.function not in ("eq", "ge", "gt", "le", "lt"):
        return None
    one, other = (_time(side, times) for side in condition.args)
    if one is None or other is None or one[0] == other[0]:
        return None
    function = condition.function if one[0] == _RIGHT else FLIPPED[condition.function]
    right, left = (one, other) if one[0] == _RIGHT else (other, one)
    apart = left[1] - right[1]
    return {
        "eq": _Bounds(apart, apart), "ge": _Bounds(lower=apart), "gt": _Bounds(lower=apart + 1),
        "le": _Bounds(upper=apart), "lt": _Bounds(upper=apart - 1),
    }[function]  # fmt: skip


def _time(side: Expression, times: Sequence[Column | None]) -> tuple[int, int] | None:
    """Whose time it is, and how many microseconds are added to it."""
    if isinstance(side, Column) and side in times:
        return side.source, 0
    if isinstance(side, Call) and side.function == "add_interval":
        time, added = side.args
        if isinstance(time, Column) and time in times and isinstance(added, Literal):
            if isinstance(added.value, timedelta):
                return time.source, added.value // timedelta(microseconds=1)
    return None


def _key(condition: Expression) -> Expression | None:
    """An equality between the two sides, with the left one's first; None for other conditions."""
    if not isinstance(condition, Call) or condition.function != "eq" or is_expensive(condition):
        return None
    one, other = condition.args
    if (_sides(one), _sides(other)) == ({_LEFT}, {_RIGHT}):
        return condition
    if (_sides(one), _sides(other)) == ({_RIGHT}, {_LEFT}):
        return replace(condition, args=(other, one))
    return None


def _sides(expression: Expression) -> set[int]:
    return {part.source for part in walk(expression) if isinstance(part, Column)}
