"""The prb experiment: what the paper says of its policies, and what the figures rest on."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from experiments.prb import overhead, program, readings, skew
from experiments.prb.queries import DEPTH, FAN_OUT, LIKE_OTHERS, ROOT, Flat, Pairs, leaves, leftmost
from experiments.prb.runs import FIFO, PRB, RB, RR, Case, Found, Load, Size, Sweep, play
from experiments.prb.skew import from_five_to_twenty
from penstock.policies.operators import Route, Stage, policy
from penstock.simulator.fleet import scatter
from penstock.simulator.host import Overhead, simulate
from penstock.simulator.network import Network, path
from penstock.simulator.results import Result
from penstock.simulator.workload import Workload

MODULES = ("expensive", "queries", "runs")
SMALL = Size(tuples=120, flat=2, deep=2, slow=2, skews=(0.0, 0.9), numbers=(1, 8, 32),
             prices=(25.0, 300.0), overheads=(0.0, 1.0, 60.0), per_stream=10)


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_hold(module: str) -> None:
    assert doctest.testmod(import_module(f"experiments.prb.{module}")).failed == 0


# --- the paper's policies, as the simulator plays them -------------------------------------------


def run(
    routes: Sequence[Route], arrivals: dict[str, list[float]], name: str, each: float = 0.0
) -> Result:
    times = {route: np.array(at) for route, at in arrivals.items()}
    workload = Workload(Network(tuple(routes)), times, model="tuples")
    return simulate(workload, policy(name), overhead=Overhead.each(each))


def two_streams() -> dict[str, Route]:
    """Fig. 2: O1 and O4 read a stream each, O2 merges and O3 projects."""
    merged = Stage("O2", 10.0), Stage("O3", 10.0)
    return {"first": Route("first", (Stage("O1", 10.0), *merged)),
            "second": Route("second", (Stage("O4", 40.0), *merged))}


@pytest.mark.parametrize("name", [RB, PRB])
def test_section_2_4_the_cheap_path_first_gives_60(name: str) -> None:
    for order in (("first", "second"), ("second", "first")):
        routes = [two_streams()[stream] for stream in order]
        result = run(routes, {"first": [0.0], "second": [0.0]}, name)
        assert (result.mean_latency, result.finished) == (60.0, 90.0)


def test_section_2_4_the_expensive_path_first_gives_75() -> None:
    routes = [two_streams()[stream] for stream in ("second", "first")]
    result = run(routes, {"first": [0.0], "second": [0.0]}, FIFO)
    assert (result.mean_latency, result.finished) == (75.0, 90.0)


@pytest.mark.parametrize(("cheap_at", "first"), [(25.0, "cheap"), (35.0, "dear")])
def test_section_3_3_the_tuple_under_way_competes_with_the_cost_it_has_left(
    cheap_at: float, first: str
) -> None:
    routes = path("dear", [(40.0, 1.0)]), path("cheap", [(10.0, 1.0)])
    result = run(routes, {"dear": [0.0], "cheap": [cheap_at]}, PRB)
    assert routes[result.outputs[0][2]].id == first
    assert result.preemptions == (first == "cheap")
    assert result.finished == 50.0


def test_section_3_3_who_was_preempted_waits_until_the_whole_path_of_the_other_is_through() -> None:
    routes = path("dear", [(40.0, 1.0)]), path("cheap", [(2.0, 1.0), (3.0, 1.0), (4.0, 1.0)])
    result = run(routes, {"dear": [0.0], "cheap": [5.0]}, PRB)
    assert [(at, routes[on].id) for at, _, on, _ in result.outputs] == [
        (14.0, "cheap"), (49.0, "dear")]
    assert result.preemptions == 1


def test_section_3_2_a_tuple_that_arrives_waits_for_the_end_of_the_operator() -> None:
    routes = path("dear", [(20.0, 1.0), (20.0, 1.0)]), path("cheap", [(2.0, 1.0)])
    result = run(routes, {"dear": [0.0], "cheap": [5.0]}, RB)
    assert [(at, routes[on].id) for at, _, on, _ in result.outputs] == [
        (22.0, "cheap"), (42.0, "dear")]
    assert result.preemptions == 0


def test_section_5_6_rb_pays_two_transitions_for_every_operator() -> None:
    result = run([path("q", [(10.0, 1.0), (10.0, 1.0)])], {"q": [0.0, 1.0]}, RB, each=3.0)
    assert (result.invocations, result.decisions, result.preemptions) == (4, 4, 0)
    assert result.finished == 40.0 + 8 * 3.0


def test_section_5_6_prb_also_pays_for_a_call_at_every_arrival_and_for_preemptions() -> None:
    routes = path("dear", [(40.0, 1.0)]), path("cheap", [(10.0, 1.0)])
    result = run(routes, {"dear": [0.0], "cheap": [20.0, 55.0]}, PRB, each=1.0)
    # Asked at 0 and 20, preempted; asked when the cheap one ends; asked at 55 in vain, and after.
    assert result.decisions == 5
    assert (result.invocations, result.preemptions) == (4, 1)
    assert result.finished == 60.0 + 10 * 1.0


def test_section_5_6_rr_pays_three_transitions_for_every_quantum_that_ends_too_soon() -> None:
    routes = path("a", [(3.0, 1.0)]), path("b", [(3.0, 1.0)])
    result = run(routes, {"a": [0.0], "b": [0.0]}, RR, each=1.0)
    assert (result.decisions, result.invocations, result.preemptions) == (6, 6, 4)
    assert result.finished == 6.0 + 16.0


# --- queries and loads ---------------------------------------------------------------------------


def test_fifty_streams_merge_at_a_root_that_is_free() -> None:
    network = Flat(cost_skew=0.0).network(draw=0)
    assert len(network.routes) == 50
    assert {route.stages[-1] for route in network.routes} == {Stage(ROOT, 0.0)}
    costs = [route.cost for route in network.routes]
    assert 1 <= min(costs) < 15
    assert 85 < max(costs) <= 100


def test_the_more_skewed_the_cheaper_and_the_more_selective() -> None:
    costs = [np.mean([route.cost for route in Flat(cost_skew=s).network(0).routes])
             for s in (0.0, 0.5, 0.9)]
    kept = [np.mean([route.stages[0].selectivity
                     for route in Flat(selectivity_skew=s).network(0).routes])
            for s in (0.0, 0.5, 0.9)]
    assert sorted(costs, reverse=True) == costs
    assert sorted(kept, reverse=True) == kept


@pytest.mark.parametrize("depth", range(DEPTH + 1))
def test_an_expensive_operator_at_a_depth_makes_as_many_paths_expensive(depth: int) -> None:
    network = Pairs(leftmost(depth)).network(draw=3)
    assert len(network.routes) == 64
    assert sum(route.cost > 100 for route in network.routes) == FAN_OUT ** (DEPTH - depth)


def test_expensive_leaves_make_one_path_each_expensive() -> None:
    network = Pairs(leaves(8)).network(draw=3)
    assert sum(route.cost > 100 for route in network.routes) == 8


def test_the_root_can_cost_like_the_others() -> None:
    for query in (Flat(cost_skew=0.0, root=LIKE_OTHERS), Pairs(leaves(1), root=LIKE_OTHERS)):
        assert query.network(draw=0).routes[0].stages[-1].cost >= 1


@pytest.mark.parametrize("query", [Flat(cost_skew=0.5), Flat(selectivity_skew=0.5),
                                   Pairs(leftmost(4), 300.0)], ids=str)
def test_the_work_that_arrives_is_nine_tenths_of_the_time(query: Flat | Pairs) -> None:
    workload = Load(query, 20_000).workload(draw=1)
    work = sum(route.cost * len(workload.times(route.id)) for route in workload.network.routes)
    last = max(times[-1] for times in workload.arrivals.values())
    assert work / last == pytest.approx(0.9, rel=0.05)


def test_room_is_made_for_two_transitions_of_every_operator() -> None:
    query = Pairs(leftmost(4))
    usual = Load(query, 100).workload(0)
    wide = Load(query, 100, overhead=5.0, room=True).workload(0)
    work = sum(route.cost for route in usual.network.routes)
    stretched = (work + 64 * 7 * 2 * 5.0) / work
    for stream, times in usual.arrivals.items():
        assert wide.arrivals[stream] == pytest.approx(times * stretched)


# --- runs and what is made of them ---------------------------------------------------------------


def test_every_policy_lets_out_the_same_tuples() -> None:
    load = Load(Flat(selectivity_skew=0.5), 500)
    out = {name: sorted(output[1:3] for output in simulate(load.workload(7), policy(name)).outputs)
           for name in (RR, FIFO, RB, PRB)}
    assert out[RR] == out[FIFO] == out[RB] == out[PRB]
    assert 0 < len(out[RB]) < 500


def test_gains_are_taken_draw_by_draw() -> None:
    load = Load(Flat(cost_skew=0.0), 1)
    sweep = Sweep("skew", (0.0,), (load,), (RB, PRB), draws=2)
    runs = {Case(load, RB, 0): Found(10.0, 0.0), Case(load, PRB, 0): Found(9.0, 0.0),
            Case(load, RB, 1): Found(100.0, 0.0), Case(load, PRB, 1): Found(70.0, 0.0)}
    assert sweep.gains(runs) == pytest.approx(np.array([[10.0], [30.0]]))
    assert sweep.response(runs, RB) == pytest.approx([55.0])


@pytest.mark.parametrize(("gains", "holds"), [
    ([[4.0, 18.0], [5.0, 21.0], [6.0, 20.0]], True),
    ([[4.0, 3.0], [5.0, 20.0], [6.0, 4.0]], True),  # 20 is one of the draws
    ([[1.0, 18.0], [1.1, 21.0], [1.2, 20.0]], False),
    ([[20.0, 5.0], [4.0, 5.0], [5.0, 5.1]], False),
])
def test_the_papers_numbers_must_be_those_of_a_possible_draw(
    gains: list[list[float]], holds: bool
) -> None:
    assert from_five_to_twenty(np.array(gains))[1] is holds


def test_where_nothing_is_filtered_edf_and_greedy_serve_in_order_of_arrival() -> None:
    found = {name: play(Case(Load(Flat(cost_skew=0.5), 400), name, 0)).response
             for name in skew.IN_ORDER}
    assert len(set(found.values())) == 1


def test_transitions_are_counted_per_tuple() -> None:
    case = Case(Load(overhead.QUERY, 200), RB, 0)
    assert play(case).transitions == 2 * 7  # seven operators, each invoked after a decision


def test_the_root_like_others_changes_nothing_else() -> None:
    usual, other = skew.costs(SMALL), readings.like_others(skew.costs(SMALL))
    for mine, theirs in zip(usual.loads, other.loads, strict=True):
        for one, two in zip(mine.query.network(0).routes, theirs.query.network(0).routes,
                            strict=True):
            assert one.stages[:-1] == two.stages[:-1]


def test_a_run_finds_the_same_in_another_process() -> None:
    cases = [Case(Load(query, 300, each), name, 5) for name in (RR, RB, PRB)
             for query, each in ((Flat(cost_skew=0.5), 0.0), (overhead.QUERY, 1.0))]
    assert list(scatter(play, cases, processes=2)) == list(map(play, cases))


def test_every_figure_of_the_paper_is_drawn_and_every_claim_is_beside_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "QUICK", SMALL)
    report = program.run(True, tmp_path, lambda text: None)
    assert {f"fig{number}" for number in range(3, 13)} <= {figure.id for figure in report.figures}
    linked = [check for figure in report.figures for check in figure.checks]
    assert sorted(linked) == sorted(check.id for check in report.checks)
    assert {figure.file for figure in report.figures} == set((tmp_path / "figures").iterdir())
    assert all(check.measured for check in report.checks)
