"""How many packets a second the demonstration has on this machine: a quick measurement decides."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.generators.packets import OnOff

FULL = 10_000.0
"""Packets a second on a machine like the one that the demonstration was made on, or a faster one:
two quiet cores. More would show nothing more."""
FULL_SPEED = 20e6
"""Rows a second that such a machine filters and groups with Arrow, all cores together."""
FEWEST = 1_000.0
"""Packets a second on any machine: with fewer a burst is none."""
ROWS, SECONDS = 100_000, 0.25
"""About how many rows the measurement has, and how long it lasts."""


def suitable_rate(clock: Callable[[], float] = time.perf_counter) -> float:
    """Packets a second that this machine carries with ease, as busy as it is now."""
    return rate_at(measured_speed(clock))


def rate_at(speed: float) -> float:
    """Packets a second for a machine that groups this many rows a second, in round numbers.

    >>> rate_at(40e6), rate_at(8e6), rate_at(0.0)
    (10000.0, 4000.0, 1000.0)
    """
    rate = max(FEWEST, min(FULL, FULL * speed / FULL_SPEED))
    return round(rate / 500) * 500.0


def measured_speed(clock: Callable[[], float]) -> float:
    """Rows a second that Arrow filters and groups here."""
    packets = pa.Table.from_batches([OnOff(rate=ROWS / 10.0, seed=1).packets(0.0, 10.0)])
    began, rounds = clock(), 0
    while rounds == 0 or clock() - began < SECONDS:
        wanted = packets.filter(pc.greater(packets["length"], 100))
        wanted.group_by("src").aggregate([("length", "sum")])
        rounds += 1
    return float(rounds * packets.num_rows / max(clock() - began, 1e-9))
