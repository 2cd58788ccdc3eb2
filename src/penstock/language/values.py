"""Nodes that are values: constants, columns, fields and elements."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import Refused, SyntaxFault, TypeFault, UnknownName
from penstock.language import call_arguments, functions, literals, typed_calls
from penstock.language.binder import ExpressionBinder
from penstock.language.foreign import SUBSTITUTES
from penstock.language.places import Misfit
from penstock.language.scope import member
from penstock.model import BINARY, BOOLEAN, STRING, VOID, Call, Expression, Literal


def literal(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A quoted text or a number."""
    return Literal(node.name, STRING) if node.is_string else literals.number(node.name)


def hexadecimal(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``X'1f'``: bytes."""
    digits = node.name
    return Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), BINARY)


def boolean(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """TRUE or FALSE."""
    return Literal(bool(node.this), BOOLEAN)


def null(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """NULL, whose type its company decides."""
    return Literal(None, VOID)


def parenthesis(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """What stands between parentheses."""
    return binder.bind(node.this)


def interval(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``INTERVAL '10' MINUTE``: a constant length of time."""
    amount, unit = node.this, node.args.get("unit")
    if isinstance(amount, exp.Neg):
        return typed_calls.negate((interval(binder, exp.Interval(this=amount.this, unit=unit)),))
    if not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var):
        hint = "write INTERVAL '10' MINUTE"
        raise Misfit(SyntaxFault, "an interval is a constant number and a unit", hint)
    return literals.interval(amount.name, unit.name)


def column(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A column, or a field of one, by its name."""
    if isinstance(node.this, exp.Star):
        raise Misfit(SyntaxFault, "* stands for columns only in a SELECT list or in COUNT(*)")
    parts = [node.args[k].name for k in ("catalog", "db", "table", "this") if node.args.get(k)]
    try:
        return binder.scope.resolve(parts)
    except Misfit:
        refusal = functions.refusal(node.name) if len(parts) == 1 else None
        if refusal is not None:
            raise refusal from None
        if len(parts) == 1 and node.name.upper() in SUBSTITUTES:
            hint = SUBSTITUTES[node.name.upper()]
            raise Misfit(UnknownName, f"no column '{node.name}'", hint) from None
        raise


def dot(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A field of what is not a plain column."""
    if not isinstance(node.expression, exp.Identifier):
        raise Misfit(Refused, "methods are not admitted")
    return member(binder.bind(node.this), node.expression.name)


def bracket(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``base[key]``: an element of an array, the value of a map, a field of a struct."""
    if len(node.expressions) != 1:
        raise Misfit(SyntaxFault, "expected one index or key between [ and ]")
    base, key = binder.bind(node.this), binder.bind(node.expressions[0])
    if base.type.name == "ARRAY" and base.type.element is not None:
        return Call("get", (base, call_arguments.whole(key)), base.type.element)
    if base.type.name == "MAP" and base.type.element is not None and base.type.key is not None:
        return Call("element", (base, typed_calls.key_of(base.type, key)), base.type.element)
    if isinstance(key, Literal) and isinstance(key.value, str):
        return member(base, key.value)
    raise Misfit(TypeFault, f"a value of type {base.type} has no elements")
