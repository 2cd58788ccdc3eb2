"""Functions of texts and bytes as Spark columns."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.model import Call
from penstock.spark.compile.data_types import (
    Args,
    Entry,
    data_type,
    named,
    number_of,
    plain,
    text_of,
    where,
)


def _trim(function: Callable[..., SparkColumn]) -> Entry:
    return lambda call, args: function(args[0], *args[1:])


def _split_part(call: Call, args: Args) -> SparkColumn:
    return F.split_part(args[0], args[1], where(args[2] != F.lit(0), args[2]))


def _regexp_extract(call: Call, args: Args) -> SparkColumn:
    return F.regexp_extract(args[0], text_of(call.args[1]), number_of(call.args[2]))


def _regexp_extract_all(call: Call, args: Args) -> SparkColumn:
    return F.regexp_extract_all(*args).cast(data_type(call.type))


def _concat(call: Call, args: Args) -> SparkColumn:
    return F.concat(*args).cast(data_type(call.type))


def _split(call: Call, args: Args) -> SparkColumn:
    parts = F.split(args[0], text_of(call.args[1]), number_of(call.args[2]))
    return parts.cast(data_type(call.type))


def _padded(function: Callable[[SparkColumn, int, str], SparkColumn]) -> Entry:
    return lambda call, args: function(args[0], number_of(call.args[1]), text_of(call.args[2]))


def _md5(call: Call, args: Args) -> SparkColumn:
    return F.md5(args[0].cast(T.BinaryType()))


def _unbase64(call: Call, args: Args) -> SparkColumn:
    return F.try_to_binary(args[0], F.lit("base64"))


def _sha2(call: Call, args: Args) -> SparkColumn:
    return F.sha2(args[0], number_of(call.args[1]))


def _format_number(call: Call, args: Args) -> SparkColumn:
    return F.format_number(args[0], number_of(call.args[1]))


def _repeat(call: Call, args: Args) -> SparkColumn:
    return F.repeat(args[0], number_of(call.args[1]))


TEXT: dict[str, Entry] = {
    "ascii": plain(F.ascii),
    "base64": plain(F.base64),
    "bit_length": plain(F.bit_length),
    "chr": named("chr"),
    "concat": _concat,
    "concat_ws": named("concat_ws"),
    "contains": plain(F.contains),
    "crc32": plain(F.crc32),
    "endswith": plain(F.endswith),
    "find_in_set": plain(F.find_in_set),
    "format_number": _format_number,
    "hex": plain(F.hex),
    "initcap": plain(F.initcap),
    "instr": named("instr"),
    "left": plain(F.left),
    "length": plain(F.length),
    "locate": named("locate"),
    "lower": plain(F.lower),
    "lpad": _padded(F.lpad),
    "ltrim": _trim(F.ltrim),
    "luhn_check": named("luhn_check"),
    "md5": _md5,
    "octet_length": plain(F.octet_length),
    "parse_url": plain(F.try_parse_url),
    "regexp_count": plain(F.regexp_count),
    "regexp_extract": _regexp_extract,
    "regexp_extract_all": _regexp_extract_all,
    "regexp_replace": plain(F.regexp_replace),
    "regexp_substr": plain(F.regexp_substr),
    "repeat": _repeat,
    "replace": plain(F.replace),
    "right": plain(F.right),
    "rlike": plain(F.rlike),
    "rpad": _padded(F.rpad),
    "rtrim": _trim(F.rtrim),
    "sha1": plain(F.sha1),
    "sha2": _sha2,
    "soundex": plain(F.soundex),
    "split": _split,
    "split_part": _split_part,
    "startswith": plain(F.startswith),
    "substr": plain(F.substr),
    "substring_index": named("substring_index"),
    "translate": named("translate"),
    "trim": _trim(F.trim),
    "unbase64": _unbase64,
    "unhex": plain(F.unhex),
    "upper": plain(F.upper),
    "url_decode": plain(F.try_url_decode),
    "url_encode": plain(F.url_encode),
}
"""How Spark computes each function of texts."""
