"""Functions of texts and bytes."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.errors import TypeFault
from penstock.language import coercion, typed_calls
from penstock.language.admitted import Admitted
from penstock.language.call_arguments import (
    at_most,
    bytes_,
    bytes_or_string,
    constant_string,
    constant_whole,
    number,
    one_of,
    string,
    string_or_strings,
    untyped,
    whole,
    words_of,
)
from penstock.language.patterns import check_regex
from penstock.language.places import Misfit
from penstock.model import BIGINT, BINARY, BOOLEAN, INT, STRING, Expression, Literal, Type

LONGEST = 10_000
"""The most characters, or copies, that a function may be asked to make."""
_STRINGS = Type("ARRAY", element=STRING)
_URL_PARTS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO")
_KEY = re.compile(r"[\w.-]+")


def text(function: str) -> Admitted[Expression]:
    """A text made of a text."""
    return Admitted((string,), typed_calls.gives(function, STRING), 1, 1)


def test(function: str) -> Admitted[Expression]:
    """A question about two texts."""
    return Admitted((string, string), typed_calls.gives(function, BOOLEAN), 2, 2)


def _counted(function: str) -> Admitted[Expression]:
    return Admitted((bytes_or_string,), typed_calls.gives(function, INT), 1, 1)


def _padded(function: str) -> Admitted[Expression]:
    build = typed_calls.padded(function)
    return Admitted((string, at_most(LONGEST), constant_string), build, 2, 3)


def _matched(function: str, type_: Type) -> Callable[[tuple[Expression, ...]], Expression]:
    def build(args: tuple[Expression, ...]) -> Expression:
        check_regex(words_of(args[1]))
        return typed_calls.gives(function, type_)(args)

    return build


def _split(args: tuple[Expression, ...]) -> Expression:
    """SPLIT by a regular expression, into all parts or into at most so many."""
    check_regex(words_of(args[1]))
    limit = args[2] if len(args) > 2 else Literal(-1, INT)
    return typed_calls.gives("split", _STRINGS)((args[0], args[1], limit))


def _split_literally(args: tuple[Expression, ...]) -> Expression:
    """STRING_TO_ARRAY by a text that means itself."""
    delimiter = words_of(args[1])
    if not delimiter:
        raise Misfit(TypeFault, "STRING_TO_ARRAY needs a text to split at")
    escaped = "".join(f"\\{c}" if c in r"\^$.|?*+()[]{}" else c for c in delimiter)
    pattern = Literal(escaped, STRING)
    return typed_calls.gives("split", _STRINGS)((args[0], pattern, Literal(-1, INT)))


def _url_part(args: tuple[Expression, ...]) -> Expression:
    if len(args) > 2:
        if words_of(args[1]).upper() != "QUERY" or not _KEY.fullmatch(words_of(args[2])):
            raise Misfit(TypeFault, "PARSE_URL: a key is a plain name, and a part of 'QUERY'")
    return typed_calls.gives("parse_url", STRING)(args)


def _hexadecimal(args: tuple[Expression, ...]) -> Expression:
    (value,) = args
    if value.type.name in coercion.INTEGERS:
        value = coercion.cast(value, BIGINT)
    elif value.type != BINARY:
        value = string(value)
    return typed_calls.gives("hex", STRING)((value,))


def _sha2(args: tuple[Expression, ...]) -> Expression:
    bits = args[1] if len(args) > 1 else Literal(256, INT)
    if not isinstance(bits, Literal) or bits.value not in (0, 224, 256, 384, 512):
        raise Misfit(TypeFault, "SHA2 has 224, 256, 384 or 512 bits")
    return typed_calls.gives("sha2", STRING)((args[0], bits))


def _formatted(args: tuple[Expression, ...]) -> Expression:
    digits = args[1]
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise Misfit(TypeFault, "FORMAT_NUMBER keeps 0 to 38 digits after the point")
    if not 0 <= digits.value <= 38:
        raise Misfit(TypeFault, "FORMAT_NUMBER keeps 0 to 38 digits after the point")
    return typed_calls.gives("format_number", STRING)(args)


_PATTERN = (string, constant_string)

TEXT: dict[str, Admitted[Expression]] = {
    "ASCII": Admitted((string,), typed_calls.gives("ascii", INT), 1, 1),
    "BASE64": Admitted((bytes_,), typed_calls.gives("base64", STRING), 1, 1),
    "BIT_LENGTH": _counted("bit_length"),
    "BTRIM": Admitted((string,), typed_calls.gives("trim", STRING), 1, 2),
    "CHR": Admitted((whole,), typed_calls.gives("chr", STRING), 1, 1),
    "CONCAT": Admitted((untyped,), typed_calls.concatenated, 1, None),
    "CONCAT_WS": Admitted(
        (constant_string, string_or_strings), typed_calls.gives("concat_ws", STRING), 2, None
    ),
    "CONTAINS": test("contains"),
    "CRC32": Admitted((bytes_,), typed_calls.gives("crc32", BIGINT), 1, 1),
    "ENDSWITH": test("endswith"),
    "FIND_IN_SET": Admitted((string, string), typed_calls.gives("find_in_set", INT), 2, 2),
    "FORMAT_NUMBER": Admitted((number, constant_whole), _formatted, 2, 2),
    "HEX": Admitted((untyped,), _hexadecimal, 1, 1),
    "INITCAP": text("initcap"),
    "INSTR": Admitted((string, string), typed_calls.gives("instr", INT), 2, 2),
    "LEFT": Admitted((string, whole), typed_calls.gives("left", STRING), 2, 2),
    "LENGTH": _counted("length"),
    "LOCATE": Admitted((string, string, whole), typed_calls.gives("locate", INT), 2, 3),
    "LOWER": text("lower"),
    "LPAD": _padded("lpad"),
    "LTRIM": text("ltrim"),
    "LUHN_CHECK": Admitted((string,), typed_calls.gives("luhn_check", BOOLEAN), 1, 1),
    "MD5": Admitted((bytes_or_string,), typed_calls.gives("md5", STRING), 1, 1),
    "OCTET_LENGTH": _counted("octet_length"),
    "PARSE_URL": Admitted((string, one_of(*_URL_PARTS), constant_string), _url_part, 2, 3),
    "REGEXP_COUNT": Admitted(_PATTERN, _matched("regexp_count", INT), 2, 2),
    "REGEXP_EXTRACT": Admitted((*_PATTERN, constant_whole), typed_calls.regexp_extract, 2, 3),
    "REGEXP_EXTRACT_ALL": Admitted(
        (*_PATTERN, constant_whole), typed_calls.regexp_extract_all, 2, 3
    ),
    "REGEXP_REPLACE": Admitted((*_PATTERN, constant_string), typed_calls.regexp_replace, 3, 3),
    "REGEXP_SUBSTR": Admitted(_PATTERN, _matched("regexp_substr", STRING), 2, 2),
    "REPEAT": Admitted((string, at_most(LONGEST)), typed_calls.gives("repeat", STRING), 2, 2),
    "REPLACE": Admitted((string,), typed_calls.gives("replace", STRING), 3, 3),
    "RIGHT": Admitted((string, whole), typed_calls.gives("right", STRING), 2, 2),
    "RLIKE": Admitted(_PATTERN, typed_calls.rlike, 2, 2),
    "RPAD": _padded("rpad"),
    "RTRIM": text("rtrim"),
    "SHA1": Admitted((bytes_,), typed_calls.gives("sha1", STRING), 1, 1),
    "SHA2": Admitted((bytes_, constant_whole), _sha2, 1, 2),
    "SOUNDEX": text("soundex"),
    "SPLIT": Admitted((*_PATTERN, constant_whole), _split, 2, 3),
    "SPLIT_PART": Admitted((string, string, whole), typed_calls.split_part, 3, 3),
    "STARTSWITH": test("startswith"),
    "STRING_TO_ARRAY": Admitted(_PATTERN, _split_literally, 2, 2),
    "SUBSTR": Admitted((string, whole, whole), typed_calls.gives("substr", STRING), 2, 3),
    "SUBSTRING_INDEX": Admitted(
        (string, string, whole), typed_calls.gives("substring_index", STRING), 3, 3
    ),
    "TRANSLATE": Admitted((string,), typed_calls.gives("translate", STRING), 3, 3),
    "TRIM": text("trim"),
    "UNBASE64": Admitted((string,), typed_calls.gives("unbase64", BINARY), 1, 1),
    "UNHEX": Admitted((string,), typed_calls.gives("unhex", BINARY), 1, 1),
    "UPPER": text("upper"),
    "URL_DECODE": text("url_decode"),
    "URL_ENCODE": text("url_encode"),
}
"""Every function of texts, under its first name."""
