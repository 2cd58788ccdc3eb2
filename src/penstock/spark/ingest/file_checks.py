"""Whether a file can be read: whether it is whole, and whether it fits the declaration.

Parquet and ORC files have a recognisable end. Text has none: a file that stops within a line is
given a moment to grow. Some faults, such as a truncated archive, show only in reading; they are
found when a batch fails (`penstock.spark.ingest.stream_ingest`).
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from penstock.language.source_checks import LIMITS, whole_number
from penstock.model import Stream, name_key
from penstock.spark.ingest import partitions
from penstock.spark.ingest.file_batches import BatchLimits
from penstock.spark.ingest.footers import MAGIC, Footer, footer
from penstock.spark.ingest.source_options import opened
from penstock.spark.storage.files import Files, ListedFile, local_path

LINES = ("csv", "json", "text")
"""Formats whose rows are lines."""
SETTLED = 2.0
"""Seconds after which a text that stops within a line counts as whole."""
COMPRESSED = (".gz", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz")
_LOOK = 65_536
"""Bytes that are examined at either end."""
_WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\0\0\xfe\xff": "UTF-32"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a file."""

    file: ListedFile
    state: str = "whole"
    """whole; incomplete: it may still be written; misfit: it does not fit the declaration; unfit:
    it fits no declaration; gone; empty: there is nothing to read."""
    reason: str = ""
    rows: int = 0
    """The rows that an unfit file is known to have."""
    footer: Footer | None = None
    """The footer of a local Parquet file."""


def judged(files: Files, file: ListedFile, stream: Stream, age: float) -> Verdict:
    """Examine a file, at little cost; it was last written to ``age`` seconds ago."""
    try:
        if stream.format == "parquet":
            return _parquet(files, file, stream)
        if file.size == 0:
            return _empty(file, stream)
        if stream.format == "orc":
            _, tail = files.ends(file, 16)
            return Verdict(file) if b"ORC" in tail else Verdict(
                file, "incomplete", "its end is missing: there is no ORC footer")
        if stream.format in LINES:
            return _lines(files, file, stream, age)
    except FileNotFoundError:
        return Verdict(file, "gone")
    except OSError as error:
        return Verdict(file, "incomplete", error.strerror or str(error))
    return Verdict(file)


def _parquet(files: Files, file: ListedFile, stream: Stream) -> Verdict:
    local = local_path(file.path)
    if local is None:
        head, tail = files.ends(file, 4)
        if head == tail == MAGIC:
            return Verdict(file)
        return Verdict(file, "incomplete", "its end is missing: there is no Parquet footer")
    assert stream.path is not None
    inherited = partitions.of_stream(file.path, stream, partitions.root(stream.path))
    found = footer(local, stream, inherited)
    if not found.whole:
        return Verdict(file, "incomplete", found.fault)
    if found.fault:
        return Verdict(file, "misfit" if found.rows is not None else "unfit", found.fault,
                       found.rows or 0)
    return Verdict(file, footer=found)


def _empty(file: ListedFile, stream: Stream) -> Verdict:
    """A text without a line has no rows; one without its header is not whole."""
    if stream.format in LINES and not has_header(stream):
        return Verdict(file, "empty")
    return Verdict(file, "incomplete", "it is empty")


def _lines(files: Files, file: ListedFile, stream: Stream, age: float) -> Verdict:
    head, tail = files.ends(file, _LOOK)
    if file.path.endswith(COMPRESSED):
        if not file.path.endswith(".gz"):
            return Verdict(file)
        if not head.startswith(b"\x1f\x8b"[: len(head)]):
            return Verdict(file, "unfit", "it is not compressed by gzip")
        try:
            head = zlib.decompressobj(31).decompress(head, _LOOK)
        except zlib.error as error:
            return Verdict(file, "unfit", f"it is not compressed by gzip: {error}")
        tail = b"\n"  # only reading can show where it ends
    fault = _wrong_encoding(head, stream)
    if fault:
        return Verdict(file, "unfit", fault)
    fault = _wrong_header(head, stream, file)
    if fault:
        return Verdict(file, "misfit", fault)
    within = not tail.endswith((b"\n", b"\r", b"\n\0", b"\r\0"))
    if within and age < SETTLED:
        return Verdict(file, "incomplete", "it stops within a line")
    return Verdict(file)


def _wrong_encoding(head: bytes, stream: Stream) -> str:
    if encoding(stream).upper().startswith(("UTF-16", "UTF-32", "UTF16", "UTF32")):
        return ""
    found = next((name for mark, name in _WIDE.items() if head.startswith(mark)), None)
    if found is None and head[:1000].count(0) * 4 > len(head[:1000]):
        found = "UTF-16"
    return f"it is {found} text; say so with OPTIONS (encoding = '{found}')" if found else ""


def _wrong_header(head: bytes, stream: Stream, file: ListedFile) -> str:
    options = lowered(stream)
    if not has_header(stream) or options.get("enforceschema") == "true" or "comment" in options:
        return ""
    try:
        text = head.decode(encoding(stream), errors="replace").removeprefix("\ufeff")
    except LookupError:  # Java may know it
        return ""
    if "\n" not in text and "\r" not in text:
        return ""  # it is still to come
    assert stream.path is not None
    inherited = partitions.of_stream(file.path, stream, partitions.root(stream.path))
    return header_fault(header(text, options), [c.name for c in stream.read
                                                if c.name not in inherited])


def header(text: str, options: dict[str, str]) -> list[str]:
    """The names in the first line of a CSV file."""
    separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
    if len(separator) != 1:
        return text.splitlines()[0].split(separator)
    quote = options.get("quote", '"')[:1]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator,
                        quotechar=quote or None,
                        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE)
    return next((line for line in reader if line), [])


def header_fault(found: Sequence[str], declared: Sequence[str]) -> str:
    """Why a header does not fit: a line has all its values in the header's order.

    >>> header_fault(["a", "B"], ["A", "b"]), header_fault(["b", "a"], ["a", "b"])
    ('', 'its header is b, a; declare these columns in this order instead of a, b')
    """
    names = [name_key(name) for name in found]
    if names == [name_key(name) for name in declared]:
        return ""
    missing = [name for name in declared if name_key(name) not in names]
    if missing:
        return (f"column '{missing[0]}' is declared but not in the data, which has "
                + ", ".join(found))
    return (f"its header is {', '.join(found)}; declare these columns in this order instead of "
            + ", ".join(declared))


def limits(stream: Stream) -> BatchLimits:
    """How much a batch may hold, by the stream's options; ValueError if they are not numbers."""
    options = lowered(stream)
    found = []
    for name in LIMITS:
        text = options.get(name.lower())
        found.append(None if text is None else whole_number(name, text))
    return BatchLimits(*found)


def wanted(file: ListedFile, stream: Stream) -> bool:
    """Whether the stream's options include a file."""
    return fnmatchcase(file.path.rsplit("/", 1)[-1], lowered(stream).get("pathglobfilter", "*"))


def lowered(stream: Stream) -> dict[str, str]:
    """The options of a source by their names in lower case, as Spark takes them."""
    return {name.lower(): value for name, value in opened(stream).items()}


def has_header(stream: Stream) -> bool:
    """Whether the first line of each file names the columns."""
    return stream.format == "csv" and lowered(stream).get("header", "").lower() == "true"


def encoding(stream: Stream) -> str:
    """How the text of a source is encoded."""
    options = lowered(stream)
    return options.get("encoding", options.get("charset", "UTF-8"))
