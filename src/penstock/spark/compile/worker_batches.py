"""Batches of rows in a Python worker, gathered into parts that are large enough to be worth work.

This module is shipped to the workers by value and imports nothing else of Penstock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

MOST_ROWS = 1 << 20
"""The most rows of a part. A sum of this many 32-bit numbers is exact in a double."""
MOST_BYTES = 128 << 20
"""The most bytes of a part, except for a single batch that is larger."""


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in parts: as many at once as may be."""
    gathering = Gathering()
    for batch in batches:
        yield from gathering.add(batch)
    yield from gathering.rest()


@dataclass(slots=True)
class Gathering:
    """Rows that wait until they are a part."""

    _held: list[pa.RecordBatch] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def add(self, whole: pa.RecordBatch) -> Iterator[pa.Table]:
        """Add some rows; the parts that are full then."""
        for start in range(0, whole.num_rows, MOST_ROWS):
            batch = whole.slice(start, MOST_ROWS)
            if self._held and (self._rows + batch.num_rows > MOST_ROWS
                               or self._bytes + batch.nbytes > MOST_BYTES):
                yield from self.rest()
            self._held.append(batch)
            self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes

    def rest(self) -> Iterator[pa.Table]:
        """The last part, if rows are left."""
        if self._held:
            held, self._held, self._rows, self._bytes = self._held, [], 0, 0
            yield pa.Table.from_batches(held)
