"""Measures on Spark: how the rows of a cell are aggregated, and how its panes are merged.

The columns have the types of `penstock.synopses.Measure.stored`. Every measure ignores NULL, so a
condition on the rows is a CASE around the argument.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as sf

from penstock.model import Expression
from penstock.spark.compile.columns import compiled, ours
from penstock.spark.compile.expressions import data_type
from penstock.synopses import Family, Measure
from penstock.synopses.sketches import FM_MAPS, KLL_K

NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_TOP_BIT = 1 << 53
"""A bit above all that a hash can set in a map; a hash without bits sets this one."""


def hashed(value: SparkColumn) -> SparkColumn:
    """The 64-bit hash of a value that sketches use; NULL for NULL."""
    return sf.when(value.isNotNull(), sf.xxhash64(value))


def cell(family: Family) -> SparkColumn | None:
    """The column that says which cell a row belongs to; None if the keys alone do."""
    match family.kind:
        case "scalars":
            return None
        case "hll":
            return _lowest(hashed(compiled(family.args[0])), 1 << int(family.parameters[0]))
        case "fm":
            return _lowest(hashed(compiled(family.args[0])), FM_MAPS)
    return compiled(family.args[0])


def _lowest(value: SparkColumn, number: int) -> SparkColumn:
    return value.bitwiseAND(sf.lit(number - 1)).cast("int")


def measured(measure: Measure, family: Family, held: SparkColumn | None) -> SparkColumn:
    """A measure of the rows of a cell; with ``held`` only of rows for which it is true."""

    def of(value: SparkColumn) -> SparkColumn:
        return value if held is None else sf.when(held, value)

    if measure.arg is None:
        return sf.count(of(sf.lit(1)))
    value = of(compiled(measure.arg))
    match measure.kind:
        case "count":
            return sf.count(value)
        case "sum":
            return _sum(value, measure)
        case "min":
            return sf.min(value)
        case "max":
            return sf.max(value)
        case "moments":
            return _moments(value.cast("double"))
        case "kll":
            return sf.kll_sketch_agg_double(value.cast("double"), KLL_K)
        case "list":
            return _least(sf.collect_list(value), measure)
    rest = of(_remainder(measure.arg, measure, family))
    if measure.kind == "rank":
        return sf.min(rest)
    return sf.coalesce(sf.bit_or(rest), sf.lit(1).cast("bigint"))  # the cell of NULL has rows


def argument(measure: Measure, family: Family) -> SparkColumn | None:
    """What a cell's rows contribute to a measure that Spark does not compute; None: themselves.

    A value that is counted and is not a number only has to be known.
    """
    if measure.arg is None:
        return None
    value = compiled(measure.arg)
    if measure.kind in ("rank", "bits"):
        return _remainder(measure.arg, measure, family)
    if measure.kind == "count" and measure.type.name not in NUMBERS:
        return sf.when(value.isNotNull(), True)
    return value.cast("double") if measure.kind == "moments" else value


def _remainder(arg: Expression, measure: Measure, family: Family) -> SparkColumn:
    """The rest of a hash after its lowest bits have chosen the cell; for a map, one bit of it."""
    bits = int(family.parameters[0]) if measure.kind == "rank" else (FM_MAPS - 1).bit_length()
    rest = sf.shiftrightunsigned(hashed(compiled(arg)), bits)
    if measure.kind == "rank":
        return rest
    marked = rest.bitwiseOR(sf.lit(_TOP_BIT))
    return marked.bitwiseAND(sf.negate(marked))


def _sum(value: SparkColumn, measure: Measure) -> SparkColumn:
    stored = data_type(measure.stored)
    if measure.type.name == "BIGINT":
        halves = (sf.shiftright(value, 32), value.bitwiseAND(sf.lit(0xFFFFFFFF)))
        high, low = (sf.coalesce(sf.sum(half), sf.lit(0).cast("bigint")) for half in halves)
        return sf.struct(high.alias("high"), low.alias("low"))
    if measure.type.name == "DECIMAL":
        nothing = sf.lit(0).cast(stored)
        return sf.when(sf.count(value) == 0, nothing).otherwise(sf.try_sum(value).cast(stored))
    return sf.sum(value.cast(stored))


def _moments(value: SparkColumn) -> SparkColumn:
    count = sf.count(value).cast("double")
    nothing = sf.lit(0.0)
    return sf.struct(
        count.alias("count"),
        sf.coalesce(sf.avg(value), nothing).alias("mean"),
        sf.coalesce(sf.var_pop(value) * count, nothing).alias("spread"),
    )


def merged(measure: Measure, name: str) -> SparkColumn:
    """The measure of several panes merged, with the type of its column."""
    value = ours(name)
    match measure.kind, measure.type.name:
        case "min" | "rank", _:
            return sf.min(value)
        case "max" | "hash", _:
            return sf.max(value)
        case "bits", _:
            return sf.bit_or(value)
        case "kll", _:
            return sf.kll_merge_agg_double(value, KLL_K)
        case "list", _:
            return _least(sf.flatten(sf.collect_list(value)), measure)
        case "moments", _:
            return sf.aggregate(sf.collect_list(value), _no_moments(), _merged_moments)
        case "sum", "BIGINT":
            halves = (sf.sum(value.getField(half)).alias(half) for half in ("high", "low"))
            return sf.struct(*halves)
        case "sum", "DECIMAL":  # a pane's sum that does not fit is NULL, and so is the total
            whole = sf.count(value) == sf.count(sf.lit(1))
            return sf.when(whole, sf.try_sum(value)).cast(data_type(measure.stored))
    return sf.sum(value)


def _least(values: SparkColumn, measure: Measure) -> SparkColumn:
    """The first values in order, as `penstock.synopses.array_layout` merges them."""
    return sf.slice(sf.sort_array(values), 1, measure.most).cast(data_type(measure.stored))


def _no_moments() -> SparkColumn:
    return sf.struct(*(sf.lit(0.0).alias(name) for name in ("count", "mean", "spread")))


def _merged_moments(left: SparkColumn, right: SparkColumn) -> SparkColumn:
    """Like `penstock.synopses.array_layout.merged_moments`."""
    n, more = left.getField("count"), right.getField("count")
    apart = right.getField("mean") - left.getField("mean")
    share = more / (n + more)
    mean = left.getField("mean") + apart * share
    spread = left.getField("spread") + right.getField("spread") + apart * apart * n * share
    both = sf.struct((n + more).alias("count"), mean.alias("mean"), spread.alias("spread"))
    return sf.when(more == 0, left).when(n == 0, right).otherwise(both)
