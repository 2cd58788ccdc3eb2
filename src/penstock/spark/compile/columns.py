"""Names of columns inside a plan: users' names never clash with ours.

Ours begin with one ``@``; a relation's columns end with ``@`` and the number of the join. An ``@``
in a user's name is doubled, so that runs of odd length are ours alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from penstock.model import STREAM, Column, Expression
from penstock.planning.efforts import cheapest_first
from penstock.planning.shapes import substitute
from penstock.spark.compile.expressions import column as spark_column
from penstock.spark.compile.expressions import reference


def inner(name: str) -> str:
    """A user's name as it appears inside a plan.

    >>> inner("site@1")
    'site@@1'
    """
    return name.replace("@", "@@")


def place(source: int, name: str) -> str:
    """The frame's column that holds a column of the stream or of a joined relation.

    A source below 0 is none of the user's: the name is one of ours.

    >>> from penstock.model import OURS, lookup_source
    >>> place(STREAM, "site"), place(lookup_source(0), "site"), place(OURS, "@key")
    ('site', 'site@1', '@key')
    """
    if source < 0:
        return name
    return inner(name) if source == STREAM else f"{inner(name)}@{source}"


def renamed(frame: DataFrame, source: int) -> DataFrame:
    """A stream's or relation's frame with its columns under their places."""
    places = [place(source, name) for name in frame.columns]
    return frame if places == frame.columns else frame.toDF(*places)


def ours(name: str) -> SparkColumn:
    """A column of the frame by its exact name, whatever characters that holds."""
    return reference(name)


def compiled(expression: Expression) -> SparkColumn:
    """An expression over a frame whose columns are at their places."""
    return spark_column(substitute(expression, _placed))


def all_of(conditions: Iterable[Expression]) -> SparkColumn | None:
    """The conjunction, or None if there are no conditions; Spark evaluates the cheapest first."""
    return in_turn(cheapest_first(conditions))


def in_turn(conditions: Iterable[Expression]) -> SparkColumn | None:
    """The conjunction, or None if there are no conditions, evaluated in this order."""
    together: SparkColumn | None = None
    for condition in conditions:
        asked = compiled(condition)
        together = asked if together is None else together & asked
    return together


def _placed(column: Column) -> Column:
    return Column(place(column.source, column.name), column.type)
