"""The kinds of sinks: one catalogue for the language, the planner and the hosts.

To add a sink, add a line here and the file that it names. The line names the class as text instead
of importing it: the class uses Spark, which nothing on the ground floor may import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SinkKind:
    """What the language, the planner and the hosts must know about a kind of sink."""

    made_by: str
    """``module:Class`` of the `penstock.spark.delivery.sinks.base.AnswerSink` that delivers."""
    target: Literal["none", "folder", "function", "topic"] = "none"
    """What a query names after the kind."""
    holds_nested: bool = True
    """Whether its answers may have columns of type ARRAY, MAP or STRUCT."""
    is_readable: bool = False
    """Whether `penstock.Engine.results` reads the answers back."""
    is_ours: bool = False
    """Whether no query names it: ``CREATE STREAM ... AS`` has its answers delivered there."""


_ROOM = "penstock.spark.delivery.sinks"
SINKS: dict[str, SinkKind] = {
    "parquet": SinkKind(f"{_ROOM}.files:FileSink", "folder", is_readable=True),
    "csv": SinkKind(f"{_ROOM}.files:FileSink", "folder", holds_nested=False,
                     is_readable=True),
    "json": SinkKind(f"{_ROOM}.files:FileSink", "folder", is_readable=True),
    "console": SinkKind(f"{_ROOM}.console:ConsoleSink"),
    "memory": SinkKind(f"{_ROOM}.memory:MemorySink", is_readable=True),
    "callback": SinkKind(f"{_ROOM}.callback:CallbackSink", "function"),
    "kafka": SinkKind(f"{_ROOM}.kafka:KafkaSink", "topic"),
    "noop": SinkKind(f"{_ROOM}.noop:NoopSink"),
    "stream": SinkKind(f"{_ROOM}.stream:StreamSink", is_ours=True),
}
"""The catalogue, in the order in which the documents list it."""


def folder_sinks() -> tuple[str, ...]:
    """The kinds that write files into a folder of the user's; each is named after its format.

    >>> folder_sinks()
    ('parquet', 'csv', 'json')
    """
    return tuple(name for name, kind in SINKS.items() if kind.target == "folder")
