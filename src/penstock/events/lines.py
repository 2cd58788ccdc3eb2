"""Events as lines of JSON and back: the one place that knows the form of the record."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from typing import Any, SupportsIndex, cast

from penstock.errors import CheckpointError
from penstock.events.kinds import KINDS, Event
from penstock.model import Block


def kind(event: type[Event]) -> str:
    """The name of a kind of event in the record.

    >>> from penstock.events.kinds import BlockArrived
    >>> kind(BlockArrived)
    'block_arrived'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()


_NAMES = {cls: kind(cls) for cls in KINDS}
_CLASSES = {name: cls for cls, name in _NAMES.items()}
_FIELDS = {cls: tuple(field.name for field in fields(cls)) for cls in KINDS}


def encode(event: Event) -> str:
    """One line, without its end.

    >>> from penstock.events.kinds import StreamEnded
    >>> encode(StreamEnded(at=2.5, stream="packets"))
    '{"kind": "stream_ended", "at": 2.5, "stream": "packets"}'
    """
    cls = type(event)
    # Not dataclasses.asdict: it copies every mapping, and a thousand queries make large ones.
    values = {name: getattr(event, name) for name in _FIELDS[cls]}
    return json.dumps({"kind": _NAMES[cls], **values}, default=_encode_inner)


def decode(line: str | bytes) -> Event:
    """The event of a line: equal to the one that was encoded.

    >>> decode('{"kind": "stream_ended", "at": 2.5, "stream": "packets"}')
    StreamEnded(at=2.5, stream='packets')
    """
    try:
        values = json.loads(line)
        cls = cast(Any, _CLASSES[values.pop("kind")])
        return cast(Event, cls(**{name: _decode_inner(name, v) for name, v in values.items()}))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"not an event that this version knows: {error!r}") from error


def _encode_inner(value: object) -> object:
    if isinstance(value, Block):
        return asdict(value)
    if isinstance(value, SupportsIndex):  # NumPy's integers
        return int(value)
    raise TypeError(f"{type(value).__name__} has no place in an event")


def _decode_inner(name: str, value: Any) -> Any:
    return Block(**value) if name == "block" else _frozen(value)


def _frozen(value: Any) -> Any:
    """JSON knows no tuples, and events hold no lists: so every list was a tuple."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return value
