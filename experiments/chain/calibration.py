"""How fast traffic is played.

The paper says neither how fast its trace was played nor how long its unit of time is. Intensity is
told here as utilisation: mean arrival rate times seconds of work per tuple. One free number remains
for each figure, and it is fixed by the one thing the paper prints of FIFO: the worst latency that
FIFO reached. FIFO's latency depends on arrivals and total work alone, so this choice favours no
policy under test; everything else in the figures is then a result.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from experiments.chain.book import Plan
from experiments.chain.queries import QUERIES, service
from experiments.chain.runs import Load, workload
from experiments.chain.traces import Recorded, Synthetic, hour
from penstock.simulator.outcomes import Floats

TRACE = "dec_pkt_1_udp"
ANOTHER = "bc_paug89"
"""Ethernet packets, for comparison; the paper does not have it."""
SINGLE, MULTIPLE, TABLE = 0.100, 0.075, 0.0241
"""FIFO's worst latency in Figs 13 and 17, in Figs 15 and 18, and in Table 1, in seconds."""
SYNTHETIC_LOAD = 0.5
"""Utilisation of the synthetic stream: one flow takes 28% of the processor, so that four to eight
flows at once are bursts of 1.1 to 2.3 times what FIFO can consume."""


def waits(times: Floats, work: Floats | float) -> Floats:
    """The latency of every tuple under FIFO, each taking so many seconds.

    >>> waits(np.array([0.0, 0.1, 5.0]), 1.0)
    array([1. , 1.9, 1. ])
    """
    through = np.cumsum(np.broadcast_to(work, len(times)))
    return np.maximum.accumulate(times - through + work) + through - times


def at_load(name: str, service: float, load: float) -> Recorded:
    """A trace at the speed that gives this utilisation."""
    known = hour(name)
    return Recorded(name, float(load / service / (len(known) / known[-1])))


def utilisation(traffic: Recorded, service: float) -> float:
    """Over the whole trace, of which an excerpt may be played."""
    known = hour(traffic.name)
    return float(traffic.speed * service * len(known) / known[-1])


@cache
def load_for(name: str, service: float, latency: float) -> float:
    """The utilisation at which FIFO's worst latency over the whole trace is this."""
    low, high = 0.05, 0.99
    for _ in range(20):
        middle = (low + high) / 2
        worst = waits(at_load(name, service, middle).times(), service).max()
        low, high = (middle, high) if worst < latency else (low, middle)
    return low


def around_peak(traffic: Recorded, service: float, margin: float) -> Recorded:
    """The busy period in which FIFO's latency is worst, and some seconds before and after.

    The cut falls on moments without work, so that nothing waits at the beginning.
    """
    times = traffic.times()
    waited = waits(times, service)
    peak = times[int(waited.argmax())]
    idle = np.flatnonzero(waited <= service * (1 + 1e-6))
    before = idle[idle <= np.searchsorted(times, peak - margin)]
    after = idle[idle >= np.searchsorted(times, peak + margin)]
    return replace(traffic, first=int(before[-1]) if len(before) else 0,
                   last=int(after[0]) if len(after) else None)


@cache
def excerpt(query: str, load: float, margin: float, name: str = TRACE) -> Load:
    """A query on the worst part of a trace at a utilisation."""
    seconds = service(QUERIES[query]())
    return Load(query, around_peak(at_load(name, seconds, load), seconds, margin))


def reaching(query: str, latency: float, margin: float) -> Load:
    """A query on the worst part of the trace, so fast that FIFO's worst latency there is this.

    The part is found with the cost that is expected of a tuple, the speed with what each tuple
    really costs, which chance decides.
    """
    load = excerpt(query, load_for(TRACE, service(QUERIES[query]()), latency), margin)
    assert isinstance(load.traffic, Recorded)
    work = np.array([sum(fate.work) for _, _, fate in workload(load).script()])
    times = load.traffic.times()
    low, high = 0.5, 2.0
    for _ in range(20):
        middle = (low + high) / 2
        worst = waits(times / middle, work).max()
        low, high = (middle, high) if worst < latency else (low, middle)
    return replace(load, traffic=replace(load.traffic, speed=load.traffic.speed * low))


def synthetic(query: str, latency: float, seconds: float) -> Load:
    """Synthetic traffic whose unit of time is such that FIFO's worst latency is about this.

    Queues grow in proportion to the length of bursts, so a few steps of proportion find it.
    """
    cost = service(QUERIES[query]())
    found = Synthetic(SYNTHETIC_LOAD / cost, unit=latency / 2, seconds=seconds)
    for _ in range(5):
        worst = float(waits(found.times(), cost).max())
        found = replace(found, unit=found.unit * latency / worst)
    return Load(query, found)


def plan(quick: bool) -> Plan:
    """The loads of Figs 4 to 20."""
    scale, margin, seconds = (0.35, 0.02, 1.0) if quick else (1.0, 1.0, 6.0)
    single, multiple = scale * SINGLE, scale * MULTIPLE
    four = reaching("four operators", single, margin)
    alone = synthetic("four operators", single, seconds)
    assert isinstance(four.traffic, Recorded)
    load = utilisation(four.traffic, service(QUERIES["four operators"]()))
    return Plan(
        quick, scale,
        real={"four operators": four,
              "two operators": replace(four, query="two operators"),
              "window join": excerpt("window join", load, margin),
              "three queries": reaching("three queries", multiple, margin),
              "falling slopes": reaching("falling slopes", TABLE, margin)},
        synthetic={"four operators": alone,
                   "two operators": replace(alone, query="two operators"),
                   "selectivity above 1": replace(alone, query="selectivity above 1"),
                   "window join": synthetic("window join", single, seconds),
                   "three queries": synthetic("three queries", multiple, seconds)})
