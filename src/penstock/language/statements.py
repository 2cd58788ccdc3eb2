"""Statements: their heads are read by hand, the SELECT inside goes to `select`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import Literal, TypeVar

from sqlglot.tokenizer_core import Token

from penstock.errors import LanguageError, Refused, SyntaxFault, TypeFault, UnknownName
from penstock.functions import PythonFunction
from penstock.language import durations, functions, kafka, showing, sinks, types
from penstock.language.aggregates import is_aggregate
from penstock.language.catalogue import Catalogue
from penstock.language.coercion import article
from penstock.language.dialect import STANDARD
from penstock.language.options import parse_options, parse_with, setting_value
from penstock.language.places import Place, Source, suggestion
from penstock.language.question_endings import take_ending
from penstock.language.select import bind_asked, bind_select
from penstock.language.settings import SETTINGS
from penstock.language.signatures import Signature
from penstock.language.spellings import understood
from penstock.language.stream_columns import stream_columns
from penstock.language.tokens import Cursor, place_of
from penstock.model import (
    ANSWERS,
    EPOCH_TYPES,
    EPOCH_UNITS,
    TIMESTAMP,
    Field,
    Function,
    OneTimeQuery,
    Options,
    Query,
    Relation,
    Sink,
    SqlView,
    Statement,
    StatementKind,
    Stream,
    Variable,
    name_key,
)
from penstock.sinks import SINKS

Load = Callable[[str, str, str], PythonFunction | Signature]
"""Finds what SQL must know of a function, from its module, its name and the folder."""
Declared = TypeVar("Declared", Stream, Relation, Function, SqlView, Query)
_KINDS = ("STREAM", "RELATION", "FUNCTION", "VIEW", "QUERY")
_SELECTS = ("SELECT", "(", "WITH")
_HEADS = ("CREATE", "DROP", "SET", "SELECT", "REFRESH", *showing.HEADS)
_DERIVED = ("TIME", "LATENESS")
"""What may stand between the name of a derived stream and its AS."""
_ELSEWHERE = {
    "ALTER": "DROP QUERY, then CREATE it; a stream's declaration cannot be changed",
    "BEGIN": "statements separated by ; are an application",
    "DELETE": "answers are never changed",
    "EXECUTE": "statements separated by ; are an application",
    "TERMINATE": "write DROP QUERY q",
    "UPDATE": "answers are never changed",
}
"""What to do instead of statements that other systems have."""
_CREATED_ELSEWHERE = {
    "STREAMING": "write CREATE QUERY q AS SELECT ..., whose answers are kept up to date",
    "TEMPORARY": "write CREATE STREAM, CREATE RELATION or CREATE VIEW",
    "OR": "DROP the query or view first, then CREATE it",
    "TABLE": "a stream of rows is a STREAM, a table that is looked up a RELATION",
    "MATERIALIZED": "write CREATE QUERY q AS SELECT ..., whose answers are kept up to date",
    "SINK": "write CREATE QUERY q INTO parquet 'folder' AS SELECT ...",
    "SOURCE": "write CREATE STREAM",
}


@dataclass(slots=True)
class StatementBinder:
    """Binds one statement after the other into a catalogue."""

    catalogue: Catalogue
    folder: str
    load: Load
    unnamed: int = 0
    """The number in the name of the last bare SELECT."""
    shown: list[showing.Showing] = field(default_factory=list)
    """What SHOW, DESCRIBE and EXPLAIN ask for, in the order written."""
    refreshed: list[str] = field(default_factory=list)
    """The relations that are to be read again now."""

    def bind(self, tokens: Sequence[Token], text: str, ordinal: int) -> None:
        """Bind one statement."""
        cursor = Cursor(tokens, Source(text, f"statement {ordinal}"))
        written = text[tokens[0].start : tokens[-1].end + 1]
        if cursor.take("CREATE"):
            self._create(cursor, written)
        elif cursor.take("DROP"):
            self._drop(cursor)
        elif cursor.take("SET"):
            self._set(cursor, written)
        elif cursor.word() in _SELECTS:
            self._bare_select(cursor, written)
        elif cursor.word() in showing.HEADS:
            self.shown.append(showing.bind_showing(cursor, self.catalogue))
        elif cursor.take("INSERT"):
            self._insert(cursor)
        elif cursor.take("REFRESH"):
            self.refreshed.append(self._refreshed(cursor))
        else:
            hint = _ELSEWHERE.get(cursor.word()) or suggestion(cursor.word(), _HEADS)
            raise cursor.expected("CREATE, DROP, SET, SELECT, SHOW or DESCRIBE", hint)

    def _create(self, cursor: Cursor, written: str) -> None:
        kind = cursor.word()
        if kind not in _KINDS:
            hint = _CREATED_ELSEWHERE.get(kind) or suggestion(kind, _KINDS)
            raise cursor.expected("STREAM, RELATION, FUNCTION, VIEW or QUERY after CREATE", hint)
        cursor.advance()
        unless = cursor.take("IF", "NOT", "EXISTS")
        name, place = cursor.name(f"the name of the {kind.lower()}")
        cursor.source = Source(cursor.source.text, f"{kind.lower()} {name}")
        if unless and self._exists(kind, name):
            return
        _check_foreign(cursor)
        if kind in ("STREAM", "RELATION", "VIEW"):
            self._check_other(name, kind.lower(), cursor.source, place)
        if kind == "STREAM":
            if cursor.word() in ("AS", *_DERIVED):
                self._derived(cursor, name, place, written)
                return
            stream = self._stream(cursor, name)
            self._declare(self.catalogue.streams, stream, "stream", cursor.source, place, written)
        elif kind == "RELATION":
            table = self._relation(cursor, name)
            self._declare(
                self.catalogue.relations, table, "relation", cursor.source, place, written
            )
        elif kind == "FUNCTION":
            self._check_function_name(name, cursor.source, place)
            function = self._function(cursor, name)
            self._declare(
                self.catalogue.functions, function, "function", cursor.source, place, written
            )
        elif kind == "VIEW":
            view = self._view(cursor, name)
            self._declare(self.catalogue.views, view, "view", cursor.source, place, written)
        else:
            query = self._query(cursor, name)
            self._declare(self.catalogue.queries, query, "query", cursor.source, place, written)

    def _exists(self, kind: str, name: str) -> bool:
        known: dict[str, Mapping[str, object]] = {
            "STREAM": self.catalogue.streams, "RELATION": self.catalogue.relations,
            "FUNCTION": self.catalogue.functions, "QUERY": self.catalogue.queries,
            "VIEW": self.catalogue.views,
        }
        return name.lower() in known[kind]

    def _declare(
        self,
        known: dict[str, Declared],
        what: Declared,
        kind: StatementKind,
        source: Source,
        place: Place,
        written: str,
    ) -> None:
        """Add a declaration; the same one again changes nothing, another one is an error."""
        earlier = known.get(what.name.lower())
        if earlier is None:
            known[what.name.lower()] = what
            signature = ((str(what.returns), what.arity, what.deterministic)
                         if isinstance(what, Function) else ())
            self.catalogue.record(Statement(kind, what.name, written, self.folder, *signature))
        elif earlier != what:
            drops = kind in ("query", "view")
            hint = "DROP it first" if drops else "a declaration cannot be changed"
            message = f"{kind} '{what.name}' exists already and is declared differently"
            raise source.fault(TypeFault, message, place, hint)

    def _check_other(self, name: str, kind: str, source: Source, place: Place) -> None:
        """Streams, relations and views have one space of names."""
        known: dict[str, Mapping[str, object]] = {
            "stream": self.catalogue.streams, "relation": self.catalogue.relations,
            "view": self.catalogue.views}
        for other, names in known.items():
            if other != kind and name.lower() in names:
                raise source.fault(TypeFault, f"there is a {other} '{name}' already", place)

    def _check_function_name(self, name: str, source: Source, place: Place) -> None:
        upper = name.upper()
        if (
            upper in functions.ADMITTED
            or upper in functions.SYNONYMS
            or is_aggregate(upper)
            or upper in (*STANDARD, "CAST", "TRY_CAST", "CASE", "EXTRACT")
        ):
            raise source.fault(TypeFault, f"the language has a function {upper} already", place)

    # --- streams and relations -----------------------------------------------------------------

    def _stream(self, cursor: Cursor, name: str) -> Stream:
        columns, computed = stream_columns(cursor, name, self.catalogue.functions)
        format_, path, at = self._origin(cursor)
        options: Options = ()
        time, unit, lateness, late_place = None, "", 0.0, None
        own: dict[str, float] = {}
        seen: set[str] = set()
        while cursor.current is not None:
            clause, place = cursor.word(), cursor.place
            if clause in seen:
                raise cursor.source.syntax(f"{clause} is given twice", place)
            seen.add(clause)
            if clause == "OPTIONS":
                options, own = _own_options(cursor, parse_options(cursor), place)
            elif cursor.take("TIME"):
                time, unit = _time_column(cursor, columns)
            elif cursor.take("LATENESS"):
                lateness, late_place = cursor.duration()
            else:
                raise cursor.expected("OPTIONS, TIME, LATENESS or the end of the statement")
        if late_place is not None and time is None:
            raise cursor.source.fault(
                TypeFault, "LATENESS needs TIME", late_place, "name the column that holds the time"
            )
        path, options = _with_topic(cursor.source, format_, path, options, at)
        return Stream(name, columns, format_, path, options, time, lateness, unit,
                      computed=computed, derived=False, **own)

    def _derived(self, cursor: Cursor, name: str, place: Place, written: str) -> None:
        """A stream whose rows are the answers of a query, which has its name."""
        head = cursor.index
        while cursor.word() != "AS":  # the columns are known when the SELECT is
            if cursor.current is None:
                raise cursor.expected("AS SELECT ...")
            cursor.advance()
        ends = cursor.index
        cursor.advance()
        if cursor.word() not in _SELECTS:
            raise cursor.expected("SELECT")
        found = bind_select(cursor.tokens[cursor.index :], cursor.source, self.catalogue,
                            unfinished=name)
        columns = tuple(Field(*output) for output in found.branches[0].outputs)
        clauses = Cursor(cursor.tokens[head:ends], cursor.source)
        time, unit, lateness = _timing(clauses, columns)
        clauses.end("TIME, LATENESS or AS")
        stream = Stream(name, columns, "query", time=time, lateness=lateness, unit=unit,
                        derived=True)
        query = Query(name, found.branches, Sink("stream"), views=found.views)
        other = self.catalogue.queries.get(name.lower())
        if other is not None and other != query:
            raise cursor.source.fault(TypeFault, f"there is a query '{name}' already", place)
        self._declare(self.catalogue.streams, stream, "stream", cursor.source, place, written)
        self.catalogue.queries[name.lower()] = query

    def _relation(self, cursor: Cursor, name: str) -> Relation:
        columns = _columns(cursor)
        format_, path, at = self._origin(cursor)
        options = parse_options(cursor) if cursor.word() == "OPTIONS" else ()
        refresh = _period(cursor) if cursor.take("REFRESH") else None
        cursor.end("OPTIONS, REFRESH or the end of the statement")
        path, options = _with_topic(cursor.source, format_, path, options, at)
        return Relation(name, columns, format_, path, options, refresh)

    def _refreshed(self, cursor: Cursor) -> str:
        """``REFRESH RELATION hosts``: it declares nothing."""
        if not cursor.take("RELATION"):
            raise cursor.expected("RELATION after REFRESH", "nothing else is read again")
        name, place = cursor.name("the name of a relation")
        cursor.end()
        known = self.catalogue.relations.get(name.lower())
        if known is None:
            names = [one.name for one in self.catalogue.relations.values()]
            message = f"no relation '{name}'"
            raise cursor.source.fault(UnknownName, message, place, suggestion(name, names))
        if known.refresh is None:
            message = f"relation '{known.name}' is read once, when a run begins"
            hint = "declare it with REFRESH ON DEMAND or REFRESH EVERY 10 MINUTES"
            raise cursor.source.fault(TypeFault, message, place, hint)
        return known.name

    def _origin(self, cursor: Cursor) -> tuple[str, str | None, Place]:
        """The source, its path or topic, and where it is written."""
        cursor.expect("FROM")
        format_, at = cursor.name("a source such as parquet, csv, json, kafka or rate")
        while cursor.take("."):
            format_ += "." + cursor.name("the rest of the source's name")[0]
        path = None
        if cursor.at_string():
            path, at = cursor.string("a path")
            sinks.check_path(cursor, path, at)
            if format_.lower() != "kafka":
                path = sinks.resolved(path, self.folder)
        return (format_ if "." in format_ else format_.lower()), path, at

    # --- functions -----------------------------------------------------------------------------

    def _function(self, cursor: Cursor, name: str) -> Function:
        cursor.expect("FROM")
        target, place = cursor.string("where the function lives, 'module:name'")
        cursor.end()
        if not sinks.is_callable_name(target):
            raise cursor.source.fault(SyntaxFault, "expected 'module:name'", place)
        module, _, attribute = target.partition(":")
        try:
            found = self.load(module, attribute, self.folder)
            returns = types.parse_text(found.returns)
        except ValueError as error:
            raise cursor.source.fault(LanguageError, str(error), place) from error
        return Function(name, module, attribute, returns, found.arity, self.folder,
                        found.deterministic)

    # --- queries -------------------------------------------------------------------------------

    def _query(self, cursor: Cursor, name: str) -> Query:
        into = cursor.take("INTO")
        place = cursor.place
        found = sinks.parse_sinks(cursor, self.folder) if into else (Sink(),)
        options = parse_with(cursor) if cursor.take("WITH") else {}
        cursor.expect("AS")
        query = self._select(cursor, name, found, options)
        self._check_fits(query, cursor.source, place)
        return query

    def _check_fits(self, query: Query, source: Source, place: Place) -> None:
        if unfit := sinks.unfit(query):
            raise source.fault(TypeFault, unfit, place)

    def _select(
        self, cursor: Cursor, name: str, into: tuple[Sink, ...], options: Mapping[str, object]
    ) -> Query:
        if cursor.word() not in _SELECTS:
            raise cursor.expected("SELECT")
        found = bind_select(cursor.tokens[cursor.index :], cursor.source, self.catalogue)
        options = {**options, "views": found.views, "also": into[1:]}
        return Query(name, found.branches, into[0], **options)  # type: ignore[arg-type]

    def _view(self, cursor: Cursor, name: str) -> SqlView:
        cursor.expect("AS")
        if cursor.word() not in _SELECTS:
            raise cursor.expected("SELECT")
        found = bind_select(cursor.tokens[cursor.index :], cursor.source, self.catalogue, name)
        return SqlView(name, found.branches, found.views)

    def _bare_select(self, cursor: Cursor, written: str) -> None:
        """A SELECT of its own is a query with a name of ours."""
        self._nameless(cursor, (Sink(),), f"AS {written}")

    def _nameless(self, cursor: Cursor, into: tuple[Sink, ...], rest: str) -> Query:
        self.unnamed += 1
        while f"q{self.unnamed}" in self.catalogue.queries:
            self.unnamed += 1
        name = f"q{self.unnamed}"
        cursor.source = Source(cursor.source.text, f"query {name}")
        query = self._select(cursor, name, into, {})
        self.catalogue.queries[name] = query
        text = f"CREATE QUERY {name} {rest}"
        self.catalogue.record(Statement("query", name, text, self.folder))
        return query

    def _insert(self, cursor: Cursor) -> None:
        """``INSERT INTO parquet 'folder' SELECT ...``: a query with a name of ours."""
        first, begin = cursor.place, cursor.index
        cursor.expect("INTO")
        word, place = cursor.word(), cursor.place
        if word.lower() not in SINKS:
            written = cursor.source.text[place.start : place.end]
            hint = f"write CREATE QUERY {written} INTO parquet 'out/{written}' AS SELECT ..."
            message = f"answers go to a sink by its kind, and {written} is none"
            raise cursor.source.fault(TypeFault, message, first.until(place), hint)
        found = sinks.parse_sinks(cursor, self.folder)
        into = cursor.source.text[cursor.tokens[begin].start : cursor.place.start].rstrip()
        select = cursor.source.text[cursor.place.start : cursor.tokens[-1].end + 1]
        query = self._nameless(cursor, found, f"{into} AS {select}")
        self._check_fits(query, cursor.source, place)

    def _drop(self, cursor: Cursor) -> None:
        kind: Literal["query", "view"] = "view" if cursor.word() == "VIEW" else "query"
        if not (cursor.take("QUERY") or cursor.take("VIEW")):
            raise cursor.expected("QUERY or VIEW after DROP", "nothing else can be dropped")
        unless = cursor.take("IF", "EXISTS")
        name, place = cursor.name(f"the name of a {kind}")
        cursor.end()
        known: Mapping[str, Query | SqlView] = (
            self.catalogue.queries if kind == "query" else self.catalogue.views)
        if kind == "query" and name.lower() in self.catalogue.streams and (
                self.catalogue.streams[name.lower()].derived):
            raise cursor.source.fault(Refused, f"'{name}' is a stream, and stays", place)
        if unless and name.lower() not in known:
            return
        if name.lower() not in known:
            names = [each.name for each in known.values()]
            message = f"no {kind} '{name}'"
            raise cursor.source.fault(UnknownName, message, place, suggestion(name, names))
        if kind == "view" and (readers := self.catalogue.readers(known[name.lower()].name)):
            listed = ", ".join(readers[:3]) + (", ..." if len(readers) > 3 else "")
            message = f"view '{name}' is read by {listed}"
            raise cursor.source.fault(TypeFault, message, place, "DROP what reads it first")
        self.catalogue.drop(kind, name)

    # --- settings ------------------------------------------------------------------------------

    def _set(self, cursor: Cursor, written: str) -> None:
        name, place = cursor.name("the name of a setting")
        name = name.lower()
        cursor.source = Source(cursor.source.text, f"setting {name}")
        if name not in SETTINGS:
            hint = suggestion(name, SETTINGS) or f"there are {', '.join(SETTINGS)}"
            raise cursor.source.fault(UnknownName, f"no setting '{name}'", place, hint)
        cursor.expect("=")
        value, value_place = setting_value(cursor)
        try:
            self.catalogue.settings[name] = SETTINGS[name](value)
        except ValueError as error:
            raise cursor.source.fault(TypeFault, str(error), value_place) from None
        self.catalogue.record(Statement("setting", name, written, self.folder))


def _with_topic(
    source: Source, format_: str, path: str | None, options: Options, at: Place
) -> tuple[str | None, Options]:
    """The path and the options of a source: a topic of Kafka is an option of it."""
    if format_ != "kafka":
        return path, options
    return None, kafka.source_options(source, path, options, at)


def _timing(cursor: Cursor, columns: Sequence[Field]) -> tuple[str | None, str, float]:
    """The time of a derived stream, its unit, and how late rows may be."""
    time, unit, lateness = None, "", 0.0
    if cursor.take("TIME"):
        time, unit = _time_column(cursor, columns)
    place = cursor.place
    if cursor.take("LATENESS"):
        if time is None:
            hint = "name the column that holds the time"
            raise cursor.source.fault(TypeFault, "LATENESS needs TIME", place, hint)
        lateness, _ = cursor.duration()
    return time, unit, lateness


def declared_name(tokens: Sequence[Token]) -> str:
    """The name in lower case of what a statement declares that queries read; empty if nothing."""
    words = [token.text for token in tokens[:3]]
    if len(words) < 3 or words[0].upper() != "CREATE":
        return ""
    return words[2].lower() if words[1].upper() in ("STREAM", "RELATION", "VIEW") else ""


def one_select(
    statements: Sequence[Sequence[Token]], text: str, name: str, catalogue: Catalogue
) -> OneTimeQuery:
    """The question that a text is: one SELECT, over streams and the answers of queries."""
    source = Source(text, f"query {name}")
    if len(statements) != 1:
        again = statements[1][0] if statements else None
        place = place_of(again) if again is not None else Place(0, max(1, len(text)))
        raise source.syntax("expected one SELECT", place)
    cursor = Cursor(statements[0], source)
    if cursor.word() not in _SELECTS:
        raise cursor.expected("SELECT", "a question is a query without CREATE QUERY")
    tokens, ending = take_ending(understood(cursor.tokens, source), source)
    answers = {key: _answers(query) for key, query in catalogue.queries.items()
               if catalogue.table(query.name) is None}
    asked = bind_asked(tokens, ending, source,
                       replace(catalogue, streams={**answers, **catalogue.streams}))
    query = Query(name, asked.branches, views=asked.views)
    read = tuple(answers[key] for key in answers if answers[key].name in query.streams)
    return OneTimeQuery(query, asked.shown, asked.order, asked.distinct, ending.limit,
                        ending.offset, asked.is_held, read)


def _answers(query: Query) -> Stream:
    """The answers of a query as a question reads them: a stream without a time."""
    columns = tuple(Field(name, type_) for name, type_ in query.branches[0].outputs)
    return Stream(query.name, columns, ANSWERS)


def _check_foreign(cursor: Cursor) -> None:
    """Complain about the watermark of Flink, and about the options of Flink and ksqlDB."""
    for token, following in pairwise(cursor.tokens):
        if token.text.upper() == "WATERMARK" and following.text.upper() == "FOR":
            hint = "write TIME ts LATENESS 5 SECONDS after FROM ..."
            raise cursor.source.syntax("a watermark is declared elsewhere", place_of(token), hint)


def _period(cursor: Cursor) -> float:
    """How often a relation is read again: ``EVERY 10 MINUTES``, or never, ``ON DEMAND``."""
    if cursor.take("ON", "DEMAND"):
        return inf
    if not cursor.take("EVERY"):
        raise cursor.expected("EVERY or ON DEMAND after REFRESH")
    seconds, place = cursor.duration()
    if seconds <= 0:
        raise cursor.source.fault(TypeFault, "a relation is read again after some time", place,
                                  "write REFRESH EVERY 10 MINUTES")
    return seconds


def _columns(cursor: Cursor) -> tuple[Field, ...]:
    cursor.expect("(")
    columns = types.parse_fields(cursor)
    cursor.expect(")")
    return columns


_OWN = {"maxahead": "max_ahead", "filetimeout": "file_timeout"}
"""The options of a stream that are ours, in lower case; the source is told the others only."""


def _own_options(
    cursor: Cursor, options: Options, place: Place
) -> tuple[Options, dict[str, float]]:
    """The options of the source, and those that are ours: durations."""
    own: dict[str, float] = {}
    for name, value in options:
        if name.lower() in _OWN:
            try:
                if isinstance(value, Variable):
                    raise ValueError("expected a duration, not a variable")
                own[_OWN[name.lower()]] = durations.seconds(value)
            except ValueError as error:
                message = f"the option {name}: {error}"
                raise cursor.source.fault(TypeFault, message, place) from None
    return tuple(o for o in options if o[0].lower() not in _OWN), own


def _time_column(cursor: Cursor, columns: Sequence[Field]) -> tuple[str, str]:
    """The column that holds the time, and its unit if it is a number."""
    name, place = cursor.name("the column that holds the time")
    unit = _unit(cursor) if cursor.take("UNIT") else ""
    for column in columns:
        if name_key(column.name) == name_key(name):
            _check_time(cursor, column, unit, place)
            return column.name, unit
    hint = suggestion(name, [c.name for c in columns])
    raise cursor.source.fault(UnknownName, f"no column '{name}'", place, hint)


def _unit(cursor: Cursor) -> str:
    word = cursor.word()
    if word not in EPOCH_UNITS:
        raise cursor.expected(f"a unit: {', '.join(EPOCH_UNITS)}", suggestion(word, EPOCH_UNITS))
    cursor.advance()
    return word


def _check_time(cursor: Cursor, column: Field, unit: str, place: Place) -> None:
    kind, hint = f"'{column.name}' is {article(column.type)}", ""
    if unit and column.type.name in EPOCH_TYPES or not unit and column.type == TIMESTAMP:
        return
    if unit:
        message = f"{kind}, not a number"
        hint = "a TIMESTAMP needs no UNIT" if column.type == TIMESTAMP else ""
    else:
        message = f"{kind}, not a TIMESTAMP"
        if column.type.name in EPOCH_TYPES:
            hint = f"say what it counts since 1970: TIME {column.name} UNIT MILLISECONDS"
    raise cursor.source.fault(TypeFault, message, place, hint)
