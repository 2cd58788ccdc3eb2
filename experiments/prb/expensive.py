"""Sections 5.3 to 5.5: where the expensive operators are, how many, and how expensive."""

from __future__ import annotations

import numpy as np

from experiments.prb.queries import DEPTH, FAN_OUT, Pairs, leaves, leftmost
from experiments.prb.runs import PRB, RB, RR, Load, Size, Sweep, crossing
from experiments.prb.telling import GAIN, RESPONSE, Telling
from penstock.report.figures import Drawing
from penstock.simulator.outcomes import Floats
from penstock.simulator.trees import under

EXPENSIVE = leftmost(4)
"""Where the expensive operator is when its cost is varied."""
DEAREST = 300.0
"""Where the paper's range ends."""
_TREE = "A tree of depth 6 and fan-out 2; the other operators cost 1 to 10."
_RELIEF = (
    "With a single expensive path it is a little higher than with two: the utilisation is always "
    "0.9, expensive tuples wait for all the others, and the more of the work is theirs the less "
    "stands in the way of the others. With more of them their own waiting outweighs that.")


def depths(size: Size) -> Sweep:
    """An operator of cost 100, at the root or deeper on the leftmost path."""
    x = tuple(float(depth) for depth in range(DEPTH + 1))
    loads = tuple(Load(Pairs(leftmost(depth)), size.tuples) for depth in range(DEPTH + 1))
    return Sweep("depth", x, loads, (RB, PRB), size.deep)


def numbers(size: Size) -> Sweep:
    """More and more leaves of cost 100."""
    loads = tuple(Load(Pairs(leaves(number)), size.tuples) for number in size.numbers)
    return Sweep("number", tuple(map(float, size.numbers)), loads, (RB, PRB), size.deep)


def prices(size: Size) -> Sweep:
    """An operator at depth 4, dearer and dearer."""
    loads = tuple(Load(Pairs(EXPENSIVE, price), size.tuples) for price in size.prices)
    return Sweep("cost", size.prices, loads, (RR, RB, PRB), size.slow)


def sweeps(size: Size) -> list[Sweep]:
    """All that is run here."""
    return [depths(size), numbers(size), prices(size)]


def tell(telling: Telling, size: Size) -> None:
    """Figures and claims."""
    _depths(telling, depths(size))
    _numbers(telling, numbers(size))
    _prices(telling, prices(size))


def _depths(telling: Telling, sweep: Sweep) -> None:
    x = "depth of the expensive operator"
    up = max(steps(telling.response(sweep, name)).max() for name in sweep.policies)
    ours = telling.response(sweep, PRB)
    telling.check(
        "fig7", "in general the response time falls as the expensive operator lies deeper",
        "no step upwards of more than 1 %",
        f"PRB from {ours[0]:.0f} to {ours[-1]:.0f}; the worst step of both is {100 * up:+.1f} %",
        bool(up <= 0.01))
    telling.responses(
        "fig7", Drawing("Fig. 7: where the expensive operator is", x, RESPONSE, marks=True), sweep,
        f"{_TREE} One operator of the leftmost path costs 100. {_RELIEF}", ("fig7",))
    gains = telling.gains(sweep).mean(axis=0)
    peak = sweep.x[int(gains.argmax())]
    paths = under(leftmost(int(peak))[0], DEPTH, FAN_OUT)
    measured = (f"highest at depth {peak:.0f} ({paths} expensive paths): {gains.max():.1f} %, "
                f"{gains[0]:.1f} % at depth 0, {gains[-1]:.1f} % at depth 6")
    telling.check("fig8", "what PRB saves has its peak inside the range of depths",
                  "rises, then falls", measured, rises_and_falls(gains))
    telling.check("fig8-four", "its peak lies at depth 4", "4", f"{peak:.0f}", peak == 4)
    telling.savings(
        "fig8", Drawing("Fig. 8: saved by PRB over RB, depth of the expensive operator", x, GAIN,
                        marks=True, posts=((4.0, "the paper's peak"),)), sweep,
        "With few expensive paths, an expensive tuple is seldom the one to be overtaken; with many "
        "there are few cheap ones to overtake it.", ("fig8", "fig8-four"))


def _numbers(telling: Telling, sweep: Sweep) -> None:
    x = "expensive operators (all of them leaves)"
    down = min(steps(telling.response(sweep, name)).min() for name in sweep.policies)
    ours = telling.response(sweep, PRB)
    telling.check(
        "fig9", "the response time rises with the number of expensive operators",
        "no step downwards of more than 1 %",
        f"PRB from {ours[0]:.0f} to {ours[-1]:.0f}; the worst step of both is {100 * down:+.1f} %",
        bool(down >= -0.01))
    telling.responses(
        "fig9", Drawing("Fig. 9: how many operators are expensive", x, RESPONSE, marks=True), sweep,
        f"{_TREE} Some of the 64 leaves cost 100. {_RELIEF}", ("fig9",))
    gains = telling.gains(sweep).mean(axis=0)
    telling.check(
        "fig10", "what PRB saves rises and falls with the number of expensive operators",
        "rises, then falls",
        f"{gains[0]:.1f} % with {sweep.x[0]:.0f}, {gains.max():.1f} % with "
        f"{sweep.x[int(gains.argmax())]:.0f}, {gains[-1]:.1f} % with {sweep.x[-1]:.0f}",
        rises_and_falls(gains))
    telling.savings(
        "fig10", Drawing("Fig. 10: saved by PRB over RB, number of expensive operators", x, GAIN,
                         marks=True), sweep,
        "Half of the leaves at most are expensive.", ("fig10",))


def _prices(telling: Telling, sweep: Sweep) -> None:
    gains = telling.gains(sweep).mean(axis=0)
    telling.check(
        "fig11-best", "PRB outperforms RB whatever the expensive operator costs",
        "ahead at every cost", f"ahead by {gains.min():.1f} to {gains.max():.1f} %",
        bool((gains > 0).all()))
    slower = telling.response(sweep, RR) - telling.response(sweep, RB)
    met = crossing(sweep.x, slower)
    telling.check(
        "fig11-rr", "RR overtakes RB when the expensive operator is costly enough",
        f"slower at {sweep.x[0]:.0f}, faster at {sweep.x[-1]:.0f}",
        f"faster from {met:.0f} on" if met else "never overtakes", met is not None)
    ratio = _ratio(telling, sweep)
    telling.check(
        "fig11-range", "it does so within the paper's range, which ends at 300",
        "RR at most 1.0 times RB at 300",
        f"{ratio.mean():.2f} ± {ratio.std(ddof=1):.2f}; less than 1 in {(ratio < 1).sum()} of "
        f"{len(ratio)} draws", bool(ratio.mean() <= 1))
    telling.responses(
        "fig11", Drawing("Fig. 11: how expensive the operator is",
                         "cost of the operator at depth 4", RESPONSE, marks=True,
                         posts=((DEAREST, "paper ends"),)), sweep,
        f"{_TREE} Where the paper's range ends the two are level, and which of them is ahead "
        "depends on the draw.",
        ("fig11-best", "fig11-rr", "fig11-range"))


def _ratio(telling: Telling, sweep: Sweep) -> Floats:
    """RR's response time over RB's where the paper's range ends, for each draw."""
    at = sweep.x.index(DEAREST)
    slow, fast = (sweep.each(telling.runs, name)[:, at] for name in (RR, RB))
    ratio: Floats = slow / fast
    return ratio


def steps(values: Floats) -> Floats:
    """From each value to the next, relative to it.

    >>> steps(np.array([100.0, 110.0, 99.0])).round(3)
    array([ 0.1, -0.1])
    """
    relative: Floats = np.diff(values) / values[:-1]
    return relative


def rises_and_falls(values: Floats) -> bool:
    """Whether they grow up to a peak that is neither the first nor the last, and fall from it.

    >>> rises_and_falls(np.array([1.0, 3.0, 2.0])), rises_and_falls(np.array([1.0, 2.0, 3.0]))
    (True, False)
    """
    peak, steps = int(values.argmax()), np.diff(values)
    inside = 0 < peak < len(values) - 1
    return inside and bool((steps[:peak] > 0).all() and (steps[peak:] < 0).all())
