"""A query's tree into branches: FROM, JOIN, WHERE, GROUP BY, HAVING, SELECT list, UNION ALL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from penstock.errors import LanguageError, NotYet, Refused, TypeFault, UnknownName
from penstock.language import coercion, comparisons, types
from penstock.language.binder import ExpressionBinder, describe
from penstock.language.catalogue import Catalogue
from penstock.language.dialect import place_of_node
from penstock.language.expressions import expression_binder
from penstock.language.grouping import (
    WINDOW_COLUMNS,
    AnswerBinder,
    first_aggregate,
    group_keys,
    grouped_by,
    is_aggregate,
    sessions,
    windowed,
)
from penstock.language.multiway_joins import multiway_join, unjoined
from penstock.language.parsing import parsed
from penstock.language.places import Misfit, Place, Source, suggestion
from penstock.language.scope import FromItem, Scope
from penstock.language.spellings import understood
from penstock.language.stream_joins import (
    aggregated_window,
    join_window,
    row_join,
    window_join,
)
from penstock.language.tokens import unseen
from penstock.language.unnesting import is_unnesting, unnested
from penstock.language.windows import (
    Clause,
    Hop,
    grouped_hop,
    hopping_table,
    is_standard,
    misplaced,
    take_windows,
)
from penstock.model import (
    TIMESTAMP,
    Branch,
    Call,
    Expression,
    Grouping,
    Input,
    Lookup,
    Output,
    Relation,
    Stream,
    Window,
    is_expensive,
    name_key,
)

_CLAUSES = {
    "with_": "a common table expression (WITH)",
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "a named window",
    "sample": "TABLESAMPLE",
    "hint": "a hint",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "all": "GROUP BY ALL",
    "kind": "SELECT AS STRUCT",
    "pivots": "PIVOT",
    "joins": "a join of this kind",
    "alias": "an alias of a query",
}
_JOINS = "JOIN and LEFT JOIN are"
_INSTEAD = {
    **dict.fromkeys(("order", "limit", "distinct"), "a stream has no end"),
    "using": "write ON ...",
}


def bind_select(
    tokens: Sequence[Token], source: Source, catalogue: Catalogue
) -> tuple[Branch, ...]:
    """The branches of a query, one per SELECT."""
    around = Place(tokens[0].start, tokens[-1].end + 1)
    rest, windows = take_windows(understood(tokens, source), source)
    tree = parsed(rest, source, around)
    binder = _SelectBinder(source, catalogue, around, windows)
    try:
        selects = binder.selects(tree)
        binder.refuse_union_of_aggregates(selects)
        return binder.aligned([binder.branch(select) for select in selects], selects)
    except RecursionError:
        raise source.syntax("this query is nested too deeply", around) from None


class _SelectBinder:
    def __init__(
        self, source: Source, catalogue: Catalogue, around: Place, windows: Sequence[Clause]
    ) -> None:
        self.source, self.catalogue, self.around = source, catalogue, around
        self.windows = windows
        self.unnested: dict[int, Lookup] = {}
        """What the joins of this query take apart, by the identity of their nodes."""

    def place(self, node: exp.Expr) -> Place:
        return place_of_node(node) or self.around

    def fault(
        self, kind: type[LanguageError], message: str, node: exp.Expr, hint: str = ""
    ) -> LanguageError:
        return self.source.fault(kind, message, self.place(node), hint)

    def misfitting(self, misfit: Misfit, node: exp.Expr) -> LanguageError:
        return self.fault(misfit.kind, misfit.message, node, misfit.hint)

    # --- the shape of the query ----------------------------------------------------------------

    def selects(self, tree: exp.Expr) -> list[exp.Select]:
        """The SELECTs of a UNION ALL, in the order written."""
        found: list[exp.Select] = []
        rest = [tree]
        while rest:
            node = rest.pop()
            if isinstance(node, exp.Select):
                self._check(node, ("expressions", "from_", "joins", "laterals", "where", "group",
                                   "having"))
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
                hint = _INSTEAD.get(name, "")
                place = self._from_keyword(words, part)
                raise self.source.fault(Refused, f"{words} is not admitted", place, hint)

    def _from_keyword(self, words: str, node: exp.Expr) -> Place:
        """The place of a clause with the keyword that leads it, where that stands before it."""
        place = self.place(node)
        pattern = r"\b" + r"\s+".join(map(re.escape, words.split())) + r"[\s(]*\Z"
        begin = max(0, place.start - 100)
        led = re.search(pattern, self.source.text[begin : place.start], re.I)
        return Place(begin + led.start(), place.end) if led else place

    def refuse_union_of_aggregates(self, selects: Sequence[exp.Select]) -> None:
        """Complain about a window aggregate or a window join that is not the only SELECT."""
        if len(selects) == 1:
            return
        joins = [join for select in selects for join in self._stream_joins(select)]
        places = [self.place(joins[0])] if joins else [window.place for window in self.windows]
        places += [self.place(node) for node in map(_aggregating, selects) if node is not None]
        if places:
            what = "joins of streams" if joins else "window aggregates"
            message = f"{what} in a UNION ALL are not supported yet"
            raise self.source.fault(NotYet, message, places[0], "make it a query of its own")

    def _stream_joins(self, select: exp.Select) -> list[exp.Expr]:
        """The streams that a SELECT joins to another."""
        tables = [join.this for join in select.args.get("joins") or []]
        return [table for table in tables if isinstance(table, exp.Table)
                and isinstance(self.catalogue.table(table.name), Stream)]

    # --- one SELECT ----------------------------------------------------------------------------

    def branch(self, select: exp.Select) -> Branch:
        streams, inputs, joined, hop = self._from(select)
        if len(streams) > 1:
            return self._window_join(select, streams, inputs, joined)
        stream = streams[0]
        lookups = tuple(self._lookup(join, inputs[: k + 2]) for k, join in enumerate(joined))
        condition = self._condition(self._binder(inputs, "WHERE"), select, "where")
        reason = _aggregating(select)
        if reason is None and hop is None and not self.windows:
            outputs = self._outputs(select, self._binder(inputs, "the SELECT list"))
            return Branch((Input(stream.name),), outputs, condition, lookups)
        window = self._window(select, stream, inputs, hop)
        if reason is None:
            self._outputs(select, self._binder(inputs, "the SELECT list"))  # its own faults first
            hint = "select an aggregate such as COUNT(*), or GROUP BY"
            raise self.source.fault(TypeFault, "nothing is aggregated here", window.place, hint)
        read = Input(stream.name, self._time(window))
        grouping, outputs = self._grouped(select, streams, inputs)
        if read.window is not None and read.window.gap:
            grouping, outputs = self._of_sessions(grouping, outputs, read.window, stream, inputs,
                                                  window)
        return Branch((read,), outputs, condition, lookups, grouping)

    def _window_join(
        self, select: exp.Select, streams: Sequence[Stream], inputs: Sequence[FromItem],
        joined: Sequence[exp.Join],
    ) -> Branch:
        """A SELECT from two or more streams: pairs, or an aggregate over them."""
        reason, count = _aggregating(select), len(streams)
        conditions = tuple(condition for k, join in enumerate(joined[: count - 1])
                           for condition in self._pairing(join, inputs[: k + 2]))
        lookups = tuple(self._lookup(join, inputs[: count + k + 1])
                        for k, join in enumerate(joined[count - 1 :]))
        conditions += self._condition(self._binder(inputs, "WHERE"), select, "where")
        window = self._join_window(select, reason)
        grouping = None
        if reason is not None:
            grouping, outputs = self._grouped(select, streams, inputs)
        else:
            outputs = self._outputs(select, self._binder(inputs, "the SELECT list"))
        times = [item.column(stream.time) if stream.time and not stream.unit else None
                 for item, stream in zip(inputs, streams, strict=False)]
        try:
            if count > 2:
                names = [item.alias for item in inputs[:count]]
                join, selected = multiway_join(conditions, names, window)
            elif isinstance(window, int):
                join, selected = row_join(conditions, window)
            else:
                join, selected = window_join(conditions, times, window)
        except Misfit as misfit:
            number = unjoined(conditions, count) or count - 1
            raise self.misfitting(misfit, joined[number - 1].this) from None
        windowed = window if grouping is not None and isinstance(window, Window) else None
        read = tuple(Input(stream.name, windowed) for stream in streams)
        branch = Branch(read, outputs, selected, lookups, grouping, join)
        if reason is not None and any(map(is_expensive, branch.expressions)):
            message = "Python functions in an aggregate over a join are not supported yet"
            raise self.fault(NotYet, message, reason, "select the pairs themselves")
        return branch

    def _pairing(self, join: exp.Join, inputs: Sequence[FromItem]) -> tuple[Expression, ...]:
        """The conditions of ON between two streams; a comma has none."""
        self._check_kind(join, ("INNER", "", "CROSS"), "only inner joins of streams are")
        condition = join.args.get("on")
        if condition is None:
            return ()
        bound = self._binder(inputs, "ON").condition(condition, "the condition of ON")
        return comparisons.conjuncts(bound)

    def _join_window(self, select: exp.Select, reason: exp.Expr | None) -> Window | int | None:
        """The window of a join of streams, of time or of this many rows, where a clause gives it.

        An aggregate has one.
        """
        for node in filter(is_standard, grouped_by(select)):
            message = f"{node.name.upper()} looks at the time of one stream, and a join has two"
            hint = "write WINDOW ... SLIDE EXACTLY ... at the end"
            raise self.fault(Refused, message, node, hint)
        if not self.windows:
            if reason is not None:
                message = "an aggregate over a join needs a window"
                hint = "write WINDOW 10 MIN SLIDE 2 MIN at the end"
                raise self.fault(TypeFault, message, reason, hint)
            return None
        if len(self.windows) > 1:
            raise self.source.syntax("a query has one window", self.windows[1].place)
        try:
            clause = self.windows[0]
            return join_window(clause) if reason is None else aggregated_window(clause)
        except Misfit as misfit:
            place = self.windows[0].place
            raise self.source.fault(misfit.kind, misfit.message, place, misfit.hint) from None

    def _binder(self, inputs: Sequence[FromItem], clause: str) -> ExpressionBinder:
        registered = self.catalogue.functions
        return expression_binder(self.source, Scope(inputs), registered, self.around, clause)

    def _condition(
        self, binder: ExpressionBinder, select: exp.Select, clause: str
    ) -> tuple[Expression, ...]:
        """The conjuncts of WHERE or HAVING."""
        node = select.args.get(clause)
        if node is None:
            return ()
        what = f"the condition of {clause.upper()}"
        return comparisons.conjuncts(binder.condition(node.this, what))

    # --- windows and groups --------------------------------------------------------------------

    def _window(
        self, select: exp.Select, stream: Stream, inputs: Sequence[FromItem], hop: Hop | None
    ) -> Clause:
        """The one window of a SELECT that aggregates."""
        hops = [hop] if hop is not None else []
        hops += [self._grouped_hop(node) for node in grouped_by(select) if is_standard(node)]
        for each in hops:
            self._check_time(each, stream, inputs[0])
        clauses = sorted((*self.windows, *(h.clause for h in hops)), key=lambda c: c.place.start)
        if len(clauses) > 1:
            raise self.source.syntax("a query has one window", clauses[1].place)
        if not clauses:
            hint = f"write FROM {stream.name} [WINDOW 10 MIN SLIDE 2 MIN]"
            message = "an aggregate over a stream needs a window"
            raise self.fault(TypeFault, message, _aggregating(select) or select, hint)
        self._check_position(clauses[0], select)
        return clauses[0]

    def _grouped_hop(self, node: exp.Expr) -> Hop:
        try:
            return grouped_hop(node, self.around)
        except Misfit as misfit:
            raise self.misfitting(misfit, node) from None

    def _check_time(self, hop: Hop, stream: Stream, first: FromItem) -> None:
        """HOP and TUMBLE look at the stream's time, and at no other column."""
        if stream.time is None:
            message = f"{stream.name} has no TIME for {hop.name} to look at"
            hint = "write [WINDOW ... SLIDE EXACTLY ...] for windows of the time of arrival"
            raise self.fault(TypeFault, message, hop.time, hint)
        bound = self._binder([first], hop.name).bind(hop.time)
        if bound != first.column(stream.time):
            message = f"{hop.name} looks at the TIME of {stream.name}, which is {stream.time}"
            raise self.fault(TypeFault, message, hop.time)

    def _check_position(self, clause: Clause, select: exp.Select) -> None:
        """A window in brackets follows the stream, before any relation."""
        later = [*(select.args.get("joins") or []), *grouped_by(select)]
        later += [part for name in ("where", "having") if (part := select.args.get(name))]
        start, stream = clause.place.start, self.place(select.args["from_"]).start
        if clause.bracketed and not (
            stream < start and all(start < self.place(node).start for node in later)
        ):
            raise misplaced(clause.place, self.source)

    def _time(self, clause: Clause) -> Window:
        if clause.window is None:
            message = "a window of ROWS is for joins of streams; an aggregate has a window of time"
            raise self.source.fault(Refused, message, clause.place, "write WINDOW 10 MIN")
        return clause.window

    def _grouped(
        self, select: exp.Select, streams: Sequence[Stream], inputs: Sequence[FromItem]
    ) -> tuple[Grouping, tuple[Output, ...]]:
        """What is grouped and aggregated, and the columns of the answer."""
        group = select.args.get("group")
        if group is not None:
            self._check(group, ("expressions",))
        keys = tuple(dict.fromkeys(group_keys(select, self._binder(inputs, "GROUP BY"))))
        time = _row_time(streams, inputs)
        rows = self._binder(inputs, "another aggregate")
        binder = AnswerBinder(rows, keys, "the SELECT list", time)
        outputs = self._outputs(select, binder)
        named = [item for item in select.expressions if isinstance(item, exp.Alias)]
        binder.aliases = {name_key(item.alias): binder.bind(item.this) for item in named}
        having = self._condition(binder, select, "having")
        return Grouping(keys, tuple(binder.aggregates), having), outputs

    def _of_sessions(
        self, grouping: Grouping, outputs: Sequence[Output], window: Window, stream: Stream,
        inputs: Sequence[FromItem], clause: Clause,
    ) -> tuple[Grouping, tuple[Output, ...]]:
        """A window aggregate over sessions, whose ends are those of its rows and the gap."""
        time = _row_time([stream], inputs)
        if time is None or time.type != TIMESTAMP:
            message = f"sessions need a TIMESTAMP as TIME, and {stream.name} has none"
            raise self.source.fault(TypeFault, message, clause.place, "write TIME in CREATE STREAM")
        return sessions(grouping, outputs, window, time)

    # --- FROM and JOIN -------------------------------------------------------------------------

    def _from(
        self, select: exp.Select
    ) -> tuple[list[Stream], list[FromItem], list[exp.Join], Hop | None]:
        """The streams, all inputs with them first, the joins, and the window of a table."""
        clause = select.args.get("from_")
        if clause is None:
            hint = "a query reads a stream: SELECT ... FROM packets"
            raise self.fault(TypeFault, "this SELECT has no FROM", select, hint)
        joins = [*(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
        read, hop = self._read(clause.this)
        tables = [read, *(j.this if isinstance(j, exp.Join) else j for j in joins)]
        inputs: list[FromItem] = []
        found: list[Stream | Relation | Lookup] = []
        for table, join in zip(tables, (read, *joins), strict=True):
            one = self._unnested(table, join, inputs) if is_unnesting(table) else self._table(table)
            inputs.append(FromItem(table.alias_or_name, one.columns, len(inputs)))
            found.append(one)
        streams = [t for t, f in zip(tables, found, strict=True) if isinstance(f, Stream)]
        first = found[0]
        if isinstance(first, Lookup):
            hint = "write FROM stream CROSS JOIN UNNEST(x) AS t (y)"
            raise self.fault(TypeFault, "a query reads a stream", tables[0], hint)
        if not isinstance(first, Stream):
            raise self._no_stream(first, tables[0], bool(streams))
        if len(streams) > 1:
            self._check_streams(streams, tables, hop)
        self._check_aliases(inputs, tables)
        return [f for f in found if isinstance(f, Stream)], inputs, joins, hop

    def _read(self, table: exp.Expr) -> tuple[exp.Expr, Hop | None]:
        """A table by its name, and its window when it is ``TABLE(HOP(...))``."""
        try:
            return hopping_table(table, self.around) or (table, None)
        except Misfit as misfit:
            raise self.misfitting(misfit, table) from None

    def _check_streams(
        self, streams: Sequence[exp.Expr], tables: Sequence[exp.Expr], hop: Hop | None
    ) -> None:
        """Streams stand before all relations, and have no windows of their own."""
        for stream, table in zip(streams, tables, strict=False):
            if stream is not table:
                hint = "write the streams first: FROM a JOIN b ON ... JOIN relation ON ..."
                raise self.fault(TypeFault, "a stream stands after a relation", stream, hint)
        if hop is not None:
            message = f"{hop.name} over joins of streams is not supported yet"
            raise self.fault(NotYet, message, hop.time, "write WINDOW 1 MIN at the end")

    def _unnested(
        self, table: exp.Expr, join: exp.Expr, inputs: Sequence[FromItem]
    ) -> Lookup:
        try:
            found = unnested(table, join, self._binder(inputs, "FROM"))
        except Misfit as misfit:
            raise self.misfitting(misfit, table) from None
        if is_expensive(found.on):
            hint = "CREATE FUNCTION ... is called in SELECT and WHERE"
            raise self.fault(Refused, "a Python function is not admitted in FROM", table, hint)
        self.unnested[id(join)] = found
        return found

    def _no_stream(self, first: Relation, table: exp.Expr, later: bool) -> LanguageError:
        hint = (
            "write the stream first: FROM stream JOIN relation"
            if later
            else "a query reads one stream; join the relation to it"
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
        if found is None and table.name.lower() in self.catalogue.queries:
            message = f"'{table.name}' is a query, and a query reads streams and relations only"
            raise self.fault(Refused, message, table.this, "repeat its text here")
        if found is None:
            known = self.catalogue.table_names()
            hint = suggestion(table.name, known) or "CREATE STREAM declares one"
            message = f"no stream or relation '{table.name}'"
            raise self.fault(UnknownName, message, table.this, hint)
        return found

    def _check_aliases(self, inputs: Sequence[FromItem], tables: Sequence[exp.Expr]) -> None:
        seen: set[str] = set()
        for item, table in zip(inputs, tables, strict=True):
            if name_key(item.alias) in seen:
                hint = "give one of them an alias"
                raise self.fault(TypeFault, f"two inputs are called '{item.alias}'", table, hint)
            seen.add(name_key(item.alias))

    def _lookup(self, join: exp.Expr, inputs: Sequence[FromItem]) -> Lookup:
        if id(join) in self.unnested:
            return self.unnested[id(join)]
        assert isinstance(join, exp.Join)
        self._check_kind(join, ("INNER", "", "LEFT", "LEFT OUTER"), _JOINS)
        condition = join.args.get("on")
        if condition is None:
            hint = f"write JOIN {join.this.name} ON ..."
            raise self.fault(TypeFault, "a join needs its condition", join, hint)
        on = self._binder(inputs, "ON").condition(condition, "the condition of ON")
        if is_expensive(on):
            hint = "put it into WHERE"
            raise self.fault(Refused, "a Python function is not admitted in ON", condition, hint)
        relation = self._table(join.this)
        return Lookup(relation.name, on, "left" if join.args.get("side") else "inner")

    def _check_kind(self, join: exp.Join, admitted: Sequence[str], instead: str) -> None:
        """Refuse joins of other kinds than these."""
        parts = [str(join.args.get(k) or "").upper() for k in ("method", "side", "kind")]
        words = " ".join(part for part in parts if part)
        if words not in admitted:
            hint = f"write JOIN {join.this.name} ON ..." if parts[2] == "CROSS" else instead
            place = self._from_keyword(f"{words} JOIN", join)
            raise self.source.fault(Refused, f"{words} JOIN is not admitted", place, hint)
        self._check(join, ("this", "on", "side", "kind"))

    # --- the SELECT list -----------------------------------------------------------------------

    def _outputs(self, select: exp.Select, binder: ExpressionBinder) -> tuple[Output, ...]:
        """The columns of the answer, each with a name of its own."""
        found = [(item, o) for item in select.expressions for o in self._item(item, binder)]
        if isinstance(binder, AnswerBinder):
            ends = windowed([output for _, output in found])
            found = [*((select, output) for output in ends), *found]
        seen: set[str] = set()
        for item, output in found:
            if not is_aggregate(item):
                if name_key(output.name) in seen:
                    message = f"two columns of the answer are called '{output.name}'"
                    own = any(name_key(output.name) == column.name for column in WINDOW_COLUMNS)
                    hint = "that is the window's own" if own else "name one of them with AS"
                    raise self.fault(TypeFault, message, item, hint)
                seen.add(name_key(output.name))
        if not found:
            raise self.fault(TypeFault, "this SELECT has no columns", select)
        taken: dict[str, int] = {}
        return tuple(_numbered(o, seen, taken) if is_aggregate(item) else o for item, o in found)

    def _item(self, item: exp.Expr, binder: ExpressionBinder) -> list[Output]:
        if isinstance(item, exp.Star):
            self._check(item, ())
            return self._columns(item, binder.scope.inputs, binder)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            return self._columns_of(item, binder)
        if isinstance(item, exp.Alias):
            return [Output(self._named(item), binder.bind(item.this))]
        expression = binder.bind(item)
        return [Output(_name(item, binder.origin(expression)), expression)]

    def _columns(
        self, item: exp.Expr, inputs: Sequence[FromItem], binder: ExpressionBinder
    ) -> list[Output]:
        found = [(f.name, i.column(f.name)) for i in inputs for f in i.columns]
        try:
            return [Output(name, binder.seen(column)) for name, column in found if column]
        except Misfit as misfit:
            raise self.misfitting(misfit, item) from None

    def _columns_of(self, item: exp.Column, binder: ExpressionBinder) -> list[Output]:
        self._check(item, ("this", "table"))
        self._check(item.this, ())
        found = binder.scope.input(item.table)
        if found is None:
            names = [i.alias for i in binder.scope.inputs]
            hint = suggestion(item.table, names) or f"the query reads {', '.join(names)}"
            message = f"nothing in this query is called '{item.table}'"
            raise self.fault(UnknownName, message, item, hint)
        return self._columns(item, [found], binder)

    def _named(self, item: exp.Alias) -> str:
        name = item.alias
        if not name.strip() or not name.isprintable():
            raise self.fault(TypeFault, f"the name of a column {unseen(name)}", item)
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
        if len(items) == len(first):
            places = [self.place(item) for item in items]
        else:
            places = [self.place(selects[-1])] * len(first)
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


def _row_time(streams: Sequence[Stream], inputs: Sequence[FromItem]) -> Expression | None:
    """What orders rows by event time, for a pair by the later of its two; None if nothing does."""
    times = [item.column(stream.time) if stream.time else None
             for item, stream in zip(inputs, streams, strict=False)]
    known = [time for time in times if time is not None]
    if len(known) < len(times) or len({(stream.unit, t.type) for stream, t in
                                       zip(streams, known, strict=True)}) > 1:
        return None
    return known[0] if len(known) == 1 else Call("greatest", tuple(known), known[0].type)


def _aggregating(select: exp.Select) -> exp.Expr | None:
    """What makes a SELECT an aggregate, or None."""
    group, having = select.args.get("group"), select.args.get("having")
    found: exp.Expr | None = first_aggregate(select.expressions) or group or having
    return found


def _numbered(output: Output, seen: set[str], taken: dict[str, int]) -> Output:
    """An aggregate's own name, or that name with a number where it is taken."""
    number = taken.get(output.name, 0) + 1
    name = output.name if number == 1 else f"{output.name}_{number}"
    while name_key(name) in seen:
        number += 1
        name = f"{output.name}_{number}"
    taken[output.name] = number
    seen.add(name_key(name))
    return replace(output, name=name)


def _name(item: exp.Expr, expression: Expression) -> str:
    """The name of a column that was given none: its own, its field's, its aggregate's, its text."""
    if is_aggregate(item):
        return (item.this if isinstance(item, exp.Filter) else item).name.lower()
    if isinstance(item, exp.Column | exp.Dot):
        if isinstance(expression, Call):
            return expression.detail or item.name
        return getattr(expression, "name", item.name)
    return str(item.meta.get("written") or item.sql(dialect="spark"))
