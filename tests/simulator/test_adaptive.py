"""Statistics by windows: what was measured in one is used in the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from penstock.policies.operators import Route, Segment, policy
from penstock.policies.operators.chain import Chain
from penstock.simulator.host import simulate
from penstock.simulator.network import Network, path
from penstock.simulator.workload import Workload

# The fast and selective operator is the second; who believes the contrary keeps the first one busy.
TRUE = [(1.0, 0.9), (0.2, 0.1), (10.0, 1.0)]
WRONG = [(0.2, 0.1), (1.0, 0.9), (10.0, 1.0)]
RIGHT = (("q.1", "q.2"), ("q.3",))


class Watched(Chain):
    """Chain whose cuts are noted."""

    noted: ClassVar[list[tuple[tuple[str, ...], ...]]] = []

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        made = Chain.prepare(self, routes)
        self.noted.append(tuple(cut.operators for cut in made))
        return made


def cuts(workload: Workload, window: float | None = None) -> list[tuple[tuple[str, ...], ...]]:
    """The segments that Chain cuts at the beginning, and after each window."""
    Watched.noted.clear()
    simulate(workload, Watched(), window=window)
    return list(Watched.noted)


def mistaken(model: str = "divisible", seed: int = 0) -> Workload:
    """Bursts at a path whose first two operators are believed to be in the other order."""
    times = np.concatenate([np.arange(40) + 130.0 * burst for burst in range(8)])
    network = Network((path("q", TRUE),), believed=(path("q", WRONG),))
    return Workload(network, {"q": times}, rows=10 if model == "tuples" else 1.0,
                    model=model, seed=seed)


def test_chain_finds_the_true_segments_after_the_first_window() -> None:
    true = cuts(Workload(Network((path("q", TRUE),)), {"q": np.zeros(1)}))
    found = cuts(mistaken(), window=100.0)
    assert found[0] == (("q.1",), ("q.2", "q.3"))
    assert set(found[1:]) == set(true) == {RIGHT}


def test_with_statistics_chain_needs_as_little_memory_as_if_it_had_known() -> None:
    workload = mistaken()
    known = Workload(Network((path("q", TRUE),)), workload.arrivals)
    later = slice(-300, None)
    peaks = {
        "blind": simulate(workload, policy("chain")),
        "learning": simulate(workload, policy("chain"), window=100.0),
        "knowing": simulate(known, policy("chain")),
    }
    last = {name: result.memory()[1][later].max() for name, result in peaks.items()}
    assert last["learning"] == last["knowing"]
    assert last["blind"] > 1.1 * last["knowing"]


def test_random_outcomes_are_measured_well_enough() -> None:
    found = cuts(mistaken("tuples", seed=3), window=100.0)
    first = found.index(RIGHT)
    assert first <= 3  # in an overload it takes a while until the second operator is tried
    assert set(found[first:]) == {RIGHT}


def test_without_a_window_beliefs_stay() -> None:
    assert len(cuts(mistaken())) == 1
