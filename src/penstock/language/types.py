"""Types as they are written: ``INT``, ``DECIMAL(10,2)``, ``MAP<STRING, ARRAY<INT>>``."""

from __future__ import annotations

from penstock.errors import LanguageError, TypeFault
from penstock.language.coercion import holds_map
from penstock.language.places import Place, Source, suggestion
from penstock.language.tokens import Cursor, tokenise
from penstock.model import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Field, Type, name_key

SIMPLE = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TINYINT": Type("TINYINT"),
    "BYTE": Type("TINYINT"),
    "SMALLINT": Type("SMALLINT"),
    "SHORT": Type("SMALLINT"),
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "FLOAT": Type("FLOAT"),
    "REAL": Type("FLOAT"),
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BINARY": Type("BINARY"),
    "DATE": Type("DATE"),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
}
"""Types without parameters, by every word for them."""

_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_WORDS = (*SIMPLE, *_DECIMAL, "ARRAY", "MAP", "STRUCT")
_DEEPEST = 20


def parse_text(text: str) -> Type:
    """The type written in a text of its own; ValueError says what is wrong with it.

    >>> str(parse_text("array<struct<a: int, b: decimal(5, 2)>>"))
    'ARRAY<STRUCT<`a`: INT, `b`: DECIMAL(5,2)>>'
    """
    try:
        cursor = Cursor(tokenise(text), Source(text))
        found = parse_type(cursor)
        cursor.end("the end of the type")
    except LanguageError as error:
        raise ValueError(_reason(error)) from None
    return found


def parse_schema(text: str) -> Type:
    """The type of a schema: a type, or a list of fields such as ``a INT, b STRING``.

    >>> str(parse_schema("a INT, b STRING"))
    'STRUCT<`a`: INT, `b`: STRING>'
    """
    try:
        cursor = Cursor(tokenise(text), Source(text))
        if cursor.word() in ("STRUCT", "ARRAY", "MAP"):
            found = parse_type(cursor)
        else:
            found = Type("STRUCT", fields=parse_fields(cursor))
        cursor.end("the end of the schema")
    except LanguageError as error:
        raise ValueError(_reason(error)) from None
    return found


def parse_type(cursor: Cursor, depth: int = 0) -> Type:
    """Take a type."""
    place, word = cursor.place, cursor.word()
    if depth > _DEEPEST:
        raise cursor.source.syntax("this type is nested too deeply", place)
    if word not in _WORDS:
        hint = suggestion(word, _WORDS) if word else ""
        if word in ("VARCHAR", "CHAR", "TEXT"):
            hint = "write STRING"
        raise cursor.expected("a type such as INT, STRING or TIMESTAMP", hint)
    cursor.advance()
    if word in _DECIMAL:
        return _decimal(cursor)
    if word == "ARRAY":
        return _array(cursor, depth)
    if word == "MAP":
        return _map(cursor, depth)
    if word == "STRUCT":
        return _struct(cursor, depth)
    return SIMPLE[word]


def parse_fields(cursor: Cursor, depth: int = 0) -> tuple[Field, ...]:
    """Take fields separated by commas: names and types, no name twice."""
    fields: list[Field] = []
    seen: set[str] = set()
    while True:
        name, place = cursor.name("the name of a column")
        if name_key(name) in seen:
            raise cursor.source.fault(TypeFault, f"'{name}' is declared twice", place)
        seen.add(name_key(name))
        if depth:
            cursor.take(":")
        fields.append(Field(name, parse_type(cursor, depth + 1)))
        if not cursor.take(","):
            return tuple(fields)


def _decimal(cursor: Cursor) -> Type:
    precision, scale = 10, 0
    place = cursor.place
    if cursor.take("("):
        precision = _whole_number(cursor)
        if cursor.take(","):
            scale = _whole_number(cursor)
        cursor.expect(")")
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        message = f"DECIMAL({precision},{scale}) does not exist"
        hint = "a DECIMAL has 1 to 38 digits, and no more after the point than in all"
        raise cursor.source.fault(TypeFault, message, place, hint)
    return Type("DECIMAL", precision=precision, scale=scale)


def _whole_number(cursor: Cursor) -> int:
    word = cursor.word()
    if not (word.isascii() and word.isdigit() and len(word) < 4):
        raise cursor.expected("a number of digits")
    return int(cursor.advance().text)


def _array(cursor: Cursor, depth: int) -> Type:
    cursor.expect("<")
    element = parse_type(cursor, depth + 1)
    cursor.expect(">")
    return Type("ARRAY", element=element)


def _map(cursor: Cursor, depth: int) -> Type:
    cursor.expect("<")
    place = cursor.place
    key = parse_type(cursor, depth + 1)
    if holds_map(key):
        raise cursor.source.fault(TypeFault, "the key of a MAP cannot hold a MAP", place)
    cursor.expect(",")
    element = parse_type(cursor, depth + 1)
    cursor.expect(">")
    return Type("MAP", key=key, element=element)


def _struct(cursor: Cursor, depth: int) -> Type:
    cursor.expect("<")
    fields = parse_fields(cursor, depth + 1)
    cursor.expect(">")
    return Type("STRUCT", fields=fields)


def _reason(error: LanguageError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def check_storable(type_: Type, source: Source, place: Place, what: str) -> None:
    """Complain about a type that no file can hold."""
    if type_.name in ("VOID", "INTERVAL"):
        message = f"{what} has no type that can be stored ({type_})"
        hint = "write CAST(NULL AS type)" if type_.name == "VOID" else "add it to a TIMESTAMP"
        raise source.fault(TypeFault, message, place, hint)
