"""Arrays and maps in FROM: ``LATERAL VIEW explode(...)`` and ``CROSS JOIN UNNEST(...)``.

Either makes a row of each element, beside the columns of the row that holds it. So it is a lookup
whose rows come from the row itself.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import Refused, TypeFault
from penstock.language import coercion
from penstock.language.binder import ExpressionBinder, check_read
from penstock.language.places import Misfit
from penstock.model import INT, Field, Lookup, Part, name_key

_FUNCTIONS = {
    "EXPLODE": (False, False),
    "EXPLODE_OUTER": (False, True),
    "POSEXPLODE": (True, False),
    "POSEXPLODE_OUTER": (True, True),
}
"""Whether a function gives the position too, and a row for an array without elements."""


def is_unnesting(table: exp.Expr) -> bool:
    """Whether it is no table, but takes one apart."""
    return isinstance(table, exp.Lateral | exp.Unnest)


def unnested(table: exp.Expr, join: exp.Expr, binder: ExpressionBinder) -> Lookup:
    """What ``LATERAL VIEW`` or ``UNNEST`` makes of a row; ``join`` is the node that holds it."""
    if isinstance(table, exp.Unnest):
        return _unnest(table, join, binder)
    call = table.this
    if not isinstance(table, exp.Lateral) or not table.args.get("view"):
        hint = "write LATERAL VIEW explode(x) t AS y"
        raise Misfit(Refused, "LATERAL is not admitted here", hint)
    check_read(table, ("this", "view", "outer", "alias"))
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    if name not in _FUNCTIONS or len(call.expressions) != 1:
        hint = f"it takes {', '.join(_FUNCTIONS)} of one array or map"
        raise Misfit(Refused, f"LATERAL VIEW of {name or 'this'} is not admitted", hint)
    counts, outer = _FUNCTIONS[name]
    parts: tuple[Part, ...] = ("position",) if counts else ()
    kind = outer or bool(table.args.get("outer"))
    return _lookup(table, call.expressions[0], binder, kind, parts, ())


def _unnest(table: exp.Unnest, join: exp.Expr, binder: ExpressionBinder) -> Lookup:
    check_read(table, ("expressions", "alias", "offset"))
    if len(table.expressions) != 1:
        raise Misfit(Refused, "UNNEST takes one array or map", "write another CROSS JOIN UNNEST")
    words = " ".join(str(join.args.get(k) or "").upper() for k in ("side", "kind")).split()
    condition = join.args.get("on")
    always = isinstance(condition, exp.Boolean) and bool(condition.this)
    if words not in (["CROSS"], ["LEFT"], ["LEFT", "OUTER"], ["INNER"], []) or not (
        condition is None or always
    ):
        hint = "write CROSS JOIN UNNEST(x) AS t (y), or LEFT JOIN ... ON TRUE"
        raise Misfit(Refused, "this join with UNNEST is not admitted", hint)
    ordinal: tuple[Part, ...] = ("ordinal",) if table.args.get("offset") else ()
    return _lookup(table, table.expressions[0], binder, words[:1] == ["LEFT"], (), ordinal)


def _lookup(
    table: exp.Expr, node: exp.Expr, binder: ExpressionBinder, outer: bool,
    before: tuple[Part, ...], after: tuple[Part, ...],
) -> Lookup:
    held = binder.bind(node)
    if held.type.name not in ("ARRAY", "MAP") or held.type.element is None:
        message = f"expected an ARRAY or a MAP, not {coercion.article(held.type)}"
        raise binder.misfitting(Misfit(TypeFault, message), node)
    values: tuple[Part, ...] = ("element",) if held.type.name == "ARRAY" else ("key", "element")
    parts = (*before, *values, *after)
    types = {"key": held.type.key, "element": held.type.element}
    names = _names(table, parts)
    columns = tuple(Field(name, types.get(part) or INT)
                    for name, part in zip(names, parts, strict=True))
    return Lookup(table.alias, held, "left" if outer else "inner", columns, parts)


_OWN_NAMES = {"position": "pos", "ordinal": "ordinality", "key": "key", "element": "col"}


def _names(table: exp.Expr, parts: tuple[Part, ...]) -> list[str]:
    """The names of the columns that come out: those that are given, or Spark's."""
    alias = table.args.get("alias")
    if alias is None or not table.alias:
        raise Misfit(TypeFault, "what is taken apart needs a name", "write ... t AS y, or AS t (y)")
    given = [column.name for column in alias.args.get("columns") or ()]
    offset = table.args.get("offset")
    if isinstance(offset, exp.Identifier):
        given.append(offset.name)
    maps = "key" in parts and parts[-1] == "element"
    names = given or ["value" if maps and part == "element" else _OWN_NAMES[part]
                      for part in parts]
    if len(names) != len(parts):
        message = f"{table.alias} has {len(parts)} columns, not {len(names)}"
        raise Misfit(TypeFault, message, f"they are {', '.join(_OWN_NAMES[p] for p in parts)}")
    if len({name_key(name) for name in names}) < len(names):
        raise Misfit(TypeFault, f"two columns of {table.alias} have one name")
    return names
