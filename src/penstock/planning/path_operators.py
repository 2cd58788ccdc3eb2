"""The operators of a path, from its input to its end, with what `explain` tells of each."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model import (
    Branch,
    Expression,
    Lookup,
    PythonCall,
    is_expensive,
    walk,
)
from penstock.plan import Operator
from penstock.planning.conjunctions import computed_by, conditions
from penstock.planning.efforts import cheapest_first
from penstock.planning.shapes import conjunction
from penstock.rendering import render


def operators(id: str, branch: Branch, into: str) -> tuple[Operator, ...]:
    """Those of a path of one branch whose query delivers there."""
    cheap = [conjunct for conjunct in branch.where if not is_expensive(conjunct)]
    steps = lookup_operators(id, branch.lookups)
    if cheap:
        steps.append(Operator(f"{id}:filter", "filter", conjunction(cheap)))
    steps += _python(id, branch)
    if branch.grouping is not None:
        return (*steps, Operator(f"{id}:panes", "panes", "panes of a window aggregate"))
    shown = ", ".join(output.name for output in branch.select)
    steps.append(Operator(f"{id}:project", "project", shown))
    return (*steps, _sink(id, into))


def sql_conditions(id: str, branch: Branch) -> tuple[Operator, ...]:
    """The SQL conditions of a branch whose order is decided, those of the least effort first.

    Rows of a block alone must show what each of them drops, so nothing may be joined with them.
    """
    plain = branch.grouping is None and branch.join is None and not branch.lookups and not any(
        map(is_expensive, branch.expressions))
    ordered = cheapest_first(branch.where) if plain else []
    return tuple(Operator(f"{id}:condition{number}", "filter", render(condition))
                 for number, condition in enumerate(ordered, start=1)) if len(ordered) > 1 else ()


def fanned_out(id: str, lookups: Iterable[Lookup], members: int) -> tuple[Operator, ...]:
    """Those of a path that several branches share."""
    fanout = Operator(f"{id}:fanout", "fanout", f"{members} queries in one pass")
    return (*lookup_operators(id, lookups), fanout, _sink(id, "each query's own"))


def lookup_operators(id: str, lookups: Iterable[Lookup]) -> list[Operator]:
    """One for each stored relation, and for what takes an array apart."""
    return [
        Operator(f"{id}:lookup{number}", "lookup", described(lookup))
        for number, lookup in enumerate(lookups, start=1)
    ]


def identified(lookup: Lookup) -> str:
    """What tells a lookup from every other: ids of paths are made of it, so it does not change."""
    if lookup.unnests:
        return described(lookup)
    return f"{lookup.kind} {lookup.relation} {render(lookup.on)}"


def described(lookup: Lookup) -> str:
    """A lookup in words."""
    if not lookup.unnests:
        return f"{lookup.kind} {lookup.relation} on {render(lookup.on)}"
    named = zip(lookup.parts, lookup.columns, strict=True)
    columns = ", ".join(f"{part} {column.name}" for part, column in named)
    return f"{lookup.kind} {lookup.relation} ({columns}) of {render(lookup.on)}"


def _python(id: str, branch: Branch) -> list[Operator]:
    """One operator for each condition that calls Python, and one for the answers."""
    texts = [render(one) for one in conditions(branch.where, computed_by(branch)).all]
    values = computed_by(branch) if branch.grouping is None else branch.grouping.expressions
    if called := _functions(values):
        texts.append(", ".join(called))
    return [Operator(f"{id}:python{number}", "python", text)
            for number, text in enumerate(texts, start=1)]


def _functions(expressions: Iterable[Expression]) -> list[str]:
    """The calls of Python functions, as written, outermost first, each once."""
    calls = {
        render(part): None
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, PythonCall)
    }
    return list(calls)


def _sink(id: str, text: str) -> Operator:
    return Operator(f"{id}:sink", "sink", text)
