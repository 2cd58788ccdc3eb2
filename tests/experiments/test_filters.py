"""The filters experiment: its filters, its routers, and a small run from end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.filters import adaptivity, on_arrow, program, routers
from experiments.filters.runs import OPTIMAL, Case, Size, run_one
from experiments.filters.workload import Filters, optimal
from penstock.policies.filters import policy
from penstock.simulator.filters import CorrelatedFilters, FilterLoad, play_filters

SMALL = Size(seeds=1, rows=20_000, counts=(2, 4, 6), workload=40_000, periods=(20_000, 100_000),
             instances=5, blocks=1)


def test_table_1_is_what_policies_have_by_default() -> None:
    assert [policy(name).p for name in ("a_greedy", "independent")] == [0.01, 0.005]
    assert [policy(name).window for name in ("a_greedy", "sweep", "local_swaps")] == [
        1000, 500, 1000]
    assert policy("a_greedy").alpha == 0.9
    model = Filters().model
    assert model.keeps == (0.5,) * 4 and model.size == 2 and model.agreement == 0.8


def test_half_of_the_filters_are_costly() -> None:
    assert Filters(5, costly=10.0).model.costs == (1, 1, 1, 10, 10)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_optimal_order_takes_one_filter_of_each_group_first(count: int) -> None:
    model = Filters(count).model
    groups = [model.groups[number] for number in optimal(model)]
    first = groups[:len(set(groups))]
    assert sorted(first) == sorted(set(groups))


def test_selectivities_change_as_often_as_asked() -> None:
    load = Filters(rows=25_000, period=10_000).load(1)
    assert [rows for rows, _ in load.phases] == [10_000, 10_000, 5_000]
    places = [model.places for _, model in load.phases if isinstance(model, CorrelatedFilters)]
    assert len(set(places)) == 3 and all(sorted(one) == list(range(8)) for one in places)


def test_a_case_is_a_function_of_its_seed() -> None:
    case = Case(Filters(4, rows=10_000, period=5_000), "sweep", 3)
    found = run_one(case)
    assert found == run_one(case) != run_one(replace(case, seed=4))
    assert len(found.timeline) == 5 and found.probes == found.tuples + found.overhead
    assert run_one(Case(Filters(4, rows=10_000), OPTIMAL, 3)).overhead == 0


# --- routers --------------------------------------------------------------------------------------


def test_a_window_knows_the_packets_that_passed_its_router_before() -> None:
    route = routers.ROUTES.index((2, 0, 3))
    parts = tuple(1.0 if number == route else 0.0 for number in range(len(routers.ROUTES)))
    rng = np.random.default_rng(0)
    known = {0: [True, False, True], 2: [True, True, True], 3: [False, True, False]}
    for router, dropped in known.items():  # of the other routers, in order: not yet passed?
        assert routers.RouterStream(router, parts).drawn(rng, 5).tolist() == [dropped] * 5


def test_rows_of_a_stream_are_those_of_its_patterns() -> None:
    stream = routers.RouterStream(1, routers.traffic(3))
    rows = stream.drawn(np.random.default_rng(1), 50_000)
    for chosen in ((0,), (1, 2), (0, 1, 2)):
        expected = stream.patterns.survivors(chosen) / stream.patterns.total
        assert (~rows[:, list(chosen)].any(axis=1)).mean() == pytest.approx(expected, abs=0.01)
    found = play_filters(FilterLoad(((2_000, stream),)))
    assert found.tuples == found.probes > 0


def test_one_order_for_all_streams_is_told_as_an_order_of_each() -> None:
    stream = routers.RouterStream(1, routers.traffic(3))
    assert stream.others == (0, 2, 3)
    assert routers._own(stream, (3, 1, 0, 2)) == (2, 0, 1)


# --- on Arrow -------------------------------------------------------------------------------------


def test_on_arrow_a_predicate_drops_what_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    dropped = Filters(3).model.drawn(rng, 500)
    batch = on_arrow.batch_of(dropped, rng)
    for number in range(3):
        met = on_arrow.matches(batch.column(number), on_arrow.pa.array(np.arange(500)))
        assert met.to_numpy(zero_copy_only=False).tolist() == (~dropped[:, number]).tolist()


@pytest.mark.parametrize("name", ["a_greedy", "sweep", "local_swaps", "independent"])
def test_on_arrow_the_profile_is_that_of_the_rows(name: str) -> None:
    """All dropped rows are profiled, and the bits that were asked for are those of the model."""
    rng = np.random.default_rng(7)
    model = Filters(4).model
    dropped = model.drawn(rng, 400)
    adaptive = on_arrow.AdaptiveOrder(policy(f"{name}(p=1, window=1000, enough=1000)"), [
        on_arrow.FilterPredicate(f"c{number}") for number in range(4)])
    one = on_arrow.ArrowConjunction((0, 1, 2, 3), adaptive)
    one.run(on_arrow.batch_of(dropped, rng), rng)
    rows = dropped[dropped.any(axis=1)]
    first = rows.argmax(axis=1)
    request = adaptive.request
    known = on_arrow.asked_until(request)[first] | on_arrow.asked_beyond(request)[first]
    seen = adaptive.profile.patterns.dropped
    expected = (rows & known)[np.argsort(first, kind="stable")]
    assert sorted(map(tuple, seen.tolist())) == sorted(map(tuple, expected.tolist()))
    assert one.passed == [400 - len(rows)]
    passing = (400 - len(rows)) / len(rows) * len(rows)
    assert adaptive.profile.patterns.passed == pytest.approx(passing)


def test_a_small_run_gives_every_claim_figure_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "QUICK", SMALL)
    monkeypatch.setattr(on_arrow, "ROWS", 2_000)
    monkeypatch.setattr(adaptivity, "CHANGE", 60_000)
    report = program.run(True, tmp_path, lambda text: None)
    ids = [check.id for check in report.checks]
    assert len(ids) == len(set(ids))
    assert {"n-ahead", "four", "table-2", "cost-swaps", "crossing", "often-costs", "seldom-costs",
            "routers", "arrow-same"} <= set(ids)
    figures = {figure.id for figure in report.figures}
    assert figures >= {*(f"fig{number}" for number in range(9, 22)), "arrow",
                       "arrow-fig10", "arrow-fig11"}
    assert all(figure.file.is_file() for figure in report.figures)
    assert {row["figure"] for row in report.rows} >= {"table2", "random", "routers"}
    held = {check.id for check in report.checks if check.holds}
    assert {"four", "table-2-rises", "arrow-same"} <= held
