"""What the chain paper proves, over random charts, arrivals and queries, in the simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.engine.paths.scheduler import Scheduler, Turn
from penstock.policies.operators import POLICIES, Decision, Policy, Route, View, policy
from penstock.policies.operators.chain_flush import ChainFlush
from penstock.policies.operators.model.charts import Chart, chart
from penstock.policies.operators.model.oracles import (
    Level,
    SearchBlock,
    clairvoyant,
    least_memory,
    least_peak,
)
from penstock.simulator import host
from penstock.simulator.host import simulate
from penstock.simulator.network import Network
from penstock.simulator.results import Result
from penstock.simulator.workload import Workload
from tests.simulator.readings import memory_at

EVERY = [*POLICIES, "round_robin(quantum=0.3)", "chain_flush(latency=6)",
         "chain_flush(latency=6, exact=true)", "chain_flush(latency=6, tuples=5)",
         "mixed(gamma=0.1)", "mixed(latency=6)", "edf(latency=6)"]
NEAR = 1e-7
"""Sums of costs are rounded."""


# --- random workloads ------------------------------------------------------------------------


@st.composite
def charts(
    draw: st.DrawFn, multiplying: bool = True, operators: int = 4, longest: int = 4
) -> Chart:
    """Whole seconds and eighths of a block; with or without selectivities above 1."""
    spans = draw(st.lists(st.integers(1, longest), min_size=1, max_size=operators))
    times, sizes = [0], [8]
    for span in spans:
        times.append(times[-1] + span)
        sizes.append(draw(st.integers(1, 20 if multiplying else sizes[-1])))
    sizes[-1] = 0
    return Chart.of_points([(t, s / 8) for t, s in zip(times, sizes, strict=True)])


def route(name: str, known: Chart, latency: float = inf) -> Route:
    return Route(name, known.stages([f"{name}.{i}" for i in range(len(known.times))]), latency)


@st.composite
def workloads(
    draw: st.DrawFn, multiplying: bool = True, queries: int = 3, blocks: int = 8
) -> Workload:
    """Several queries, some with the same chart, and blocks that may come together."""
    known = draw(st.lists(charts(multiplying), min_size=1, max_size=queries))
    count = draw(st.integers(1, queries))
    used = [draw(st.sampled_from(known)) for _ in range(count)]
    moments = st.lists(st.integers(0, 24).map(lambda half: half / 2), min_size=1, max_size=blocks)
    arrivals = {f"q{i}": np.array(sorted(draw(moments))) for i in range(count)}
    return Workload(Network(tuple(route(f"q{i}", of) for i, of in enumerate(used))), arrivals)


def bound_of(workload: Workload) -> Level:
    return clairvoyant(workload.network.routes, {
        name: times.tolist() for name, times in workload.arrivals.items()})


def largest_excess(result: Result, bound: Level) -> float:
    """How far memory is ever above the bound: at each change, and just before it."""
    at, level = result.memory()
    times = np.union1d(at, np.array(bound.times))
    here = memory_at(result, times) - np.array([bound.at(time) for time in times])
    before = memory_at(result, times[:-1]) - np.array([bound.before(time) for time in times[1:]])
    return float(max(here.max(), before.max(initial=-inf)))


def least_excess(result: Result, bound: Level) -> float:
    """How far memory is ever below the bound, as a negative number."""
    at, _ = result.memory()
    times = np.union1d(at, np.array(bound.times))
    return float((memory_at(result, times) - np.array([bound.at(time) for time in times])).min())


# --- memory: section 4.1 ---------------------------------------------------------------------


@given(workloads(multiplying=False))
def test_chain_is_within_one_unit_per_query_of_the_clairvoyant_bound_at_every_instant(
    workload: Workload
) -> None:
    """Theorem 4.3, for selectivities of at most 1."""
    excess = largest_excess(simulate(workload, policy("chain")), bound_of(workload))
    assert excess <= len(workload.network.routes) + NEAR


@given(workloads())
def test_chain_is_within_the_sum_of_the_deltas_of_the_clairvoyant_bound_at_every_instant(
    workload: Workload
) -> None:
    """Lemma 4.2, for any selectivities."""
    deltas = sum(sum(chart(known).deltas) for known in workload.network.routes)
    excess = largest_excess(simulate(workload, policy("chain")), bound_of(workload))
    assert excess <= deltas + NEAR


def test_chain_may_be_a_whole_unit_above_the_bound() -> None:
    """The analysis is tight: an operator under way has freed nothing yet."""
    workload = Workload(Network((route("q", Chart.of_points([(0, 1), (8, 0)])),)),
                        {"q": np.zeros(1)})
    assert largest_excess(simulate(workload, policy("chain")), bound_of(workload)) == 1.0


@pytest.mark.parametrize("text", EVERY)
@settings(max_examples=30)
@given(workload=workloads())
def test_no_policy_is_ever_below_the_clairvoyant_bound(text: str, workload: Workload) -> None:
    assert least_excess(simulate(workload, policy(text)), bound_of(workload)) >= -NEAR


@pytest.mark.parametrize("text", EVERY)
@settings(max_examples=15)
@given(used=charts(operators=3, longest=2),
       times=st.lists(st.integers(0, 6), min_size=1, max_size=4).map(sorted))
def test_no_policy_beats_exhaustive_search(text: str, used: Chart, times: list[int]) -> None:
    result = simulate(Workload(Network((route("q", used),)), {"q": np.array(times, float)}),
                      policy(text))
    jobs = [SearchBlock(used, at) for at in times]
    least = np.array(least_memory(jobs))
    assert (memory_at(result, np.arange(len(least), dtype=float)) >= least - NEAR).all()
    assert result.peak >= least_peak(jobs) - NEAR


# --- order: Proposition 2 --------------------------------------------------------------------


def in_the_middle(simulation: object) -> Counter[float]:
    """For each slope how many blocks have begun a segment of it and not ended it."""
    counts: Counter[float] = Counter()
    routes = simulation.network.routes  # type: ignore[attr-defined]
    for queue in simulation.queues:  # type: ignore[attr-defined]
        for block in queue:
            known = chart(routes[block.route])
            for (first, last), slope in zip(pairwise(known.envelope), known.slopes, strict=True):
                begun = block.stage > first or block.done > 1e-12
                counts[slope] += first <= block.stage < last and begun
    return counts


def watched(workload: Workload, chosen: Policy) -> tuple[Result, int]:
    """A run, and how many blocks were in the middle of segments of one slope at most."""
    most = 0

    class Watching(Scheduler):
        def decide(self, now: float) -> Turn | None:
            nonlocal most
            assert self._look is not None
            counts = in_the_middle(self._look.__self__)  # type: ignore[attr-defined]
            most = max(most, *counts.values(), 0)
            return super().decide(now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "Scheduler", Watching)
        return simulate(workload, chosen), most


@given(workloads())
def test_of_each_slope_chain_has_at_most_one_block_in_the_middle(workload: Workload) -> None:
    """Blocks move only between decisions, one at a time: so it is enough to look at those."""
    result, most = watched(workload, policy("chain"))
    assert most <= 1
    for number in range(len(workload.network.routes)):
        arrived = [arrived for _, arrived, on, _ in result.outputs if on == number]
        assert arrived == sorted(arrived)


def test_greedy_has_many_blocks_in_the_middle_of_one_slope() -> None:
    """So the observer can see it: greedy stops before the slow operator of a segment."""
    hidden = Chart.of_points([(0, 1), (1, 0.9), (4, 0.85), (5, 0.1), (9, 0)])
    workload = Workload(Network((route("q", hidden),)), {"q": np.arange(6.0)})
    _, most = watched(workload, policy("greedy"))
    assert most >= 5


# --- deadlines: section 5 --------------------------------------------------------------------


def late(result: Result) -> list[tuple[int, float]]:
    """The blocks that came out after their deadlines: on which route, arrived when."""
    promised = [known.latency for known in result.workload.network.routes]
    return sorted((on, arrived) for at, arrived, on, _ in result.outputs
                  if at > arrived + promised[on] + NEAR)


@st.composite
def promising(draw: st.DrawFn, queries: int) -> Workload:
    """Queries with promises; blocks that arrive later, or on another route, are due later."""
    workload = draw(workloads(queries=queries, blocks=6))
    latencies = [draw(st.integers(1, 30)) for _ in workload.network.routes]
    routes = tuple(replace(known, latency=float(latency))
                   for known, latency in zip(workload.network.routes, latencies, strict=True))
    last = -inf, 0
    kept: dict[str, list[float]] = {known.id: [] for known in routes}
    for at, i in sorted((at, i) for i, known in enumerate(routes)
                        for at in workload.arrivals[known.id]):
        due = at + latencies[i]
        if due > last[0] or (due, i) == last:
            last = due, i
            kept[routes[i].id].append(at)
    return replace(workload, network=Network(routes),
                   arrivals={name: np.array(times) for name, times in kept.items()})


@given(promising(queries=1))
def test_exact_chain_flush_misses_no_deadline_that_edf_meets(workload: Workload) -> None:
    flushed = late(simulate(workload, ChainFlush(exact=True)))
    assert flushed == late(simulate(workload, policy("edf")))


@given(promising(queries=3))
def test_nor_with_several_queries_while_later_blocks_are_due_later(workload: Workload) -> None:
    flushed = late(simulate(workload, ChainFlush(exact=True)))
    assert flushed == late(simulate(workload, policy("edf")))


def test_a_stricter_query_may_find_spent_the_slack_that_edf_would_have_kept() -> None:
    """The paper speaks of one query. With several nobody can know that a stricter block comes."""
    routes = (route("lax", Chart.of_points([(0, 1), (5, 0)]), latency=10.0),
              route("steep", Chart.of_points([(0, 1), (1, 0)]), latency=100.0),
              route("strict", Chart.of_points([(0, 1), (1, 0)]), latency=1.0))
    workload = Workload(Network(routes), {
        "lax": np.zeros(1), "steep": np.zeros(5), "strict": np.array([4.5])})
    assert late(simulate(workload, policy("edf"))) == []
    assert late(simulate(workload, ChainFlush(exact=True))) == [(0, 0.0)]


@st.composite
def two_segments(draw: st.DrawFn) -> Chart:
    """A chart of selectivities of at most 1 whose envelope has at most two segments."""
    known = draw(charts(multiplying=False, operators=3, longest=2))
    assume(len(known.envelope) <= 3)
    return known


@settings(max_examples=60)
@given(two_segments(), st.lists(st.integers(0, 9), min_size=1, max_size=5).map(sorted),
       st.integers(1, 12))
def test_exact_chain_flush_is_1_efficient_on_envelopes_of_two_segments(
    used: Chart, times: list[int], latency: int
) -> None:
    """Theorem 5.3, against every schedule that keeps the same deadlines."""
    jobs = [SearchBlock(used, at, at + latency) for at in times]
    best = least_peak(jobs)
    assume(best < inf)
    workload = Workload(Network((route("q", used, float(latency)),)),
                        {"q": np.array(times, float)})
    result = simulate(workload, ChainFlush(exact=True))
    assert late(result) == []
    assert result.peak <= best + 1 + NEAR
    least = np.array(least_memory(jobs))
    assert (memory_at(result, np.arange(len(least), dtype=float)) <= least + 1 + NEAR).all()


@settings(max_examples=60)
@given(charts(operators=2, longest=2), st.lists(st.integers(0, 6), min_size=1, max_size=4),
       st.integers(1, 8))
def test_edf_keeps_all_deadlines_if_any_schedule_does(
    used: Chart, times: list[int], latency: int
) -> None:
    workload = Workload(Network((route("q", used, float(latency)),)),
                        {"q": np.array(sorted(times), float)})
    possible = least_peak([SearchBlock(used, at, at + latency) for at in times]) < inf
    assert (late(simulate(workload, policy("edf"))) == []) == possible


# --- Mixed, FIFO, and what no policy changes -------------------------------------------------


def same_schedule(one: Result, other: Result) -> bool:
    """Whether operators ended at the same times, and blocks came out in the same order."""
    return (np.allclose(one.freed_at, other.freed_at, atol=NEAR)
            and np.allclose(one.freed, other.freed)
            and [output[1:] for output in one.outputs] == [output[1:] for output in other.outputs])


@given(workloads())
def test_mixed_with_gamma_0_is_chain(workload: Workload) -> None:
    assert same_schedule(simulate(workload, policy("mixed(gamma=0)")),
                         simulate(workload, policy("chain")))


@given(workloads())
def test_mixed_with_an_infinite_gamma_is_fifo(workload: Workload) -> None:
    assert same_schedule(simulate(workload, policy("mixed(gamma=inf)")),
                         simulate(workload, policy("fifo")))


@given(workloads())
def test_mixed_without_hurry_is_chain_and_in_constant_hurry_fifo(workload: Workload) -> None:
    calm, hurried = policy("mixed(latency=1e9)"), policy("mixed(latency=1e-9)")
    assert same_schedule(simulate(workload, calm), simulate(workload, policy("chain")))
    assert same_schedule(simulate(workload, hurried), simulate(workload, policy("fifo")))


@given(workloads())
def test_chain_flush_without_promises_is_chain(workload: Workload) -> None:
    chain = simulate(workload, policy("chain"))
    for text in ("chain_flush", "chain_flush(exact=true)"):
        assert same_schedule(simulate(workload, policy(text)), chain)


@given(workloads())
def test_edf_with_one_promise_for_all_is_fifo(workload: Workload) -> None:
    assert same_schedule(simulate(workload, policy("edf(latency=3)")),
                         simulate(workload, policy("fifo")))


@given(workloads(queries=1))
def test_fifo_finishes_a_block_before_it_begins_the_next(workload: Workload) -> None:
    """Also of blocks that came together."""
    (known,), (times,) = workload.network.routes, workload.arrivals.values()
    ends, now = [], 0.0
    for at in times:
        now = max(now, at) + known.cost
        ends.append(now)
    assert [end for end, *_ in simulate(workload, policy("fifo")).outputs] == pytest.approx(ends)


@settings(max_examples=40)
@given(workloads(), st.sampled_from(["divisible", "tuples"]))
def test_every_policy_lets_out_the_same_rows_and_does_the_same_work(
    workload: Workload, model: str
) -> None:
    """Work is conserved: without joins and overhead all are busy at the same times."""
    given_workload = replace(workload, model=model, rows=1.0 if model == "divisible" else 5.0)
    results = [simulate(given_workload, policy(text)) for text in EVERY]
    for result in results:
        assert sorted(output[1:] for output in result.outputs) == sorted(
            output[1:] for output in results[0].outputs)
        assert result.finished == pytest.approx(results[0].finished)
        assert len(result.freed) == len(results[0].freed)
        assert result.freed.sum() == pytest.approx(results[0].freed.sum())
        assert result.memory()[1][-1] == 0.0


@given(workloads(queries=1))
def test_no_policy_has_a_smaller_largest_latency_than_fifo_for_one_query(
    workload: Workload
) -> None:
    best = simulate(workload, policy("fifo")).max_latency
    assert min(_largest_latencies(workload, EVERY)) >= best - NEAR


def _largest_latencies(workload: Workload, texts: Sequence[str]) -> list[float]:
    return [simulate(workload, policy(text)).max_latency for text in texts]


@pytest.mark.parametrize("text", [*EVERY, "mixed(latency=93)"])
def test_a_simulation_can_be_repeated_with_the_same_policy(text: str) -> None:
    """What a policy finds in one run it has not found in the next."""
    workload = Workload(Network((route("q", Chart.of_points([(0, 1), (2, 0.2), (10, 0)])),)),
                        {"q": np.array([0.0] * 9 + [1000.0] * 12)})
    chosen = policy(text)
    first, second = simulate(workload, chosen), simulate(workload, chosen)
    assert second.outputs == first.outputs
    assert second.peak == first.peak


def test_a_policy_is_not_told_what_becomes_of_a_block() -> None:
    """It knows the work to be expected, also where each row has its chance."""
    seen: list[View] = []

    class Watching(ChainFlush):
        def choose(self, view: View) -> Decision | None:
            seen.append(view)
            return ChainFlush.choose(self, view)

    known = route("q", Chart.of_points([(0, 1), (2, 0.5), (10, 0)]), latency=100.0)
    workload = Workload(Network((known,)), {"q": np.zeros(5)}, rows=4.0, model="tuples", seed=1)
    simulate(workload, Watching(exact=True))
    assert seen[0].queues[0].blocks == ((0.0, 40.0),) * 5
    for view in seen:
        for queue in view.queues:
            rest, done = queue.segment.rest, queue.done
            assert queue.blocks[0][1] == pytest.approx((rest - done) * queue.head)
