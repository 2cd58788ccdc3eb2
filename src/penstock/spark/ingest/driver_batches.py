"""A small batch stored by the driver: Spark decodes its rows into one Arrow table.

The driver counts the rows, splits off the rejects and writes one Parquet file. So it needs one
Spark job without a write, which costs a fraction of one with a write. Spark still computes
everything that needs a judgement, as for a large batch: a row's time, why it is malformed, the text
that is kept of it. None of these changes from batch to batch, so Spark compiles them once. A batch
with a time near a bound is left to the executors, which find the reason.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.arrow import arrow_schema
from penstock.model import Stream, quoted
from penstock.spark.ingest import rejects, times
from penstock.spark.ingest.executor_batches import Counted
from penstock.spark.ingest.file_checks import COMPRESSED, Verdict
from penstock.spark.ingest.sources import FAULTS
from penstock.spark.row_bytes import table_bytes
from penstock.spark.storage.local_store import private
from penstock.spark.storage.spool import FILE_ROWS, Spool

FILE_BYTES = 8 * 2**20
"""Files of fewer bytes in total are a small batch."""
ROWS = 50_000
"""A micro-batch of at most this many rows is small."""
TASK_ROWS = 4 * ROWS
"""If a task has more rows than this, they are not brought to the driver."""
_TIME, _REASON, _TEXT, _GUARD = "@time", "@reason", "@text", "@guard"
_MARGIN = 1_000_000
"""A time this near to a bound, in microseconds, is left to the executors, whatever its unit."""


class SmallBatches:
    """Whether the next micro-batch of a source will be small: when the last two were.

    >>> batches = SmallBatches()
    >>> for rows in (10, 10):
    ...     batches.note(rows)
    >>> batches.expected
    True
    >>> batches.note(ROWS + 1)
    >>> batches.expected
    False
    """

    def __init__(self) -> None:
        """Nothing is known about a new source: it may bring everything that waited for it."""
        self._rows: deque[int] = deque(maxlen=2)

    @property
    def expected(self) -> bool:
        """Whether the next batch should be small."""
        return len(self._rows) == 2 and max(self._rows) <= ROWS

    def note(self, rows: int) -> None:
        """A batch had this many rows."""
        self._rows.append(rows)


def are_small(batch: Sequence[Verdict]) -> bool:
    """Whether some files hold few rows; compressed files may hold many."""
    return (sum(verdict.file.size for verdict in batch) < FILE_BYTES
            and not any(verdict.file.path.endswith(COMPRESSED) for verdict in batch))


def copy(
    batch: DataFrame, stream: Stream, spool: Spool, number: int, cutoff: int | None,
    bounds: times.Bounds, cores: int,
) -> Counted | None:
    """Store a batch; None if the executors must, since it is large or has a time out of bounds."""
    try:
        table = _marked(batch, stream).toArrow()
    except FAULTS:
        return None  # too many rows, or a fault that executors explain better
    if stream.time is not None and not _in_bounds(table, stream.time, bounds):
        return None
    good = pc.is_null(table[_REASON])
    rows = table if table[_REASON].null_count == len(table) else table.filter(good)
    columns = arrow_schema(stream.columns)
    kept = rows.select(columns.names).cast(columns)
    spool.write(number, columns, _cut(kept, cores))
    tally = Tally(cutoff)
    tally.add(kept, rows[_TIME] if stream.time is not None else None)
    bad = table.filter(pc.invert(good)).select([_REASON, _TEXT]) if rows is not table else None
    return tally.counted(bad)


@dataclass(slots=True)
class Tally:
    """Counts the rows of a block that are not rejects, part by part."""

    cutoff: int | None
    """Rows with an earlier time (in microseconds) are late."""
    rows: int = 0
    late: int = 0
    newest: int | None = None
    bytes: int = 0

    def add(self, rows: pa.Table | pa.RecordBatch, own: pa.Array | pa.ChunkedArray | None) -> None:
        """Count rows whose times in microseconds are ``own``; None if they have no times."""
        self.rows += len(rows)
        self.bytes += table_bytes(rows)
        if own is None:
            return
        if self.cutoff is not None:
            self.late += pc.sum(pc.less(own, self.cutoff)).as_py() or 0
        known = [t for t in (self.newest, pc.max(own).as_py()) if t is not None]
        self.newest = max(known, default=None)

    def plus(self, other: Tally) -> Tally:
        """The sum of two tallies."""
        known = [t for t in (self.newest, other.newest) if t is not None]
        return Tally(self.cutoff, self.rows + other.rows, self.late + other.late,
                     max(known, default=None), self.bytes + other.bytes)

    def counted(self, rejected: pa.Table | None = None) -> Counted:
        """The figures of a batch, including these rejects."""
        bad = len(rejected) if rejected is not None else 0
        return Counted(self.rows + bad, self.late, bad, self.newest, self.bytes, rejects=rejected)


def set_aside(found: pa.Table, target: Path) -> None:
    """Write the rejects with their reasons to a folder; a repeated batch replaces itself."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    with open(target / "part-00000.json", "w", encoding="utf-8", opener=private) as file:
        for reason, text in zip(*(_decoded(found[name]) for name in (_REASON, _TEXT)), strict=True):
            line = {"reason": reason} | ({} if text is None else {"row": text})
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def _decoded(texts: pa.ChunkedArray) -> list[str | None]:
    """Texts as Python strings; Spark does not check that the bytes of a file are UTF-8."""
    return [None if text is None else text.decode("utf-8", "replace")
            for text in texts.cast(pa.binary()).to_pylist()]


def _marked(batch: DataFrame, stream: Stream) -> DataFrame:
    """The declared columns, a row's time, why it is a reject, and what is then kept of it."""
    reason = rejects.malformed(batch, stream)
    text = F.when(reason.isNotNull(), rejects.row_text(batch, stream))
    time = times.micros(stream) if stream.time is not None else F.lit(None).cast("bigint")
    place = F.monotonically_increasing_id().bitwiseAND((1 << 33) - 1)  # within its task
    guard = F.when(place >= TASK_ROWS, F.raise_error(F.lit("too many rows"))).cast("boolean")
    columns = [F.col(quoted(column.name)) for column in stream.columns]
    return batch.select(*columns, time.alias(_TIME), reason.alias(_REASON), text.alias(_TEXT),
                        guard.alias(_GUARD))


def _in_bounds(table: pa.Table, time: str, bounds: times.Bounds) -> bool:
    """Whether each row has either no time or one that lies well within bounds."""
    if table[_TIME].null_count != table[time].null_count:
        return False  # one that no number of microseconds can express
    ends = pc.min_max(table[_TIME]).as_py()
    return well_within(ends["min"], ends["max"], bounds)


def well_within(oldest: int | None, newest: int | None, bounds: times.Bounds) -> bool:
    """Whether times in microseconds lie well within bounds, whatever unit they had."""
    return times.Bounds(bounds.first + _MARGIN, bounds.last - _MARGIN).hold(oldest, newest)


def _cut(table: pa.Table, cores: int) -> list[list[pa.RecordBatch]]:
    """The rows of each file: one per core if there are enough, so that all cores read."""
    files = max(1, min(cores, len(table) // FILE_ROWS))
    ends = [len(table) * n // files for n in range(files + 1)]
    return [table.slice(a, b - a).to_batches() for a, b in pairwise(ends)]
