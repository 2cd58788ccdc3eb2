"""A query's tree into branches: FROM, JOIN, WHERE, GROUP BY, HAVING, SELECT list, UNION ALL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from penstock.errors import LanguageError, NotYet, Refused, TypeFault, UnknownName
from penstock.language import coercion, comparisons, types
from penstock.language.binder import ExpressionBinder, describe
from penstock.language.catalogue import Catalogue
from penstock.language.dialect import place_of_node
from penstock.language.empty_groups import EmptyGroups, take_empty_groups
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
from penstock.language.inlining import (
    Assembly,
    Inlined,
    check_inlinable,
    check_size,
    parentheses_around,
)
from penstock.language.multiway_joins import multiway_join, unjoined
from penstock.language.parsing import parsed
from penstock.language.places import Misfit, Place, Source, suggestion
from penstock.language.question_endings import Ending, WrittenKey
from penstock.language.scope import FromItem, Scope
from penstock.language.spellings import understood
from penstock.language.stream_joins import (
    aggregated_window,
    is_bounded,
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
    ANSWERS,
    HELD,
    TIMESTAMP,
    Branch,
    Call,
    Column,
    Expression,
    Grouping,
    Input,
    Lookup,
    OrderKey,
    Output,
    Relation,
    SqlView,
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
_ORDER = "@order"
"""Begins the name of a column that a question is ordered by and does not show."""
_ENDING = ("order", "limit", "distinct")
_AT_THE_END = "only the whole question takes it, not a query within it"
_JOINS = "JOIN and LEFT JOIN are"
_ALONE = "make it a stream: CREATE STREAM name AS SELECT ..., and read that"
_INSTEAD = {
    **dict.fromkeys(_ENDING, "a stream has no end; only a question takes it"),
    "using": "write ON ...",
}


@dataclass(frozen=True, slots=True)
class Selected:
    """What a query comes to."""

    branches: tuple[Branch, ...]
    views: tuple[str, ...] = ()
    """The views that it reads, directly or not."""


def bind_select(
    tokens: Sequence[Token], source: Source, catalogue: Catalogue, view: str = "",
    unfinished: str = "",
) -> Selected:
    """The branches of a query, one per SELECT, or of the ``view`` of that name.

    ``unfinished`` is the name of the stream that is derived by it.
    """
    around = Place(tokens[0].start, tokens[-1].end + 1)
    rest, empty = take_empty_groups(understood(tokens, source), source)
    rest, windows = take_windows(rest, source)
    tree = parsed(rest, source, around)
    names = {name_key(name) for name in (view, unfinished) if name}
    binder = _SelectBinder(source, catalogue, around, windows, tokens, {}, names, empty=empty)
    try:
        branches = binder.query(tree)
        if view:
            check_inlinable(branches, f"view {view}")
        elif binder.inlines:
            check_size(branches, "this query")
    except Misfit as misfit:
        raise source.fault(misfit.kind, misfit.message, around, misfit.hint) from None
    except RecursionError:
        raise source.syntax("this query is nested too deeply", around) from None
    return Selected(branches, tuple(binder.views))


@dataclass(frozen=True, slots=True)
class _Read:
    """What a SELECT reads."""

    streams: tuple[Stream, ...]
    inputs: tuple[FromItem, ...]
    """The streams and the relations, in the order written."""
    joined: tuple[exp.Expr, ...]
    hop: Hop | None
    lookups: tuple[Lookup, ...] = ()
    """What inlined queries look up."""
    where: tuple[Expression, ...] = ()
    """What inlined queries ask of their rows."""
    unnested: Mapping[int, Lookup] = field(default_factory=dict)
    """What its joins take apart, by the identity of their nodes."""


@dataclass(frozen=True, slots=True)
class AskedSelect:
    """The SELECT of a question; what it says is told by `penstock.model.OneTimeQuery`."""

    branches: tuple[Branch, ...]
    shown: int
    order: tuple[OrderKey, ...]
    distinct: bool
    is_held: bool
    views: tuple[str, ...] = ()
    """The views that it reads, directly or not."""


def bind_asked(
    tokens: Sequence[Token], ending: Ending, source: Source, catalogue: Catalogue
) -> AskedSelect:
    """The branches of a question, and how its rows are ordered."""
    around = Place(tokens[0].start, tokens[-1].end + 1)
    rest, empty = take_empty_groups(tokens, source)
    if empty is not None:
        raise source.fault(NotYet, "EMPTY GROUPS in a question is not supported yet", empty.place,
                           "CREATE QUERY answers for them")
    rest, windows = take_windows(rest, source)
    tree = parsed(rest, source, around)
    binder = _SelectBinder(source, catalogue, around, windows, tokens, {}, set(), asked=True)
    try:
        asked = binder.asked_select(tree, ending)
        if binder.inlines:
            check_size(asked.branches, "this query")
        return asked
    except Misfit as misfit:
        raise source.fault(misfit.kind, misfit.message, around, misfit.hint) from None
    except RecursionError:
        raise source.syntax("this query is nested too deeply", around) from None


class _SelectBinder:
    def __init__(
        self, source: Source, catalogue: Catalogue, around: Place, windows: Sequence[Clause],
        tokens: Sequence[Token], named: Mapping[str, Inlined], unfinished: Set[str],
        asked: bool = False, within: bool = False, empty: EmptyGroups | None = None,
    ) -> None:
        """``named`` are the queries of WITH that it sees, by their names in lower case.

        ``unfinished`` are the names of what is being declared, which cannot be read yet. ``asked``
        says that the whole is a question, and ``within`` that this is a query within another.
        """
        self.empty = empty
        self.source, self.catalogue, self.around = source, catalogue, around
        self.windows, self.tokens = windows, tokens
        self.named, self.unfinished = dict(named), unfinished
        self.asked, self.within = asked, within
        self.is_held = False
        self.statement = source.statement
        self.over: dict[str, None] = {}
        """What the SELECT at hand inlines that reads views."""
        self.views: dict[str, None] = {}
        self.inlines = False
        """Whether any query was inlined."""
        self.subqueries: dict[int, Inlined] = {}
        """The queries in FROM, by the identity of their nodes."""

    def place(self, node: exp.Expr) -> Place:
        return place_of_node(node) or self.around

    def fault(
        self, kind: type[LanguageError], message: str, node: exp.Expr, hint: str = ""
    ) -> LanguageError:
        return self.source.fault(kind, message, self.place(node), hint)

    def misfitting(self, misfit: Misfit, node: exp.Expr) -> LanguageError:
        return self.fault(misfit.kind, misfit.message, node, misfit.hint)

    # --- the shape of the query ----------------------------------------------------------------

    def query(self, tree: exp.Expr) -> tuple[Branch, ...]:
        """The branches of a query: one per SELECT, and per SELECT that it inlines."""
        self._take_with(tree)
        selects = self.selects(tree)
        self.refuse_union_of_aggregates(selects)
        return self._bound(selects)

    def _bound(self, selects: Sequence[exp.Select]) -> tuple[Branch, ...]:
        """The branches of the SELECTs of a UNION ALL, or of the only one."""
        found = [(branch, select) for select in selects for branch in self.branches(select)]
        return self.aligned([branch for branch, _ in found], [select for _, select in found])

    def _take_with(self, tree: exp.Expr) -> None:
        """Bind the queries of WITH, each of which sees those before it."""
        clause = tree.args.get("with_")
        if clause is None:
            return
        tree.set("with_", None)
        self._check(clause, ("expressions",))
        names: set[str] = set()
        for part in clause.expressions:
            self._check(part, ("this", "alias"))
            name = part.alias
            if part.args["alias"].args.get("columns"):
                hint = "name them with AS in its SELECT"
                raise self.fault(Refused, "names for the columns of WITH are not admitted", part,
                                 hint)
            if name_key(name) in names:
                raise self.fault(TypeFault, f"WITH names '{name}' twice", part.args["alias"])
            names.add(name_key(name))
            self.named[name_key(name)] = self._inlined(part.this, f"'{name}'", name)

    def _inlined(self, tree: exp.Expr, title: str, name: str = "") -> Inlined:
        """A query within this one."""
        around = self.place(tree)
        enclosing = parentheses_around(self.tokens, around) or around
        clauses = [clause.place for clause in self.windows]
        clauses += [self.empty.place] if self.empty is not None else []
        inside = [place for place in clauses if enclosing.start < place.start < enclosing.end]
        if inside:
            message = "a window aggregate or join within a query is not supported yet"
            raise self.source.fault(NotYet, message, inside[0], _ALONE)
        unfinished = self.unfinished | ({name_key(name)} if name else set())
        binder = _SelectBinder(self.source, self.catalogue, around, (), self.tokens, self.named,
                               unfinished, self.asked, within=True)
        branches = binder.query(tree)
        self._check_inlined(branches, title, tree)
        self.views |= binder.views
        return Inlined(title, branches, tuple(binder.views))

    def _check_inlined(self, branches: Sequence[Branch], title: str, node: exp.Expr) -> None:
        try:
            check_inlinable(branches, title)
        except Misfit as misfit:
            raise self.misfitting(misfit, node) from None

    def selects(self, tree: exp.Expr) -> list[exp.Select]:
        """The SELECTs of a UNION ALL, in the order written."""
        found: list[exp.Select] = []
        rest = [tree]
        while rest:
            node = rest.pop()
            if isinstance(node, exp.Select):
                only_asked = ("distinct",) if self.asked and not self.within else ()
                self._check(node, ("expressions", "from_", "joins", "laterals", "where", "group",
                                   "having", *only_asked))
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
                if name in _ENDING and self.asked:
                    hint = _AT_THE_END
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

    # --- questions -----------------------------------------------------------------------------

    def asked_select(self, tree: exp.Expr, ending: Ending) -> AskedSelect:
        """A question: what ORDER BY needs beyond the SELECT list becomes columns behind it."""
        self._take_with(tree)
        selects = self.selects(tree)
        self.refuse_union_of_aggregates(selects)
        distinct = self._distinct(selects)
        branches = self._bound(selects)
        shown = branches[0].select
        wanted = [self._output_of(key, shown) for key in ending.order]
        if None in wanted and len(selects) == 1:
            (select,) = selects
            for number, (key, place) in enumerate(zip(ending.order, wanted, strict=True)):
                if place is None:
                    select.append("expressions", exp.alias_(key.node, f"{_ORDER}{number}"))
            branches = self._bound(selects)
        order = tuple(self._order_key(key, place, number, branches, len(shown), distinct)
                      for number, (key, place) in enumerate(zip(ending.order, wanted, strict=True)))
        if distinct:
            branches = tuple(replace(b, select=b.select[: len(shown)]) for b in branches)
            for output in shown:
                self._check_comparable(output, "DISTINCT", self.place(selects[0]))
        return AskedSelect(branches, len(shown), order, distinct, self.is_held, tuple(self.views))

    def _distinct(self, selects: Sequence[exp.Select]) -> bool:
        written = [d for select in selects if (d := select.args.get("distinct")) is not None]
        for node in written:
            if node.args.get("on") is not None:
                raise self.fault(Refused, "DISTINCT ON is not admitted", node, "write GROUP BY")
            if len(selects) > 1:
                raise self.fault(Refused, "DISTINCT in a UNION ALL is not admitted", selects[0])
        return bool(written)

    def _output_of(self, key: WrittenKey, shown: Sequence[Output]) -> int | None:
        """The column of the answer that a number or a plain name means; None for another."""
        node = key.node
        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.name) if node.name.isdigit() and len(node.name) < 6 else 0
            if not 1 <= number <= len(shown):
                message = f"the SELECT list has no item {node.name}, it has {len(shown)}"
                raise self.source.fault(TypeFault, message, key.place)
            return number - 1
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            names = [name_key(output.name) for output in shown]
            if not node.table and name_key(node.name) in names:
                return names.index(name_key(node.name))
        return None

    def _order_key(
        self, key: WrittenKey, place: int | None, number: int, branches: Sequence[Branch],
        shown: int, distinct: bool,
    ) -> OrderKey:
        first = branches[0].select
        if place is None:
            names = [output.name for output in first]
            if f"{_ORDER}{number}" not in names:
                hint = "name a column of the answer, or its number"
                raise self.source.fault(TypeFault, "a UNION ALL is ordered by its columns",
                                        key.place, hint)
            place = names.index(f"{_ORDER}{number}")
            same = [n for n in range(shown) if all(
                b.select[n].expression == b.select[place].expression for b in branches)]
            if distinct and not same:
                raise self.source.fault(
                    TypeFault, "with DISTINCT the answer is ordered by its own columns",
                    key.place, "add it to the SELECT list")
            place = same[0] if same else place
        self._check_comparable(first[place], "ORDER BY", key.place)
        return OrderKey(place, key.descending, key.nulls_first)

    def _check_comparable(self, output: Output, what: str, place: Place) -> None:
        kind = output.expression.type
        if coercion.holds_map(kind):
            message = f"{what} cannot compare {coercion.article(kind)}"
            raise self.source.fault(TypeFault, message, place)

    def _stream_joins(self, select: exp.Select) -> list[exp.Expr]:
        """The streams that a SELECT joins to another."""
        tables = [join.this for join in select.args.get("joins") or []]
        return [table for table in tables if isinstance(table, exp.Table)
                and isinstance(self._found(table.name), Stream | Inlined)]

    # --- one SELECT ----------------------------------------------------------------------------

    def branches(self, select: exp.Select) -> list[Branch]:
        """Its branches: several if it reads a union."""
        self.source, self.over = replace(self.source, statement=self.statement), {}
        alternatives = self._from(select)
        reason = _aggregating(select)
        if len(alternatives) > 1 and (reason is not None or alternatives[0].hop or self.windows):
            what = "aggregates" if self.asked else "window aggregates"
            message = f"'{alternatives[0].inputs[0].alias}' is a UNION ALL, over which {what} "
            message += "are not supported yet"
            raise self.fault(NotYet, message, select.args["from_"], "aggregate each part alone")
        return [self._branch(select, read, reason) for read in alternatives]

    def _branch(self, select: exp.Select, read: _Read, reason: exp.Expr | None) -> Branch:
        streams, inputs, joined = read.streams, read.inputs, read.joined
        if self.empty is not None and (reason is None or len(streams) > 1):
            message = "only a window aggregate over one stream has EMPTY GROUPS"
            hint = "make the pairs a stream: CREATE STREAM name AS SELECT ..., and aggregate that"
            raise self.source.fault(NotYet if len(streams) > 1 else TypeFault, message,
                                    self.empty.place, hint if len(streams) > 1 else "")
        if len(streams) > 1:
            return self._window_join(select, read, reason)
        stream = streams[0]
        lookups = (*read.lookups, *(self._lookup(join, inputs[: k + 2], read.unnested)
                                    for k, join in enumerate(joined)))
        condition = self._condition(self._binder(inputs, "WHERE"), select, "where")
        condition = (*read.where, *condition)
        if reason is None and read.hop is None and not self.windows:
            outputs = self._outputs(select, self._binder(inputs, "the SELECT list"))
            return Branch((Input(stream.name),), outputs, condition, lookups)
        window = self._window(select, stream, inputs, read.hop)
        if reason is None:
            assert window is not None  # otherwise it is no aggregate at all
            self._outputs(select, self._binder(inputs, "the SELECT list"))  # its own faults first
            hint = "select an aggregate such as COUNT(*), or GROUP BY"
            raise self.source.fault(TypeFault, "nothing is aggregated here", window.place, hint)
        self.is_held = window is None
        timed = Input(stream.name, HELD if window is None else self._time(window))
        grouping, outputs = self._grouped(select, streams, inputs)
        if read.hop is not None and read.hop.partition is not None:
            self._check_partition(read.hop.partition, grouping.keys, inputs, read.hop.clause.place)
        if self.empty is not None and timed.window is not None:
            timed = replace(timed, window=self._keeping(timed.window, self.empty))
        if timed.window is not None and timed.window.gap and window is not None:
            grouping, outputs = self._of_sessions(grouping, outputs, timed.window, stream, window)
        return Branch((timed,), outputs, condition, lookups, grouping)

    def _window_join(
        self, select: exp.Select, read: _Read, reason: exp.Expr | None
    ) -> Branch:
        """A SELECT from two or more streams: pairs, or an aggregate over them."""
        streams, inputs, joined = read.streams, read.inputs, read.joined
        count = len(streams)
        conditions = (*read.where, *(condition for k, join in enumerate(joined[: count - 1])
                                     for condition in self._pairing(join, inputs[: k + 2])))
        lookups = (*read.lookups, *(self._lookup(join, inputs[: count + k + 1], read.unnested)
                                    for k, join in enumerate(joined[count - 1 :])))
        conditions += self._condition(self._binder(inputs, "WHERE"), select, "where")
        times = [None if stream.unit else _time_of(stream, k) for k, stream in enumerate(streams)]
        bounded = reason is None and count == 2 and is_bounded(conditions, times)
        self.is_held = self.asked and not self.windows and not bounded
        for stream in streams if self.windows else ():
            self._check_has_time(stream, self.windows[0].place)
        window = HELD if self.is_held else self._join_window(select, reason)
        times = [None] * count if self.is_held else times
        if isinstance(window, int) and (read.where or read.lookups):
            message = "a window of ROWS counts the rows of streams, and a query that filters or "
            message += "looks up stands between"
            hint = "write a window of time, such as WINDOW 1 MIN"
            raise self.source.fault(NotYet, message, self.windows[0].place, hint)
        grouping = None
        if reason is not None:
            grouping, outputs = self._grouped(select, streams, inputs)
        else:
            outputs = self._outputs(select, self._binder(inputs, "the SELECT list"))
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
        sides = tuple(Input(stream.name, windowed) for stream in streams)
        return Branch(sides, outputs, selected, lookups, grouping, join)

    def _pairing(self, join: exp.Expr, inputs: Sequence[FromItem]) -> tuple[Expression, ...]:
        """The conditions of ON between two streams; a comma has none."""
        assert isinstance(join, exp.Join)
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
    ) -> Clause | None:
        """The one window of a SELECT that aggregates; a question may have none."""
        hops = [hop] if hop is not None else []
        hops += [self._grouped_hop(node) for node in grouped_by(select) if is_standard(node)]
        for each in hops:
            self._check_time(each, stream, inputs[0])
        clauses = sorted((*self.windows, *(h.clause for h in hops)), key=lambda c: c.place.start)
        if len(clauses) > 1:
            raise self.source.syntax("a query has one window", clauses[1].place)
        if clauses:
            self._check_has_time(stream, clauses[0].place)
        elif self.asked:
            return None
        else:
            hint = f"write FROM {stream.name} [WINDOW 10 MIN SLIDE 2 MIN]"
            message = "an aggregate over a stream needs a window"
            raise self.fault(TypeFault, message, _aggregating(select) or select, hint)
        self._check_position(clauses[0], select)
        return clauses[0]

    def _check_has_time(self, stream: Stream, place: Place) -> None:
        if stream.format == ANSWERS:
            message = f"the answers of {stream.name} are not a stream with a time"
            hint = "ask without a window: the question is answered over all of them"
            raise self.source.fault(TypeFault, message, place, hint)

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
        if bound != _time_of(stream):
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
        rows, has_window = self._binder(inputs, "GROUP BY"), not self.is_held
        keys = tuple(dict.fromkeys(group_keys(select, rows, has_window)))
        rows = self._binder(inputs, "another aggregate")
        binder = AnswerBinder(rows, keys, "the SELECT list", _row_time(streams), has_window)
        outputs = self._outputs(select, binder)
        named = [item for item in select.expressions if isinstance(item, exp.Alias)]
        binder.aliases = {name_key(item.alias): binder.bind(item.this) for item in named}
        having = self._condition(binder, select, "having")
        return Grouping(keys, tuple(binder.aggregates), having), outputs

    def _check_partition(
        self, partition: Sequence[exp.Expr], keys: Sequence[Expression],
        inputs: Sequence[FromItem], place: Place,
    ) -> None:
        """SESSION in FROM is partitioned by what is grouped by: each group has its sessions."""
        binder = self._binder(inputs[:1], "PARTITION BY")
        if {binder.bind(node) for node in partition} != set(keys):
            message = "sessions are those of the groups, so PARTITION BY and GROUP BY name the same"
            hint = "write GROUP BY src, SESSION(ts, INTERVAL '30' MINUTE) for sessions of each src"
            raise self.source.fault(TypeFault, message, place, hint)

    def _keeping(self, window: Window, empty: EmptyGroups) -> Window:
        """A window that is answered for known groups without rows, too."""
        if window.gap:
            message = "a session begins with a row, so none has an empty group"
            raise self.source.fault(TypeFault, message, empty.place, "leave EMPTY GROUPS out")
        return window.keeping(empty.kept)

    def _of_sessions(
        self, grouping: Grouping, outputs: Sequence[Output], window: Window, stream: Stream,
        clause: Clause,
    ) -> tuple[Grouping, tuple[Output, ...]]:
        """A window aggregate over sessions, whose ends are those of its rows and the gap."""
        if self.asked:
            message = "sessions in a question are not supported yet"
            raise self.source.fault(NotYet, message, clause.place,
                                    "CREATE QUERY answers them as they end")
        time = _time_of(stream)
        if time is None or time.type != TIMESTAMP:
            message = f"sessions need a TIMESTAMP as TIME, and {stream.name} has none"
            hint = "compute one in CREATE STREAM: at TIMESTAMP AS (...), and TIME at"
            raise self.source.fault(TypeFault, message, clause.place, hint)
        return sessions(grouping, outputs, window, time)

    # --- FROM and JOIN -------------------------------------------------------------------------

    def _from(self, select: exp.Select) -> list[_Read]:
        """What it reads, for each SELECT of a union that it inlines."""
        clause = select.args.get("from_")
        if clause is None:
            hint = "a query reads a stream: SELECT ... FROM packets"
            raise self.fault(TypeFault, "this SELECT has no FROM", select, hint)
        joins = [*(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
        read, hop = self._read(clause.this)
        tables = [read, *(j.this if isinstance(j, exp.Join) else j for j in joins)]
        found = [None if is_unnesting(table) else self._table(table) for table in tables]
        streams = [t for t, f in zip(tables, found, strict=True)
                   if isinstance(f, Stream | Inlined)]
        first = found[0]
        if first is None:
            hint = "write FROM stream CROSS JOIN UNNEST(x) AS t (y)"
            raise self.fault(TypeFault, "a query reads a stream", tables[0], hint)
        if isinstance(first, Relation):
            raise self._no_stream(first, tables[0], bool(streams))
        if len(streams) > 1:
            self._check_streams(streams, tables, hop)
        self._check_aliases(tables)
        unions = [k for k, f in enumerate(found) if isinstance(f, Inlined) and len(f.branches) > 1]
        if unions and len(streams) > 1:
            message = f"'{tables[unions[0]].alias_or_name}' is a UNION ALL, over which joins of "
            message += "streams are not supported yet"
            raise self.fault(NotYet, message, tables[unions[0]], "join each part alone")
        firsts = first.branches if isinstance(first, Inlined) else (None,)
        return [self._assembled(tables, found, branch, joins, hop) for branch in firsts]

    def _assembled(
        self, tables: Sequence[exp.Expr], found: Sequence[Stream | Relation | Inlined | None],
        first: Branch | None, joins: Sequence[exp.Expr], hop: Hop | None,
    ) -> _Read:
        """What is read if the first table, where it is inlined, is this branch of it."""
        streams: list[Stream] = []
        inputs: list[FromItem] = []
        unnested: dict[int, Lookup] = {}
        assembly = Assembly.of(sum(isinstance(f, Stream | Inlined) for f in found))
        for k, (table, read) in enumerate(zip(tables, found, strict=True)):
            alias = table.alias_or_name
            if read is None:
                one = self._unnested(table, joins[k - 1], inputs)
                unnested[id(joins[k - 1])] = one
                inputs.append(FromItem(alias, one.columns, k + len(assembly.lookups)))
            elif isinstance(read, Inlined):
                branch = first if first is not None and k == 0 else read.branches[0]
                inputs.append(assembly.add(alias, branch, k))
                streams.append(self.catalogue.streams[branch.inputs[0].stream.lower()])
            else:
                streams += [read] if isinstance(read, Stream) else []
                inputs.append(FromItem(alias, read.columns, k + len(assembly.lookups)
                                       if isinstance(read, Relation) else k))
        return _Read(tuple(streams), tuple(inputs), tuple(joins), hop, tuple(assembly.lookups),
                     tuple(assembly.where), unnested)

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
        return found

    def _no_stream(self, first: Relation, table: exp.Expr, later: bool) -> LanguageError:
        hint = (
            "write the stream first: FROM stream JOIN relation"
            if later
            else "a query reads one stream; join the relation to it"
        )
        return self.fault(TypeFault, f"'{first.name}' is a relation, not a stream", table, hint)

    def _table(self, table: exp.Expr) -> Stream | Relation | Inlined:
        if isinstance(table, exp.Subquery) and table.alias:
            return self._subquery(table)
        if isinstance(table, exp.Subquery):
            hint = "write (SELECT ...) AS name"
            raise self.fault(TypeFault, "a query in FROM needs a name", table, hint)
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            what = "a function" if isinstance(table, exp.Table) else describe(table)
            message = f"{what} is not admitted in FROM"
            raise self.fault(Refused, message, table, "name a stream or relation")
        self._check(table, ("this", "alias", "db", "catalog"))
        if table.args.get("db"):
            raise self.fault(UnknownName, "streams and relations have plain names", table)
        if table.args.get("alias") and table.args["alias"].args.get("columns"):
            raise self.fault(Refused, "names for the columns of a table are not admitted", table)
        found = self._found(table.name)
        if isinstance(found, Inlined):
            self._note(found)
        if found is None and name_key(table.name) in self.unfinished:
            message = f"'{table.name}' reads itself"
            raise self.fault(Refused, message, table.this, "it can read what is declared before it")
        if found is None and table.name.lower() in self.catalogue.queries:
            message = f"'{table.name}' is a query, and a query reads streams, relations and views"
            raise self.fault(Refused, message, table.this, "CREATE VIEW names a text for several")
        if found is None:
            known = self.catalogue.table_names()
            hint = suggestion(table.name, known) or "CREATE STREAM declares one"
            if table.name.lower() in self.catalogue.later:
                hint = "it is declared further down; a query reads what is declared before it"
            message = f"no stream, relation or view '{table.name}'"
            raise self.fault(UnknownName, message, table.this, hint)
        return found

    def _found(self, name: str) -> Stream | Relation | Inlined | None:
        """What a name in FROM means: WITH goes before what is declared."""
        if name_key(name) in self.named:
            return self.named[name_key(name)]
        found = self.catalogue.table(name)
        if isinstance(found, SqlView):
            if name_key(name) in self.unfinished:
                return None
            return Inlined(f"view {found.name}", found.branches, (*found.views, found.name))
        return found

    def _subquery(self, table: exp.Subquery) -> Inlined:
        """A query in FROM."""
        self._check(table, ("this", "alias"))
        if table.args["alias"].args.get("columns"):
            raise self.fault(Refused, "names for the columns of a query are not admitted", table)
        found = self.subqueries.get(id(table))
        if found is None:  # a question that is ordered by more than it shows is bound twice
            found = self._inlined(table.this, f"'{table.alias}'")
            self.subqueries[id(table)] = found
        self._note(found)
        return found

    def _note(self, read: Inlined) -> None:
        """Remember what is inlined; from now on the faults of this SELECT name its views, too."""
        self.inlines = True
        self.views |= dict.fromkeys(read.views)
        if read.views:
            self.over |= {read.title: None}
            over = f"{self.statement} over {', '.join(self.over)}"
            self.source = replace(self.source, statement=over)

    def _check_aliases(self, tables: Sequence[exp.Expr]) -> None:
        seen: set[str] = set()
        for table in tables:
            alias = table.alias_or_name
            if name_key(alias) in seen:
                hint = "give one of them an alias"
                raise self.fault(TypeFault, f"two inputs are called '{alias}'", table, hint)
            seen.add(name_key(alias))

    def _lookup(
        self, join: exp.Expr, inputs: Sequence[FromItem], unnested: Mapping[int, Lookup]
    ) -> Lookup:
        if id(join) in unnested:
            return unnested[id(join)]
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
        relation = self.catalogue.relations[join.this.name.lower()]
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
        if isinstance(binder, AnswerBinder) and binder.has_window:
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
        named = binder.scope.column([part.name for part in item.parts]) if isinstance(
            item, exp.Column) else None
        if named is not None and named[0].made:  # its expression has another name, or none
            return [Output(named[1].name, expression)]
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


def _row_time(streams: Sequence[Stream]) -> Expression | None:
    """What orders rows by event time, for a pair by the later of its two; None if nothing does."""
    times = [_time_of(stream, k) for k, stream in enumerate(streams)]
    known = [time for time in times if time is not None]
    if len(known) < len(times) or len({(stream.unit, t.type) for stream, t in
                                       zip(streams, known, strict=True)}) > 1:
        return None
    return known[0] if len(known) == 1 else Call("greatest", tuple(known), known[0].type)


def _time_of(stream: Stream, number: int = 0) -> Column | None:
    """The time column of a stream that a SELECT reads."""
    types = {column.name: column.type for column in stream.columns}
    return Column(stream.time, types[stream.time], number) if stream.time else None


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
