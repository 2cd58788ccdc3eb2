"""Oracles: the bound against Chain moving along envelopes, the search against every schedule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.charts import Chart
from penstock.policies.operators.model.oracles import (
    Level,
    SearchBlock,
    clairvoyant,
    least_memory,
    least_peak,
)
from tests.policies.operators.envelopes import envelope_size

Blocks = list[tuple[Chart, int]]


@st.composite
def charts(draw: st.DrawFn, operators: int = 3, longest: int = 3, largest: int = 12) -> Chart:
    spans = draw(st.lists(st.integers(1, longest), min_size=1, max_size=operators))
    times = [0]
    for span in spans:
        times.append(times[-1] + span)
    sizes = [8, *(draw(st.integers(1, largest)) for _ in spans[1:]), 0]
    return Chart.of_points([(t, s / 8) for t, s in zip(times, sizes, strict=True)])


@st.composite
def few_blocks(draw: st.DrawFn, count: int = 4, longest: int = 2) -> Blocks:
    known = draw(st.lists(charts(3, longest), min_size=1, max_size=2))
    return draw(st.lists(st.tuples(st.sampled_from(known), st.integers(0, 6)), min_size=1,
                         max_size=count))


def bound_of(blocks: Blocks) -> Level:
    """Every block on a route of its own."""
    routes = [Route(str(i), known.stages()) for i, (known, _) in enumerate(blocks)]
    return clairvoyant(routes, {str(i): [float(at)] for i, (_, at) in enumerate(blocks)})


def on_envelopes(blocks: Blocks, fine: int) -> Iterator[float]:
    """Chain moving along envelopes in small steps, block by block as the paper has it."""
    progress = [0] * len(blocks)
    for now in range(100 * fine):
        here = [i for i, (_, at) in enumerate(blocks) if at * fine <= now]
        if now % fine == 0:
            yield sum(envelope_size(blocks[i][0], progress[i] / fine) for i in here)
        going = [i for i in here if progress[i] < blocks[i][0].times[-1] * fine]
        if going:
            progress[max(going, key=lambda i: _slope(blocks[i][0], progress[i] / fine))] += 1


def _slope(known: Chart, progress: float) -> float:
    for (_, b), slope in zip(pairwise(known.envelope), known.slopes, strict=True):
        if progress < known.times[b]:
            return slope
    raise AssertionError("it is through")


@settings(max_examples=30)
@given(st.lists(st.tuples(charts(), st.integers(0, 8)), min_size=1, max_size=5))
def test_the_bound_is_chain_on_the_envelopes(blocks: Blocks) -> None:
    """Slope by slope gives the same as block by block (steps of whole operators: no rounding)."""
    bound = bound_of(blocks)
    for now, memory in enumerate(on_envelopes(blocks, fine=1)):
        assert bound.at(now) == pytest.approx(memory, abs=1e-9)


@settings(max_examples=60)
@given(few_blocks())
def test_no_schedule_beats_the_bound(blocks: Blocks) -> None:
    """Theorem 4.1 and Proposition 3, also with selectivities above 1."""
    bound = bound_of(blocks)
    for now, memory in enumerate(least_memory([SearchBlock(*block) for block in blocks])):
        assert memory >= bound.at(now) - 1e-9


@given(few_blocks(3))
def test_the_bound_is_reached_when_every_chart_is_a_line_to_its_only_operator(
    blocks: Blocks
) -> None:
    """At the ends of operators a block is on its envelope: with one unit each, always."""
    short = [(Chart.of_points([(0, 1), (1, 0)]), at) for _, at in blocks]
    found = least_memory([SearchBlock(*block) for block in short])
    assert found == pytest.approx([bound_of(short).at(now) for now in range(len(found))])


def every_schedule(jobs: list[SearchBlock], steps: int) -> Iterator[list[tuple[int, ...]]]:
    """Every way to spend so many steps on jobs or on none, as the states passed through."""
    for order in product(range(-1, len(jobs)), repeat=steps):
        states = [(0,) * len(jobs)]
        for now, i in enumerate(order):
            before = states[-1]
            if i >= 0 and (jobs[i].arrives > now or before[i] == jobs[i].work):
                break
            states.append(before if i < 0 else (*before[:i], before[i] + 1, *before[i + 1 :]))
        else:
            yield states


@settings(max_examples=25)
@given(st.lists(st.tuples(charts(2, 2), st.integers(0, 2), st.sampled_from([4, 6, inf])),
                min_size=1, max_size=2))
def test_the_search_finds_what_listing_every_schedule_finds(
    given_jobs: list[tuple[Chart, int, float]]
) -> None:
    jobs = [SearchBlock(*job) for job in given_jobs]
    steps = max(job.arrives for job in jobs) + sum(job.work for job in jobs)
    sizes = [job.sizes() for job in jobs]
    profiles = []
    for states in every_schedule(jobs, steps):
        late = any(state[i] < job.work for now, state in enumerate(states)
                   for i, job in enumerate(jobs) if now >= job.deadline)
        done = all(at == job.work for at, job in zip(states[-1], jobs, strict=True))
        if done and not late:
            profiles.append([sum(sizes[i][state[i]] for i, job in enumerate(jobs)
                                 if job.arrives <= now) for now, state in enumerate(states)])
    assert least_peak(jobs) == min(map(max, profiles), default=inf)
    if profiles and all(job.chart.sizes == tuple(sorted(job.chart.sizes, reverse=True))
                        for job in jobs):  # else it may be best at an instant not to go on at all
        assert least_memory(jobs) == tuple(map(min, zip(*profiles, strict=True)))


def test_a_deadline_that_cannot_be_kept_leaves_no_schedule() -> None:
    line = Chart.of_points([(0, 1), (3, 0)])
    assert least_peak([SearchBlock(line, 0, 3), SearchBlock(line, 0, 6)]) == 2
    assert least_peak([SearchBlock(line, 0, 3), SearchBlock(line, 0, 5)]) == inf
    assert least_memory([SearchBlock(line, 0, 3), SearchBlock(line, 0, 5)])[0] == inf


def test_search_needs_whole_steps() -> None:
    with pytest.raises(ValueError, match="whole steps"):
        least_peak([SearchBlock(Chart.of_points([(0, 1), (0.5, 0)]), 0)])


def test_blocks_of_other_sizes_take_and_free_in_proportion() -> None:
    route = Route("q", (Stage("1", 1.0, 0.5), Stage("2", 4.0)))
    one = clairvoyant([route], {"q": [0.0, 1.0]})
    ten = clairvoyant([route], {"q": [0.0, 10.0]}, {"q": [10.0, 10.0]})
    for time in (0.0, 0.5, 1.0, 1.7, 2.5, 9.0):
        assert ten.at(10 * time) == pytest.approx(10 * one.at(time))


def test_what_costs_nothing_is_gone_at_once() -> None:
    route = Route("q", (Stage("free", 0.0, 0.25), Stage("dear", 8.0)))
    bound = clairvoyant([route], {"q": [1.0, 1.0]})
    assert [bound.at(time) for time in (0.0, 1.0, 2.0, 5.0)] == [0.0, 0.5, 0.375, 0.0]


def test_without_arrivals_nothing_waits() -> None:
    bound = clairvoyant([Route("q", (Stage("1", 1.0),))], {})
    assert (bound.at(3.0), bound.peak) == (0.0, 0.0)
    assert least_peak([]) == 0.0
