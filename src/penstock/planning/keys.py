"""Keys: how a row finds the few members of a fan-out that may want it.

Every member is filed under one key. An equality (or an IN list) is filed under its constants, a
range under the bins that it touches, anything else under a key that every row has. A look-up may
return too many members: two texts may have one checksum, and a bin may be wider than the range. It
never returns too few, and all conditions are evaluated afterwards.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from penstock.model import Branch, Call, Column, Expression, Literal, Type, Value, walk
from penstock.plan import Key
from penstock.planning.operations import (
    COMPARISONS,
    EQUAL,
    IN,
    INTEGRAL,
    LOWER_BOUNDS,
    NUMERIC,
    OR,
    UPPER_BOUNDS,
)
from penstock.planning.shapes import OneOf

TAG_BITS = 3
"""The low bits of a code say which key of the fan-out it belongs to."""
MOST_KEYS = 1 << TAG_BITS
ALWAYS = Key("always")

_EXACT = frozenset({*INTEGRAL, "BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP"})
_RANGED = frozenset({*NUMERIC, "DATE", "TIMESTAMP"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A key under which a branch could be filed."""

    key: Key
    rank: int = 9
    """A smaller rank is likely to let fewer rows through."""
    listed: OneOf | None = None
    """For an equality: the conjunct and its constants."""
    low: float = -math.inf
    high: float = math.inf
    """For a range: its bounds as doubles, widened by the error of the conversion."""


ANY_ROW = Candidate(ALWAYS)


def candidates(branch: Branch) -> tuple[Candidate, ...]:
    """All keys that a branch offers, best first, `ANY_ROW` last.

    >>> from penstock.model import BOOLEAN, INT
    >>> port, length = Column("port", INT), Column("length", INT)
    >>> where = (Call("gt", (length, Literal(9, INT)), BOOLEAN),
    ...          Call("eq", (port, Literal(80, INT)), BOOLEAN))
    >>> [(c.key.kind, c.key.expression and c.key.expression.name) for c in
    ...  candidates(Branch((), (), where))]
    [('equal', 'port'), ('range', 'port'), ('range', 'length'), ('always', None)]
    """
    found = [*_equalities(branch.where), *_ranges(branch.where), ANY_ROW]
    return tuple(sorted(found, key=lambda candidate: candidate.rank))


def choose(offers: Sequence[Sequence[Candidate]]) -> tuple[Candidate, ...]:
    """One key for each member, at most `MOST_KEYS` different ones in all.

    Of several equalities a member takes the one whose constants differ most between the members:
    ``port = 80 AND protocol = 6`` is better filed under the port.
    """
    spread = _spread(offers)
    chosen = [min(offer, key=lambda c: (c.rank, -spread.get(c.key, 0))) for offer in offers]
    popular = Counter(candidate.key for candidate in chosen)
    if len(popular) <= MOST_KEYS:
        return tuple(chosen)
    kept = {key for key, _ in popular.most_common(MOST_KEYS - 1)} | {ALWAYS}
    return tuple(
        min((c for c in offer if c.key in kept), key=lambda c: (c.rank, -spread.get(c.key, 0)))
        for offer in offers
    )


def code(literal: Literal, tag: int) -> int:
    """The signed 64-bit number under which an equality's constant is filed.

    >>> from penstock.model import INT
    >>> code(Literal(80, INT), tag=1)
    641
    """
    return tagged(_whole(literal.value), tag)


def tagged(number: int, tag: int) -> int:
    """A number with a key's tag in its low bits, wrapped to 64 bits as Spark's shift wraps it."""
    wrapped = (number << TAG_BITS | tag) & 0xFFFF_FFFF_FFFF_FFFF
    return wrapped - (1 << 64) if wrapped >> 63 else wrapped


def _whole(value: Value) -> int:
    match value:
        case bool() | int():
            return int(value)
        case str():
            return zlib.crc32(value.encode("utf-8", "surrogatepass"))
        case bytes():
            return zlib.crc32(value)
        case datetime():
            return _microseconds(value)
        case date():
            return (value - _EPOCH.date()).days
    raise TypeError(f"no code for {value!r}")


def _microseconds(value: datetime) -> int:
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _spread(offers: Sequence[Sequence[Candidate]]) -> dict[Key, int]:
    constants: dict[Key, set[Value]] = {}
    for offer in offers:
        for candidate in offer:
            if candidate.listed is not None:
                values = (literal.value for literal in candidate.listed.literals)
                constants.setdefault(candidate.key, set()).update(values)
    return {key: len(values) for key, values in constants.items()}


# --- equalities ------------------------------------------------------------------------------


def _equalities(where: Sequence[Expression]) -> Iterator[Candidate]:
    for position, conjunct in enumerate(where):
        tested, literals = _listed(conjunct)
        distinct = tuple({_identity(literal): literal for literal in literals}.values())
        if tested is not None and distinct:
            rank = 2 if tested.type.name == "BOOLEAN" else 0
            yield Candidate(Key("equal", tested), rank, OneOf(position, distinct))


def _identity(literal: Literal) -> tuple[type, Value]:
    return type(literal.value), literal.value


def _listed(conjunct: Expression) -> tuple[Expression | None, tuple[Literal, ...]]:
    """The expression and the constants of ``e = c``, ``e IN (c, ...)`` or an OR of such."""
    if not isinstance(conjunct, Call):
        return None, ()
    if conjunct.function == OR:
        sides = [_listed(side) for side in conjunct.args]
        tested = sides[0][0]
        alike = tested is not None and all(side[0] == tested for side in sides)
        literals = tuple(literal for side in sides for literal in side[1])
        return (tested, literals) if alike else (None, ())
    if conjunct.function in (EQUAL, IN) and _is_lookable(conjunct.args, _EXACT):
        constants = (arg for arg in conjunct.args[1:] if isinstance(arg, Literal))
        return conjunct.args[0], tuple(c for c in constants if c.value is not None)
    return None, ()


# --- ranges ----------------------------------------------------------------------------------


def _ranges(where: Sequence[Expression]) -> Iterator[Candidate]:
    bounds: dict[Expression, tuple[float, float]] = {}
    for conjunct in where:
        for tested, low, high in _bounds(conjunct):
            known = bounds.get(tested, (-math.inf, math.inf))
            bounds[tested] = max(known[0], low), min(known[1], high)
    for tested, (low, high) in bounds.items():
        rank = 1 if low > -math.inf and high < math.inf else 3
        yield Candidate(Key("range", tested), rank, None, low, high)


def _bounds(conjunct: Expression) -> Iterator[tuple[Expression, float, float]]:
    if not isinstance(conjunct, Call) or conjunct.function not in COMPARISONS:
        return
    tested, constant = conjunct.args
    if not _is_lookable(conjunct.args, _RANGED) or not isinstance(constant, Literal):
        return
    if constant.value is None:
        return
    low, high = _widened(_double(constant.value), constant.type)
    if conjunct.function in LOWER_BOUNDS:
        yield tested, low, math.inf
    elif conjunct.function in UPPER_BOUNDS:
        yield tested, -math.inf, high
    elif conjunct.function == EQUAL:
        yield tested, low, high


def _double(value: Value) -> float:
    """A bound as the double that Spark would make of it; NaN, the greatest value, is infinity."""
    if isinstance(value, float | int | Decimal):
        try:
            number = float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
        return math.inf if math.isnan(number) else number
    return float(_whole(value))


def _widened(value: float, type_: Type) -> tuple[float, float]:
    """The last bit of a decimal as a double may differ between Spark and Python."""
    slack = abs(value) * 2.0**-50 if type_.name == "DECIMAL" else 0.0
    return value - slack, value + slack


# --- both ------------------------------------------------------------------------------------


def _is_lookable(args: Sequence[Expression], types: frozenset[str]) -> bool:
    """Whether the first argument comes from a row and all others are constants of its type."""
    tested, constants = args[0], args[1:]
    return (
        tested.type.name in types
        and all(isinstance(arg, Literal) and arg.type == tested.type for arg in constants)
        and any(isinstance(part, Column) for part in walk(tested))
    )
