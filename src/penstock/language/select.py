"""A query's tree into branches: FROM, JOIN, WHERE, SELECT list, UNION ALL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from penstock.errors import LanguageError, Refused, TypeFault, UnknownName
from penstock.language import coercion, comparisons, types
from penstock.language.binder import ExpressionBinder, describe
from penstock.language.catalogue import Catalogue
from penstock.language.dialect import Unparsed, parse_query, place_of_node
from penstock.language.expressions import expression_binder
from penstock.language.forms import not_yet, refuse_later_forms
from penstock.language.places import Misfit, Place, Source, suggestion
from penstock.language.scope import Input, Scope
from penstock.language.windows import take_windows
from penstock.model import Branch, Call, Expression, Join, Output, Relation, Stream, is_expensive

_CLAUSES = {
    "with_": "a common table expression (WITH)",
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "a named window",
    "sample": "TABLESAMPLE",
    "laterals": "LATERAL VIEW",
    "hint": "a hint",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "kind": "SELECT AS STRUCT",
    "pivots": "PIVOT",
    "joins": "a join of this kind",
    "alias": "an alias of a query",
}
_JOINS = "JOIN and LEFT JOIN are"
_WORDS = ("FROM", "WHERE", "JOIN", "ON", "AS", "AND", "OR", "UNION", "SELECT", "GROUP", "HAVING")


def bind_select(
    tokens: Sequence[Token], source: Source, catalogue: Catalogue
) -> tuple[Branch, ...]:
    """The branches of a query, one per SELECT."""
    around = Place(tokens[0].start, tokens[-1].end + 1)
    rest, windows = take_windows(tokens, source)
    tree = _parse(rest, source, around)
    refuse_later_forms(tree, windows, catalogue.functions, source)
    binder = _SelectBinder(source, catalogue, around)
    try:
        selects = binder.selects(tree)
        return binder.aligned([binder.branch(select) for select in selects], selects)
    except RecursionError:
        raise source.syntax("this query is nested too deeply", around) from None


def _parse(tokens: Sequence[Token], source: Source, around: Place) -> exp.Expr:
    """Sqlglot's tree; whatever goes wrong inside sqlglot is an error of the text."""
    try:
        tree = parse_query(tokens, source.text)
    except Unparsed as error:
        raise _unparsed(error, tokens, source) from None
    except RecursionError:
        raise source.syntax("this query is nested too deeply", around) from None
    except Exception as error:  # whatever sqlglot raises, the text is at fault
        raise source.syntax(f"this is not a query: {error}"[:200], around) from None
    if tree is None:
        raise source.syntax("expected SELECT", around)
    return tree


def _unparsed(error: Unparsed, tokens: Sequence[Token], source: Source) -> LanguageError:
    at = next((i for i, t in enumerate(tokens) if t.start == error.place.start), len(tokens) - 1)
    hint = ""
    for token in reversed(tokens[max(0, at - 1) : at + 1]):
        if token.text.isalpha() and token.text.upper() not in _WORDS:
            hint = hint or suggestion(token.text, _WORDS)
    written = source.text[error.place.start : error.place.end]
    message = error.message.lower()
    if message.startswith(("expected", "expecting")):
        wanted = error.message.split(" ", 1)[1].split(" but got")[0].replace("TYPE", "a type")
        where = "after" if error.ended else "at"
        return source.syntax(f"expected {wanted} {where} '{written}'", error.place, hint)
    if error.ended:
        return source.syntax(f"expected more after '{written}'", error.place, hint)
    if message.startswith("required argument"):
        return source.syntax(
            f"something is missing at '{written}'",
            error.place,
            hint or "expected a value or a column",
        )
    hint = hint or "expected an operator, a comma, or a clause such as FROM, JOIN or WHERE"
    return source.syntax(f"unexpected '{written}'", error.place, hint)


class _SelectBinder:
    def __init__(self, source: Source, catalogue: Catalogue, around: Place) -> None:
        self.source, self.catalogue, self.around = source, catalogue, around

    def place(self, node: exp.Expr) -> Place:
        return place_of_node(node) or self.around

    def fault(
        self, kind: type[LanguageError], message: str, node: exp.Expr, hint: str = ""
    ) -> LanguageError:
        return self.source.fault(kind, message, self.place(node), hint)

    # --- the shape of the query ----------------------------------------------------------------

    def selects(self, tree: exp.Expr) -> list[exp.Select]:
        """The SELECTs of a UNION ALL, in the order written."""
        found: list[exp.Select] = []
        rest = [tree]
        while rest:
            node = rest.pop()
            if isinstance(node, exp.Select):
                self._check(node, ("expressions", "from_", "joins", "where"))
                found.append(node)
            elif isinstance(node, exp.Union):
                self._check(node, ("this", "expression", "distinct"), distinct_is_default=True)
                rest.extend((node.expression, node.this))
            elif isinstance(node, exp.Subquery):
                self._check(node, ("this",))
                rest.append(node.this)
            elif isinstance(node, exp.SetOperation):
                name = type(node).__name__.upper()
                raise self.fault(Refused, f"{name} is not admitted", node, "only UNION ALL is")
            else:
                raise self.source.syntax("expected SELECT", self.place(node))
        return found

    def _check(
        self, node: exp.Expr, reads: Sequence[str], distinct_is_default: bool = False
    ) -> None:
        """Refuse what a SELECT or UNION has beyond what is read."""
        if distinct_is_default and node.args.get("distinct") is not False:
            raise self.fault(Refused, "UNION without ALL is not admitted", node, "write UNION ALL")
        for name, value in node.args.items():
            if name not in reads and value not in (None, False, []):
                words = _CLAUSES.get(name, name.rstrip("_").upper())
                first = value[0] if isinstance(value, list) else value
                part = first if isinstance(first, exp.Expr) else node
                hint = "a stream has no end" if name in ("order", "limit", "distinct") else ""
                raise self.fault(Refused, f"{words} is not admitted", part, hint)

    # --- one SELECT ----------------------------------------------------------------------------

    def branch(self, select: exp.Select) -> Branch:
        stream, inputs, joined = self._from(select)
        joins = [self._join(join, inputs[: k + 2]) for k, join in enumerate(joined)]
        binder = self._binder(inputs)
        where = select.args.get("where")
        condition = binder.condition(where.this, "the condition of WHERE") if where else None
        return Branch(
            stream=stream.name,
            select=self._outputs(select, binder),
            where=comparisons.conjuncts(condition) if condition is not None else (),
            joins=tuple(joins),
        )

    def _binder(self, inputs: Sequence[Input]) -> ExpressionBinder:
        registered = self.catalogue.functions
        return expression_binder(self.source, Scope(inputs), registered, self.around)

    def _from(self, select: exp.Select) -> tuple[Stream, list[Input], list[exp.Join]]:
        """The stream, all inputs with it first, and the joins."""
        clause = select.args.get("from_")
        if clause is None:
            hint = "a query reads a stream: SELECT ... FROM packets"
            raise self.fault(TypeFault, "this SELECT has no FROM", select, hint)
        joins = list(select.args.get("joins") or [])
        tables = [clause.this, *(join.this for join in joins)]
        found = [self._table(table) for table in tables]
        streams = [t for t, f in zip(tables, found, strict=True) if isinstance(f, Stream)]
        if len(streams) > 1:
            raise not_yet(len(tables), self.place(streams[1]), self.source)
        first = found[0]
        if not isinstance(first, Stream):
            raise self._no_stream(first, tables[0], bool(streams))
        inputs = [
            Input(table.alias_or_name, f.columns, k)
            for k, (table, f) in enumerate(zip(tables, found, strict=True))
        ]
        self._check_aliases(inputs, tables)
        return first, inputs, joins

    def _no_stream(self, first: Relation, table: exp.Expr, later: bool) -> LanguageError:
        hint = (
            "write the stream first: FROM stream JOIN relation"
            if later
            else "a standing query reads one stream; join the relation to it"
        )
        return self.fault(TypeFault, f"'{first.name}' is a relation, not a stream", table, hint)

    def _table(self, table: exp.Expr) -> Stream | Relation:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            what = "a function" if isinstance(table, exp.Table) else describe(table)
            message = f"{what} is not admitted in FROM"
            raise self.fault(Refused, message, table, "name a stream or relation")
        self._check(table, ("this", "alias", "db", "catalog"))
        if table.args.get("db"):
            raise self.fault(UnknownName, "streams and relations have plain names", table)
        if table.args.get("alias") and table.args["alias"].args.get("columns"):
            raise self.fault(Refused, "names for the columns of a table are not admitted", table)
        found = self.catalogue.table(table.name)
        if found is None:
            known = self.catalogue.table_names()
            hint = suggestion(table.name, known) or "CREATE STREAM declares one"
            message = f"no stream or relation '{table.name}'"
            raise self.fault(UnknownName, message, table.this, hint)
        return found

    def _check_aliases(self, inputs: Sequence[Input], tables: Sequence[exp.Expr]) -> None:
        seen: set[str] = set()
        for item, table in zip(inputs, tables, strict=True):
            if item.alias.lower() in seen:
                hint = "give one of them an alias"
                raise self.fault(TypeFault, f"two inputs are called '{item.alias}'", table, hint)
            seen.add(item.alias.lower())

    def _join(self, join: exp.Join, inputs: Sequence[Input]) -> Join:
        side, kind = (str(join.args.get(k) or "").upper() for k in ("side", "kind"))
        words = " ".join(w for w in (str(join.args.get("method") or ""), side, kind) if w)
        if (side, kind) not in (("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")) or (
            join.args.get("method")
        ):
            hint = f"write JOIN {join.this.name} ON ..." if kind == "CROSS" else _JOINS
            raise self.fault(Refused, f"{words} JOIN is not admitted", join, hint)
        self._check(join, ("this", "on", "side", "kind"))
        condition = join.args.get("on")
        if condition is None:
            hint = f"write JOIN {join.this.name} ON ..."
            raise self.fault(TypeFault, "a join needs its condition", join, hint)
        on = self._binder(inputs).condition(condition, "the condition of ON")
        if is_expensive(on):
            hint = "put it into WHERE"
            raise self.fault(Refused, "a Python function is not admitted in ON", condition, hint)
        relation = self._table(join.this)
        return Join(relation.name, on, "left" if side else "inner")

    # --- the SELECT list -----------------------------------------------------------------------

    def _outputs(self, select: exp.Select, binder: ExpressionBinder) -> tuple[Output, ...]:
        outputs: list[Output] = []
        seen: set[str] = set()
        for item in select.expressions:
            for output in self._item(item, binder):
                if output.name.lower() in seen:
                    message = f"two columns of the answer are called '{output.name}'"
                    raise self.fault(TypeFault, message, item, "name one of them with AS")
                seen.add(output.name.lower())
                outputs.append(output)
        if not outputs:
            raise self.fault(TypeFault, "this SELECT has no columns", select)
        return tuple(outputs)

    def _item(self, item: exp.Expr, binder: ExpressionBinder) -> list[Output]:
        if isinstance(item, exp.Star):
            self._check(item, ())
            return _columns(binder.scope.inputs)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            return self._columns_of(item, binder)
        if isinstance(item, exp.Alias):
            return [Output(self._named(item), binder.bind(item.this))]
        expression = binder.bind(item)
        return [Output(_name(item, expression), expression)]

    def _columns_of(self, item: exp.Column, binder: ExpressionBinder) -> list[Output]:
        self._check(item, ("this", "table"))
        self._check(item.this, ())
        found = binder.scope.input(item.table)
        if found is None:
            names = [i.alias for i in binder.scope.inputs]
            hint = suggestion(item.table, names) or f"the query reads {', '.join(names)}"
            message = f"nothing in this query is called '{item.table}'"
            raise self.fault(UnknownName, message, item, hint)
        return _columns([found])

    def _named(self, item: exp.Alias) -> str:
        name = item.alias
        if not name.strip() or not name.isprintable():
            raise self.fault(TypeFault, "the name of a column must not be blank", item)
        return name

    # --- UNION ALL -----------------------------------------------------------------------------

    def aligned(
        self, branches: Sequence[Branch], selects: Sequence[exp.Select]
    ) -> tuple[Branch, ...]:
        """Branches with the same names and types: those of the first, widened."""
        first = branches[0].select
        for branch, select in zip(branches, selects, strict=True):
            if len(branch.select) != len(first):
                message = (
                    f"this SELECT has {len(branch.select)} columns, "
                    f"the first of the UNION has {len(first)}"
                )
                raise self.fault(TypeFault, message, select)
        items = selects[-1].expressions
        places = [
            self.place(items[k] if len(items) == len(first) else selects[-1])
            for k in range(len(first))
        ]
        rows = zip(*(b.select for b in branches), strict=True)
        columns = [self._aligned_column(c, p) for c, p in zip(rows, places, strict=True)]
        widened = zip(*columns, strict=True)
        return tuple(replace(b, select=s) for b, s in zip(branches, widened, strict=True))

    def _aligned_column(self, column: tuple[Output, ...], place: Place) -> tuple[Output, ...]:
        name = column[0].name
        try:
            unified = coercion.unify([o.expression for o in column], f"the columns '{name}'")
        except Misfit as misfit:
            raise self.source.fault(misfit.kind, misfit.message, place, misfit.hint) from None
        types.check_storable(unified[0].type, self.source, place, f"the column '{name}'")
        return tuple(Output(name, expression) for expression in unified)


def _columns(inputs: Sequence[Input]) -> list[Output]:
    found = [(f.name, i.column(f.name)) for i in inputs for f in i.columns]
    return [Output(name, column) for name, column in found if column is not None]


def _name(item: exp.Expr, expression: Expression) -> str:
    """The name of a column that was given none: its own, its field's, or its text."""
    if isinstance(item, exp.Column | exp.Dot):
        if isinstance(expression, Call):
            return expression.detail or item.name
        return getattr(expression, "name", item.name)
    return str(item.meta.get("written") or item.sql(dialect="spark"))
