"""Events as lines of JSON and back: the only module that knows the form of the record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, SupportsIndex, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from penstock.errors import CheckpointError
from penstock.events.kinds import KINDS, Event

FORMAT = 2
"""The format of the record. Format 1 had no number, and different events for jobs and refreshes."""
HEADER = json.dumps({"record": "penstock", "format": FORMAT})
"""The first line of every record."""
_Reader: TypeAlias = Callable[[Any], Any]


def kind(event: type[Event]) -> str:
    """The name of a kind of event in the record.

    >>> from penstock.events.kinds import BlockArrived
    >>> kind(BlockArrived)
    'block_arrived'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()


_NAMES = {cls: kind(cls) for cls in KINDS}
_CLASSES = {name: cls for cls, name in _NAMES.items()}
_FIELDS: dict[type, tuple[str, ...]] = {}
_READERS: dict[Any, _Reader] = {}


def check_header(line: bytes) -> None:
    """Refuse a record of any other format than this version's."""
    try:
        told = json.loads(line)["format"]
    except (ValueError, LookupError, TypeError):
        told = 1
    if told != FORMAT:
        raise CheckpointError(f"the record has format {told}, and this version reads format "
                              f"{FORMAT} only: read it with the version that wrote it")


def encode(event: Event) -> str:
    """The line of an event, without the line break.

    >>> from penstock.events.kinds import StreamEnded
    >>> encode(StreamEnded(at=2.5, stream="packets"))
    '{"event": "stream_ended", "at": 2.5, "stream": "packets"}'
    """
    return json.dumps({"event": _NAMES[type(event)], **_values(event)}, default=_encode_inner)


def decode(line: str | bytes) -> Event:
    """The event of a line, equal to the one that was encoded.

    >>> decode('{"event": "stream_ended", "at": 2.5, "stream": "packets"}')
    StreamEnded(at=2.5, stream='packets')
    """
    try:
        values = json.loads(line)
        return cast(Event, _reader(_CLASSES[values.pop("event")])(values))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"not an event that this version knows: {error!r}") from error


def _values(value: Any) -> dict[str, Any]:
    # Not dataclasses.asdict: it copies every mapping, and a thousand queries make large ones.
    return {name: getattr(value, name) for name in _fields(type(value))}


def _encode_inner(value: object) -> object:
    if is_dataclass(value):
        return _values(value)
    if isinstance(value, SupportsIndex):  # NumPy's integers
        return int(value)
    raise TypeError(f"{type(value).__name__} has no place in an event")


# --- reading by the types that fields have ------------------------------------------------------


def _fields(cls: type) -> tuple[str, ...]:
    if cls not in _FIELDS:
        _FIELDS[cls] = tuple(field.name for field in fields(cls))
    return _FIELDS[cls]


def _reader(type_: Any) -> _Reader:
    """The function that makes a value of a type from what JSON has for it."""
    if type_ not in _READERS:
        _READERS[type_] = _made(type_)
    return _READERS[type_]


def _made(type_: Any) -> _Reader:
    origin, given = get_origin(type_), get_args(type_)
    if is_dataclass(type_):
        return _object(cast(type, type_))
    if origin in (Union, UnionType):
        return _one_of(given)
    if origin is tuple:
        item = _reader(given[0]) if given[-1] is ... else _frozen
        return lambda value: tuple(item(one) for one in value)
    if isinstance(origin, type) and issubclass(origin, Mapping) and is_dataclass(given[1]):
        inner = _reader(given[1])
        return lambda value: {name: inner(one) for name, one in value.items()}
    return _frozen


def _object(cls: type) -> _Reader:
    """The reader of a dataclass; a field that the record lacks takes its default."""
    hints = get_type_hints(cls)
    readers = {name: _reader(hints[name]) for name in _fields(cls)}
    return lambda value: cls(**{name: readers[name](one) for name, one in value.items()})


def _one_of(types: tuple[Any, ...]) -> _Reader:
    """The reader of one of several dataclasses: the one that has these fields."""
    classes = [(set(_fields(cast(type, cls))), _reader(cls))
               for cls in types if is_dataclass(cls)]
    if not classes:
        return _frozen

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return _frozen(value)
        return next(reader for names, reader in classes if names == value.keys())(value)

    return read


def _frozen(value: Any) -> Any:
    """JSON has no tuples and events hold no lists, so every list was a tuple."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return value
