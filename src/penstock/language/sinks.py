"""INTO: where a query's answers go."""

from __future__ import annotations

import posixpath
import re

from penstock.errors import TypeFault, UnknownName
from penstock.language import kafka_options
from penstock.language.options import parse_options
from penstock.language.places import Place, suggestion
from penstock.language.tokens import Cursor
from penstock.model import Query, Sink
from penstock.sinks import SINKS

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def parse_sink(cursor: Cursor, folder: str) -> Sink:
    """Take the kind of a sink and its target."""
    kind, place = cursor.name("the kind of a sink, such as parquet or memory")
    kind = kind.lower()
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
        return Sink(kind, _callback(cursor))
    if wanted == "topic":
        topic, place = cursor.string("the topic, in quotes")
        options = parse_options(cursor) if cursor.word() == "OPTIONS" else ()
        kafka_options.check_sink(cursor.source, topic, options, place)
        return Sink(kind, topic, options)
    if cursor.at_string():
        raise cursor.source.syntax(f"the sink {kind} takes no target", cursor.place)
    return Sink(kind)


def unfit(query: Query) -> str:
    """Why a sink cannot hold the answers of a query, if it cannot."""
    kind = query.sink.kind
    if SINKS[kind].target == "topic":
        return kafka_options.unsendable(query)
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
