"""Section 5.6: what transitions cost (Fig. 12), in three readings.

*Counted*: the run is the one without overhead; its transitions are counted, and each adds its cost
to the response time of the tuples in equal parts. So the section describes it, and so its numbers
come out.
*Taken*: the processor is busy during a transition. Every tuple passes 7 operators, each of which is
invoked after a call of the scheduler, so an overhead of 1 adds 14 to a tuple's mean work of about
50, and the tenth that utilisation 0.9 leaves free is gone long before.
*With room*: the same, with arrivals as much slower as Rate-Based needs for its overhead.
"""

from __future__ import annotations

import numpy as np

from experiments.prb.expensive import DEAREST, EXPENSIVE
from experiments.prb.queries import Pairs
from experiments.prb.runs import PRB, RB, RR, Case, Load, Size, Sweep, crossing
from experiments.prb.telling import RESPONSE, Telling
from penstock.report.figures import Drawing
from penstock.simulator.outcomes import Floats

QUERY = Pairs(EXPENSIVE, DEAREST)
X = "overhead of each transition"
FEW = 2
"""Draws where overhead takes time: what is shown there is far larger than their spread."""


def counted(size: Size) -> Sweep:
    """The runs without overhead, of Fig. 11."""
    return Sweep("overhead", (0.0,), (Load(QUERY, size.tuples),), (RR, RB, PRB), size.slow)


def taken(size: Size) -> Sweep:
    """The processor is busy meanwhile."""
    loads = tuple(Load(QUERY, size.tuples, overhead) for overhead in size.overheads)
    return Sweep("overhead", size.overheads, loads, (RR, RB, PRB), FEW)


def with_room(size: Size) -> Sweep:
    """And tuples come as much more slowly."""
    loads = tuple(Load(QUERY, size.tuples, overhead, room=True) for overhead in size.overheads)
    return Sweep("overhead", size.overheads, loads, (RB, PRB), FEW)


def sweeps(size: Size) -> list[Sweep]:
    """All that is run here."""
    return [counted(size), taken(size), with_room(size)]


def tell(telling: Telling, size: Size) -> None:
    """Figures and claims."""
    _counted(telling, counted(size), size.overheads)
    _taken(telling, taken(size))
    _with_room(telling, with_room(size))


def _counted(telling: Telling, sweep: Sweep, overheads: tuple[float, ...]) -> None:
    x = np.array(overheads)
    curves = {name: _with_counted(telling, sweep, name, x) for name in sweep.policies}
    free, one = (int((x == value).argmax()) for value in (0.0, 1.0))
    telling.check(
        "fig12-rr", "RR outperforms RB at most without overhead, and is far behind with any",
        "slower from an overhead of 1 on",
        f"RR {curves[RR][free]:.0f} and RB {curves[RB][free]:.0f} without, {curves[RR][one]:.0f} "
        f"and {curves[RB][one]:.0f} at 1, {curves[RR][-1]:.0f} and {curves[RB][-1]:.0f} "
        f"at {x[-1]:.0f}", bool((curves[RR] > curves[RB])[one:].all()))
    met, single = _ahead_until(telling, sweep)
    telling.check(
        "fig12-prb", "PRB stays ahead of RB up to an overhead of about 50", "40 to 60",
        f"up to {met:.0f}; {single.min():.0f} to {single.max():.0f} in single draws",
        40 <= met <= 60)
    per_tuple = {name: _transitions(telling, sweep, name).mean() for name in sweep.policies}
    telling.figure(
        "fig12", Drawing("Fig. 12: overhead, counted", X, RESPONSE, marks=True, log_y=True,
                         posts=((50.0, "the paper's 50"),)),
        {name: (x, curve) for name, curve in curves.items()},
        "Transitions per tuple: " + ", ".join(
            f"{name} {count:.1f}" for name, count in per_tuple.items())
        + ". Each adds its overhead to the response time.", ("fig12-rr", "fig12-prb"))
    telling.rows("fig12", sweep)


def _with_counted(telling: Telling, sweep: Sweep, name: str, x: Floats) -> Floats:
    total: Floats = telling.response(sweep, name)[0] + x * _transitions(telling, sweep, name).mean()
    return total


def _transitions(telling: Telling, sweep: Sweep, name: str) -> Floats:
    """Per tuple, for each draw."""
    return np.array([telling.runs[Case(sweep.loads[0], name, draw)].transitions
                     for draw in range(sweep.draws)])


def _ahead_until(telling: Telling, sweep: Sweep) -> tuple[float, Floats]:
    """The overhead at which PRB's further transitions cost what it saves; and for each draw."""
    saved = sweep.each(telling.runs, RB)[:, 0] - sweep.each(telling.runs, PRB)[:, 0]
    more = _transitions(telling, sweep, PRB) - _transitions(telling, sweep, RB)
    return float(saved.mean() / more.mean()), saved / more


def _taken(telling: Telling, sweep: Sweep) -> None:
    one = sweep.x.index(1.0)
    times = telling.response(sweep, RR)[one] / telling.response(sweep, RB)[one]
    telling.check(
        "taken-rr", "RR collapses with any overhead, if that takes the processor's time",
        "at 1 more than 10 times slower than RB", f"{times:.0f} times slower", bool(times > 10))
    _ahead(telling, "taken-prb", "overhead takes the processor's time", sweep)
    telling.responses(
        "taken", Drawing("Fig. 12, if overhead takes the processor's time", X, RESPONSE,
                         marks=True, log_y=True), sweep,
        "Arrivals as before. From an overhead of about 0.4 on the processor cannot keep up, so the "
        "response time grows with the length of the run. PRB needs about a tenth more transitions "
        "than RB, which counts for more now than the order of the tuples.",
        ("taken-rr", "taken-prb"))


def _with_room(telling: Telling, sweep: Sweep) -> None:
    _ahead(telling, "room-prb", "overhead takes time for which arrivals leave room", sweep)
    telling.responses(
        "room", Drawing("Fig. 12, if arrivals leave room for RB's overhead", X, RESPONSE,
                        marks=True, log_y=True), sweep,
        "RB's utilisation stays 0.9. PRB's is higher by its calls at arrivals and its preemptions, "
        "and rises to about 1, where the order of the tuples cannot make up for it.", ("room-prb",))


def _ahead(telling: Telling, id: str, reading: str, sweep: Sweep) -> None:
    met = crossing(sweep.x, telling.response(sweep, RB) - telling.response(sweep, PRB))
    telling.check(
        id, f"PRB stays ahead of RB up to an overhead of about 50, if {reading}", "40 to 60",
        f"up to {met:.1f}" if met is not None else f"up to {sweep.x[-1]:.0f} at least",
        met is not None and 40 <= met <= 60)
