"""Window aggregates: GROUP BY, and what stands over the groups in the SELECT list and in HAVING.

Keys and the arguments of aggregates are expressions over rows. The SELECT list and HAVING see the
answer instead: a column for each key, each aggregate, and the two ends of the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from sqlglot import exp

from penstock.errors import LanguageError, Refused, TypeFault, UnknownName
from penstock.language import aggregates, call_arguments, coercion
from penstock.language.binder import ExpressionBinder, check_read
from penstock.language.places import Misfit, suggestion
from penstock.language.windows import is_standard
from penstock.model import (
    ANSWER,
    TIMESTAMP,
    Aggregate,
    Call,
    Column,
    Expression,
    Grouping,
    Literal,
    Output,
    PythonCall,
    Type,
    Window,
)

_IGNORING = ("FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE", "ANY_VALUE")
WINDOW_COLUMNS = tuple(Column(n, TIMESTAMP, ANSWER) for n in ("window_start", "window_end"))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate, with FILTER or without, but not with OVER."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.Anonymous) or isinstance(node.parent, exp.Window):
        return False
    return aggregates.is_aggregate(call.name)


def first_aggregate(nodes: Sequence[exp.Expr]) -> exp.Expr | None:
    """The first call of an aggregate among these or below."""
    return next((n for node in nodes for n in node.walk() if is_aggregate(n)), None)


def window_column(node: exp.Expr, binder: ExpressionBinder) -> Column | None:
    """``window_start`` or ``window_end``, unless a stream's own column is meant by its alias."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    found = [column for column in WINDOW_COLUMNS if column.name == node.name.lower()]
    if not found or node.args.get("db"):
        return None
    if node.table:
        stream = binder.scope.inputs[0]
        if node.table.lower() != stream.alias.lower() or stream.column(node.name):
            return None
    return found[0]


class AnswerBinder(ExpressionBinder):
    """Binds expressions over the groups, and collects their aggregates, each once."""

    def __init__(
        self, rows: ExpressionBinder, keys: Sequence[Expression], clause: str,
        time: Expression | None, has_window: bool = True,
    ) -> None:
        """``rows`` binds the arguments of aggregates; ``time`` is the event time of a row.

        Without ``time`` it is the time of arrival, which no aggregate may order by: a replay would
        give another answer.
        """
        super().__init__(
            rows.admitted, rows.source, rows.scope, rows.registered, rows.around, clause
        )
        self.rows, self.time, self.has_window = rows, time, has_window
        self.keys = {key: Column(f"key{n}", key.type, ANSWER) for n, key in enumerate(keys)}
        self.origins = {column: key for key, column in self.keys.items()}
        self.aggregates: dict[Aggregate, Column] = {}
        """Each with its column of the answer, in the order in which they were met."""
        self.aliases: dict[str, Expression] = {}
        """What HAVING sees by a name that AS gives, in lower case, unless it is grouped by."""

    def meaning(self, node: exp.Expr) -> Expression:
        """A column of the answer, or what is computed from such columns."""
        if is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        key = self._key(node)
        if key is not None:
            return key
        bound = super().meaning(node)
        return _without_python(bound)

    def seen(self, expression: Expression) -> Expression:
        """An expression over rows, made of keys alone."""
        key = self.keys.get(expression)
        if key is not None:
            return key
        if isinstance(expression, Column):
            hint = "add it to GROUP BY, or take an aggregate of it"
            raise Misfit(TypeFault, _ungrouped(self.scope.spelling(expression)), hint)
        if isinstance(expression, Call | PythonCall):
            made = replace(expression, args=tuple(self.seen(arg) for arg in expression.args))
            return _without_python(made)
        return expression

    def origin(self, expression: Expression) -> Expression:
        """The key that a column of the answer stands for."""
        if isinstance(expression, Column):
            return self.origins.get(expression, expression)
        return expression

    def _column(self, node: exp.Column) -> Expression:
        window = window_column(node, self) if self.has_window else None
        if window is not None:
            return window
        try:
            return self.seen(self.rows.meaning(node))
        except Misfit as misfit:
            alias = self.aliases.get(node.name.lower()) if not node.table else None
            if alias is None:
                raise self._with_aliases(self._named(misfit, node), node) from None
            return alias

    def _named(self, misfit: Misfit, node: exp.Column) -> Misfit:
        """The fault of a column of an inlined query, instead of that of what it is made of."""
        found = self.scope.column([part.name for part in node.parts])
        if found is None or not found[0].made or misfit.kind is not TypeFault:
            return misfit
        return Misfit(misfit.kind, _ungrouped(f"{found[0].alias}.{found[1].name}"), misfit.hint)

    def _with_aliases(self, misfit: Misfit, node: exp.Column) -> Misfit:
        """The fault of an unknown name, with the names that AS gives among those to choose."""
        if misfit.kind is not UnknownName or node.table or not self.aliases:
            return misfit
        names = f"AS gives {', '.join(self.aliases)}"
        hint = suggestion(node.name, self.aliases) or f"{misfit.hint}; {names}"
        return Misfit(misfit.kind, misfit.message, hint)

    def _key(self, node: exp.Expr) -> Column | None:
        """The column of the answer for a whole expression that is grouped by."""
        if not self.keys:
            return None
        try:
            bound = self.rows.bind(node)
        except LanguageError:
            return None  # not over rows alone; what is wrong in it is found below
        return None if isinstance(bound, Literal) else self.keys.get(bound)

    def _aggregate(self, node: exp.Expr) -> Column:
        aggregate = _bound(node, self.rows, self.time)
        column = Column(f"agg{len(self.aggregates)}", aggregate.type, ANSWER)
        return self.aggregates.setdefault(aggregate, column)


def _ungrouped(name: str) -> str:
    return f"{name} is neither grouped by nor inside an aggregate"


def _without_python(bound: Expression) -> Expression:
    if isinstance(bound, PythonCall):
        hint = "call it in WHERE, in GROUP BY or inside an aggregate"
        raise Misfit(Refused, "a Python function is not admitted over an aggregate", hint)
    return bound


def _bound(node: exp.Expr, rows: ExpressionBinder, time: Expression | None) -> Aggregate:
    """An aggregate from its call, with FILTER or without."""
    if isinstance(node, exp.Filter):
        check_read(node, ("this", "expression"))
        condition = node.expression
        kept = rows.condition(condition.this, "the condition of FILTER")
        return aggregates.only_where(kept, _bound(node.this, rows, time))
    check_read(node, ("this", "expressions"))
    name, given = node.name.upper(), node.expressions
    if name == "COUNT" and len(given) == 1 and isinstance(given[0], exp.Star):
        check_read(given[0], ())
        return aggregates.COUNT_ROWS
    if len(given) == 1 and isinstance(given[0], exp.Distinct):
        return _distinct(name, given[0], rows)
    if name in _IGNORING and len(given) == 2 and isinstance(given[1], exp.Boolean):
        if given[1].this:  # FIRST(x, TRUE) leaves NULL out, as all aggregates do here
            given = given[:1]
    first_name = aggregates.SYNONYMS.get(name, name)
    admitted = aggregates.AGGREGATES[first_name]
    if first_name not in aggregates.BY_TIME:
        return admitted.call(name, rows.all(given))
    if first_name == "COLLECT_LIST" and len(given) == 1:
        hint = f"write {name}({given[0].sql(dialect='spark')}, 100), the first 100 by event time"
        raise Misfit(TypeFault, f"{name} says how many values it lists", hint)
    if time is None:
        hint = "write TIME in CREATE STREAM, or order by a column: MIN_BY(x, y), MAX_BY(x, y)"
        raise Misfit(TypeFault, f"{name} goes by event time, and there is none", hint)
    return admitted.call(name, rows.all(given), (time,))


def _distinct(name: str, node: exp.Expr, rows: ExpressionBinder) -> Aggregate:
    check_read(node, ("expressions",))
    if name != "COUNT":
        raise Misfit(Refused, f"{name}(DISTINCT ...) is not admitted", "only COUNT takes DISTINCT")
    return aggregates.COUNT_DISTINCT.call("COUNT(DISTINCT ...)", rows.all(node.expressions))


def group_keys(
    select: exp.Select, rows: ExpressionBinder, has_window: bool = True
) -> Iterator[Expression]:
    """The expressions of GROUP BY but for windows: also by number, or by a name that AS gives."""
    named = {i.alias.lower(): i.this for i in reversed(select.expressions) if _has_alias(i)}
    for written in grouped_by(select):
        node = _meant(written, select.expressions, named, rows)
        is_window = has_window and window_column(node, rows) is not None
        if not is_window and not is_standard(written):
            key = call_arguments.anything(rows.bind(node))
            if coercion.holds_map(key.type) or key.type.name == "INTERVAL":
                message = f"{coercion.article(key.type)} cannot be grouped by"
                raise rows.misfitting(Misfit(TypeFault, message), written)
            yield key


def grouped_by(select: exp.Select) -> list[exp.Expr]:
    """What stands in GROUP BY."""
    group = select.args.get("group")
    return list(group.expressions) if group is not None else []


def _meant(
    node: exp.Expr,
    items: Sequence[exp.Expr],
    named: Mapping[str, exp.Expr],
    rows: ExpressionBinder,
) -> exp.Expr:
    """The item of the SELECT list that a number or a name stands for, or the node itself."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        number = int(node.name[:9])
        if not 1 <= number <= len(items):
            message = f"the SELECT list has no item {node.name[:9]}, it has {len(items)}"
            raise rows.misfitting(Misfit(TypeFault, message), node)
        return items[number - 1].unalias()
    if isinstance(node, exp.Column) and not node.table and not _is_column(node, rows):
        return named.get(node.name.lower(), node)
    return node


def _is_column(node: exp.Column, rows: ExpressionBinder) -> bool:
    return any(i.column(node.name) is not None for i in rows.scope.inputs)


def _has_alias(item: exp.Expr) -> bool:
    return isinstance(item, exp.Alias)


def sessions(
    grouping: Grouping, outputs: Sequence[Output], window: Window, time: Expression
) -> tuple[Grouping, tuple[Output, ...]]:
    """A grouping by sessions: one begins with its first row, and ends a gap after its last."""
    times = tuple(Aggregate(function, (time,), TIMESTAMP) for function in ("MIN", "MAX"))
    found = list(dict.fromkeys((*grouping.aggregates, *times)))
    first, last = (Column(f"agg{found.index(one)}", TIMESTAMP, ANSWER) for one in times)
    gap = Literal(timedelta(microseconds=window.gap), Type("INTERVAL"))
    end = Call("add_interval", (last, gap), TIMESTAMP)
    ends: dict[Expression, Expression] = dict(zip(WINDOW_COLUMNS, (first, end), strict=True))

    def placed(expression: Expression) -> Expression:
        if isinstance(expression, Call | PythonCall):
            return replace(expression, args=tuple(map(placed, expression.args)))
        return ends.get(expression, expression)

    named = tuple(replace(o, expression=placed(o.expression)) for o in outputs)
    having = tuple(map(placed, grouping.having))
    return Grouping(grouping.keys, tuple(found), having, times), named


def windowed(outputs: Sequence[Output]) -> list[Output]:
    """The ends of the window that the SELECT list does not name itself."""
    given = [output.expression for output in outputs]
    return [Output(column.name, column) for column in WINDOW_COLUMNS if column not in given]
