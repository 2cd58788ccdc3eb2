"""The record of a run: what can happen, writing it, reading it, and what it amounts to."""

from __future__ import annotations

from penstock.events.digest import digest
from penstock.events.histogram import Histogram
from penstock.events.kinds import (
    KINDS,
    BlockArrived,
    BlockCold,
    BlockHeld,
    BlockHot,
    BlockReleased,
    Decided,
    Event,
    GroupFormed,
    LatencyMissed,
    Memory,
    QueryAdded,
    QueryDropped,
    QueryFailed,
    Queued,
    RunEnded,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamEnded,
    StreamFailed,
    Tick,
    Warned,
    WatermarkMoved,
)
from penstock.events.measures import QueryMeasures, QueueMeasures, RunMeasures, StreamMeasures
from penstock.events.reading import find_record, read_events
from penstock.events.record import Recorder, new_record
from penstock.events.summary import Summary

__all__ = [
    "KINDS",
    "BlockArrived",
    "BlockCold",
    "BlockHeld",
    "BlockHot",
    "BlockReleased",
    "Decided",
    "Event",
    "GroupFormed",
    "Histogram",
    "LatencyMissed",
    "Memory",
    "QueryAdded",
    "QueryDropped",
    "QueryFailed",
    "QueryMeasures",
    "QueueMeasures",
    "Queued",
    "Recorder",
    "RunEnded",
    "RunFailed",
    "RunFinished",
    "RunMeasures",
    "RunStarted",
    "StreamEnded",
    "StreamFailed",
    "StreamMeasures",
    "Summary",
    "Tick",
    "Warned",
    "WatermarkMoved",
    "digest",
    "find_record",
    "new_record",
    "read_events",
]
