"""Nodes that are calls: functions by name, and those with words among their arguments."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import Refused, TypeFault, UnknownName
from penstock.language import call_arguments, coercion, comparisons, functions, types
from penstock.language.aggregates import AGGREGATES, is_aggregate
from penstock.language.binder import ExpressionBinder
from penstock.language.dialect import STANDARD, Penstock
from penstock.language.foreign import IN_PYTHON, OF_SPARK, SUBSTITUTES, substitute
from penstock.language.places import Misfit, suggestion
from penstock.model import STRING, Call, Expression, Function, PythonCall, Type

_PARTS = {
    "DAYOFWEEK": "DAYOFWEEK",
    "DOW": "DAYOFWEEK",
    "DAYOFYEAR": "DAYOFYEAR",
    "DOY": "DAYOFYEAR",
    "D": "DAY",
    "DAYS": "DAY",
    "H": "HOUR",
    "HOURS": "HOUR",
    "MINUTES": "MINUTE",
    "MIN": "MINUTE",
    "YEARS": "YEAR",
    "MONTHS": "MONTH",
}
_WITH_UNIT = {
    "DATEADD": "TIMESTAMPADD",
    "DATEDIFF": "TIMESTAMPDIFF",
    "DATE_ADD": "TIMESTAMPADD",
    "DATE_DIFF": "TIMESTAMPDIFF",
    "TIMESTAMPADD": "TIMESTAMPADD",
    "TIMESTAMPDIFF": "TIMESTAMPDIFF",
}
"""What a function of three arguments means whose first may be a unit, as in ``(MINUTE, a, b)``."""
_SECONDS = ("SECOND", "SECONDS", "SEC", "S")


def cast(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """CAST, TRY_CAST, ``::`` and typed literals such as ``DATE '2024-01-01'``."""
    try:
        to = types.parse_text(node.args["to"].sql(dialect=Penstock))
    except ValueError as error:
        raise Misfit(TypeFault, str(error)) from None
    value = binder.bind(node.this)
    typed_literal = type(node) is exp.Cast and isinstance(node.this, exp.Literal)
    if typed_literal and coercion.converted(value, to) is None:
        raise Misfit(TypeFault, f"'{node.this.name}' is not {coercion.article(to)}")
    return coercion.cast(value, to)


def case(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """CASE with conditions, or with a value to compare."""
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


def _when(binder: ExpressionBinder, subject: Expression | None, branch: exp.Expr) -> Expression:
    if subject is None:
        return binder.condition(branch.this, "what follows WHEN")
    return comparisons.compare("eq", subject, binder.bind(branch.this))


def trim(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """TRIM, also with LEADING, TRAILING or BOTH and the characters to take away."""
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    function = names.get(str(node.args.get("position") or "").upper(), "trim")
    given = [node.this, *([node.expression] if node.args.get("expression") else [])]
    args = tuple(call_arguments.string(arg) for arg in binder.all(given))
    return Call(function, args, STRING)


def substring(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """SUBSTRING, also with FROM and FOR."""
    given = [node.args[k] for k in ("this", "start", "length") if node.args.get(k) is not None]
    return functions.ADMITTED["SUBSTR"].call("SUBSTRING", binder.all(given))


def extract(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """EXTRACT(part FROM time)."""
    part, value = node.name.upper(), binder.bind(node.expression)
    if part in _SECONDS:
        type_ = Type("DECIMAL", precision=8, scale=6)
        return Call("extract_second", (call_arguments.moment(value),), type_)
    name = _PARTS.get(part, part)
    known = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFYEAR", "HOUR", "MINUTE")
    if name not in known:
        hint = f"it knows {', '.join(known)}" if part != "EPOCH" else "write UNIX_TIMESTAMP(ts)"
        raise Misfit(TypeFault, f"EXTRACT knows no part '{part}'", hint)
    return functions.ADMITTED[name].call("EXTRACT", (value,))


def function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A registered function, or an admitted one."""
    name = node.name
    registered = binder.registered.get(name.lower())
    if registered is not None:
        return _python(registered, binder.all(node.expressions))
    upper = name.upper()
    given = node.expressions
    if upper in _WITH_UNIT and len(given) == 3:
        upper, given = _WITH_UNIT[upper], [_unit(given[0]), *given[1:]]
    admitted = functions.ADMITTED.get(functions.SYNONYMS.get(upper, upper))
    if admitted is not None:
        return admitted.call(name.upper(), binder.all(given))
    raise _not_a_function(binder, name)


def _unit(node: exp.Expr) -> exp.Expr:
    """A unit of time, which many systems take without quotes."""
    if type(node) is exp.Column and not node.table:
        quoted = exp.Literal.string(node.name)
        quoted.meta.update(node.meta)
        return quoted
    return node


def zoned(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``time AT TIME ZONE 'zone'``: the clock of the zone at that time."""
    given = (binder.bind(node.this), binder.bind(node.args["zone"]))
    return functions.ADMITTED["FROM_UTC_TIMESTAMP"].call("AT TIME ZONE", given)


def position(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """POSITION(part IN text)."""
    given = (binder.bind(node.this), binder.bind(node.args["substr"]))
    return functions.ADMITTED["INSTR"].call("POSITION", given)


def _python(function: Function, args: tuple[Expression, ...]) -> Expression:
    if function.arity is not None and len(args) != function.arity:
        message = f"{function.name} takes {function.arity} arguments, not {len(args)}"
        raise Misfit(TypeFault, message)
    typed = tuple(call_arguments.anything(arg) for arg in args)
    return PythonCall(function.name, typed, function.returns, function.deterministic)


def _not_a_function(binder: ExpressionBinder, name: str) -> Misfit:
    upper = name.upper()
    if is_aggregate(name):
        hint = "write it in HAVING" if binder.clause == "WHERE" else ""
        return Misfit(Refused, f"the aggregate {upper} is not admitted in {binder.clause}", hint)
    if upper in STANDARD:
        return Misfit(Refused, f"{upper} stands in GROUP BY or in FROM TABLE({upper}(...))",
                      "window_start and window_end are the ends of the window")
    refusal = functions.refusal(name)
    if refusal is not None:
        return refusal
    known = [*functions.ADMITTED, *functions.SYNONYMS]
    known += [*AGGREGATES, *STANDARD, *(function.name for function in binder.registered.values())]
    if upper in SUBSTITUTES or upper in OF_SPARK:
        hint = substitute(upper, known)
        return Misfit(Refused, f"the function {name} is not admitted", hint)
    hint = suggestion(name, known) or IN_PYTHON
    return Misfit(UnknownName, f"no function '{name}'", hint)
