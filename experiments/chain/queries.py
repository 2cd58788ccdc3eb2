"""The queries of the paper: progress charts in microseconds per page, and what is made of them.

A page holds 100 tuples of 24 bytes. Here every tuple is on its own: it arrives when its packet did,
costs a hundredth of what its page would, and is kept or dropped by chance at each operator. A page
that had to be filled first would blur bursts shorter than 100 packets, and the paper's own Table 1
has Chain at 2.5 KB, hardly more than one page: it cannot have waited for pages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.charts import Chart, chart, window_join
from penstock.simulator.network import Network

Points = tuple[tuple[float, float], ...]

PAGE = 100
"""Tuples in a page."""
BYTES = 24
"""Bytes of a tuple."""
MICROSECOND = 1e-6 / PAGE
"""Seconds of a tuple for each microsecond of its page."""

TWO: Points = ((0, 1), (500, 0.3), (4000, 0))
FOUR: Points = ((0, 1), (400, 0.9), (2000, 0.88), (2200, 0.1), (4000, 0))
ABOVE_ONE: Points = ((0, 1), (400, 0.9), (1300, 2.0), (1500, 0.2), (4000, 0))
FALLING: Points = ((0, 1), (1000, 0.3), (1990, 0.2), (3490, 0.1), (5490, 0))
"""The chart of Figs 19 and 20 and of Table 1: every operator is a segment of its own."""

# The paper gives no costs for the window join (section 6.1.3). We take those of the chart with a
# selectivity above 1, whose operators play the same parts: a weak selection, a join that doubles,
# a strong selection that is fast, and a slow weak one.
WEAK = Stage("sigma1", 400 * MICROSECOND, 0.9)
JOIN_COST, MATCHES = 1000 * MICROSECOND, 2.0
STRONG = Stage("sigma2", 100 * MICROSECOND, 0.1)
SLOW = Stage("sigma3", 12500 * MICROSECOND, 0.8)


def of_chart(name: str, points: Points) -> Route:
    """A query over one stream."""
    scaled = Chart.of_points([(t * MICROSECOND, s) for t, s in points])
    return Route(name, scaled.stages([f"{name}.{i}" for i in range(1, len(points))]))


def many(operators: int) -> Points:
    """The chart of two operators with the second cut into equal parts: its envelope stays.

    >>> many(3)
    ((0, 1), (500, 0.3), (2250.0, 0.15), (4000.0, 0.0))
    """
    if operators == 1:
        return (0, 1), (4000, 0)
    rest = operators - 1
    return (0, 1), (500, 0.3), *((500 + 3500 * k / rest, 0.3 * (1 - k / rest))
                                 for k in range(1, rest + 1))


def join_routes() -> tuple[Route, Route]:
    """R through a selection to the join, S straight to it, and both through two selections."""
    rates = (WEAK.selectivity, 1.0)
    cost, selectivity = window_join(rates, (MATCHES, MATCHES), (JOIN_COST, JOIN_COST))
    onward = (STRONG, SLOW)
    return (Route("R", (WEAK, Stage("join.R", cost, selectivity), *onward)),
            Route("S", (Stage("join.S", cost, selectivity), *onward)))


JOIN = ("join.R", "join.S")

QUERIES: dict[str, Callable[[], Network]] = {
    "two operators": lambda: Network((of_chart("q", TWO),)),
    "four operators": lambda: Network((of_chart("q", FOUR),)),
    "selectivity above 1": lambda: Network((of_chart("q", ABOVE_ONE),)),
    "window join": lambda: Network(join_routes(), (JOIN,)),
    "three queries": lambda: Network(
        (*join_routes(), of_chart("two", TWO), of_chart("four", FOUR)), (JOIN,)),
    "falling slopes": lambda: Network((of_chart("q", FALLING),)),
    **{f"{n} operators in a row": lambda n=n: Network((of_chart("q", many(n)),))  # type: ignore[misc]
       for n in (1, 2, 3, 4, 6, 8, 12, 16)},
}
"""Every query by name, so that a run can be told to another process."""


def service(network: Network) -> float:
    """Seconds of work for a tuple, on average over the streams, which are equally busy."""
    return sum(route.cost for route in network.routes) / len(network.routes)


def chain_rate(network: Network) -> float:
    """How much faster than FIFO tuples pass the steepest segments, all streams together."""
    seconds = sum(_steep_seconds(route) for route in network.routes) / len(network.routes)
    return service(network) / seconds


def _steep_seconds(route: Route) -> float:
    known = chart(route)
    first, last = next(pairwise(known.envelope))
    return known.times[last] - known.times[first]


def steepest(network: Network) -> float:
    """Tuples that the steepest segment of all frees per second."""
    return max(chart(route).slopes[0] for route in network.routes)


def excess(network: Network) -> float:
    """Tuples by which Chain may exceed the least possible memory: the deltas of Lemma 4.2.

    >>> round(excess(QUERIES["two operators"]()), 3), round(excess(QUERIES["window join"]()), 3)
    (1.0, 3.8)
    """
    return sum(sum(chart(route).deltas) for route in network.routes)


def most(network: Network) -> float:
    """How many times Chain's memory FIFO's can be, at most, however bursts come.

    Both have the same seconds of work before them at any time. FIFO has it in whole tuples; at
    best all of it lies on the gentlest segments, where a second of work is the least memory.

    >>> round(most(QUERIES["four operators"]()), 6)
    4.5
    """
    gentlest = min(chart(route).slopes[-1] for route in network.routes)
    return 1 / (service(network) * gentlest)
