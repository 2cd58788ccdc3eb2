"""What depends on how the paper is read: the cost of the root, and the length of a stream."""

from __future__ import annotations

from dataclasses import replace

from experiments.prb.expensive import DEAREST, EXPENSIVE, depths, rises_and_falls
from experiments.prb.queries import LIKE_OTHERS, STREAMS, Flat, Pairs
from experiments.prb.runs import PRB, RB, RR, Load, Size, Sweep
from experiments.prb.skew import FIVE_TO_TWENTY, PAPER, costs, from_five_to_twenty
from experiments.prb.telling import COST_SKEW, GAIN, Telling
from penstock.report.figures import Drawing


def like_others(sweep: Sweep) -> Sweep:
    """The same, with a root that costs like the other operators."""
    loads = tuple(replace(load, query=replace(load.query, root=LIKE_OTHERS))
                  for load in sweep.loads)
    return replace(sweep, name=f"root like the others, {sweep.name}", loads=loads)


def long(size: Size) -> Sweep:
    """Both ends of Fig. 4 with as many tuples in each stream as otherwise in all."""
    ends = size.skews[0], size.skews[-1]
    loads = tuple(Load(Flat(cost_skew=skew), size.per_stream * STREAMS) for skew in ends)
    return replace(costs(size), name="long streams, cost skew", x=ends, loads=loads, draws=2)


def short(size: Size) -> Sweep:
    """The same draws with the usual number."""
    loads = tuple(Load(load.query, size.tuples) for load in long(size).loads)
    return replace(long(size), name="short streams, cost skew", loads=loads)


def dear(size: Size) -> Sweep:
    """Fig. 11, where the paper's range ends, with a root that costs like the others."""
    load = Load(Pairs(EXPENSIVE, DEAREST), size.tuples)
    return like_others(Sweep("cost", (DEAREST,), (load,), (RR, RB, PRB), size.slow))


def sweeps(size: Size) -> list[Sweep]:
    """All that is run here."""
    return [like_others(costs(size)), like_others(depths(size)), dear(size), short(size),
            long(size)]


def tell(telling: Telling, size: Size) -> None:
    """One figure, and the claims that hang on it."""
    read = {
        f"root is free, {size.tuples:,} tuples in all": costs(size),
        f"root is free, {size.per_stream:,} tuples in each stream (two skews)": long(size),
        f"root is like the others, {size.tuples:,} tuples in all": like_others(costs(size)),
    }
    telling.figure(
        "readings", Drawing("Fig. 4 in other readings", COST_SKEW, GAIN, marks=True, lines=PAPER),
        {name: (sweep.x, telling.gains(sweep).mean(axis=0)) for name, sweep in read.items()},
        "What all tuples pay at the root makes their costs alike, so there is less to save. "
        "The length of the streams hardly matters.",
        ("root-gain", "root-depth", "root-rr", "length"))
    for sweep in sweeps(size):
        telling.rows("readings", sweep)
    _root(telling, size)
    _length(telling, size)


def _root(telling: Telling, size: Size) -> None:
    measured, holds = from_five_to_twenty(telling.gains(like_others(costs(size))))
    telling.check(
        "root-gain", "Fig. 4 if the root costs like the others: from about 5 % to about 20 %",
        FIVE_TO_TWENTY, measured, holds)
    gains = telling.gains(like_others(depths(size))).mean(axis=0)
    telling.check(
        "root-depth", "Fig. 8 if the root costs like the others: the peak lies inside",
        "rises, then falls", f"highest at depth {gains.argmax()}: {gains.max():.1f} %",
        rises_and_falls(gains))
    slow, fast = (telling.response(dear(size), name)[0] for name in (RR, RB))
    telling.check(
        "root-rr", "Fig. 11 if the root costs like the others: RR overtakes RB within the range",
        "RR at most 1.0 times RB at 300", f"{slow / fast:.2f}", bool(slow <= fast))


def _length(telling: Telling, size: Size) -> None:
    """The same two draws, so that they differ in nothing but the length."""
    few, many = (telling.gains(sweep).mean(axis=0) for sweep in (short(size), long(size)))
    telling.check(
        "length", "10,000 tuples in all or in each stream: what PRB saves is the same",
        "within 2 points at both ends",
        f"{few[0]:.1f} and {few[-1]:.1f} % in all, {many[0]:.1f} and {many[-1]:.1f} % with "
        f"{size.per_stream:,} in each, both for {long(size).draws} draws",
        bool((abs(few - many) <= 2).all()))
