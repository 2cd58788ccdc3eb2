"""Fleets: processes and Spark give the answers that a loop would give."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest

from penstock.errors import RunError
from penstock.simulator import fleet
from penstock.simulator.comparison import SimulationOutcome, compare
from penstock.simulator.description import read

TEXT = """
[queries.q]
operators = [{ cost = 1, selectivity = 0.2 }, { cost = 5 }]
arrivals = { kind = "poisson", gap = 2.2, count = 60 }
"""
POLICIES = ["fifo", "chain", "mixed(latency=5)"]




def test_processes_answer_in_order() -> None:
    assert list(fleet.scatter(abs, range(-9, 0), processes=2)) == list(range(9, 0, -1))


def test_nothing_to_do_is_no_fleet() -> None:
    assert list(fleet.scatter(abs, [], processes=4)) == []


def test_an_error_in_a_process_is_raised_here() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(fleet.scatter(int, ["1", "x", "3"], processes=2))


def test_a_process_that_vanishes_is_an_error_in_one_sentence() -> None:
    with pytest.raises(RunError, match="a process of the fleet ended"):
        list(fleet.scatter(os._exit, [3, 3], processes=2))


@pytest.mark.spark
def test_spark_answers_as_processes_do(spark: Any) -> None:
    from penstock.spark import fleet as on_spark

    scenarios = [read(TEXT, seed=seed) for seed in range(2)]
    runs: list[list[SimulationOutcome]] = [
        list(compare(scenarios, POLICIES, scatter))
        for scatter in (map, partial(fleet.scatter, processes=2), on_spark.scatter)]
    assert runs[0] == runs[1] == runs[2]
    assert spark.sparkContext.parallelize([1]).count() == 1  # a session that was there is kept


@pytest.mark.spark
def test_spark_has_nothing_to_do_for_nothing(spark: Any) -> None:
    from penstock.spark.fleet import scatter

    assert list(scatter(abs, [])) == []
