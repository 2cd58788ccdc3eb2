"""Functions of arrays, maps and JSON as Spark columns."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from penstock.model import Call, Literal
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


def _typed(function: Callable[..., SparkColumn]) -> Entry:
    """A function that may tell Spark that no element is NULL: our types leave that open."""
    return lambda call, args: function(*args).cast(data_type(call.type))


def _item(call: Call, args: Args) -> SparkColumn:
    return F.get(args[0], args[1])


def _element_at(call: Call, args: Args) -> SparkColumn:
    return F.try_element_at(args[0], where(args[1] != F.lit(0), args[1]))


def _size(call: Call, args: Args) -> SparkColumn:
    return where(args[0].isNotNull(), F.size(args[0]))


def _slice(call: Call, args: Args) -> SparkColumn:
    start, length = where(args[1] != F.lit(0), args[1]), where(args[2] >= F.lit(0), args[2])
    return F.slice(args[0], start, length)


def _sorted(call: Call, args: Args) -> SparkColumn:
    upwards = call.args[1]
    assert isinstance(upwards, Literal)
    return F.sort_array(args[0], bool(upwards.value))


def _repeated(call: Call, args: Args) -> SparkColumn:
    return F.array_repeat(args[0], number_of(call.args[1])).cast(data_type(call.type))


def _joined(call: Call, args: Args) -> SparkColumn:
    nothing = (text_of(call.args[2]),) if len(args) > 2 else ()
    return F.array_join(args[0], text_of(call.args[1]), *nothing)


def _struct(call: Call, args: Args) -> SparkColumn:
    fields = zip(call.type.fields, args, strict=True)
    return F.struct(*(value.alias(field.name) for field, value in fields)).cast(
        data_type(call.type))


def _from_json(call: Call, args: Args) -> SparkColumn:
    return F.from_json(args[0], data_type(call.type))  # type: ignore[arg-type]


def _json_path(call: Call, args: Args) -> SparkColumn:
    return F.get_json_object(args[0], text_of(call.args[1]))


NESTED: dict[str, Entry] = {
    "array": _typed(F.array),
    "array_append": plain(F.array_append),
    "array_compact": _typed(F.array_compact),
    "array_contains": named("array_contains"),
    "array_distinct": plain(F.array_distinct),
    "array_except": _typed(F.array_except),
    "array_intersect": _typed(F.array_intersect),
    "array_join": _joined,
    "array_max": plain(F.array_max),
    "array_min": plain(F.array_min),
    "array_position": named("array_position"),
    "array_prepend": plain(F.array_prepend),
    "array_remove": named("array_remove"),
    "array_repeat": _repeated,
    "array_sort": plain(F.array_sort),
    "array_union": plain(F.array_union),
    "arrays_overlap": plain(F.arrays_overlap),
    "element": plain(F.try_element_at),
    "element_at": _element_at,
    "field": lambda call, args: args[0].getField(call.detail),
    "flatten": plain(F.flatten),
    "from_json": _from_json,
    "get": _item,
    "get_json_object": _json_path,
    "json_array_length": named("json_array_length"),
    "json_object_keys": named("json_object_keys"),
    "map": _typed(F.create_map),
    "map_contains_key": named("map_contains_key"),
    "map_keys": _typed(F.map_keys),
    "map_values": plain(F.map_values),
    "reverse": plain(F.reverse),
    "size": _size,
    "slice": _slice,
    "sort_array": _sorted,
    "struct": _struct,
    "to_json": plain(F.to_json),
}
"""How Spark computes each function of arrays, maps and JSON."""
