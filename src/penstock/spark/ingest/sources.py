"""Reading streams and relations: the right reader for a declaration, checked before it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from penstock.errors import SourceError
from penstock.generators import onoff_options, packets
from penstock.language import kafka
from penstock.language.source_checks import FILES, refused
from penstock.model import STRING, Field, Relation, Stream, name_key, quoted
from penstock.spark.compile import expressions
from penstock.spark.compile.expressions import data_type, schema
from penstock.spark.ingest import file_checks, kafka_rows, partitions
from penstock.spark.ingest.source_options import CORRUPT, opened
from penstock.spark.packages import AVRO, KAFKA, lacking
from penstock.spark.session import know_onoff
from penstock.spark.storage.files import GLOB, Files, ListedFile, as_pattern, local_path

TEXTUAL = ("csv", "json", "xml")
"""Formats in which a single row can be malformed; Spark then passes the row on as text."""
FAULTS = (PySparkException, Py4JJavaError, ValueError)
"""What Spark raises when it cannot read something; not every cause has a Python name."""
_LISTING = ("pathglobfilter", "recursivefilelookup")
"""Options that say which files are read: this is decided here, not by the reader."""

_WIDER = {("int", "bigint"), ("smallint", "int"), ("smallint", "bigint"), ("tinyint", "smallint"),
          ("tinyint", "int"), ("tinyint", "bigint"), ("float", "double")}
"""Types that a file may hold and that may be declared for it, besides equal ones."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a bounded source holds."""

    total: int | None
    unit: str = "rows"


def stream_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """The unbounded frame of a stream that Structured Streaming reads."""
    try:
        frame = _load(spark.readStream.format(stream.format), stream)
    except FAULTS as error:
        raise SourceError(f"stream {stream.name}: {_unfound(error, stream)}") from error
    return with_computed(_declared(frame, stream), stream)


def files_frame(
    spark: SparkSession, stream: Stream, paths: Sequence[str], more: Sequence[Column] = ()
) -> DataFrame:
    """The rows of some files of a stream, with `@corrupt` if the format can have bad rows.

    Columns may be in the names of folders. Files whose folders name different columns are read
    separately, since Spark refuses to read them together. ``more`` columns are computed from what
    Spark knows of the files.
    """
    assert stream.path is not None
    base = partitions.root(stream.path)
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        groups.setdefault(tuple(partitions.values(path, base)), []).append(path)
    options = {name: value for name, value in _options(stream).items()
               if name.lower() not in _LISTING}
    columns = _columns(stream)
    frames = []
    for folders, files in groups.items():
        reader = _with(spark.read.format(stream.format).schema(schema(columns)), options)
        if folders:
            reader = reader.option("basePath", base)
        frame = reader.load([*map(as_pattern, files)])
        frame = frame.select(*[F.col(quoted(column.name)) for column in columns], *more)
        frames.append(with_computed(frame, stream))
    return reduce(DataFrame.unionAll, frames)


def with_computed(rows: DataFrame, stream: Stream) -> DataFrame:
    """The rows of a source with the computed columns of its stream."""
    if not stream.computed:
        return rows
    return rows.select("*", *[expressions.column(made.expression, made.name)
                             for made in stream.computed])


def relation_frame(spark: SparkSession, relation: Relation) -> DataFrame:
    """The rows of a stored relation, with `@corrupt` if the format can have bad rows."""
    if relation.format == "onoff":
        know_onoff(spark)
    try:
        frame = _load(spark.read.format(relation.format), relation)
        return frame if relation.format in FILES else _declared(frame, relation)
    except FAULTS as error:
        raise SourceError(f"relation {relation.name}: {_unfound(error, relation)}") from error


_Reader = TypeVar("_Reader", DataStreamReader, DataFrameReader)


def _with(reader: _Reader, options: Mapping[str, str]) -> _Reader:
    for name, value in options.items():  # not options(**...): an option may be named `self`
        reader = reader.option(name, value)
    return reader


def _unfound(error: Exception, source: Stream | Relation) -> str:
    """Why a source cannot be read; if Spark does not know it, how to add it."""
    if not re.search("Failed to find (the )?data source", _text(error)):
        return plain(error)
    return (f"Spark has no source {source.format}; if it is in a package, start with "
            "--packages GROUP:NAME:VERSION")


def _load(reader: _Reader, source: Stream | Relation) -> DataFrame:
    if source.format in FILES:
        reader = reader.schema(schema(_columns(source)))
    reader = _with(reader, _options(source))
    path = _path(source) if source.format in FILES else source.path
    return reader.load(path) if path is not None else reader.load()


def _options(source: Stream | Relation) -> dict[str, str]:
    options = opened(source)
    if source.format in TEXTUAL:
        options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if source.format == "csv":  # otherwise Spark would go by position and ignore the header
        options.setdefault("enforceSchema", "false")
    return options


def _columns(source: Stream | Relation) -> list[Field]:
    malformed = [Field(CORRUPT, STRING)] if source.format in TEXTUAL else []
    return [*_read(source), *malformed]


def _read(source: Stream | Relation) -> tuple[Field, ...]:
    """The columns that a source has."""
    return source.read if isinstance(source, Stream) else source.columns


def _path(source: Stream | Relation) -> str | None:
    """The path as Spark's reader takes it: a path that exists as written is no pattern."""
    local = local_path(source.path) if source.path is not None else None
    if source.path is not None and local is not None and local.exists():
        return as_pattern(source.path)
    return source.path


def _declared(frame: DataFrame, source: Stream | Relation) -> DataFrame:
    """The declared columns among those of the source."""
    if source.format == "kafka":
        return kafka_rows.columns_of(frame, source, _read(source), opened(source))
    _compare(frame.schema, source)
    return frame.select(*[F.col(quoted(column.name)) for column in _read(source)])


def check(
    spark: SparkSession, files: Files, source: Stream | Relation, *, begun: bool = False
) -> None:
    """Raise `SourceError` if the source is missing or does not have the declared columns.

    A stream that has ``begun`` was declared correctly: a file that does not fit is set aside.
    """
    if source.format == "onoff":
        _check_onoff(source)
    if source.format == "kafka":
        _check_kafka(spark, source)
    if source.format not in FILES or source.path is None:
        return
    if not any(c in source.path for c in GLOB) and not files.exists(source.path):
        raise SourceError(f"there is no file or folder {source.path}")
    if isinstance(source, Stream):
        _check_folder(files, source, begun)
    elif source.format == "parquet" or (
            source.format == "csv" and opened(source).get("header", "").lower() == "true"):
        _check_files(spark, files, source)


def _check_folder(files: Files, stream: Stream, begun: bool) -> None:
    assert stream.path is not None
    local = local_path(stream.path)
    if local is not None and local.is_file():
        raise SourceError(f"{stream.path} is a file, and a stream is read from a folder of files")
    for fault in refused(stream.options):
        raise SourceError(fault)
    try:
        file_checks.limits(stream)
    except ValueError as error:
        raise SourceError(str(error)) from error
    if not begun and stream.format in ("parquet", "csv"):
        _check_declaration(files, stream)


def _wanted(files: Files, stream: Stream) -> Iterator[ListedFile]:
    """The files of a folder that its stream's options include."""
    assert stream.path is not None
    return (file for file in files.listing(stream.path) if file_checks.wanted(file, stream))


def _check_declaration(files: Files, stream: Stream) -> None:
    """Raise if there are whole files and the declaration fits none of them."""
    first = ""
    for file in _wanted(files, stream):
        verdict = file_checks.judged(files, file, stream, age=0.0)
        if verdict.state == "whole":
            return
        if verdict.state == "misfit":
            first = first or f"{file.path}: {verdict.reason}"
    if first:
        raise SourceError(first)


def _check_onoff(source: Stream | Relation) -> None:
    try:
        onoff_options.Options.parse(opened(source))
    except ValueError as error:
        raise SourceError(str(error)) from error
    _compare(from_arrow_schema(packets.SCHEMA), source)


def _check_kafka(spark: SparkSession, source: Stream | Relation) -> None:
    packages = (KAFKA, AVRO) if kafka.value_format(source) == "avro" else (KAFKA,)
    if fault := lacking(spark._jvm, *packages) or kafka.misfit(source, _read(source)):
        raise SourceError(fault)


def _check_files(spark: SparkSession, files: Files, source: Stream | Relation) -> None:
    """Compare the declaration with what the existing files say about themselves."""
    assert source.path is not None
    if next(files.listing(source.path), None) is None:
        return
    try:
        known = ("header", "sep", "delimiter", "encoding", "quote", "escape")
        options = {k: v for k, v in opened(source).items() if k.lower() in known}
        found = spark.read.format(source.format).options(**options).load(_path(source)).schema
    except FAULTS as error:
        raise SourceError(f"{source.path} cannot be read: {plain(error)}") from error
    _compare(found, source, types=source.format == "parquet")
    if source.format == "csv":
        _compare_order(found, source)


def _compare(found: StructType, source: Stream | Relation, *, types: bool = True) -> None:
    has = {name_key(field.name): field.dataType.simpleString() for field in found.fields}
    for column in _read(source):
        kind = has.get(name_key(column.name))
        if kind is None:
            raise SourceError(f"column '{column.name}' is declared but not in the data, which has "
                              + ", ".join(field.name for field in found.fields))
        declared = data_type(column.type).simpleString()
        if types and kind != declared and (kind, declared) not in _WIDER:
            raise SourceError(f"column '{column.name}' is declared {column.type} but the data "
                              f"holds {kind.upper()}")


def _compare_order(found: StructType, source: Stream | Relation) -> None:
    """A line of CSV has all its values in the order of the header."""
    names, declared = found.names, [column.name for column in source.columns]
    if list(map(name_key, names)) != list(map(name_key, declared)):
        raise SourceError(f"the header of {source.path} is {', '.join(names)}; declare these "
                          f"columns in this order instead of {', '.join(declared)}")


def extent(files: Files, stream: Stream) -> Extent:
    """How much there is to read, if that is known."""
    if stream.format == "onoff":
        return Extent(onoff_options.Options.parse(opened(stream)).traffic.rows)
    if stream.format in FILES and stream.path is not None and files.exists(stream.path):
        return Extent(sum(file.size for file in _wanted(files, stream)), "bytes")
    return Extent(None)


def check_end(stream: Stream) -> None:
    """Raise `SourceError` if the source never ends and so cannot be drained."""
    if stream.format == "onoff":
        endless = onoff_options.Options.parse(opened(stream)).traffic.rows is None
    else:
        endless = stream.format == "rate"
    if endless:
        raise SourceError("it is endless and cannot be drained; bound it (OPTIONS (rows = ...) for "
                          "onoff) or run without --until-drained")


_FULL = "No space left on device"


def plain(error: BaseException) -> str:
    """What went wrong, in one line, without Spark's chain of causes.

    >>> plain(ValueError("[X.Y] Cannot read it. SQLSTATE: 42K\\nat org.apache"))
    'Cannot read it.'
    >>> plain(ValueError("Task failed while writing rows to file:/out.\\nCaused by: "
    ...                  "java.io.IOException: No space left on device"))
    'No space left on device: /out'
    >>> plain(ValueError("Job aborted.\\nCaused by: a.B: no\\nCaused by: java.io.EOFException"))
    'no'
    >>> plain(ValueError("An exception was thrown from the Python worker:\\nTraceback (most recent "
    ...                  "call last):\\n  File \\"a.py\\"\\nOSError: [Errno 28] No space left on "
    ...                  "device: '/out'\\nat org.apache"))
    'No space left on device: /out'
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    whole = _text(error)
    if raised := _RAISED.search(whole):
        return re.sub(r": '(.*)'$", r": \1", raised[1])[:500]
    if _FULL in whole:
        where = re.search(r"writing rows to (?:file:)?(\S+?)(?:/_temporary\S*|\.)?\s", whole)
        return f"{_FULL}: {where[1]}" if where else _FULL
    if _DIED in whole:
        return ("the Python process that called its function died: it crashed, left the program, "
                "or was killed for want of memory")
    lines = [line.strip() for line in whole.splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if "An error occurred while calling" in text and len(lines) > 1:  # the cause has its own line
        text = _said(lines[1])
    if any(vague in text for vague in _VAGUE):
        causes = [_said(line) for line in lines if line.startswith("Caused by:")]
        told = [cause for cause in causes if " " in cause or not cause.endswith("Exception")]
        text = told[-1] if told else text
    text = text.split(" SQLSTATE:")[0]
    if text.startswith("[") and "] " in text:
        text = text.split("] ", 1)[1]
    return text[:500]


_VAGUE = ("Job aborted", "Task failed while writing", "Exception thrown in awaitResult")
"""Messages of Spark that leave it to the cause to say what happened."""
_DIED = "Python worker exited unexpectedly"
_RAISED = re.compile(r"thrown from the Python worker:[\s\S]*?^\w[\w.]*: (?:\[Errno \d+\] )?(.*)$",
                     re.MULTILINE)
"""What an exception in a Python worker says, after its traceback."""


def _text(error: BaseException) -> str:
    try:
        return f"{error}\n{getattr(error, '_stackTrace', '')}"  # Spark leaves causes to the latter
    except Exception:  # Py4J asks the JVM for it, which may have died
        return type(error).__name__


def _said(line: str) -> str:
    """The message behind the name of a class."""
    return line.removeprefix("Caused by:").removeprefix(": ").strip().split(": ", 1)[-1].strip()
