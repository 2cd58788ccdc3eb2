"""When blocks arrive: bursts, Poisson streams, traces, and rows batched into blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from penstock.errors import WorkloadError
from penstock.generators.packets import OnOff
from penstock.simulator.outcomes import Floats


def onoff(traffic: OnOff, seconds: float) -> Floats:
    """The packets that bursty traffic sends in its first seconds.

    >>> onoff(OnOff(rate=2, burst=2, rows=3), 10)
    array([0.  , 0.25, 0.5 ])
    """
    return traffic.arrivals(0.0, seconds)


def poisson(gap: float, count: int, random: np.random.Generator) -> Floats:
    """Arrivals of a Poisson process with a mean gap between them."""
    return np.cumsum(random.exponential(gap, count))


def bursts(rate: float, on: float, off: float, count: int) -> Floats:
    """Arrivals at an even rate for ``on`` seconds, then none for ``off`` seconds, and so on.

    >>> bursts(rate=1.0, on=2.0, off=10.0, count=2)
    array([ 0.,  1., 12., 13.])
    """
    one = np.arange(round(rate * on)) / rate
    return (np.arange(count)[:, None] * (on + off) + one).ravel()


def trace(file: Path, column: str = "ts", speed: float = 1.0) -> Floats:
    """Arrival times from a CSV file (also compressed), the first at 0, ``speed`` times as fast."""
    try:
        read = csv.read_csv(file, convert_options=csv.ConvertOptions(include_columns=[column]))
        times = read.column(column).cast(pa.float64()).to_numpy()
    except (OSError, pa.ArrowException, KeyError) as error:
        raise WorkloadError(f"cannot read arrival times from {file}: {error}") from error
    if len(times) == 0 or not np.isfinite(times).all():
        raise WorkloadError(f"{file}: column {column} holds no arrival times")
    ordered = np.sort(times)
    since: Floats = (ordered - ordered[0]) / speed
    return since


def blocks(times: Floats, rows: int) -> Floats:
    """Rows batched into blocks; a block arrives with its last row.

    >>> blocks(np.arange(7.0), 3)
    array([2., 5.])
    """
    return times[rows - 1 :: rows]
