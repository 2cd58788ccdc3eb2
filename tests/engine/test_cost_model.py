"""The cost model: a fixed part and a part per row, whatever disturbs the jobs behind it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engine.cost_model import IN_ALL, OF_A_SIZE, RecentJobs, fit, unmeasured_cost

JOBS = st.lists(st.tuples(st.integers(0, 1_000_000), st.floats(0, 100)), min_size=1, max_size=80)


@given(st.floats(0.02, 2.0), st.floats(1e-7, 1e-3), st.integers(0, 2**32 - 1))
@example(1.0, 0.001, 65507962)  # disturbed jobs hid that costs rise with the rows
def test_a_fit_recovers_both_parts_under_noise_and_outliers(
    fixed: float, per_row: float, seed: int
) -> None:
    """Jobs deviate by a twentieth, one in eight takes up to ten times as long, one is cold."""
    random = np.random.default_rng(seed)
    scale = fixed / per_row  # so that both parts count
    rows = scale * 2.0 ** random.uniform(-3, 3, 64)
    seconds = (fixed + per_row * rows) * (1 + 0.05 * random.uniform(-1, 1, 64))
    disturbed = random.permutation(64)[:8]
    seconds[disturbed] *= random.uniform(2, 10, 8)
    seconds[0] *= 20
    cost = fit(list(zip(rows.tolist(), seconds.tolist(), strict=True)), cheapest=0.0)
    assert cost.fixed == pytest.approx(fixed, rel=0.25)
    assert cost.per_row == pytest.approx(per_row, rel=0.15)
    assert cost.distinct


@given(JOBS, st.floats(0, 10), st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)))
@example([(0, 0.0)], 0.0, (0.0, 0.0))
def test_no_part_is_negative_whatever_the_jobs(
    jobs: list[tuple[int, float]], cheapest: float, measured: tuple[float, float] | None
) -> None:
    recent = RecentJobs()
    for rows, seconds in jobs:
        recent.add(rows, seconds)
    for cost in (fit(jobs, cheapest, measured), recent.cost(cheapest, measured)):
        assert cost.fixed >= 0 and cost.per_row >= 0
        assert cost.seconds(1e6) >= cost.seconds(0.0) >= 0


@given(JOBS, st.floats(0, 10))
def test_a_fit_made_job_by_job_is_that_of_its_window(
    jobs: list[tuple[int, float]], cheapest: float
) -> None:
    asked, unasked = RecentJobs(), RecentJobs()
    for rows, seconds in jobs:
        asked.add(rows, seconds)
        unasked.add(rows, seconds)
        asked.cost(cheapest)
    window = [(rows, seconds) for _, rows, seconds in unasked.jobs]
    assert asked.cost(cheapest) == fit(window, cheapest, weights=unasked.weights)
    assert unasked.cost(cheapest) == asked.cost(cheapest)


@given(JOBS)
def test_the_window_is_bounded_and_holds_the_latest_of_every_size(
    jobs: list[tuple[int, float]]
) -> None:
    recent = RecentJobs()
    for rows, seconds in jobs * 3:
        recent.add(rows, seconds)
        held = recent.jobs
        assert len(held) <= IN_ALL
        assert held[-1][1:] == (rows, seconds)
        sizes = [int(size).bit_length() for _, size, _ in held]
        assert max(map(sizes.count, sizes)) <= OF_A_SIZE
        assert recent.largest[0] == max(size for _, size, _ in held)


def test_recent_jobs_count_more() -> None:
    recent = RecentJobs()
    for n in range(400):
        rows = 1000 * (1 + n % 7)
        recent.add(rows, (1 if n < 300 else 3) * (0.2 + 1e-5 * rows))
    cost = recent.cost(cheapest=0.0)
    assert cost.fixed == pytest.approx(0.6, rel=0.05), "the machine became three times as slow"
    assert cost.per_row == pytest.approx(3e-5, rel=0.05)


def test_large_jobs_are_remembered_through_many_small_ones() -> None:
    recent = RecentJobs()
    for rows in (100_000, 80_000, *[1000] * 30_000):
        recent.add(rows, 0.1 + 1e-5 * rows)
    cost = recent.cost(cheapest=0.0)
    assert (cost.fixed, cost.per_row) == pytest.approx((0.1, 1e-5), rel=0.02)


@pytest.mark.parametrize(("seconds", "distinct"), [
    ((0.5, 0.6, 0.62, 0.45, 0.58), False), ((0.5, 0.51, 1.0, 1.02, 1.5), True)])
def test_a_rise_within_the_noise_tells_no_parts_from_each_other(
    seconds: tuple[float, ...], distinct: bool
) -> None:
    rows = (2000, 2000, 4000, 4000, 6000)
    assert fit(list(zip(rows, seconds, strict=True)), cheapest=0.1).distinct == distinct


@given(st.floats(0, 100), st.lists(st.tuples(st.floats(0, 1e4), st.none() | st.floats(0, 1))))
def test_stages_that_nobody_measured_share_what_is_left(
    spent: float, stages: list[tuple[float, float | None]]
) -> None:
    share = unmeasured_cost(spent, stages)
    known = sum(rows * cost for rows, cost in stages if cost is not None)
    free = sum(rows for rows, cost in stages if cost is None)
    assert share >= 0
    assert share * free == pytest.approx(max(spent - known, 0.0) if free >= 1 else 0.0)
