"""The nodes of sqlglot that have a meaning here: the explicit table, and nothing outside it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.language import calls, operators, values
from penstock.language.binder import AdmittedNode, ExpressionBinder
from penstock.language.places import Place, Source
from penstock.language.scope import Scope
from penstock.model import Function

_NEGATABLE = ("this", "expression", "negate")

ADMITTED_NODES: dict[type[exp.Expr], AdmittedNode] = {
    exp.Add: AdmittedNode(operators.arithmetic),
    exp.And: AdmittedNode(operators.connected),
    exp.Anonymous: AdmittedNode(calls.function, ("this", "expressions")),
    exp.AtTimeZone: AdmittedNode(calls.zoned, ("this", "zone")),
    exp.Between: AdmittedNode(operators.between, ("this", "low", "high", "negate")),
    exp.BitwiseAnd: AdmittedNode(operators.bits("bit_and")),
    exp.BitwiseNot: AdmittedNode(operators.flipped),
    exp.BitwiseOr: AdmittedNode(operators.bits("bit_or")),
    exp.BitwiseXor: AdmittedNode(operators.bits("bit_xor")),
    exp.Boolean: AdmittedNode(values.boolean),
    exp.Bracket: AdmittedNode(values.bracket, ("this", "expressions", "offset")),
    exp.Case: AdmittedNode(calls.case, ("this", "ifs", "default")),
    exp.Cast: AdmittedNode(calls.cast, ("this", "to", "safe")),
    exp.Column: AdmittedNode(values.column, ("this", "table", "db", "catalog")),
    exp.DPipe: AdmittedNode(operators.concatenation, ("this", "expression", "safe")),
    exp.Div: AdmittedNode(operators.arithmetic, ("this", "expression", "typed", "safe")),
    exp.Dot: AdmittedNode(values.dot),
    exp.EQ: AdmittedNode(operators.comparison),
    exp.Escape: AdmittedNode(operators.escaped),
    exp.Extract: AdmittedNode(calls.extract),
    exp.GT: AdmittedNode(operators.comparison),
    exp.GTE: AdmittedNode(operators.comparison),
    exp.HexString: AdmittedNode(values.hexadecimal, ("this", "is_integer")),
    exp.ILike: AdmittedNode(operators.matching("ILIKE"), _NEGATABLE),
    exp.In: AdmittedNode(operators.contained, ("this", "expressions", "negate")),
    exp.IntDiv: AdmittedNode(operators.integer_division),
    exp.Interval: AdmittedNode(values.interval, ("this", "unit", "fraction_in_string")),
    exp.Is: AdmittedNode(operators.is_, _NEGATABLE),
    exp.LT: AdmittedNode(operators.comparison),
    exp.LTE: AdmittedNode(operators.comparison),
    exp.Like: AdmittedNode(operators.matching("LIKE"), _NEGATABLE),
    exp.Literal: AdmittedNode(values.literal, ("this", "is_string")),
    exp.Mod: AdmittedNode(operators.arithmetic),
    exp.Mul: AdmittedNode(operators.arithmetic),
    exp.NEQ: AdmittedNode(operators.comparison),
    exp.Neg: AdmittedNode(operators.minus),
    exp.Not: AdmittedNode(operators.negation),
    exp.Null: AdmittedNode(values.null),
    exp.NullSafeEQ: AdmittedNode(operators.comparison),
    exp.NullSafeNEQ: AdmittedNode(operators.comparison),
    exp.Or: AdmittedNode(operators.connected),
    exp.Paren: AdmittedNode(values.parenthesis),
    exp.RegexpLike: AdmittedNode(operators.matching("RLIKE"), _NEGATABLE),
    exp.StrPosition: AdmittedNode(calls.position, ("this", "substr")),
    exp.Sub: AdmittedNode(operators.arithmetic),
    exp.Substring: AdmittedNode(calls.substring, ("this", "start", "length")),
    exp.Trim: AdmittedNode(calls.trim, ("this", "position", "expression")),
    exp.TryCast: AdmittedNode(calls.cast, ("this", "to", "safe")),
}
"""Every node that has a meaning."""


def expression_binder(
    source: Source, scope: Scope, registered: Mapping[str, Function], around: Place, clause: str
) -> ExpressionBinder:
    """A binder for the expressions of one clause of a SELECT."""
    return ExpressionBinder(ADMITTED_NODES, source, scope, registered, around, clause)
