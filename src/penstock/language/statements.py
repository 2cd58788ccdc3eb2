"""Statements: their heads are read by hand, the SELECT inside goes to `select`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from sqlglot.tokenizer_core import Token

from penstock.errors import LanguageError, NotYet, SyntaxFault, TypeFault, UnknownName
from penstock.functions import PythonFunction
from penstock.language import durations, functions, sinks, types
from penstock.language.aggregates import is_aggregate
from penstock.language.catalogue import Catalogue
from penstock.language.coercion import article
from penstock.language.dialect import STANDARD
from penstock.language.options import parse_options, parse_with, setting_value
from penstock.language.places import Place, Source, suggestion
from penstock.language.select import bind_select
from penstock.language.settings import SETTINGS
from penstock.language.signatures import Signature
from penstock.language.tokens import Cursor, place_of
from penstock.model import (
    EPOCH_TYPES,
    EPOCH_UNITS,
    TIMESTAMP,
    Field,
    Function,
    Options,
    Query,
    Relation,
    Sink,
    Statement,
    StatementKind,
    Stream,
    Variable,
    name_key,
)
from penstock.sinks import SINKS

Load = Callable[[str, str, str], PythonFunction | Signature]
"""Finds what SQL must know of a function, from its module, its name and the folder."""
Declared = TypeVar("Declared", Stream, Relation, Function, Query)
_KINDS = ("STREAM", "RELATION", "FUNCTION", "QUERY")
_SELECTS = ("SELECT", "(", "WITH")
_HEADS = ("CREATE", "DROP", "SET", "SELECT")
_LISTED = "`penstock explain` lists what an application declares"
_ELSEWHERE = {
    "SHOW": _LISTED,
    "DESCRIBE": _LISTED,
    "DESC": _LISTED,
    "ALTER": "DROP QUERY, then CREATE it; a stream's declaration cannot be changed",
    "BEGIN": "statements separated by ; are an application",
    "DELETE": "answers are never changed",
    "EXECUTE": "statements separated by ; are an application",
    "TERMINATE": "write DROP QUERY q",
    "UPDATE": "answers are never changed",
    "EXPLAIN": "`penstock explain` shows how queries are shared",
}
"""What to do instead of statements that other systems have."""
_CREATED_ELSEWHERE = {
    "STREAMING": "write CREATE QUERY q AS SELECT ..., whose answers are kept up to date",
    "TEMPORARY": "a stream of rows is a STREAM, a table that is looked up a RELATION",
    "OR": "DROP the query first, then CREATE it",
    "TABLE": "a stream of rows is a STREAM, a table that is looked up a RELATION",
    "VIEW": "a query cannot read another one; each is a CREATE QUERY of its own",
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
        elif cursor.take("INSERT"):
            self._insert(cursor)
        else:
            hint = _ELSEWHERE.get(cursor.word()) or suggestion(cursor.word(), _HEADS)
            raise cursor.expected("CREATE, DROP QUERY, SET or SELECT", hint)

    def _create(self, cursor: Cursor, written: str) -> None:
        kind = cursor.word()
        if kind not in _KINDS:
            hint = _CREATED_ELSEWHERE.get(kind) or suggestion(kind, _KINDS)
            raise cursor.expected("STREAM, RELATION, FUNCTION or QUERY after CREATE", hint)
        cursor.advance()
        unless = cursor.take("IF", "NOT", "EXISTS")
        name, place = cursor.name(f"the name of the {kind.lower()}")
        cursor.source = Source(cursor.source.text, f"{kind.lower()} {name}")
        if unless and self._exists(kind, name):
            return
        _check_foreign(cursor)
        if kind == "STREAM":
            self._check_other(name, self.catalogue.relations, "relation", cursor.source, place)
            stream = self._stream(cursor, name)
            self._declare(self.catalogue.streams, stream, "stream", cursor.source, place, written)
        elif kind == "RELATION":
            self._check_other(name, self.catalogue.streams, "stream", cursor.source, place)
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
        else:
            query = self._query(cursor, name)
            self._declare(self.catalogue.queries, query, "query", cursor.source, place, written)

    def _exists(self, kind: str, name: str) -> bool:
        known: dict[str, Mapping[str, object]] = {
            "STREAM": self.catalogue.streams, "RELATION": self.catalogue.relations,
            "FUNCTION": self.catalogue.functions, "QUERY": self.catalogue.queries,
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
            hint = "DROP it first" if kind == "query" else "a declaration cannot be changed"
            message = f"{kind} '{what.name}' exists already and is declared differently"
            raise source.fault(TypeFault, message, place, hint)

    def _check_other(
        self, name: str, others: Mapping[str, object], kind: str, source: Source, place: Place
    ) -> None:
        if name.lower() in others:
            raise source.fault(TypeFault, f"there is a {kind} '{name}' already", place)

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
        columns = _columns(cursor)
        format_, path = self._origin(cursor)
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
        return Stream(name, columns, format_, path, options, time, lateness, unit, **own)

    def _relation(self, cursor: Cursor, name: str) -> Relation:
        columns = _columns(cursor)
        format_, path = self._origin(cursor)
        options = parse_options(cursor) if cursor.word() == "OPTIONS" else ()
        cursor.end("OPTIONS or the end of the statement")
        return Relation(name, columns, format_, path, options)

    def _origin(self, cursor: Cursor) -> tuple[str, str | None]:
        cursor.expect("FROM")
        format_, _ = cursor.name("a source such as parquet, csv, json, kafka or rate")
        while cursor.take("."):
            format_ += "." + cursor.name("the rest of the source's name")[0]
        path = None
        if cursor.at_string():
            path, place = cursor.string("a path")
            sinks.check_path(cursor, path, place)
            path = sinks.resolved(path, self.folder)
        return (format_ if "." in format_ else format_.lower()), path

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
        sink = sinks.parse_sink(cursor, self.folder) if into else Sink()
        options = parse_with(cursor) if cursor.take("WITH") else {}
        cursor.expect("AS")
        query = self._select(cursor, name, sink, options)
        self._check_fits(query, cursor.source, place)
        return query

    def _check_fits(self, query: Query, source: Source, place: Place) -> None:
        if unfit := sinks.unfit(query):
            raise source.fault(TypeFault, unfit, place, "INTO json holds it")

    def _select(
        self, cursor: Cursor, name: str, sink: Sink, options: Mapping[str, object]
    ) -> Query:
        if cursor.word() not in _SELECTS:
            raise cursor.expected("SELECT")
        branches = bind_select(cursor.tokens[cursor.index :], cursor.source, self.catalogue)
        return Query(name, branches, sink, **options)  # type: ignore[arg-type]

    def _bare_select(self, cursor: Cursor, written: str) -> None:
        """A SELECT of its own is a query with a name of ours."""
        self._nameless(cursor, Sink(), f"AS {written}")

    def _nameless(self, cursor: Cursor, sink: Sink, rest: str) -> Query:
        self.unnamed += 1
        while f"q{self.unnamed}" in self.catalogue.queries:
            self.unnamed += 1
        name = f"q{self.unnamed}"
        cursor.source = Source(cursor.source.text, f"query {name}")
        query = self._select(cursor, name, sink, {})
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
        sink = sinks.parse_sink(cursor, self.folder)
        into = cursor.source.text[cursor.tokens[begin].start : cursor.place.start].rstrip()
        select = cursor.source.text[cursor.place.start : cursor.tokens[-1].end + 1]
        query = self._nameless(cursor, sink, f"{into} AS {select}")
        self._check_fits(query, cursor.source, place)

    def _drop(self, cursor: Cursor) -> None:
        if not cursor.take("QUERY"):
            raise cursor.expected("QUERY after DROP", "only queries can be dropped")
        unless = cursor.take("IF", "EXISTS")
        name, place = cursor.name("the name of a query")
        cursor.end()
        if unless and name.lower() not in self.catalogue.queries:
            return
        if name.lower() not in self.catalogue.queries:
            known = [query.name for query in self.catalogue.queries.values()]
            message = f"no query '{name}'"
            raise cursor.source.fault(UnknownName, message, place, suggestion(name, known))
        self.catalogue.drop_query(name)

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


def one_select(
    statements: Sequence[Sequence[Token]], text: str, name: str, catalogue: Catalogue
) -> Query:
    """The query of a text that is one SELECT."""
    source = Source(text, f"query {name}")
    if len(statements) != 1:
        again = statements[1][0] if statements else None
        place = place_of(again) if again is not None else Place(0, max(1, len(text)))
        raise source.syntax("expected one SELECT", place)
    cursor = Cursor(statements[0], source)
    if cursor.word() not in _SELECTS:
        raise cursor.expected("SELECT", "a question is a query without CREATE QUERY")
    branches = bind_select(cursor.tokens, source, catalogue)
    if any(branch.window is not None and branch.window.gap for branch in branches):
        place = Place(0, max(1, len(text)))
        raise source.fault(NotYet, "sessions in a question are not supported yet", place,
                           "CREATE QUERY answers them as they end")
    return Query(name, branches)


def _check_foreign(cursor: Cursor) -> None:
    """Complain about the watermark of Flink, and about the options of Flink and ksqlDB."""
    for token, following in pairwise(cursor.tokens):
        if token.text.upper() == "WATERMARK" and following.text.upper() == "FOR":
            hint = "write TIME ts LATENESS 5 SECONDS after FROM ..."
            raise cursor.source.syntax("a watermark is declared elsewhere", place_of(token), hint)


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
