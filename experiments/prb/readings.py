"""What depends on how the paper is read: the cost of the root, and the length of a stream."""

from __future__ import annotations

from dataclasses import replace

from experiments.prb.expensive import DEAREST, EXPENSIVE, depths, rises_and_falls
from experiments.prb.queries import LIKE_OTHERS, STREAMS, Flat, Pairs
from experiments.prb.runs import PRB, RB, RR, Load, Size, Sweep
from experiments.prb.skew import costs
from experiments.prb.telling import GAIN, Telling
from penstock.report.figures import Drawing
from penstock.simulator.fates import Floats

X = "skew of the costs (Zipf parameter)"


def flat(size: Size) -> dict[str, Sweep]:
    """Fig. 4 in each reading."""
    free = replace(costs(size), policies=(RB, PRB))
    ends = size.skews[0], size.skews[-1]
    long = tuple(Load(Flat(cost_skew=skew), tuples=size.per_stream * STREAMS) for skew in ends)
    return {
        "root is free, 10,000 tuples in all": free,
        f"root is free, {size.per_stream:,} tuples per stream": Sweep(ends, long, (RB, PRB), 2),
        "root costs 1": _with_root(free, size, 1.0),
        "root is like the others": _with_root(free, size, LIKE_OTHERS),
    }


def _with_root(sweep: Sweep, size: Size, root: float) -> Sweep:
    return replace(sweep, loads=tuple(
        Load(Flat(cost_skew=skew, root=root)) for skew in size.skews))


def deep(size: Size) -> Sweep:
    """Fig. 8 with a root that costs like the others."""
    sweep = depths(size)
    return replace(sweep, loads=tuple(
        replace(load, query=replace(load.query, root=LIKE_OTHERS)) for load in sweep.loads))


def dear(size: Size) -> Sweep:
    """Fig. 11, where the paper's range ends, with a root that costs like the others."""
    load = Load(Pairs(EXPENSIVE, DEAREST, root=LIKE_OTHERS))
    return Sweep((DEAREST,), (load,), (RR, RB, PRB), size.draws)


def sweeps(size: Size) -> list[Sweep]:
    """All that is run here."""
    return [*flat(size).values(), deep(size), dear(size)]


def tell(telling: Telling, size: Size) -> None:
    """One figure, and the claims that hang on it."""
    read = flat(size)
    gains = {name: telling.gains(sweep).mean(axis=0) for name, sweep in read.items()}
    telling.figure(
        "readings", Drawing("Fig. 4 in other readings", X, GAIN, marks=True,
                            lines=((5.0, "paper, at skew 0.0"), (20.0, "paper, at skew 0.9"))),
        {name: (read[name].x, gains[name]) for name in read},
        "What all tuples pay at the root makes their costs alike, so less is saved by preempting. "
        "The length of the streams does not matter.",
        ("root-gain", "root-depth", "root-rr", "length"))
    for name, sweep in list(read.items())[1:]:
        telling.rows("readings", f"{X}; {name}", sweep)
    free, long, _, like = gains.values()
    _root(telling, size, like)
    telling.check(
        "length", "10,000 tuples in all or in each stream: what PRB saves is the same",
        "within 2 points at both ends",
        f"{free[0]:.1f} and {free[-1]:.1f} % in all, {long[0]:.1f} and {long[-1]:.1f} % with "
        f"{size.per_stream:,} in each",
        abs(free[0] - long[0]) <= 2 and abs(free[-1] - long[-1]) <= 2)


def _root(telling: Telling, size: Size, like: Floats) -> None:
    telling.check(
        "root-gain", "Fig. 4 if the root costs like the others: from about 5 % to about 20 %",
        "3 to 8 % at the least skew, 15 to 25 % at the most",
        f"{like[0]:.1f} % to {like[-1]:.1f} %", 3 <= like[0] <= 8 and 15 <= like[-1] <= 25)
    gains = telling.gains(deep(size)).mean(axis=0)
    telling.check(
        "root-depth", "Fig. 8 if the root costs like the others: the peak lies inside",
        "rises, then falls", f"highest at depth {gains.argmax()}: {gains.max():.1f} %",
        rises_and_falls(gains))
    slow, fast = (telling.response(dear(size), name)[0] for name in (RR, RB))
    telling.check(
        "root-rr", "Fig. 11 if the root costs like the others: RR overtakes RB within the range",
        "RR at most 1.0 times RB at 300", f"{slow / fast:.2f}", slow <= fast)
