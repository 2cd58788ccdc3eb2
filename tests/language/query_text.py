"""Queries as text, one clause per line: what golden files compare."""

from __future__ import annotations

from penstock.model import (
    Aggregate,
    Branch,
    Call,
    Expression,
    Grouping,
    Input,
    Query,
    SqlView,
    Window,
    lookup_source,
    quoted,
)
from penstock.planning.path_operators import described
from penstock.rendering import render


def render_query(query: Query) -> str:
    """The query as text, one clause per line."""
    options = [f"start = '{query.start}'"] if query.start != "now" else []
    if query.latency is not None:
        options.append(f"latency = {query.latency:g} s")
    if query.lifetime is not None:
        options.append(f"lifetime = {query.lifetime:g} s")
    if query.priority != 1:
        options.append(f"priority = {query.priority}")
    head = f"QUERY {query.name} INTO {query.into}"
    head += f" WITH ({', '.join(options)})" if options else ""
    return "\n".join([head, "\nUNION ALL\n".join(render_branch(b) for b in query.branches)])


def render_view(view: SqlView) -> str:
    """The view as text, one clause per line."""
    return f"VIEW {view.name}\n" + "\nUNION ALL\n".join(map(render_branch, view.branches))


def render_branch(branch: Branch) -> str:
    """One SELECT as text, one clause per line."""
    outputs = [
        f"{render(o.expression)} AS {_name(o.name)}: {o.expression.type}" for o in branch.select
    ]
    lines = [f"SELECT {', '.join(outputs)}", f"FROM {', '.join(map(_input, branch.inputs))}"]
    if branch.join is not None:
        ends = (branch.join.lower, branch.join.upper)
        bounds = [f"row {n}" if branch.join.rows else f"apart {_signed(n)}" for n in ends]
        on = _conjuncts("PAIRS", branch.join.on) if branch.join.on else ["PAIRS every two rows"]
        lines += [*on, f"  FROM {bounds[0]} TO {bounds[1]}"]
    for number, lookup in enumerate(branch.lookups):
        kind = "LEFT JOIN" if lookup.kind == "left" else "JOIN"
        name = f"{_name(lookup.relation)}@{lookup_source(number, len(branch.inputs))}"
        if lookup.unnests:
            lines.append(f"{kind.removesuffix(' JOIN')} UNNEST {described(lookup)}")
            continue
        lines.append(f"{kind} {name} ON {render(lookup.on)}")
    lines += _conjuncts("WHERE", branch.where)
    if branch.grouping is not None:
        lines += _grouping(branch.grouping)
    return "\n".join(lines)


def _input(input: Input) -> str:
    window = f" {render_window(input.window)}" if input.window is not None else ""
    return f"{_name(input.stream)}{window}"


def render_window(window: Window) -> str:
    """The window as text.

    >>> render_window(Window(length=600_000_000, slide=2_500_000, exactly=True))
    '[WINDOW 10 min SLIDE EXACTLY 2500 ms]'
    """
    if window.gap:
        return f"[SESSION {_span(window.gap)}]"
    exactly = "EXACTLY " if window.exactly else ""
    empty = f" EMPTY GROUPS FOR {_span(window.kept)}" if window.kept else ""
    return f"[WINDOW {_span(window.covered)} SLIDE {exactly}{_span(window.slide)}{empty}]"


def render_aggregate(aggregate: Aggregate) -> str:
    """The aggregate as text.

    >>> from penstock.model import DOUBLE, INT, Column
    >>> render_aggregate(Aggregate("PERCENTILE", (Column("length", INT),), DOUBLE, (0.5,)))
    'PERCENTILE(length, 0.5)'
    """
    if not aggregate.args:
        return f"{aggregate.function}(*)"
    first, *weights = (render(arg) for arg in aggregate.args)
    parameters = [repr(parameter) for parameter in aggregate.parameters]
    method = [f"'{aggregate.method}'"] if aggregate.method else []
    return f"{aggregate.function}({', '.join((first, *parameters, *weights, *method))})"


def _grouping(grouping: Grouping) -> list[str]:
    keys = [f"{render(key)} AS key{n}" for n, key in enumerate(grouping.keys)]
    lines = [f"GROUP BY {', '.join(keys)}"] if keys else []
    found = [
        f"{render_aggregate(aggregate)} AS agg{number}: {aggregate.type}"
        for number, aggregate in enumerate(grouping.aggregates)
    ]
    lines += [f"AGGREGATE {', '.join(found)}"] if found else []
    return [*lines, *_conjuncts("HAVING", grouping.having)]


def _conjuncts(clause: str, conjuncts: tuple[Expression, ...]) -> list[str]:
    words = (clause, *["AND".rjust(len(clause))] * len(conjuncts))
    return [f"{word} {_conjunct(c)}" for word, c in zip(words, conjuncts, strict=False)]


def _span(micros: int) -> str:
    """A length of time in the largest unit that it is a whole number of."""
    units = (86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s")
    for size, unit in (*units, (1_000, "ms")):
        if micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} us"


def _signed(micros: int) -> str:
    """A time before or after another, in the largest unit that it is a whole number of."""
    return f"-{_span(-micros)}" if micros < 0 else _span(micros)


def _conjunct(expression: Expression) -> str:
    is_or = isinstance(expression, Call) and expression.function == "or"
    return f"({render(expression)})" if is_or else render(expression)


def _name(name: str) -> str:
    return name if name.isidentifier() else quoted(name)
