"""The nodes of sqlglot that have a meaning here: the explicit table, and nothing outside it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.language import calls, operators, values
from penstock.language.binder import Entry, ExpressionBinder
from penstock.language.places import Place, Source
from penstock.language.scope import Scope
from penstock.model import Function

_NEGATABLE = ("this", "expression", "negate")

ADMITTED_NODES: dict[type[exp.Expr], Entry] = {
    exp.Add: Entry(operators.arithmetic),
    exp.And: Entry(operators.connected),
    exp.Anonymous: Entry(calls.function, ("this", "expressions")),
    exp.Between: Entry(operators.between, ("this", "low", "high", "negate")),
    exp.Boolean: Entry(values.boolean),
    exp.Bracket: Entry(values.bracket, ("this", "expressions", "offset")),
    exp.Case: Entry(calls.case, ("this", "ifs", "default")),
    exp.Cast: Entry(calls.cast, ("this", "to", "safe")),
    exp.Column: Entry(values.column, ("this", "table", "db", "catalog")),
    exp.DPipe: Entry(operators.concatenation, ("this", "expression", "safe")),
    exp.Div: Entry(operators.arithmetic, ("this", "expression", "typed", "safe")),
    exp.Dot: Entry(values.dot),
    exp.EQ: Entry(operators.comparison),
    exp.Escape: Entry(operators.escaped),
    exp.Extract: Entry(calls.extract),
    exp.GT: Entry(operators.comparison),
    exp.GTE: Entry(operators.comparison),
    exp.HexString: Entry(values.hexadecimal, ("this", "is_integer")),
    exp.ILike: Entry(operators.matching("ILIKE"), _NEGATABLE),
    exp.In: Entry(operators.contained, ("this", "expressions", "negate")),
    exp.IntDiv: Entry(operators.integer_division),
    exp.Interval: Entry(values.interval, ("this", "unit", "fraction_in_string")),
    exp.Is: Entry(operators.is_, _NEGATABLE),
    exp.LT: Entry(operators.comparison),
    exp.LTE: Entry(operators.comparison),
    exp.Like: Entry(operators.matching("LIKE"), _NEGATABLE),
    exp.Literal: Entry(values.literal, ("this", "is_string")),
    exp.Mod: Entry(operators.arithmetic),
    exp.Mul: Entry(operators.arithmetic),
    exp.NEQ: Entry(operators.comparison),
    exp.Neg: Entry(operators.minus),
    exp.Not: Entry(operators.negation),
    exp.Null: Entry(values.null),
    exp.NullSafeEQ: Entry(operators.comparison),
    exp.NullSafeNEQ: Entry(operators.comparison),
    exp.Or: Entry(operators.connected),
    exp.Paren: Entry(values.parenthesis),
    exp.RegexpLike: Entry(operators.matching("RLIKE"), _NEGATABLE),
    exp.Sub: Entry(operators.arithmetic),
    exp.Substring: Entry(calls.substring, ("this", "start", "length")),
    exp.Trim: Entry(calls.trim, ("this", "position", "expression")),
    exp.TryCast: Entry(calls.cast, ("this", "to", "safe")),
}
"""Every node that has a meaning."""


def expression_binder(
    source: Source, scope: Scope, registered: Mapping[str, Function], around: Place, clause: str
) -> ExpressionBinder:
    """A binder for the expressions of one clause of a SELECT."""
    return ExpressionBinder(ADMITTED_NODES, source, scope, registered, around, clause)
