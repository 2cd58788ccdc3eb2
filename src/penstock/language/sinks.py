"""INTO: where a query's answers go."""

from __future__ import annotations

import posixpath
import re

from penstock.errors import NotYet, TypeFault, UnknownName
from penstock.language import kafka
from penstock.language.options import parse_options
from penstock.language.places import Place, suggestion
from penstock.language.tokens import Cursor
from penstock.model import Query, Sink
from penstock.sinks import SINKS

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_TABLES = {
    kind: "write INTO parquet 'folder' and load its files into the table: they appear whole and "
          "never change"
    for kind in ("delta", "iceberg", "hudi")
}
"""Formats of tables; their writers are not made for the Spark that Penstock runs on."""
_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def parse_sink(cursor: Cursor, folder: str) -> Sink:
    """Take the kind of a sink and its target."""
    kind, place = cursor.name("the kind of a sink, such as parquet or memory")
    kind = kind.lower()
    if kind in _TABLES:
        message = f"there is no writer of {kind} tables for this version of Spark"
        raise cursor.source.fault(NotYet, message, place, _TABLES[kind])
    known = [name for name, one in SINKS.items() if not one.is_ours]
    if kind not in known:
        hint = suggestion(kind, known) or f"there are {', '.join(known)}"
        hint = "write CREATE STREAM name AS SELECT ..." if kind in SINKS else hint
        raise cursor.source.fault(UnknownName, f"no sink '{kind}'", place, hint)
    wanted = SINKS[kind].target
    if wanted == "folder":
        target, _ = _target(cursor, f"the folder of {kind}, in quotes")
        return Sink(kind, resolved(target, folder))
    if wanted == "function":
        return Sink(kind, _callback(cursor) if cursor.at_string() else None)
    if wanted == "topic":
        topic, place = cursor.string("the topic, in quotes")
        options = parse_options(cursor) if cursor.word() == "OPTIONS" else ()
        kafka.check_sink(cursor.source, topic, options, place)
        return Sink(kind, topic, options)
    if cursor.at_string():
        raise cursor.source.syntax(f"the sink {kind} takes no target", cursor.place)
    return Sink(kind)


def parse_sinks(cursor: Cursor, folder: str) -> tuple[Sink, ...]:
    """Take the sinks that stand after INTO, with commas between them."""
    found: list[Sink] = []
    while not found or cursor.take(","):
        place = cursor.place
        sink = parse_sink(cursor, folder)
        if sink in found:
            raise cursor.source.fault(TypeFault, f"the sink {sink} is named twice", place)
        if other := next((one for one in found if one.folder and one.folder == sink.folder), None):
            message = f"{sink.folder} cannot hold both {other.kind} and {sink.kind} files"
            raise cursor.source.fault(TypeFault, message, place, "name another folder")
        found.append(sink)
    return tuple(found)


def unfit(query: Query) -> str:
    """Why a sink cannot hold the answers of a query, if it cannot."""
    for one in query.by_sink:
        kind = one.sink.kind
        if SINKS[kind].target == "topic":
            if fault := kafka.unsendable(one):
                return fault
            continue
        for output in query.branches[0].select if not SINKS[kind].holds_nested else ():
            if output.expression.type.name in ("ARRAY", "MAP", "STRUCT"):
                return (f"{kind} cannot hold column '{output.name}', which is "
                        f"{output.expression.type}; INTO json holds it")
    return ""


def _target(cursor: Cursor, what: str) -> tuple[str, object]:
    target, place = cursor.string(what)
    check_path(cursor, target, place)
    return target, place


def check_path(cursor: Cursor, path: str, place: Place) -> None:
    """Raise where nothing can have such a path."""
    if not path.strip() or "\0" in path:
        why = "is blank" if not path.strip() else "holds the character NUL"
        raise cursor.source.fault(TypeFault, f"this path {why}", place)


def _callback(cursor: Cursor) -> str:
    target, place = cursor.string("the function to call, 'module:name'")
    if not _CALLABLE.fullmatch(target):
        raise cursor.source.fault(TypeFault, "expected 'module:name'", place)
    return target


def is_callable_name(text: str) -> bool:
    """Whether a text has the form ``module:name``."""
    return _CALLABLE.fullmatch(text) is not None


def resolved(path: str, folder: str) -> str:
    """A path as Spark takes it: a URI as it is, a relative one from the application's folder.

    >>> resolved("data/packets", "/apps/net"), resolved("s3a://lake/packets", "/apps/net")
    ('/apps/net/data/packets', 's3a://lake/packets')
    """
    if _URI.match(path):
        return path
    return posixpath.normpath(posixpath.join(folder, path))
