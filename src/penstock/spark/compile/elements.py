"""The elements of arrays and maps as rows of their own."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.model import Lookup
from penstock.spark.compile.columns import compiled, ours, place
from penstock.spark.compile.expressions import data_type

_PLACE, _KEY, _ELEMENT = "@place", "@key", "@element"


def unnested(rows: DataFrame, lookup: Lookup, source: int) -> DataFrame:
    """Each row as often as the array or map has elements, with one of them beside it.

    A lookup of kind ``left`` keeps rows without elements, with NULL beside them.
    """
    explode = sf.posexplode_outer if lookup.kind == "left" else sf.posexplode
    raw = [_PLACE, *([_KEY] if lookup.on.type.name == "MAP" else []), _ELEMENT]
    apart = rows.select("*", explode(compiled(lookup.on)).alias(*raw))
    made = {"position": ours(_PLACE), "ordinal": ours(_PLACE) + 1, "key": ours(_KEY),
            "element": ours(_ELEMENT)}
    named = zip(lookup.parts, lookup.columns, strict=True)
    return apart.select(
        *map(ours, rows.columns),
        *(made[part].cast(data_type(column.type)).alias(place(source, column.name))
          for part, column in named))
