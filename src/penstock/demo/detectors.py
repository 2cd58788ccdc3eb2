"""Python predicates for the demonstration: whole Arrow columns in, a truth value per row out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock import predicate

SERVICES = pa.array([21, 22, 23, 25, 80, 443, 3306, 8080], pa.int32())
INSIDE = 3
"""The addresses up to this one are ours."""


@predicate
def is_from_outside(src: pa.Array) -> Any:
    """Packets that do not come from one of our own addresses.

    >>> is_from_outside(pa.array([2, 40], pa.int32())).to_pylist()
    [False, True]
    """
    return pc.greater(src, INSIDE)


@predicate
def looks_like_a_scan(port: pa.Array, length: pa.Array) -> Any:
    """Short packets to ports on which no service listens.

    >>> ports, lengths = pa.array([443, 31337], pa.int32()), pa.array([40, 40], pa.int32())
    >>> looks_like_a_scan(ports, lengths).to_pylist()
    [False, True]
    """
    unknown = pc.invert(pc.is_in(port, SERVICES))
    return pc.and_(unknown, pc.less_equal(length, 52))
