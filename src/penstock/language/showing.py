"""SHOW, DESCRIBE and EXPLAIN: statements that tell what is declared, and change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import UnknownName
from penstock.language.catalogue import Catalogue
from penstock.language.places import suggestion
from penstock.language.tokens import Cursor
from penstock.model import Application

LISTS = ("FUNCTIONS", "POLICIES", "QUERIES", "RELATIONS", "SETTINGS", "STREAMS", "VIEWS")
"""What SHOW lists."""
HEADS = ("DESC", "DESCRIBE", "EXPLAIN", "SHOW")
"""The words that begin such a statement."""


@dataclass(frozen=True, slots=True)
class Showing:
    """A statement that asks what is declared, and everything that was when it was reached."""

    what: str
    """One of `LISTS`, DESCRIBE or EXPLAIN."""
    name: str
    """What is described or explained, as it was declared; empty for a list."""
    application: Application


def bind_showing(cursor: Cursor, catalogue: Catalogue) -> Showing:
    """The statement under the cursor, which begins with one of `HEADS`."""
    head = cursor.advance().text.upper()
    if head == "SHOW":
        what = cursor.word()
        if what not in LISTS:
            raise cursor.expected(f"one of {', '.join(LISTS)} after SHOW", suggestion(what, LISTS))
        cursor.advance()
        cursor.end()
        return Showing(what, "", catalogue.application())
    if head == "EXPLAIN":
        cursor.take("QUERY")
        if cursor.word() in ("SELECT", "WITH", "("):
            raise cursor.expected("the name of a query", "CREATE QUERY gives it one")
        known = {key: query.name for key, query in catalogue.queries.items()}
        return Showing(head, _named(cursor, "query", known), catalogue.application())
    known = {key: one.name for kind in (catalogue.functions, catalogue.queries,
                                        catalogue.relations, catalogue.streams, catalogue.views)
             for key, one in kind.items()}
    what = "stream, relation, view, function or query"
    return Showing("DESCRIBE", _named(cursor, what, known), catalogue.application())


def _named(cursor: Cursor, what: str, known: dict[str, str]) -> str:
    name, place = cursor.name(f"the name of a {what}")
    cursor.end()
    if name.lower() not in known:
        hint = suggestion(name, list(known.values()))
        raise cursor.source.fault(UnknownName, f"no {what} '{name}'", place, hint)
    return known[name.lower()]
