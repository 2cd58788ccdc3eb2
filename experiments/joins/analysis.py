"""Sections 3.1.1 and 3.2.1: equations 1 and 2 against the simulation, Figs 2b and 3b."""

from __future__ import annotations

import numpy as np

from experiments.joins.telling import Telling
from experiments.joins.workload import DISTRIBUTIONS
from penstock.policies.joins import JoinWindow, policy
from penstock.report.figures import Drawing
from penstock.simulator.joins import JoinLoad, play_join
from penstock.simulator.outcomes import Floats

PROBE, RATE, BURST = 1e-6, 100.0, 50
"""The paper's values: seconds to look at a row, rows per second, rows that come together."""
WINDOWS = DISTRIBUTIONS["Small-Large"]


def burst_of(windows: tuple[float, ...], rate: float = RATE, burst: int = BURST) -> JoinLoad:
    """Rows of one stream that come together, after the window of the other has been filled.

    They come halfway between two rows of the other stream, so that none lies on a window's edge.
    """
    filled = int(rate * max(windows)) + 1
    times = np.concatenate([np.arange(filled), np.full(burst, filled - 0.5)]) / rate
    sides = np.repeat([0, 1], [filled, burst])
    return JoinLoad(times, sides, np.zeros(len(times), np.int64),
                    tuple(map(JoinWindow, windows)), compare=PROBE, method="nested_loops",
                    filled=filled)


def simulated(name: str, windows: tuple[float, ...], burst: int = BURST) -> Floats:
    """Mean response by window."""
    found = play_join(burst_of(windows, burst=burst), policy(name))
    return np.array([found.responses[length].mean for length in windows])


def alone(windows: tuple[float, ...]) -> Floats:
    """Every query on a machine of its own."""
    return np.array([float(simulated("lwo", (length,))[0]) for length in windows])


def equation_1(windows: tuple[float, ...], burst: int = BURST) -> Floats:
    """Mean response under LWO."""
    sizes = _sizes(windows)
    return PROBE / 2 * (sizes + 1 + (burst - 1) * sizes[-1])


def equation_2(windows: tuple[float, ...], burst: int = BURST) -> Floats:
    """Mean response under SWF."""
    sizes = _sizes(windows)
    before = np.concatenate([[0.0], sizes[:-1]])
    return PROBE * (burst * before + (burst + 1) / 2 * (sizes - before))


def _sizes(windows: tuple[float, ...]) -> Floats:
    """Rows in each window."""
    return RATE * np.array(windows)


def tell(telling: Telling) -> None:
    """Two figures, and how far the simulation lies from the equations."""
    isolated = alone(WINDOWS)
    for id, name, equation, title in (
            ("fig2b", "lwo", equation_1, "Fig. 2b: LWO and isolated execution"),
            ("fig3b", "swf", equation_2, "Fig. 3b: SWF and isolated execution")):
        expected, found = equation(WINDOWS), simulated(name, WINDOWS)
        off = np.abs(found / expected - 1)
        telling.check(f"{id}-equation", f"{name.upper()}'s mean response is that of the equation",
                      "within 2 %, the share of the first of 50 rows, for every window",
                      f"at most {off.max():.2%} off", bool((off <= 0.02).all()))
        telling.figure(
            id, Drawing(title, "window, s", "mean response, s", marks=True, log_x=True, log_y=True),
            {name: (WINDOWS, found), "equation": (WINDOWS, expected),
             "isolated": (WINDOWS, isolated)},
            "50 rows come together; a look takes a microsecond, 100 rows a second come.",
            (f"{id}-equation",))
        telling.rows(id, "window", [f"{length:g} s" for length in WINDOWS],
                     {name: found, "equation": expected, "isolated": isolated})
    small = simulated("lwo", WINDOWS)[0] / isolated[0]
    telling.check("lwo-penalty", "LWO severely penalises the smallest window",
                  "at least 100 times its isolated response", f"{small:.0f} times", small >= 100)
