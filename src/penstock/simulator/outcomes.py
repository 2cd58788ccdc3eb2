"""What becomes of every block: its rows before each operator, drawn before the run begins.

A block's fate does not depend on when it is processed, so every policy lets out the same rows. A
difference between two runs is therefore a difference between two schedules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.errors import WorkloadError
from penstock.policies.operators import Route

Floats = npt.NDArray[np.float64]

MODELS = ("divisible", "tuples")
"""Rows are a quantity of memory that shrinks as expected, or individuals with a chance each."""

_COUNTABLE = 2.0**53
"""Beyond this a number of rows is not exact."""


@dataclass(frozen=True, slots=True)
class Fate:
    """One block on one route."""

    rows: tuple[float, ...]
    """Before each operator, and last what comes out."""
    work: tuple[float, ...]
    """Seconds at each operator."""


def fates(
    route: Route, entering: Floats, model: str, random: np.random.Generator
) -> list[Fate]:
    """The fate of each block that enters a route with this many rows.

    >>> from penstock.simulator.network import path
    >>> route = path("q", [(1.0, 0.2), (5.0, 1.0)])
    >>> fates(route, np.ones(1), "divisible", np.random.default_rng(0))
    [Fate(rows=(1.0, 0.2, 0.2), work=(1.0, 1.0))]
    """
    rows = np.empty((len(entering), len(route.stages) + 1))
    rows[:, 0] = entering
    draw = _expected if model == "divisible" else _drawn
    for k, stage in enumerate(route.stages):
        rows[:, k + 1] = draw(rows[:, k], stage.selectivity, random)
    costs = np.array([stage.cost for stage in route.stages])
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    made = [Fate(tuple(kind.tolist()), tuple((kind[:-1] * costs).tolist())) for kind in kinds]
    return [made[i] for i in which.ravel().tolist()]


def _expected(rows: Floats, selectivity: float, random: np.random.Generator) -> Floats:
    return rows * selectivity


def _drawn(rows: Floats, selectivity: float, random: np.random.Generator) -> Floats:
    """Each row gives the whole part of the selectivity, and one more by chance."""
    if rows.max(initial=0.0) > _COUNTABLE:
        raise WorkloadError(
            f"a block grows to {rows.max():.3g} rows: too many to follow one by one")
    sure, chance = divmod(selectivity, 1.0)
    more = random.binomial(rows.astype(np.int64), chance)
    result: Floats = rows * sure + more
    return result
