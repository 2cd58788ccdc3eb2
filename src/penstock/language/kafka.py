"""Kafka: what FROM kafka and INTO kafka take, as far as it can be checked without a broker.

A stream names its topic in quotes, which is Spark's option ``subscribe``. With ``valueFormat`` its
columns are those of the values; Kafka's own are then called ``kafka_key``, ``kafka_timestamp`` and
so on. Without it the columns are Kafka's own, ``key``, ``value`` and so on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from penstock.errors import Refused, TypeFault, UnknownName
from penstock.language.places import Place, Source, suggestion
from penstock.model import (
    BIGINT,
    BINARY,
    INT,
    STRING,
    TIMESTAMP,
    Field,
    Options,
    Query,
    Relation,
    Stream,
    Type,
    Variable,
    name_key,
)

VALUE_FORMATS = ("json", "avro")
"""What the values of a topic may be read as; without one a value is BINARY or text."""
SENT_FORMATS = ("json", "text")
"""What answers may be sent as."""
PREFIX = "kafka_"
"""Before the names of Kafka's own columns, if the others are those of the values."""
OWN: Mapping[str, tuple[Type, ...]] = {
    "key": (BINARY, STRING), "value": (BINARY, STRING), "topic": (STRING,), "partition": (INT,),
    "offset": (BIGINT,), "timestamp": (TIMESTAMP,), "timestampType": (INT,),
}
"""Kafka's own columns, and the types in which each may be declared."""
_SERVERS = "kafka.bootstrap.servers"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_RESERVED = {
    "kafka.transactional.id": "it tells the transactions of this checkpoint from others",
    "kafka.enable.idempotence": "answers are sent in transactions",
    "kafka.acks": "answers are sent in transactions",
    "kafka.key.serializer": "keys are sent as UTF-8",
    "kafka.value.serializer": "values are sent as UTF-8",
}
"""Options of a producer that are ours, and why."""
_SENDING = ("key", "valueFormat")
_NAMES = (_SERVERS, *_SENDING)


# --- FROM kafka ----------------------------------------------------------------------------------


def source_options(
    source: Source, topic: str | None, options: Options, place: Place
) -> Options:
    """The options of a source, its topic among them; raise if they cannot be meant."""
    given = {name.lower(): value for name, value in options}
    if topic is not None:
        for one in topic.split(","):
            _check_topic(source, one.strip(), place)
        for name in ("subscribe", "subscribepattern", "assign"):
            if name in given:
                raise source.fault(TypeFault, f"the topic is named twice, here and by {name}",
                                   place, "leave one out")
        options = (("subscribe", topic), *options)
    form = given.get("valueformat")
    if form is not None and form not in VALUE_FORMATS:
        hint = suggestion(str(form), VALUE_FORMATS) or (
            "leave it out and declare value STRING" if form == "text" else
            f"there are {', '.join(VALUE_FORMATS)}")
        raise source.fault(UnknownName, f"no valueFormat '{form}'", place, hint)
    schema = given.get("avroschema")
    if form == "avro" and schema is None:
        raise source.fault(TypeFault, "valueFormat = 'avro' needs the option avroSchema", place,
                           "give the schema of the values as JSON text")
    if schema is not None and not isinstance(schema, Variable):
        try:
            json.loads(schema)
        except ValueError as error:
            raise source.fault(TypeFault, f"avroSchema is not JSON: {error}", place) from None
    return options


def topic_of(source: Stream | Relation) -> str | None:
    """The topic that a source reads, or several, as the user has named them."""
    found = dict(source.options).get("subscribe") if source.format == "kafka" else None
    return found if isinstance(found, str) else None


def value_format(source: Stream | Relation) -> str:
    """How the values of a topic are read; empty if its columns are Kafka's own."""
    found = {name.lower(): value for name, value in source.options}.get("valueformat", "")
    return found if source.format == "kafka" and isinstance(found, str) else ""


def own_columns(
    source: Stream | Relation, columns: Sequence[Field]
) -> dict[str, Field]:
    """The declared columns that are Kafka's own, by the names that Spark gives them."""
    prefix = PREFIX if value_format(source) else ""
    known = {name_key(prefix + name): name for name in OWN}
    return {known[name_key(column.name)]: column for column in columns
            if name_key(column.name) in known}


def misfit(source: Stream | Relation, columns: Sequence[Field]) -> str:
    """Why the columns of a source cannot be had from Kafka, if they cannot."""
    if source.format != "kafka":
        return ""
    own = own_columns(source, columns)
    for name, column in own.items():
        if column.type not in OWN[name]:
            kinds = " or ".join(map(str, OWN[name]))
            return f"column '{column.name}' is declared {column.type}; in Kafka it is {kinds}"
    if value_format(source):
        return ""
    for column in columns:
        if column not in own.values() and name_key(column.name) != "headers":
            return (f"Kafka has no column '{column.name}'; if the values have it, say what they "
                    "are: OPTIONS (valueFormat = 'json'), or declare value STRING")
    return ""


# --- INTO kafka ----------------------------------------------------------------------------------


def check_sink(source: Source, topic: str, options: Options, place: Place) -> None:
    """Raise if answers cannot be sent to a topic with these options."""
    _check_topic(source, topic, place)
    given = {name.lower(): value for name, value in options}
    if _SERVERS not in given:
        raise source.fault(TypeFault, f"the sink kafka needs the option {_SERVERS}", place,
                           f"write INTO kafka '{topic}' OPTIONS ({_SERVERS} = 'host:9092')")
    for name, value in options:
        lower = name.lower()
        if lower in _RESERVED:
            raise source.fault(Refused, f"the option {name} is not taken: {_RESERVED[lower]}",
                               place)
        if not lower.startswith("kafka.") and lower not in map(str.lower, _SENDING):
            hint = suggestion(name, _NAMES) or (
                "a setting of Kafka's producer begins with kafka., the others are "
                + " and ".join(_SENDING))
            raise source.fault(UnknownName, f"the sink kafka has no option '{name}'", place, hint)
        if lower in map(str.lower, _SENDING) and isinstance(value, Variable):
            raise source.fault(TypeFault, f"{name} is written as it is, not by ENV", place)
    form = given.get("valueformat", "json")
    if form not in SENT_FORMATS:
        hint = suggestion(str(form), SENT_FORMATS) or f"there are {', '.join(SENT_FORMATS)}"
        raise source.fault(UnknownName, f"no valueFormat '{form}'", place, hint)


def sent_as(options: Options) -> tuple[str, str]:
    """The column that is the key of a record, or empty, and the form of its value."""
    given = {name.lower(): value for name, value in options}
    return str(given.get("key", "")), str(given.get("valueformat", "json"))


def unsendable(query: Query) -> str:
    """Why the answers of a query cannot be sent as its options say, if they cannot."""
    key, form = sent_as(query.sink.options)
    columns = {name_key(name): (name, kind) for name, kind in query.branches[0].outputs}
    if key:
        if name_key(key) not in columns:
            hint = suggestion(key, [name for name, _ in columns.values()])
            return f"the key '{key}' is none of its columns" + (f"; {hint}" if hint else "")
        name, kind = columns.pop(name_key(key))
        if kind.name in ("ARRAY", "MAP", "STRUCT"):
            return f"the key '{name}' is {kind}, and a key is a single value"
    if form == "text":
        kinds = [kind for _, kind in columns.values()]
        if len(kinds) != 1 or kinds[0] != STRING:
            return ("valueFormat = 'text' needs one column besides the key, and that a STRING; "
                    "valueFormat = 'json' takes any")
    return ""


def _check_topic(source: Source, topic: str, place: Place) -> None:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        message = f"'{topic}' is no name of a topic"
        raise source.fault(TypeFault, message, place, "letters, digits and . _ - make one")
