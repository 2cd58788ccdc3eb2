"""The joins experiment: its equations, its streams, and a small run from end to end."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from experiments.joins import analysis, program
from experiments.joins.runs import Size, SmallerFirst
from experiments.joins.workload import DISTRIBUTIONS, RATES, arrivals, streams
from penstock.policies.joins import JoinWindow, ScanCost, View, Waiting, policy
from penstock.simulator.joins import play_join

SMALL = Size(outers=300, seeds=1, bursts=(1.0, 3.0), loads=(0.8,))


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(import_module("experiments.joins.workload")).failed == 0


def test_table_1_has_seven_windows_from_a_second_to_ten_minutes() -> None:
    for lengths in DISTRIBUTIONS.values():
        assert len(lengths) == 7 and (lengths[0], lengths[-1]) == (1, 600)
        assert list(lengths) == sorted(lengths)


def test_equation_1_is_exact_for_lwo() -> None:
    windows = (1.0, 5.0, 60.0)
    assert analysis.simulated("lwo", windows) == pytest.approx(analysis.equation_1(windows))


@pytest.mark.parametrize("burst", [10, 50, 400])
def test_equation_2_is_the_limit_of_swf_for_many_rows_at_once(burst: int) -> None:
    windows = (1.0, 5.0, 60.0)
    off = analysis.simulated("swf", windows, burst) / analysis.equation_2(windows, burst) - 1
    assert (np.abs(off) <= 1 / burst).all(), "only the first row's pairs leave sooner"


@pytest.mark.parametrize("burst", [1.0, 2.0, 3.0])
def test_bursts_change_the_rhythm_and_not_the_rate(burst: int) -> None:
    counts = [len(arrivals(np.random.default_rng(seed), 100.0, 400.0, burst)) / 40_000
              for seed in range(20)]
    assert np.median(counts) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("method", RATES)
def test_the_machine_is_as_busy_as_the_load_says(method: str) -> None:
    made = streams("Uniform", 3000, load=0.5, method=method)
    found = play_join(made.drawn(1), policy("lwo"))
    assert found.busy / found.seconds == pytest.approx(0.5, abs=0.06)


def test_ties_are_all_that_the_variant_of_mqt_decides_otherwise() -> None:
    ours, variant = policy("mqt"), SmallerFirst()
    alike = ours.prepare([JoinWindow(1), JoinWindow(2), JoinWindow(3)], ScanCost())
    old, new = Waiting(0, 2, 3, first=7), Waiting(0, 1, 2, first=8)
    assert ours.choose(View(alike, (old, new))).scanned == 2
    assert variant.choose(View(alike, (old, new))).scanned == 1
    unlike = ours.prepare([JoinWindow(1), JoinWindow(3), JoinWindow(4)], ScanCost())
    assert ours.choose(View(unlike, (old, new))) == variant.choose(View(unlike, (old, new)))


def test_routing_costs_lwo_alone() -> None:
    made = [streams("Small-Large", 300, routing=part) for part in (0.0, 0.02)]
    busy = {name: [play_join(one.drawn(1), policy(name)).busy for one in made]
            for name in ("lwo", "swf", "mqt")}
    assert busy["lwo"][1] > 1.05 * busy["lwo"][0]
    assert busy["swf"][0] == busy["swf"][1] and busy["mqt"][0] == busy["mqt"][1]


def test_a_small_run_gives_every_claim_figure_and_row(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(program, "QUICK", SMALL)
    report = program.run(True, tmp_path, lambda text: None)
    ids = [check.id for check in report.checks]
    assert len(ids) == len(set(ids)) and {
        "fig2b-equation", "fig3b-equation", "mqt-lowest", "swf-small", "mqt-bursts", "gain-lwo",
        "gain-swf", "mqt-skews", "waiting-swf", "held-mqt", "load-uniform", "load-held",
        "idle-small", "idle-small-nested", "gain-limit", "gain-shares", "gain-routing",
        "max-order", "ties"} <= set(ids)
    assert {figure.id for figure in report.figures} >= {
        "fig2b", "fig3b", "fig5", "fig6a-mean", "fig6b-longest", "fig7", "fig8-mean", "fig9",
        "memory", "routing"}
    assert all(figure.file.is_file() for figure in report.figures)
    held = {check.id for check in report.checks if check.holds}
    assert {"fig2b-equation", "fig3b-equation", "lwo-penalty"} <= held
