"""Policies that promise a latency, on bursts: how well they keep it, and what memory it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policies.operators import Decision, Queue, Route, View, policy
from penstock.policies.operators.mixed import Mixed
from penstock.policies.operators.model.charts import Chart
from penstock.simulator.host import simulate
from penstock.simulator.network import Network
from penstock.simulator.results import Result
from penstock.simulator.workload import Workload

CHARTS = {
    "two": Chart.of_points([(0, 1), (0.5, 0.3), (4, 0)]),
    "hidden": Chart.of_points([(0, 1), (0.4, 0.9), (2, 0.88), (2.2, 0.1), (4, 0)]),
    "falling": Chart.of_points([(0, 1), (1, 0.3), (1.99, 0.2), (3.49, 0.1), (5.49, 0)]),
}
"""Of sections 6.1.1 and 6.2 of the chain paper, in milliseconds."""
SEEDS = range(3)
NEAR = 1e-6

every_chart = pytest.mark.parametrize("name", CHARTS)
every_seed = pytest.mark.parametrize("seed", SEEDS)


def bursty(chart: Chart, random: np.random.Generator) -> np.ndarray:
    """Quiet and loud spells: a load of 0.2 to 0.6, then one of 1.2 to 5."""
    times: list[np.ndarray] = []
    now = 0.0
    for _ in range(8):
        for low, high, mean in ((0.2, 0.6, 500.0), (1.2, 5.0, 60.0)):
            span = random.exponential(mean)
            count = random.poisson(span * random.uniform(low, high) / chart.times[-1])
            times.append(now + np.sort(random.uniform(0, span, count)))
            now += span
    return np.concatenate(times)


@cache
def workload(name: str, seed: int) -> Workload:
    stages = CHARTS[name].stages()
    arrivals = bursty(CHARTS[name], np.random.default_rng(seed))
    return Workload(Network((Route("q", stages),)), {"q": arrivals})


@cache
def run(name: str, seed: int, text: str) -> Result:
    return simulate(workload(name, seed), policy(text))


def limits(name: str, seed: int) -> Iterator[float]:
    """From the least that can be kept, FIFO's, to one that is no limit."""
    for times in (1.0, 1.2, 2.0, 10.0):
        yield times * run(name, seed, "fifo").max_latency


# --- mixed(latency=...) ----------------------------------------------------------------------


@every_chart
@every_seed
def test_mixed_keeps_a_limit_that_fifo_keeps(name: str, seed: int) -> None:
    for limit in limits(name, seed):
        mixed = run(name, seed, f"mixed(latency={limit})")
        assert mixed.max_latency <= limit * (1 + NEAR)


@every_chart
@every_seed
def test_mixed_needs_less_memory_than_fifo_and_the_less_the_laxer_the_limit(
    name: str, seed: int
) -> None:
    fifo, chain = run(name, seed, "fifo"), run(name, seed, "chain")
    found = [run(name, seed, f"mixed(latency={limit})") for limit in limits(name, seed)]
    for result in found:
        assert result.mean_memory < fifo.mean_memory
        assert result.peak <= fifo.peak + NEAR
    means = [result.mean_memory for result in found]
    assert all(laxer <= 1.001 * stricter for stricter, laxer in pairwise(means))
    assert means[-1] == chain.mean_memory


class Recording(Mixed):
    """Mixed, with every gamma that it had written down."""

    gammas: list[float]

    def choose(self, view: View) -> Decision | None:
        choice = Mixed.choose(self, view)
        if not self.gammas or self.gammas[-1] != self.gamma:
            self.gammas.append(self.gamma)
        return choice


@every_chart
@every_seed
def test_gamma_changes_seldom(name: str, seed: int) -> None:
    """Less than once in ten blocks even at the tightest limit: each block has several decisions."""
    for limit in limits(name, seed):
        recording = Recording(latency=limit)
        recording.gammas = []
        result = simulate(workload(name, seed), recording)
        assert len(recording.gammas) - 1 <= len(result.outputs) / 10


def test_gamma_climbs_over_the_slopes_and_comes_back() -> None:
    recording = Recording(latency=300.0)
    recording.gammas = []
    burst = Workload(Network((Route("q", CHARTS["falling"].stages()),)),
                     {"q": np.append(np.arange(50) * 1.2, 1000.0)})
    result = simulate(burst, recording)
    slopes = sorted(CHARTS["falling"].slopes)
    assert result.max_latency <= 300.0
    assert recording.gammas[0] == recording.gammas[-1] == 0.0
    climbed = recording.gammas[: recording.gammas.index(max(recording.gammas)) + 1]
    assert climbed == [0.0, *slopes[1 : len(climbed)]]
    assert len(climbed) > 1


@settings(max_examples=30)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=25), st.sampled_from(list(CHARTS)),
       st.sampled_from(list(CHARTS)), st.integers(1, 80))
def test_no_block_is_over_the_limit_that_would_be_under_it_with_fifo(
    times: list[int], one: str, other: str, limit: int
) -> None:
    """Block by block, over two queries: late only if FIFO is, and then no later."""
    routes = tuple(Route(f"q{i}", CHARTS[name].stages([f"q{i}.{k}" for k in range(4)]))
                   for i, name in enumerate((one, other)))
    given_workload = Workload(Network(routes), {
        "q0": np.array(sorted(times[::2]), float), "q1": np.array(sorted(times[1::2]), float)})
    under_fifo = sorted(simulate(given_workload, policy("fifo")).outputs, key=_of_block)
    mixed = sorted(simulate(given_workload, Mixed(latency=float(limit))).outputs, key=_of_block)
    for (end, arrived, *_), (fifo_end, *_) in zip(mixed, under_fifo, strict=True):
        assert end - arrived <= max(limit, fifo_end - arrived) + NEAR


def _of_block(output: tuple[float, float, int, float]) -> tuple[int, float, float]:
    end, arrived, on, _ = output
    return on, arrived, end


def test_the_promise_to_a_query_is_its_own_if_it_has_one() -> None:
    for text in ("mixed(latency=3)", "chain_flush(latency=3)", "chain_flush(latency=3,exact=true)"):
        strict, lax, none = policy(text).prepare([
            Route(name, CHARTS["two"].stages()[:1], **promise)
            for name, promise in (("a", {"latency": 1.0}), ("b", {"latency": 9.0}), ("c", {}))])
        assert (strict.latency, lax.latency, none.latency) == (1.0, 9.0, 3.0)
    cuts = policy("edf(latency=3)").prepare([Route("a", (), latency=9.0), Route("b", ())])
    assert [cut.grace for cut in cuts] == [9.0, 3.0]


# --- chain_flush -----------------------------------------------------------------------------

FORMS = ("chain_flush(latency={})", "chain_flush(latency={}, tuples=10)")


@every_chart
@every_seed
def test_exact_chain_flush_keeps_every_limit_that_fifo_keeps(name: str, seed: int) -> None:
    for limit in limits(name, seed):
        exact = run(name, seed, f"chain_flush(latency={limit}, exact=true)")
        assert exact.max_latency <= limit * (1 + NEAR)


@every_chart
@every_seed
@pytest.mark.parametrize("form", FORMS)
def test_efficient_chain_flush_misses_its_limit_by_a_part_of_it(
    name: str, seed: int, form: str
) -> None:
    """It does not count what waits behind the heads. At twice FIFO's latency that is little."""
    fifo = run(name, seed, "fifo").max_latency
    for times, over in ((1.0, 0.35), (1.2, 0.2), (2.0, 0.05)):
        result = run(name, seed, form.format(times * fifo))
        assert result.max_latency <= times * fifo * (1 + over)


@every_chart
@every_seed
@pytest.mark.parametrize("form", FORMS)
def test_efficient_chain_flush_is_chain_where_chain_is_in_time(
    name: str, seed: int, form: str
) -> None:
    chain = run(name, seed, "chain")
    flushed = run(name, seed, form.format(1.01 * chain.max_latency + 10))
    assert flushed.max_latency == pytest.approx(chain.max_latency, rel=0.1)
    if "tuples" not in form:
        assert flushed.peak == pytest.approx(chain.peak)


@every_chart
@every_seed
@pytest.mark.parametrize("form", FORMS)
def test_a_stricter_limit_needs_more_memory(name: str, seed: int, form: str) -> None:
    fifo = run(name, seed, "fifo")
    found = [run(name, seed, form.format(limit)).mean_memory for limit in limits(name, seed)]
    assert all(laxer <= 1.001 * stricter for stricter, laxer in pairwise(found))
    assert found[0] <= fifo.mean_memory


def flush_queues(limit: float = 9.0) -> tuple[Queue, Queue]:
    """One block before a steep operator of 1 s, one in the middle of a gentle one of 4 s."""
    first, second = policy("chain").prepare([
        Route("p", Chart.of_points([(0, 1), (1, 0.2), (5, 0)]).stages(), latency=limit)])
    return Queue(first, 3, oldest=4.0), Queue(second, 1, oldest=0.0, head=0.2)


def test_until_a_head_is_due_chain_s_choice_runs_for_so_many_blocks() -> None:
    """Due is what would end at its deadline if it were begun now: 9 - 4 = 5 s for the second."""
    for tuples in (1, 10):
        choice = policy(f"chain_flush(tuples={tuples})").choose(View(4.25, flush_queues()))
        assert choice is not None
        assert (choice.segment, choice.limit, choice.quantum) == ("p", tuples, 0.75)


def test_what_is_due_runs_until_the_next_is() -> None:
    first, second = flush_queues()
    choice = policy("chain_flush").choose(View(5.5, (first, second)))
    assert choice is not None
    assert (choice.segment, choice.limit, choice.quantum) == ("p@1", 1, 2.5)  # 4 + 9 - 5 = 8
    assert "deadline is at 9" in choice.reason


def test_of_several_that_are_due_the_earliest_deadline_runs() -> None:
    first, second = flush_queues()
    for oldest, expected in ((-2.0, "p"), (1.0, "p@1")):
        queues = replace(first, oldest=oldest), second
        choice = policy("chain_flush").choose(View(7.0, queues))
        assert choice is not None
        assert choice.segment == expected


def test_a_head_under_way_has_less_to_go_and_is_due_later() -> None:
    first, second = flush_queues()
    under_way = replace(second, done=10.0)  # of 20 s per row, and 0.2 rows
    assert under_way.left == pytest.approx(2.0)
    choice = policy("chain_flush").choose(View(5.5, (first, under_way)))
    assert choice is not None
    assert choice.segment == "p"
    assert choice.quantum == pytest.approx(1.5)
