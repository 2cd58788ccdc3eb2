"""The panes of pairs on Spark, as `penstock.synopses.pair_panes` numbers them."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as sf

from penstock.model import MOST_PAIR_PANES, OURS, TIMESTAMP, Column

PAIR_PANE = Column("@panes", TIMESTAMP, OURS)
"""The panes of a pair. It has the type of a time, which a pane job cuts into panes of one
microsecond: so the number itself is the pane."""


def pair_pane(one: SparkColumn, other: SparkColumn, pane: int) -> SparkColumn:
    """The panes of two rows, by their times in microseconds."""
    first, last = (_pane(of(one, other), pane) for of in (sf.least, sf.greatest))
    number = first * sf.lit(MOST_PAIR_PANES) + last - first
    return sf.timestamp_micros(number).alias(PAIR_PANE.name)


def _pane(micros: SparkColumn, pane: int) -> SparkColumn:
    return sf.call_function("div", micros - sf.pmod(micros, sf.lit(pane)), sf.lit(pane))
