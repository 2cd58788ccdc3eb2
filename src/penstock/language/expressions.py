"""sqlglot's tree of an expression into ours: a table of the nodes that are admitted.

A node that is not in the table is refused by name, and so is a node with an attribute that its
entry does not read: nothing that sqlglot understands slips through without meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlglot import exp

from penstock.errors import NotYet, Refused, SyntaxFault, TypeFault, UnknownName
from penstock.language import coercion, comparisons, functions, literals, types
from penstock.language.dialect import Penstock, place_of_node
from penstock.language.places import Misfit, Place, Source, suggestion
from penstock.language.scope import Scope, member
from penstock.model import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Call,
    Expression,
    Function,
    Literal,
    PythonCall,
    Type,
)

_DEEPEST = 100
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe", exp.NullSafeNEQ: "eq_null_safe",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.Mod: "mod",
}  # fmt: skip
_PARTS = {"DAYOFWEEK": "DAYOFWEEK", "DOW": "DAYOFWEEK", "DAYOFYEAR": "DAYOFYEAR",
          "DOY": "DAYOFYEAR", "D": "DAY", "DAYS": "DAY", "H": "HOUR", "HOURS": "HOUR",
          "MINUTES": "MINUTE", "MIN": "MINUTE", "YEARS": "YEAR", "MONTHS": "MONTH"}
_SECONDS = ("SECOND", "SECONDS", "SEC", "S")


class ExpressionBinder:
    """Binds the expressions of one SELECT."""

    def __init__(
        self, source: Source, scope: Scope, registered: Mapping[str, Function], around: Place
    ) -> None:
        """``registered`` is keyed by lower-case names; ``around`` is where the SELECT stands."""
        self.source, self.scope, self.registered, self.around = source, scope, registered, around
        self._depth = 0

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node; an error at its place when it has none."""
        if self._depth > _DEEPEST:
            raise self.source.syntax("this is nested too deeply", self.place(node))
        self._depth += 1
        try:
            entry = ADMITTED_NODES.get(type(node))
            if entry is None:
                raise Misfit(Refused, f"{describe(node)} is not admitted here")
            entry.check(node)
            return entry.bind(self, node)
        except Misfit as misfit:
            raise self.source.fault(
                misfit.kind, misfit.message, self.place(node), misfit.hint
            ) from None
        finally:
            self._depth -= 1

    def all(self, nodes: Sequence[exp.Expr]) -> tuple[Expression, ...]:
        """Each of them bound."""
        return tuple(self.bind(node) for node in nodes)

    def condition(self, node: exp.Expr, what: str) -> Expression:
        """A BOOLEAN expression."""
        bound = self.bind(node)
        try:
            return coercion.boolean(bound, what)
        except Misfit as misfit:
            raise self.source.fault(TypeFault, misfit.message, self.place(node)) from None

    def place(self, node: exp.Expr) -> Place:
        """Where a node stands, or the SELECT when that is not known."""
        return place_of_node(node) or self.around


@dataclass(frozen=True, slots=True)
class Entry:
    """An admitted node: how it is bound, and the attributes that are read."""

    bind: Callable[[ExpressionBinder, exp.Expr], Expression]
    reads: tuple[str, ...] = ("this", "expression")

    def check(self, node: exp.Expr) -> None:
        """Refuse a node with an attribute that is not read."""
        for name, value in node.args.items():
            if name not in self.reads and value not in (None, False, []):
                raise Misfit(Refused, f"{describe(node)} with {name} is not admitted")


def describe(node: exp.Expr) -> str:
    """A node in words."""
    words = _WORDS.get(type(node))
    if words is None and isinstance(node, exp.Func):
        words = f"the function {node.sql_name()}"
    return words or f"{type(node).__name__}"


def _negated(node: exp.Expr, bound: Expression) -> Expression:
    return comparisons.negation(bound) if node.args.get("negate") else bound


# --- values ------------------------------------------------------------------------------------


def _literal(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return Literal(node.name, STRING) if node.is_string else literals.number(node.name)


def _hex(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    digits = node.name
    return Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), BINARY)


def _boolean(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return Literal(bool(node.this), BOOLEAN)


def _null(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return Literal(None, VOID)


def _paren(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return binder.bind(node.this)


def _interval(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    amount, unit = node.this, node.args.get("unit")
    if isinstance(amount, exp.Neg):
        return functions.negate((_interval(binder, exp.Interval(this=amount.this, unit=unit)),))
    if not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var):
        hint = "write INTERVAL '10' MINUTE"
        raise Misfit(SyntaxFault, "an interval is a constant number and a unit", hint)
    return literals.interval(amount.name, unit.name)


def _column(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    if isinstance(node.this, exp.Star):
        raise Misfit(SyntaxFault, "* stands for columns only in a SELECT list or in COUNT(*)")
    parts = [node.args[k].name for k in ("catalog", "db", "table", "this") if node.args.get(k)]
    try:
        return binder.scope.resolve(parts)
    except Misfit:
        reason = functions.REFUSED.get(node.name.upper())
        if len(parts) == 1 and reason is not None:
            raise _refused(node.name, reason) from None
        raise


def _dot(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    if not isinstance(node.expression, exp.Identifier):
        raise Misfit(Refused, "methods are not admitted")
    return member(binder.bind(node.this), node.expression.name)


def _bracket(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    if len(node.expressions) != 1:
        raise Misfit(SyntaxFault, "expected one index or key between [ and ]")
    base, key = binder.bind(node.this), binder.bind(node.expressions[0])
    if base.type.name == "ARRAY" and base.type.element is not None:
        return Call("get", (base, functions.whole(key)), base.type.element)
    if base.type.name == "MAP" and base.type.element is not None and base.type.key is not None:
        return Call("element", (base, _key(key, base.type.key)), base.type.element)
    if isinstance(key, Literal) and isinstance(key.value, str):
        return member(base, key.value)
    raise Misfit(TypeFault, f"a value of type {base.type} has no elements")


def _key(key: Expression, type_: Type) -> Expression:
    wider = coercion.converted(key, type_)
    if wider is None and coercion.common(key.type, type_) != type_:
        raise Misfit(TypeFault, f"the keys of this map are {type_}, not {key.type}")
    return wider or coercion.cast(key, type_)


# --- operators ---------------------------------------------------------------------------------


def _comparison(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    for side in (node.this, node.expression):
        if type(side) in _COMPARISONS:
            raise Misfit(SyntaxFault, "write parentheses: comparisons do not chain")
    left, right = binder.bind(node.this), binder.bind(node.expression)
    bound = comparisons.compare(_COMPARISONS[type(node)], left, right)
    return comparisons.negation(bound) if isinstance(node, exp.NullSafeNEQ) else bound


def _connected(binder: ExpressionBinder, node: exp.Expr) -> Expression:
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


def _not(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return comparisons.negation(binder.condition(node.this, "what NOT denies"))


def _between(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    value = binder.bind(node.this)
    low, high = binder.bind(node.args["low"]), binder.bind(node.args["high"])
    bounds = [comparisons.compare("ge", value, low), comparisons.compare("le", value, high)]
    return _negated(node, comparisons.both(bounds))


def _in(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    if not node.expressions:
        raise Misfit(SyntaxFault, "expected values between ( and ) after IN")
    bound = comparisons.contained(binder.bind(node.this), binder.all(node.expressions))
    return _negated(node, bound)


def _is(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    value = binder.bind(node.this)
    if isinstance(node.expression, exp.Null):
        return _negated(node, Call("is_null", (value,), BOOLEAN))
    if not isinstance(node.expression, exp.Boolean):
        raise Misfit(SyntaxFault, "expected NULL, TRUE or FALSE after IS")
    truth = coercion.boolean(value, "what is TRUE or FALSE")
    constant = Literal(bool(node.expression.this), BOOLEAN)
    return _negated(node, Call("eq_null_safe", (truth, constant), BOOLEAN))


def _matching(name: str, escape: str = "\\") -> Callable[[ExpressionBinder, exp.Expr], Expression]:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        sides = (binder.bind(node.this), binder.bind(node.expression))
        if name == "RLIKE":
            return _negated(node, functions.ADMITTED[name].call(name, sides))
        build = functions.like(name.lower(), escape)
        entry = functions.Admitted((functions.string, functions.constant_string), build, 2, 2)
        return _negated(node, entry.call(name, sides))

    return bind


def _escape(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    escape = node.expression
    if not isinstance(node.this, exp.Like | exp.ILike) or not escape.is_string:
        raise Misfit(SyntaxFault, "ESCAPE takes one quoted character after a LIKE pattern")
    name = "LIKE" if isinstance(node.this, exp.Like) else "ILIKE"
    return _matching(name, escape.name)(binder, node.this)


def _arithmetic(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    function = _ARITHMETIC[type(node)]
    left, right = binder.bind(node.this), binder.bind(node.expression)
    if "INTERVAL" in (left.type.name, right.type.name):
        return _shifted(function, left, right)
    return functions.arithmetic(function)((left, right))


def _shifted(function: str, left: Expression, right: Expression) -> Expression:
    """A time moved by an interval."""
    if left.type.name == "INTERVAL" and function == "add":
        left, right = right, left
    if function not in ("add", "subtract") or not isinstance(right, Literal):
        raise Misfit(TypeFault, "an interval can be added to or subtracted from a TIMESTAMP")
    step = right if function == "add" else functions.negate((right,))
    if left.type not in (TIMESTAMP, DATE, VOID):
        hint = "CAST it" if left.type == STRING else ""
        message = f"an interval moves a TIMESTAMP, not {coercion.article(left.type)}"
        raise Misfit(TypeFault, message, hint)
    moved = Call("add_interval", (coercion.cast(left, TIMESTAMP), step), TIMESTAMP)
    days = isinstance(right.value, timedelta) and right.value % timedelta(days=1) == timedelta(0)
    return coercion.cast(moved, DATE) if left.type == DATE and days else moved


def _div(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return functions.ADMITTED["DIV"].call("DIV", binder.all((node.this, node.expression)))


def _neg(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    value = binder.bind(node.this)
    if value.type.name != "INTERVAL":
        value = functions.number(value)
    return functions.negate((value,))


def _concat(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    parts = _chain(node)
    if any(isinstance(part, exp.Add | exp.Sub) for part in parts):
        raise Misfit(SyntaxFault, "write parentheses: || and + stand beside each other")
    return functions.ADMITTED["CONCAT"].call("||", binder.all(parts))


# --- functions ---------------------------------------------------------------------------------


def _cast(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    try:
        to = types.parse_text(node.args["to"].sql(dialect=Penstock))
    except ValueError as error:
        raise Misfit(TypeFault, str(error)) from None
    value = binder.bind(node.this)
    typed_literal = type(node) is exp.Cast and isinstance(node.this, exp.Literal)
    if typed_literal and coercion.converted(value, to) is None:
        raise Misfit(TypeFault, f"'{node.this.name}' is not {coercion.article(to)}")
    return coercion.cast(value, to)


def _case(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    subject = binder.bind(node.this) if node.this is not None else None
    branches = node.args["ifs"]
    conditions = [_when(binder, subject, branch) for branch in branches]
    values = [binder.bind(branch.args["true"]) for branch in branches]
    default = node.args.get("default")
    if default is not None:
        values.append(binder.bind(default))
    unified = coercion.unify(values, "the branches of CASE")
    pairs = [x for pair in zip(conditions, unified, strict=False) for x in pair]
    return Call("case", (*pairs, *unified[len(conditions) :]), unified[0].type)


def _when(
    binder: ExpressionBinder, subject: Expression | None, branch: exp.Expr
) -> Expression:
    if subject is None:
        return binder.condition(branch.this, "what follows WHEN")
    return comparisons.compare("eq", subject, binder.bind(branch.this))


def _trim(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    function = names.get(str(node.args.get("position") or "").upper(), "trim")
    given = [node.this, *([node.expression] if node.args.get("expression") else [])]
    args = tuple(functions.string(arg) for arg in binder.all(given))
    return Call(function, args, STRING)


def _substring(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    given = [node.args[k] for k in ("this", "start", "length") if node.args.get(k) is not None]
    return functions.ADMITTED["SUBSTR"].call("SUBSTRING", binder.all(given))


def _extract(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    part, value = node.name.upper(), binder.bind(node.expression)
    if part in _SECONDS:
        type_ = Type("DECIMAL", precision=8, scale=6)
        return Call("extract_second", (functions.moment(value),), type_)
    name = _PARTS.get(part, part)
    known = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFYEAR", "HOUR", "MINUTE")
    if name not in known:
        raise Misfit(TypeFault, f"EXTRACT knows no part '{part}'", f"it knows {', '.join(known)}")
    return functions.ADMITTED[name].call("EXTRACT", (value,))


def _function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    name = node.name
    registered = binder.registered.get(name.lower())
    if registered is not None:
        return _python(registered, binder.all(node.expressions))
    upper = name.upper()
    admitted = functions.ADMITTED.get(functions.SYNONYMS.get(upper, upper))
    if admitted is not None:
        return admitted.call(upper, binder.all(node.expressions))
    raise _not_a_function(binder, name)


def _python(function: Function, args: tuple[Expression, ...]) -> Expression:
    if function.arity is not None and len(args) != function.arity:
        message = f"{function.name} takes {function.arity} arguments, not {len(args)}"
        raise Misfit(TypeFault, message)
    typed = tuple(functions.anything(arg) for arg in args)
    return PythonCall(function.name, typed, function.returns)


def _not_a_function(binder: ExpressionBinder, name: str) -> Misfit:
    upper = name.upper()
    if upper in functions.AGGREGATES:
        return Misfit(NotYet, f"the aggregate {upper} is not yet run here")
    if upper in functions.REFUSED:
        return _refused(name, functions.REFUSED[upper])
    if upper in _OF_SPARK:
        return Misfit(Refused, f"the function {name} is not admitted")
    known = [*functions.ADMITTED, *functions.SYNONYMS, *(f.name for f in binder.registered.values())]
    hint = suggestion(name, known) or "CREATE FUNCTION declares one in Python"
    return Misfit(UnknownName, f"no function '{name}'", hint)


def _refused(name: str, reason: str) -> Misfit:
    return Misfit(Refused, f"the function {name} is not admitted: {reason}")


_OF_SPARK = frozenset(Penstock.__mro__[1].Parser.FUNCTIONS)  # type: ignore[attr-defined]
_NEGATABLE = ("this", "expression", "negate")

ADMITTED_NODES: dict[type[exp.Expr], Entry] = {
    exp.Add: Entry(_arithmetic),
    exp.And: Entry(_connected),
    exp.Anonymous: Entry(_function, ("this", "expressions")),
    exp.Between: Entry(_between, ("this", "low", "high", "negate")),
    exp.Boolean: Entry(_boolean),
    exp.Bracket: Entry(_bracket, ("this", "expressions", "offset")),
    exp.Case: Entry(_case, ("this", "ifs", "default")),
    exp.Cast: Entry(_cast, ("this", "to", "safe")),
    exp.Column: Entry(_column, ("this", "table", "db", "catalog")),
    exp.DPipe: Entry(_concat, ("this", "expression", "safe")),
    exp.Div: Entry(_arithmetic, ("this", "expression", "typed", "safe")),
    exp.Dot: Entry(_dot),
    exp.EQ: Entry(_comparison),
    exp.Escape: Entry(_escape),
    exp.Extract: Entry(_extract),
    exp.GT: Entry(_comparison),
    exp.GTE: Entry(_comparison),
    exp.HexString: Entry(_hex, ("this", "is_integer")),
    exp.ILike: Entry(_matching("ILIKE"), _NEGATABLE),
    exp.In: Entry(_in, ("this", "expressions", "negate")),
    exp.IntDiv: Entry(_div),
    exp.Interval: Entry(_interval, ("this", "unit")),
    exp.Is: Entry(_is, _NEGATABLE),
    exp.LT: Entry(_comparison),
    exp.LTE: Entry(_comparison),
    exp.Like: Entry(_matching("LIKE"), _NEGATABLE),
    exp.Literal: Entry(_literal, ("this", "is_string")),
    exp.Mod: Entry(_arithmetic),
    exp.Mul: Entry(_arithmetic),
    exp.NEQ: Entry(_comparison),
    exp.Neg: Entry(_neg),
    exp.Not: Entry(_not),
    exp.Null: Entry(_null),
    exp.NullSafeEQ: Entry(_comparison),
    exp.NullSafeNEQ: Entry(_comparison),
    exp.Or: Entry(_connected),
    exp.Paren: Entry(_paren),
    exp.RegexpLike: Entry(_matching("RLIKE"), _NEGATABLE),
    exp.Sub: Entry(_arithmetic),
    exp.Substring: Entry(_substring, ("this", "start", "length")),
    exp.Trim: Entry(_trim, ("this", "position", "expression")),
    exp.TryCast: Entry(_cast, ("this", "to", "safe")),
}
"""Every node that has a meaning."""

_WORDS: dict[type[exp.Expr], str] = {
    exp.Alias: "an alias",
    exp.Distinct: "DISTINCT",
    exp.Exists: "EXISTS",
    exp.Filter: "FILTER",
    exp.In: "IN",
    exp.Lambda: "a lambda",
    exp.Select: "a subquery",
    exp.Star: "*",
    exp.Subquery: "a subquery",
    exp.Tuple: "a list in parentheses",
    exp.Window: "a window function (OVER)",
}
"""Words for nodes whose class name says nothing to a user."""
