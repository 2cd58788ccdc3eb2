"""How sinks take answers where workers have computed them: see `answer_worker`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from penstock.arrow import arrow_type
from penstock.model import Branch, Column, Expression, Field, name_key
from penstock.planning.check import MEMBER
from penstock.spark.compile.answer_worker import Handing, Pick, Taker, hand_over


@dataclass(frozen=True, slots=True)
class WorkerSink:
    """What a sink sends to the workers."""

    begin: Callable[[], Taker]
    """Makes the taker of a task, in its worker."""
    told: StructType
    """The columns of what takers tell."""
    columns: tuple[Field, ...] = ()
    """What takers are given of an answer, beside the number of its member."""


def picked(
    wanted: Sequence[Field], branches: Sequence[Branch], carried: Mapping[Column, Column]
) -> tuple[Pick, ...] | None:
    """Where workers have the columns of a sink; None if Spark has to compute or convert one."""
    picks = []
    for field in wanted:
        sources: dict[str, list[int]] = {}
        for member, branch in enumerate(branches):
            for output in branch.select:
                if name_key(output.name) != name_key(field.name):
                    continue
                place = _place(output.expression, carried)
                if place is None or output.expression.type != field.type:
                    return None
                sources.setdefault(place, []).append(member)
        picks.append(Pick(field.name, arrow_type(field.type), tuple(
            (name, tuple(members)) for name, members in sources.items())))
    return tuple(picks)


def _place(expression: Expression, carried: Mapping[Column, Column]) -> str | None:
    return carried[expression].name if isinstance(
        expression, Column) and expression in carried else None


def handed(
    work: Callable[..., Any], schema: StructType, error: str, sink: WorkerSink,
    picks: tuple[Pick, ...], members: int,
) -> tuple[Callable[..., Any], StructType]:
    """A trip whose answers go to the sink, and its columns: those of rejects, those of takers."""
    back = StructType([StructField(field.name, field.dataType)
                       for field in (*schema.fields, *sink.told.fields)])
    handing = Handing(MEMBER, error, picks, members, to_arrow_schema(back))
    return partial(hand_over, work, handing, sink.begin), back
