"""The lists in statement heads: OPTIONS of a source, WITH of a query, the value of SET."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokenizer_core import TokenType

from penstock.errors import TypeFault, UnknownName
from penstock.language.places import Place, suggestion
from penstock.language.tokens import Cursor
from penstock.model import Options, Variable


def parse_options(cursor: Cursor) -> Options:
    """``OPTIONS (name = value, ...)``: handed to Spark's source as strings."""
    cursor.expect("OPTIONS")
    cursor.expect("(")
    options: dict[str, str | Variable] = {}
    seen: set[str] = set()
    while True:
        name, place = _option_name(cursor)
        if name.lower() in seen:
            raise cursor.source.syntax(f"the option '{name}' is given twice", place)
        seen.add(name.lower())
        cursor.expect("=")
        options[name] = _option_value(cursor)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return tuple(options.items())


def _option_name(cursor: Cursor) -> tuple[str, Place]:
    """A name, in quotes when it is odd, or dotted such as ``kafka.bootstrap.servers``."""
    if cursor.at_string():
        return cursor.string("the name of an option")
    name, place = cursor.name("the name of an option")
    while cursor.take("."):
        name += "." + cursor.name("the rest of the option's name")[0]
    return name, place


def _option_value(cursor: Cursor) -> str | Variable:
    if cursor.word() == "ENV":
        cursor.advance()
        name, place = cursor.string("the name of an environment variable in quotes")
        if not name or "=" in name or "\0" in name:
            raise cursor.source.syntax("expected the name of an environment variable", place)
        return Variable(name)
    if cursor.at_string():
        return cursor.string("a value")[0]
    if cursor.word() in ("TRUE", "FALSE"):
        return cursor.advance().text.lower()
    sign = "-" if cursor.take("-") else ""
    token = cursor.current
    if token is None or token.token_type is not TokenType.NUMBER:
        raise cursor.expected("a value: a quoted text, a number, true, false or ENV 'NAME'")
    return sign + cursor.advance().text


def parse_with(cursor: Cursor) -> dict[str, object]:
    """``WITH (latency = '2 seconds', priority = 3, ...)``."""
    cursor.expect("(")
    options: dict[str, object] = {}
    while True:
        name, place = cursor.name("an option: latency, lifetime, priority, rejects or start")
        name = name.lower()
        if name not in _WITH:
            hint = suggestion(name, _WITH) or f"there are {', '.join(_WITH)}"
            raise cursor.source.fault(UnknownName, f"a query has no option '{name}'", place, hint)
        if name in options:
            raise cursor.source.syntax(f"{name} is given twice", place)
        cursor.expect("=")
        options[name] = _WITH[name](cursor)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return options


def _positive_duration(cursor: Cursor) -> float:
    seconds, place = cursor.duration()
    if seconds <= 0:
        raise cursor.source.fault(TypeFault, "expected more than no time", place)
    return seconds


def _priority(cursor: Cursor) -> int:
    word = cursor.word()
    if not (word.isascii() and word.isdigit() and len(word) < 7):
        raise cursor.expected("a whole number")
    return int(cursor.advance().text)


def _start(cursor: Cursor) -> str:
    place = cursor.place
    value = cursor.string("'now' or 'earliest'")[0].lower()
    if value not in ("now", "earliest"):
        raise cursor.source.fault(TypeFault, f"start is 'now' or 'earliest', not '{value}'", place)
    return value


def _rejects(cursor: Cursor) -> str:
    place = cursor.place
    value = cursor.string("'keep' or 'fail'")[0].lower()
    if value not in ("keep", "fail"):
        raise cursor.source.fault(TypeFault, f"rejects is 'keep' or 'fail', not '{value}'", place)
    return value


_WITH: dict[str, Callable[[Cursor], object]] = {
    "latency": _positive_duration,
    "lifetime": _positive_duration,
    "priority": _priority,
    "rejects": _rejects,
    "start": _start,
}


def setting_value(cursor: Cursor) -> tuple[str, Place]:
    """A quoted text, or words up to the end of the statement."""
    first = cursor.place
    if cursor.current is None:
        raise cursor.expected("a value")
    if cursor.at_string():
        value, place = cursor.string("a value")
        cursor.end()
        return value, place
    while cursor.current is not None:
        last = cursor.advance()
    place = first.until(Place(last.start, last.end + 1))
    return cursor.source.text[place.start : place.end], place
