"""The answers to SHOW, DESCRIBE and EXPLAIN: tables of what an application declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.explain.explanation import Explanation
from penstock.explain.plans import when_read
from penstock.html_tables import html_table
from penstock.language import Showing
from penstock.language.kafka import topic_of
from penstock.language.settings import SETTINGS
from penstock.model import (
    Application,
    Field,
    Query,
    Relation,
    SqlView,
    StatementKind,
    Stream,
    Variable,
)
from penstock.policies import FAMILIES, texts
from penstock.rendering import span

Row = tuple["str | None", ...]
_SECRET = re.compile("secret|password|token|credential|access.?key|jaas", re.I)
"""In the name of an option whose value is not for everybody who may look; `ENV` is better."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of texts."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def overview_html(application: Application) -> str:
    """What an application declares, as tables for a notebook."""
    lists = ((what.lower(), _LISTS[what](application))
             for what in ("STREAMS", "RELATIONS", "VIEWS", "FUNCTIONS", "QUERIES"))
    return "".join(html_table(what, found.columns, found.rows) for what, found in lists)


def listed(shown: Showing, defaults: Mapping[str, str]) -> Listing:
    """What a statement shows; ``defaults`` are those of the settings."""
    application = shown.application
    if shown.what == "DESCRIBE":
        return _described(application, shown.name)
    if shown.what == "EXPLAIN":
        return Listing(("plan",), tuple((line,) for line in _plan_of(application, shown.name)))
    if shown.what == "SETTINGS":
        return _settings(application, defaults)
    return _LISTS[shown.what](application)


# --- lists ---------------------------------------------------------------------------------------


def _streams(application: Application) -> Listing:
    return Listing(("name", "columns", "source", "time", "lateness"), tuple(
        (stream.name, _columns(stream.columns), _source(stream), stream.time,
         f"{stream.lateness:g} s" if stream.time else None)
        for stream in application.streams.values()))


def _relations(application: Application) -> Listing:
    return Listing(("name", "columns", "source", "read"), tuple(
        (relation.name, _columns(relation.columns), _source(relation), when_read(relation))
        for relation in application.relations.values()))


def _functions(application: Application) -> Listing:
    return Listing(("name", "returns", "python"), tuple(
        (function.name, str(function.returns), f"{function.module}:{function.attribute}")
        for function in application.functions.values()))


def _queries(application: Application) -> Listing:
    return Listing(("name", "reads", "sink", "columns", "statement"), tuple(
        (query.name, ", ".join(query.streams), _sink(query),
         ", ".join(name for name, _ in query.branches[0].outputs),
         " ".join((_statement_of(application, query) or "").split()))
        for query in application.queries.values()))


def _views(application: Application) -> Listing:
    return Listing(("name", "reads", "columns", "statement"), tuple(
        (view.name, _view_reads(view), ", ".join(name for name, _ in view.branches[0].outputs),
         " ".join((_statement(application, "view", view.name) or "").split()))
        for view in application.views.values()))


def _policies(application: Application) -> Listing:
    chosen = texts(application.settings)
    return Listing(("family", "policy", "in_force", "does"), tuple(
        (family.name, name, chosen[family.name] if name == _name(chosen[family.name]) else None,
         _first_sentence(policy.__doc__))
        for family in FAMILIES.values() for name, policy in family.catalogue.items()))


def _name(policy: str) -> str:
    """The name of a policy, without parameters and modifiers.

    >>> _name("mixed(gamma=0.01)"), _name("hybrid+late_pending")
    ('mixed', 'hybrid')
    """
    return policy.partition("+")[0].partition("(")[0]


def _first_sentence(text: str | None) -> str:
    words = " ".join((text or "").split("\n\n")[0].split())
    return words.split(". ")[0].rstrip(".")


def _settings(application: Application, defaults: Mapping[str, str]) -> Listing:
    return Listing(("name", "value", "default"), tuple(
        (name, application.settings.get(name, defaults[name]), defaults[name])
        for name in SETTINGS))


_LISTS: Mapping[str, Callable[[Application], Listing]] = {
    "FUNCTIONS": _functions, "POLICIES": _policies, "QUERIES": _queries, "RELATIONS": _relations,
    "STREAMS": _streams, "VIEWS": _views}


# --- one thing -----------------------------------------------------------------------------------


def _described(application: Application, name: str) -> Listing:
    """The columns of a stream, relation, view or query's answers, and what else is known of it."""
    about: list[tuple[str, str | None]] = []
    columns: Sequence[Field] = ()
    source = application.streams.get(name) or application.relations.get(name)
    view, query = application.views.get(name), application.queries.get(name)
    function = application.functions.get(name)
    if source is not None:
        columns = source.columns
        about = list(_about_source(source))
        if query is not None and query.derives:
            about += list(_about_query(application, query))
    elif view is not None:
        columns = [Field(n, kind) for n, kind in view.branches[0].outputs]
        about = [("view", view.name), ("reads", _view_reads(view)),
                 ("statement", _statement(application, "view", view.name))]
    elif query is not None:
        columns = [Field(n, kind) for n, kind in query.branches[0].outputs]
        about = list(_about_query(application, query))
    elif function is not None:
        takes = "any number" if function.arity is None else str(function.arity)
        about = [("function", function.name), ("returns", str(function.returns)),
                 ("arguments", takes), ("python", f"{function.module}:{function.attribute}")]
    return Listing(("what", "name", "value"), (
        *(("column", column.name, str(column.type)) for column in columns),
        *(("property", name, value) for name, value in about)))


def _about_source(source: Stream | Relation) -> Iterator[tuple[str, str | None]]:
    yield ("stream" if isinstance(source, Stream) else "relation"), source.name
    yield "source", _source(source)
    for name, value in source.options:
        told = f"ENV '{value.name}'" if isinstance(value, Variable) else value
        yield f"option {name}", "(hidden)" if told == value and _SECRET.search(name) else told
    if isinstance(source, Relation):
        yield "read", when_read(source)
    if isinstance(source, Stream):
        yield "time", source.time or "of arrival"
        if source.unit:
            yield "unit", source.unit
        if source.time:
            yield "lateness", f"{source.lateness:g} s"


def _about_query(application: Application, query: Query) -> Iterator[tuple[str, str | None]]:
    yield "query", query.name
    yield "reads", ", ".join(query.streams)
    yield "sink", _sink(query)
    window = query.branches[0].window
    if window is not None and window.gap:
        yield "sessions", f"with gaps below {span(window.gap)}"
    elif window is not None:
        yield "window", span(window.covered)
        yield "slide", span(window.slide) + (" exactly" if window.exactly else "")
        yield "empty groups", f"for {span(window.kept)}" if window.kept else None
    yield "priority", str(query.priority)
    yield "latency", None if query.latency is None else f"{query.latency:g} s"
    yield "lifetime", None if query.lifetime is None else f"{query.lifetime:g} s"
    yield "statement", _statement_of(application, query)


def _plan_of(application: Application, name: str) -> list[str]:
    """The shared plan as the query sees it: its streams, its paths, and who else is on them."""
    return Explanation.of(application, name).plan.splitlines()


def _statement_of(application: Application, query: Query) -> str | None:
    return _statement(application, "stream" if query.derives else "query", query.name)


def _statement(application: Application, kind: StatementKind, name: str) -> str | None:
    return next((s.text for s in application.statements if s.kind == kind and s.name == name), None)


# --- words ---------------------------------------------------------------------------------------


def _columns(columns: Sequence[Field]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def _source(source: Stream | Relation) -> str:
    if isinstance(source, Stream) and source.derived:
        return f"the query {source.name}"
    named = source.path or topic_of(source)
    return f"{source.format} '{named}'" if named else source.format


def _view_reads(view: SqlView) -> str:
    """The streams that a view is made of, and the views that it reads."""
    streams = dict.fromkeys(name for branch in view.branches for name in branch.streams)
    return ", ".join((*streams, *view.views))


def _sink(query: Query) -> str:
    if query.derives:
        return f"the stream {query.name}"
    return query.into
