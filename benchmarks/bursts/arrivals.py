"""When the blocks of a burst come: evenly, as the ON/OFF model has it, or as recorded packets did.

Times are in *paces*. A pace lies between what Chain's steep segments take for a block and what the
whole path takes. Where traffic is uneven its busy parts come a block per pace.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.chain.traces import DATA, present
from penstock.generators.packets import OnOff
from penstock.simulator.arrivals import blocks, onoff, trace
from penstock.simulator.outcomes import Floats

TRACE = "dec_pkt_1_udp"
_ONOFF_ROWS, _TRACE_ROWS = 300, 300
"""Packets of the model and of the trace that make a block: a flow of the model is some dozen
blocks, and so are the bursts of the trace."""
_BUSY = 4
"""Blocks over which a rate is told."""


def even(count: int) -> Floats:
    """One block per pace.

    >>> even(3)
    array([0., 1., 2.])
    """
    return np.arange(float(count))


def flows(count: int) -> Floats:
    """The ON/OFF model; half of the time a flow is ON."""
    traffic = OnOff(rate=1000, burst=2, length=2.0, seed=7)
    return _paced(blocks(onoff(traffic, 10.0 * count), _ONOFF_ROWS)[:count])


def recorded(count: int) -> Floats:
    """The busiest part of the recorded hour."""
    file = present(TRACE)
    assert file is not None
    times = blocks(trace(file), _TRACE_ROWS)
    third = count // 3
    busiest = int(np.argmin(times[third:] - times[:-third]))
    first = min(max(busiest - third, 0), len(times) - count)
    return _paced(times[first : first + count])


def _paced(times: Floats) -> Floats:
    """From 0 on, in paces: where it is busiest, a third of the time, a block comes per pace.

    >>> _paced(np.array([3.0, 5.0, 7.0, 9.0, 11.0, 20.0, 40.0]))
    array([ 0. ,  1. ,  2. ,  3. ,  4. ,  8.5, 18.5])
    """
    gaps = np.sort(times[_BUSY:] - times[:-_BUSY]) / _BUSY
    since: Floats = (times - times[0]) / gaps[: max(len(gaps) // 3, 1)].mean()
    return since


ARRIVALS: dict[str, Callable[[int], Floats]] = {
    "even": even, "onoff": flows, "DEC-PKT": recorded}


def absent() -> str:
    """Why the trace is not played, if it is not there."""
    return "" if present(TRACE) else (
        f"{TRACE}_arrivals.csv.gz is not in {DATA}: the recorded arrivals are left out; set "
        "PENSTOCK_DATA to a folder that has it")
