"""Outputs: the columns of many answers as one table.

Queries that deliver into one dataset share its columns by name, as Spark compares names: without
regard to case. Columns that a query does not have are NULL in its rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import PlanError
from penstock.model import DOUBLE, VOID, Branch, Field, Type, name_key
from penstock.planning.operations import FLOATING, INTEGRAL, NUMERIC


def distinct(branches: Iterable[Branch]) -> tuple[Field, ...]:
    """Every column that some branch delivers; one name may have several types."""
    found: dict[tuple[str, Type], Field] = {}
    for branch in branches:
        for output in branch.select:
            identity = name_key(output.name), output.expression.type
            if identity not in found:
                found[identity] = Field(output.name, output.expression.type)
    return tuple(found.values())


def merged(fields: Iterable[Field]) -> tuple[Field, ...]:
    """The columns of a dataset that all of these share: one per name, wide enough for all.

    >>> [str(f.type) for f in merged([Field("a", Type("INT")), Field("A", Type("BIGINT"))])]
    ['BIGINT']
    """
    found: dict[str, Field] = {}
    for field in fields:
        known = found.setdefault(name_key(field.name), field)
        if known.type != field.type:
            found[name_key(field.name)] = Field(known.name, _wider(known, field))
    return tuple(found.values())


def dataset(branches: Iterable[Branch]) -> tuple[Field, ...]:
    """The columns of the dataset that these branches share; PlanError if their types do not fit."""
    return merged(distinct(branches))


def _wider(one: Field, other: Field) -> Type:
    left, right = one.type, other.type
    if VOID in (left, right):
        return right if left == VOID else left
    names = {left.name, right.name}
    if names <= INTEGRAL.keys():
        return max(left, right, key=lambda t: INTEGRAL[t.name])
    if names <= NUMERIC:
        return DOUBLE if names & FLOATING else _decimal(left, right)
    raise PlanError(f"a dataset cannot hold column {one.name!r} both as {left} and as {right}")


def _decimal(left: Type, right: Type) -> Type:
    pairs = [(t.precision or 10, t.scale or 0) if t.name == "DECIMAL" else (INTEGRAL[t.name], 0)
             for t in (left, right)]
    scale = max(scale for _, scale in pairs)
    whole = max(precision - scale for precision, scale in pairs)
    return Type("DECIMAL", precision=min(38, whole + scale), scale=scale)
