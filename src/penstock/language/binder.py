"""The binder of expressions: walks sqlglot's tree, keeps the place of every fault.

What each node means is in a table of entries, so that a node without an entry is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import LanguageError, Refused
from penstock.language import coercion
from penstock.language.dialect import place_of_node
from penstock.language.places import Misfit, Place, Source
from penstock.language.scope import Scope
from penstock.model import Expression, Function

_DEEPEST = 100


class ExpressionBinder:
    """Binds the expressions of one SELECT."""

    def __init__(
        self,
        admitted: Mapping[type[exp.Expr], AdmittedNode],
        source: Source,
        scope: Scope,
        registered: Mapping[str, Function],
        around: Place,
        clause: str,
    ) -> None:
        """``registered`` is keyed by lower-case names; ``around`` is where the SELECT stands.

        ``clause`` is what is bound, for messages.
        """
        self.admitted = admitted
        self.source, self.scope, self.registered, self.around = source, scope, registered, around
        self.clause = clause
        self._depth = 0

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node; an error at its place when it has none."""
        if self._depth > _DEEPEST:
            raise self.source.syntax("this is nested too deeply", self.place(node))
        self._depth += 1
        try:
            return self.meaning(node)
        except Misfit as misfit:
            raise self.misfitting(misfit, node) from None
        finally:
            self._depth -= 1

    def meaning(self, node: exp.Expr) -> Expression:
        """What its entry makes of a node."""
        entry = self.admitted.get(type(node))
        if entry is None:
            hint = _RATHER.get(type(node), "")
            raise Misfit(Refused, f"{describe(node)} is not admitted here", hint)
        check_read(node, entry.reads)
        return entry.bind(self, node)

    def seen(self, expression: Expression) -> Expression:
        """An expression over rows as it may stand here."""
        return expression

    def origin(self, expression: Expression) -> Expression:
        """What an expression was made of by `seen`."""
        return expression

    def all(self, nodes: Sequence[exp.Expr]) -> tuple[Expression, ...]:
        """Each of them bound."""
        return tuple(self.bind(node) for node in nodes)

    def condition(self, node: exp.Expr, what: str) -> Expression:
        """A BOOLEAN expression."""
        bound = self.bind(node)
        try:
            return coercion.boolean(bound, what)
        except Misfit as misfit:
            raise self.misfitting(misfit, node) from None

    def misfitting(self, misfit: Misfit, node: exp.Expr) -> LanguageError:
        """The error for what is wrong with a node."""
        return self.source.fault(misfit.kind, misfit.message, self.place(node), misfit.hint)

    def place(self, node: exp.Expr) -> Place:
        """Where a node stands, or the SELECT when that is not known."""
        return place_of_node(node) or self.around


@dataclass(frozen=True, slots=True)
class AdmittedNode:
    """An admitted node: how it is bound, and the attributes that are read."""

    bind: Callable[[ExpressionBinder, exp.Expr], Expression]
    reads: tuple[str, ...] = ("this", "expression")


def check_read(node: exp.Expr, reads: Sequence[str]) -> None:
    """Refuse a node with an attribute that is not read."""
    for name, value in node.args.items():
        if name not in reads and value not in (None, False, []):
            with_ = "a subquery" if name == "query" else name
            hint = "JOIN the relation" if name == "query" else ""
            raise Misfit(Refused, f"{describe(node)} with {with_} is not admitted", hint)


def describe(node: exp.Expr) -> str:
    """A node in words."""
    words = _WORDS.get(type(node))
    if words is None and isinstance(node, exp.Array):
        words = "a list in brackets"
    if words is None and isinstance(node, exp.Func):
        words = f"the function {node.sql_name()}"
    return words or f"{type(node).__name__}"


_WORDS: dict[type[exp.Expr], str] = {
    exp.Alias: "an alias",
    exp.Cube: "CUBE",
    exp.Distinct: "DISTINCT",
    exp.Exists: "EXISTS",
    exp.Filter: "FILTER",
    exp.GroupingSets: "GROUPING SETS",
    exp.In: "IN",
    exp.JSONExtract: "the operator ->",
    exp.Lambda: "a lambda",
    exp.Placeholder: "a placeholder",
    exp.Rollup: "ROLLUP",
    exp.Select: "a subquery",
    exp.Star: "*",
    exp.Subquery: "a subquery",
    exp.Tuple: "a list in parentheses",
    exp.Window: "a window function (OVER)",
}
"""Words for nodes whose class name says nothing to a user."""

_RATHER: dict[type[exp.Expr], str] = {
    exp.Exists: "JOIN the relation",
    exp.JSONExtract: "write GET_JSON_OBJECT(text, '$.a')",
    exp.Lambda: "CREATE FUNCTION declares a function in Python",
    exp.Window: "TOPK(x, 10), MAX_BY(x, y) and LAST(x) answer for windows of time",
}
"""What to write rather than a node that is not admitted."""
