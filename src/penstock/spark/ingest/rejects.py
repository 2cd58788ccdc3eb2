"""Which rows of a batch are rejects, why, and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.model import Field, Stream, quoted
from penstock.spark.delivery.text_formats import JSON
from penstock.spark.ingest import times
from penstock.spark.ingest.source_options import CORRUPT

LONGEST = 2**20
"""A text or binary value of more bytes than this makes its row a reject."""
SHOWN = 10_000
"""How many characters of a malformed row are kept with it."""


def reason(batch: DataFrame, stream: Stream, bounds: times.Bounds) -> Column:
    """Why a row is a reject; NULL if it is not."""
    found = [malformed(batch, stream)]
    if stream.time is not None:
        found.append(times.fault(stream, bounds))
    return F.coalesce(*found)


def malformed(batch: DataFrame, stream: Stream) -> Column:
    """Why a row is a reject regardless of its time: its literals do not change between batches."""
    bad: list[Column] = []
    if CORRUPT in batch.columns:
        bad.append(F.when(F.col(quoted(CORRUPT)).isNotNull(), F.lit("malformed row")))
    if any(made.name == stream.time for made in stream.computed):
        own = F.col(quoted(stream.time or ""))
        bad.append(F.when(own.isNull(), F.lit(f"its {stream.time}, which is computed, is NULL")))
    if not stream.in_place:
        bad += [_too_long(name) for name in _variable(stream.columns)]
    return F.coalesce(*bad) if bad else F.lit(None).cast("string")


def row_text(batch: DataFrame, stream: Stream) -> Column:
    """A reject as it is kept: its line, or its columns as JSON, shortened."""
    text = _as_json(stream)
    if CORRUPT in batch.columns:
        text = F.coalesce(F.col(quoted(CORRUPT)), text)
    return F.substring(text, 1, SHOWN)


def _as_json(stream: Stream) -> Column:
    variable = _variable(stream.read)
    cut = [
        F.substring(F.col(quoted(c.name)), 1, SHOWN).alias(c.name)
        if c.name in variable else F.col(quoted(c.name))
        for c in stream.read
    ]
    return F.to_json(F.struct(*cut), JSON)


def _variable(columns: Sequence[Field]) -> list[str]:
    return [c.name for c in columns if c.type.name in ("STRING", "BINARY")]


def _too_long(name: str) -> Column:
    size = F.octet_length(F.col(quoted(name)))
    why = F.concat(F.lit(f"column {name} holds "), size.cast("string"),
                   F.lit(f" bytes; at most {LONGEST} are taken"))
    return F.when(size > LONGEST, why)
