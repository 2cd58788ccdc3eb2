"""Numbers that the papers print, and the ones that come out where they misprint."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.policies.operators import Policy, Route, Stage, policy
from penstock.policies.operators.chain_flush import ChainFlush
from penstock.policies.operators.model.charts import Chart, window_join
from penstock.policies.operators.model.oracles import clairvoyant
from penstock.simulator.host import simulate
from penstock.simulator.network import Network, path
from penstock.simulator.workload import Workload
from tests.simulator.readings import memory_at

# --- chain, Example 1 ------------------------------------------------------------------------

EXAMPLE_1 = Workload(Network((path("q", [(1.0, 0.2), (5.0, 1.0)]),)), {"q": np.arange(7.0)})


@pytest.mark.parametrize(("text", "memory"), [
    ("greedy", [1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2]),
    ("chain", [1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2]),
    ("fifo", [1, 1.2, 2.0, 2.2, 3.0, 3.2, 4.0]),
])
def test_example_1_of_chain(text: str, memory: list[float]) -> None:
    result = simulate(EXAMPLE_1, policy(text))
    assert memory_at(result, np.arange(7.0)) == pytest.approx(memory)
    assert memory_at(result, np.array([14.0])) == [0.0]
    assert result.finished == pytest.approx(14.0)


def test_in_example_1_greedy_is_at_the_clairvoyant_bound_whenever_an_operator_ends() -> None:
    bound = clairvoyant(EXAMPLE_1.network.routes, {"q": range(7)})
    greedy = simulate(EXAMPLE_1, policy("greedy"))
    assert memory_at(greedy, np.arange(15.0)) == pytest.approx([bound.at(t) for t in range(15)])


# --- chain, Example 2 ------------------------------------------------------------------------

STEPS = Chart.of_points([(0, 1), (1, 0.1), (99, 0.001), (100, 0)]).stages()


@pytest.mark.parametrize(("count", "gap", "text", "peak", "mean", "worst"), [
    (100, 99.0, "chain", 1.099, 5050.0, 9901.0),
    (100, 99.0, "fifo", 1.1, 149.5, 199.0),
    (100, 99.0, "mixed(gamma=0.01)", 1.1, 150.49, 199.0),
    (10, 10.0, "chain", 1.9, 950.5, 991.0),
    (10, 10.0, "fifo", 9.1, 505.0, 910.0),
    (10, 10.0, "mixed(gamma=0.01)", 1.9, 509.5, 910.0),
])
def test_example_2_of_chain(
    count: int, gap: float, text: str, peak: float, mean: float, worst: float
) -> None:
    """As the definitions give it; the printed figures are rounded and partly wrong."""
    workload = Workload(Network((Route("q", STEPS),)), {"q": gap * np.arange(1, count + 1)})
    result = simulate(workload, policy(text))
    assert result.peak == pytest.approx(peak)
    assert result.mean_latency == pytest.approx(mean)
    assert result.max_latency == pytest.approx(worst)


# --- chain, section 4.3.1 --------------------------------------------------------------------


def test_a_window_join_whose_sides_meet_two_rows_each_gives_two_rows_at_any_rates() -> None:
    """Section 6.1.3: both semijoins have selectivity 2."""
    for rates in ((1.0, 1.0), (9.0, 1.0), (0.5, 70.0)):
        assert window_join(rates, (2.0, 2.0), (1.0, 1.0))[1] == pytest.approx(2.0)


def test_a_window_join_is_as_dear_as_its_rows_and_gives_what_the_other_windows_hold() -> None:
    """Six rows a second at 2 s meet 0.5 rows of S each, two at 10 s meet 3 rows of R each."""
    cost, selectivity = window_join(rates=(6.0, 2.0), matches=(3.0, 0.5), costs=(2.0, 10.0))
    assert cost == pytest.approx((6 * 2 + 2 * 10) / 8)
    assert selectivity == pytest.approx((6 * 0.5 + 2 * 3) / 8)


# --- chain, Theorem 5.2 ----------------------------------------------------------------------
#
# Time in units of t = T / 144, so that every number is whole: f = 12, the latency is f T, the
# envelope (0, 1) - (1, 0.5 + eps) - (3, 2 eps) - (144, 0). The paper starts the second batch at
# f T + T - 3 f; then its last block could not be in time even under EDF (the work of all blocks
# ends 3 t after that deadline), so we start it 3 t later. What it prints as (0.5 - eps) f t, the
# memory that the offline schedule frees in scenario 1, is (0.5 - eps) f.

F, T, EPS = 12, 144, 0.01
DELTA = 0.1
LATENCY = F * T
HARD = Chart.of_points([(0, 1), (1, 0.5 + EPS), (3, 2 * EPS), (T, 0)])
FIRST = [3 * i for i in range(F)] + [T + F]
SECOND = [(F + 1) * T - 3 * (F - 1) + 3 * j for j in range(F)]
SCENARIOS = {1: FIRST + SECOND, 2: FIRST + SECOND[: F // 3]}


def carried_out(arrivals: list[int], early: list[int]) -> list[float]:
    """The memory of an offline schedule at every step; it must keep all deadlines.

    ``early`` says how many steps each block gets as soon as it can; else the oldest runs.
    """
    progress = [0] * len(arrivals)
    memory = []
    now = 0
    while min(progress) < T:
        here = [i for i, at in enumerate(arrivals) if at <= now]
        memory.append(sum(HARD.size(progress[i]) for i in here))
        waiting = [i for i in here if progress[i] < T]
        urgent = [i for i in waiting if progress[i] < early[i]]
        if waiting:
            chosen = min(urgent or waiting)
            progress[chosen] += 1
            assert progress[chosen] < T or now + 1 <= arrivals[chosen] + LATENCY, "it is late"
        now += 1
    return memory


def offline(scenario: int) -> list[float]:
    """Who knows the scenario: t for each block of the second batch if f come, 3 t if f / 3 do."""
    arrivals = SCENARIOS[scenario]
    later = len(arrivals) - len(FIRST)
    return carried_out(arrivals, [3] * len(FIRST) + [1 if scenario == 1 else 3] * later)


def hesitant(scenario: int, k: int) -> list[float]:
    """Who does not: 3 t for k of the first f / 3 blocks, and t for others while slack is left."""
    arrivals = SCENARIOS[scenario]
    alpha = F // 3
    early = [3] * k + [1] * (alpha - k) + [1] * (F - 2 * k - alpha) + [0] * (2 * k)
    return carried_out(arrivals, [3] * len(FIRST) + early[: len(arrivals) - len(FIRST)])


def simulated(scenario: int, chosen: Policy) -> tuple[float, float]:
    """Peak memory and the worst latency, in parts of the limit."""
    workload = Workload(Network((Route("q", HARD.stages(), latency=float(LATENCY)),)),
                        {"q": np.array(SCENARIOS[scenario], float)})
    result = simulate(workload, chosen)
    return result.peak, result.max_latency / LATENCY


def test_the_adversary_of_theorem_5_2_obeys_its_own_conditions() -> None:
    assert 1 / T < 1 / (3 * F)
    assert 6 * DELTA / F > EPS
    assert HARD.envelope == (0, 1, 2, 3)
    for scenario in SCENARIOS:
        assert simulated(scenario, policy("edf"))[1] <= 1 + 1e-9


def test_up_to_the_second_batch_next_to_no_memory_is_needed() -> None:
    before = offline(1)[: SECOND[0]]
    assert max(before) == pytest.approx(1 + 2 * F * EPS)


def test_exact_chain_flush_is_not_f_12_minus_delta_efficient() -> None:
    """It spends all slack on the first third of the batch, and then f blocks come."""
    peak, worst = simulated(1, ChainFlush(exact=True))
    assert worst <= 1 + 1e-9
    assert peak - max(offline(1)) >= F / 12 - DELTA
    assert peak == pytest.approx(2 * F / 3 + (F / 3 + 1) * 2 * EPS)
    assert max(offline(1)) == pytest.approx((F - 1) * (0.5 + EPS) + 1 + 2 * EPS)
    assert simulated(2, ChainFlush(exact=True))[0] == pytest.approx(max(offline(2)))


@pytest.mark.parametrize("k", range(F // 3 + 1))
def test_whatever_is_done_with_the_first_third_one_of_the_scenarios_costs_f_12(k: int) -> None:
    """(0.5 - eps) max(k, alpha - k), once all that has come had its share of the slack."""
    alpha = F // 3
    loss_1 = hesitant(1, k)[SECOND[-1] + 1] - offline(1)[SECOND[-1] + 1]
    loss_2 = hesitant(2, k)[SECOND[alpha - 1] + 3] - offline(2)[SECOND[alpha - 1] + 3]
    assert loss_1 == pytest.approx((0.5 - EPS) * k)
    assert loss_2 == pytest.approx((0.5 - EPS) * (alpha - k))
    assert max(loss_1, loss_2) >= F / 12 - DELTA


@pytest.mark.parametrize("k", range(F // 3 + 1))
def test_counted_by_peaks_the_adversary_gains_one_first_segment_less(k: int) -> None:
    """Peaks are at arrivals, when the block that has just come is whole under any schedule."""
    losses = [max(hesitant(scenario, k)) - max(offline(scenario)) for scenario in (1, 2)]
    assert max(losses) >= F / 12 - DELTA - 0.5


# --- prb, section 2.4 ------------------------------------------------------------------------

STREAM_1 = Route("s1", (Stage("O1", 10.0), Stage("O2", 10.0), Stage("O3", 10.0)))
STREAM_2 = Route("s2", (Stage("O4", 40.0), Stage("O2", 10.0), Stage("O3", 10.0)))


@pytest.mark.parametrize(("text", "routes", "mean"), [
    ("rate_based", (STREAM_1, STREAM_2), 60.0),
    ("rate_based", (STREAM_2, STREAM_1), 60.0),
    ("preemptive_rate_based", (STREAM_2, STREAM_1), 60.0),
    ("fifo", (STREAM_1, STREAM_2), 60.0),
    ("fifo", (STREAM_2, STREAM_1), 75.0),
])
def test_the_response_times_of_prb(text: str, routes: tuple[Route, ...], mean: float) -> None:
    """Two blocks that came together: the order of the paths is all that differs."""
    workload = Workload(Network(routes), {"s1": np.zeros(1), "s2": np.zeros(1)})
    result = simulate(workload, policy(text))
    assert result.mean_latency == pytest.approx(mean)
    assert result.finished == 90.0


def test_where_paths_meet_the_output_rate_of_an_operator_is_one_for_both() -> None:
    network = Network((STREAM_1, STREAM_2))
    cuts = policy("rate_based").prepare(network.routes)
    rates = {(cut.path, cut.operators[0]): -cut.rank for cut in cuts}
    assert rates["s1", "O1"] == pytest.approx(1 / 30)
    assert rates["s2", "O4"] == pytest.approx(1 / 60)
    assert rates["s1", "O2"] == rates["s2", "O2"] == pytest.approx(1 / 20)
    places = {place.id: place for place in network.places(network.routes, cuts)}
    assert -places["O2"].rank == pytest.approx(1 / 20)


def test_an_arrival_preempts_only_what_gives_answers_more_slowly_than_it_does() -> None:
    """Section 3.3: a block of 30 s against one of 60 s that has 25 s, or 35 s, left."""
    for came, first in ((35.0, "s2"), (25.0, "s1")):
        workload = Workload(Network((STREAM_1, STREAM_2)),
                            {"s1": np.array([came]), "s2": np.zeros(1)})
        result = simulate(workload, policy("preemptive_rate_based"))
        assert workload.network.routes[result.outputs[0][2]].id == first
        assert [on for _, _, on, _ in simulate(workload, policy("rate_based")).outputs] == [1, 0]


def test_a_preempted_operator_resumes_when_the_path_that_overtook_it_is_through() -> None:
    """Section 3.3: its priority does not rise while it waits, and along the other path it does."""
    workload = Workload(Network((STREAM_1, STREAM_2)), {"s1": np.array([25.0]), "s2": np.zeros(1)})
    result = simulate(workload, policy("preemptive_rate_based"))
    assert [end for end, *_ in result.outputs] == [55.0, 90.0]
    assert result.preemptions == 1
