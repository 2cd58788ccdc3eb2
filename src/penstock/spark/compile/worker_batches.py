"""Batches of rows in a Python worker, gathered into parts that are large enough to be worth work.

This module is shipped to the workers by value and imports nothing else of Penstock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

MOST_ROWS = 1 << 20
"""The most rows of a part. A sum of this many 32-bit numbers is exact in a double."""
MOST_BYTES = 128 << 20
"""The most bytes of a part, except for a single batch that is larger."""


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in parts: as many at once as may be."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for whole in batches:
        for start in range(0, whole.num_rows, MOST_ROWS):
            batch = whole.slice(start, MOST_ROWS)
            if held and (rows + batch.num_rows > MOST_ROWS or size + batch.nbytes > MOST_BYTES):
                yield pa.Table.from_batches(held)
                held, rows, size = [], 0, 0
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield pa.Table.from_batches(held)
