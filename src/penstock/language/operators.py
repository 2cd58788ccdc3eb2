"""Nodes that are operators: comparisons, conditions, arithmetic, patterns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlglot import exp

from penstock.errors import SyntaxFault, TypeFault
from penstock.language import call_arguments, coercion, comparisons, functions, typed_calls
from penstock.language.admitted import Admitted
from penstock.language.binder import ExpressionBinder
from penstock.language.places import Misfit
from penstock.model import (
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    VOID,
    Call,
    Expression,
    Literal,
)

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe", exp.NullSafeNEQ: "eq_null_safe",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.Mod: "mod",
}  # fmt: skip


def _negated(node: exp.Expr, bound: Expression) -> Expression:
    return comparisons.negation(bound) if node.args.get("negate") else bound


def comparison(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``= <> < <= > >= <=>`` and IS DISTINCT FROM."""
    for side in (node.this, node.expression):
        if type(side) in _COMPARISONS:
            raise Misfit(SyntaxFault, "write parentheses: comparisons do not chain")
    left, right = binder.bind(node.this), binder.bind(node.expression)
    bound = comparisons.compare(_COMPARISONS[type(node)], left, right)
    return comparisons.negation(bound) if isinstance(node, exp.NullSafeNEQ) else bound


def connected(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """AND and OR, however many."""
    conditions = [
        binder.condition(part, f"each side of {type(node).__name__.upper()}")
        for part in _chain(node)
    ]
    join = comparisons.both if isinstance(node, exp.And) else comparisons.either
    return join(conditions)


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of ``a AND b AND c``, without recursion: there may be thousands."""
    kind, parts, rest = type(node), [], [node]
    while rest:
        part = rest.pop()
        if type(part) is kind:
            rest.extend((part.args["expression"], part.this))
        else:
            parts.append(part)
    return parts


def negation(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """NOT."""
    return comparisons.negation(binder.condition(node.this, "what NOT denies"))


def between(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """BETWEEN: two comparisons."""
    value = binder.bind(node.this)
    low, high = binder.bind(node.args["low"]), binder.bind(node.args["high"])
    bounds = [comparisons.compare("ge", value, low), comparisons.compare("le", value, high)]
    return _negated(node, comparisons.both(bounds))


def contained(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """IN with a list."""
    if not node.expressions:
        raise Misfit(SyntaxFault, "expected values between ( and ) after IN")
    bound = comparisons.contained(binder.bind(node.this), binder.all(node.expressions))
    return _negated(node, bound)


def is_(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """IS NULL, IS TRUE, IS FALSE."""
    value = binder.bind(node.this)
    if isinstance(node.expression, exp.Null):
        return _negated(node, Call("is_null", (value,), BOOLEAN))
    if not isinstance(node.expression, exp.Boolean):
        raise Misfit(SyntaxFault, "expected NULL, TRUE or FALSE after IS")
    truth = coercion.boolean(value, "what is TRUE or FALSE")
    constant = Literal(bool(node.expression.this), BOOLEAN)
    return _negated(node, Call("eq_null_safe", (truth, constant), BOOLEAN))


def matching(name: str, escape: str = "\\") -> Callable[[ExpressionBinder, exp.Expr], Expression]:
    """LIKE, ILIKE or RLIKE with a constant pattern."""

    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        sides = (binder.bind(node.this), binder.bind(node.expression))
        if name == "RLIKE":
            return _negated(node, functions.ADMITTED[name].call(name, sides))
        build = typed_calls.like(name.lower(), escape)
        sorts = call_arguments.string, call_arguments.constant_string
        entry = Admitted(sorts, build, 2, 2)
        return _negated(node, entry.call(name, sides))

    return bind


def escaped(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """LIKE with an ESCAPE."""
    escape = node.expression
    if not isinstance(node.this, exp.Like | exp.ILike) or not escape.is_string:
        raise Misfit(SyntaxFault, "ESCAPE takes one quoted character after a LIKE pattern")
    name = "LIKE" if isinstance(node.this, exp.Like) else "ILIKE"
    return matching(name, escape.name)(binder, node.this)


def arithmetic(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``+ - * / %``, also of a time and an interval."""
    function = _ARITHMETIC[type(node)]
    left, right = binder.bind(node.this), binder.bind(node.expression)
    if "INTERVAL" in (left.type.name, right.type.name):
        return _shifted(function, left, right)
    return typed_calls.arithmetic(function)((left, right))


def _shifted(function: str, left: Expression, right: Expression) -> Expression:
    """A time moved by an interval."""
    if left.type.name == "INTERVAL" and function == "add":
        left, right = right, left
    if function not in ("add", "subtract") or not isinstance(right, Literal):
        raise Misfit(TypeFault, "an interval can be added to or subtracted from a TIMESTAMP")
    step = right if function == "add" else typed_calls.negate((right,))
    if left.type not in (TIMESTAMP, DATE, VOID):
        hint = "CAST it" if left.type == STRING else ""
        message = f"an interval moves a TIMESTAMP, not {coercion.article(left.type)}"
        raise Misfit(TypeFault, message, hint)
    moved = Call("add_interval", (coercion.cast(left, TIMESTAMP), step), TIMESTAMP)
    days = isinstance(right.value, timedelta) and right.value % timedelta(days=1) == timedelta(0)
    return coercion.cast(moved, DATE) if left.type == DATE and days else moved


def integer_division(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """DIV."""
    return functions.ADMITTED["DIV"].call("DIV", binder.all((node.this, node.expression)))


def minus(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A number or interval with its sign changed."""
    value = binder.bind(node.this)
    if value.type.name != "INTERVAL":
        value = call_arguments.number(value)
    return typed_calls.negate((value,))


def concatenation(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``||``, however many."""
    parts = _chain(node)
    if any(isinstance(part, exp.Add | exp.Sub) for part in parts):
        raise Misfit(SyntaxFault, "write parentheses: || and + stand beside each other")
    return functions.ADMITTED["CONCAT"].call("||", binder.all(parts))


def bits(function: str) -> Callable[[ExpressionBinder, exp.Expr], Expression]:
    """``& | ^`` of whole numbers."""

    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        return typed_calls.integers(function)(binder.all((node.this, node.expression)))

    return bind


def flipped(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``~`` of a whole number."""
    return typed_calls.integers("bit_not")((binder.bind(node.this),))
