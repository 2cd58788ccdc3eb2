"""One conformance suite for every operator policy of the catalogue, with parameters and without."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.paths.scheduler import Scheduler, Turn
from penstock.errors import PolicyError
from penstock.policies.operators import (
    POLICIES,
    Policy,
    Queue,
    Route,
    Segment,
    Stage,
    View,
    policies,
    policy,
)
from penstock.policies.operators.model.charts import Chart
from penstock.simulator import host
from penstock.simulator.network import Network, path
from penstock.simulator.results import Result
from penstock.simulator.workload import Workload

PARAMETERS = {
    "round_robin": ["round_robin(quantum=0.25)"],
    "chain_flush": ["chain_flush(latency=3)", "chain_flush(latency=3, exact=true)",
                    "chain_flush(latency=3, tuples=10)"],
    "mixed": ["mixed(gamma=0.2)", "mixed(gamma=inf)", "mixed(latency=3)"],
    "edf": ["edf(latency=3)"],
}
TEXTS = [text for name in POLICIES for text in (name, *PARAMETERS.get(name, ()))]

every_policy = pytest.mark.parametrize("text", TEXTS)


# --- routes and views ------------------------------------------------------------------------

stages = st.builds(Stage, st.just(""), st.sampled_from([0.0, 0.1, 1.0, 2.5, 7.0]),
                   st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.5, 3.0]))


@st.composite
def routes(draw: st.DrawFn) -> list[Route]:
    made = draw(st.lists(st.tuples(
        st.lists(stages, min_size=1, max_size=4), st.sampled_from([0.5, 4.0, inf]),
        st.sampled_from([1.0, 3.0])), min_size=1, max_size=4))
    return [Route(f"r{i}", named(f"r{i}", of), latency, priority)
            for i, (of, latency, priority) in enumerate(made)]


def named(route: str, of: list[Stage]) -> tuple[Stage, ...]:
    return tuple(replace(stage, operator=f"{route}.{k}") for k, stage in enumerate(of))


@st.composite
def waiting(draw: st.DrawFn, segment: Segment, now: float) -> Queue:
    """A queue before a segment, with blocks that arrived before now."""
    ages = sorted(draw(st.lists(st.integers(0, 20), min_size=1, max_size=5)), reverse=True)
    rows = draw(st.sampled_from([0.2, 1.0, 100.0]))
    done = draw(st.sampled_from([0.0, 0.5])) * segment.rest
    lefts = [(segment.rest - done) * rows, *[segment.rest * rows] * (len(ages) - 1)]
    blocks = tuple((now - age / 2, left) for age, left in zip(ages, lefts, strict=True))
    return Queue(segment, len(ages), blocks[0][0], done, rows, blocks)


@st.composite
def views(draw: st.DrawFn, of: Policy) -> View:
    """Some of the queues that a policy's segments may have."""
    cuts = of.prepare(draw(routes()))
    now = draw(st.sampled_from([10.0, 100.0]))
    ready = draw(st.lists(st.sampled_from(range(len(cuts))), min_size=1, unique=True))
    queues = tuple(draw(waiting(replace(cuts[i], place=i), now)) for i in sorted(ready))
    return View(now, queues, last=draw(st.sampled_from([-1.0, 0.0, 1.0, 2.0**20])))


@st.composite
def scenes(draw: st.DrawFn, text: str, count: int = 1) -> tuple[Policy, list[View]]:
    """A policy that has been prepared, and views for it, in the order of time."""
    chosen = policy(text)
    return chosen, [draw(views(chosen)) for _ in range(count)]


# --- choosing --------------------------------------------------------------------------------


def test_every_parameter_is_tried() -> None:
    for name, kind in POLICIES.items():
        tried = " ".join(PARAMETERS.get(name, ()))
        assert all(f"{known}=" in tried for known in inspect.signature(kind).parameters)


@every_policy
@settings(max_examples=60)
@given(data=st.data())
def test_a_choice_is_a_queue_of_the_view_with_a_reason(text: str, data: st.DataObject) -> None:
    chosen, (view,) = data.draw(scenes(text))
    run = chosen.choose(view)
    assert run is not None
    assert run.segment in {queue.segment.id for queue in view.queues}
    assert run.reason
    assert run.quantum > 0
    assert run.limit >= 1


@every_policy
@settings(max_examples=40)
@given(data=st.data())
def test_the_same_view_gives_the_same_decision_and_is_not_changed(
    text: str, data: st.DataObject
) -> None:
    chosen, (view,) = data.draw(scenes(text))
    before = copy.deepcopy(view)
    assert copy.deepcopy(chosen).choose(view) == chosen.choose(before)
    assert view == before


@every_policy
def test_nothing_to_run_is_no_decision(text: str) -> None:
    chosen = policy(text)
    chosen.prepare([])
    assert chosen.choose(View(1.0, ())) is None


@every_policy
@settings(max_examples=40)
@given(data=st.data())
def test_equals_are_served_by_age_and_then_in_plan_order(text: str, data: st.DataObject) -> None:
    """What is alike but for age and place: the policy has nothing else to go by."""
    chosen = policy(text)
    cuts = chosen.prepare([path("a", [(1.0, 1.0)]), path("b", [(1.0, 1.0)])])
    ages = data.draw(st.lists(st.integers(0, 2), min_size=2, max_size=2))
    queues = tuple(
        Queue(replace(cut, place=i), 1, 10.0 - age, blocks=((10.0 - age, 1.0),))
        for i, (cut, age) in enumerate(zip(cuts, ages, strict=True)))
    run = chosen.choose(View(10.0, queues))
    assert run is not None
    older = 0 if text.startswith("round_robin") else ages.index(max(ages))
    assert run.segment == queues[older].segment.id


@pytest.mark.parametrize("text", [text for text in TEXTS if text.startswith("chain")])
def test_of_blocks_that_came_together_the_one_further_on_its_path_goes_first(text: str) -> None:
    chosen = policy(text)
    first, second = chosen.prepare([Route("p", Chart((0.0, 1.0, 2.0), (1.0, 0.5, 0.0)).stages())])
    assert first.rank == second.rank
    queues = (Queue(first, 1, 10.0, blocks=((10.0, 2.0),)),
              Queue(second, 1, 10.0, head=0.5, blocks=((10.0, 1.0),)))
    run = chosen.choose(View(10.0, queues))
    assert run is not None
    assert run.segment == second.id


# --- cutting ---------------------------------------------------------------------------------


@every_policy
@settings(max_examples=60)
@given(given_routes=routes())
def test_a_route_is_cut_completely_in_order_and_without_overlap(
    text: str, given_routes: list[Route]
) -> None:
    cuts = policy(text).prepare(given_routes)
    by_path = {name: list(of) for name, of in groupby(cuts, lambda cut: cut.path)}
    assert list(by_path) == [route.id for route in given_routes]
    assert len({cut.id for cut in cuts}) == len(cuts)
    for route in given_routes:
        operators = [operator for cut in by_path[route.id] for operator in cut.operators]
        assert operators == [stage.operator for stage in route.stages]
        firsts = [operators.index(cut.operators[0]) for cut in by_path[route.id]]
        assert [cut.first for cut in by_path[route.id]] == firsts


@pytest.mark.parametrize("text", [text for text in TEXTS if text.startswith(("chain", "mixed"))])
@given(given_routes=routes())
def test_ranks_never_improve_along_a_path_of_chain(text: str, given_routes: list[Route]) -> None:
    """Proposition 1: slopes of the envelope never increase."""
    cuts = policy(text).prepare(given_routes)
    for before, after in pairwise(cuts):
        if before.path == after.path:
            assert before.rank <= after.rank


@given(given_routes=routes())
def test_the_output_rate_never_sinks_along_a_path(given_routes: list[Route]) -> None:
    """Section 3.2 of the prb paper: a block once begun is preferred to an equal one."""
    for before, after in pairwise(policy("rate_based").prepare(given_routes)):
        if before.path == after.path and before.rest and after.rest:
            assert after.rank <= before.rank * (1 - 1e-12)


# --- snapshots -------------------------------------------------------------------------------

Copy = Callable[[Policy], Policy]
THROUGH_BYTES: Copy = lambda chosen: pickle.loads(pickle.dumps(chosen))  # noqa: E731

STEPS = Chart.of_points([(0, 1), (1.0, 0.3), (1.99, 0.2), (3.49, 0.1), (5.49, 0)]).stages("abcd")
BURSTS = Workload(
    Network((Route("q", STEPS), path("r", [(0.5, 0.9), (0.5, 0.1), (20.0, 1.0)]))),
    {"q": np.concatenate([np.arange(20) * 2.0, 150 + np.arange(20) * 2.0]), "r": np.arange(60.0)})
MIDDLES = (50, 150, 330)


def replayed(text: str, substitute: Copy, at: int) -> Result:
    """A run in which the policy is replaced after so many decisions."""

    class Replacing(Scheduler):
        __slots__ = ("decided",)

        def decide(self, now: float) -> Turn | None:
            self.decided = getattr(self, "decided", 0) + 1
            if self.decided == at:
                assert self._look is not None
                simulation = self._look.__self__  # type: ignore[attr-defined]
                self.policy = simulation.policy = substitute(self.policy)
            return super().decide(now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "Scheduler", Replacing)
        result = host.simulate(BURSTS, policy(text))
    assert result.decisions > at, "the run was over before"
    return result


@every_policy
@pytest.mark.parametrize("at", MIDDLES)
@pytest.mark.parametrize("substitute", [copy.deepcopy, THROUGH_BYTES], ids=["copy", "bytes"])
def test_a_policy_restored_in_the_middle_of_a_run_goes_on_alike(
    text: str, at: int, substitute: Copy
) -> None:
    undisturbed = host.simulate(BURSTS, policy(text))
    restored = replayed(text, substitute, at)
    assert restored.outputs == undisturbed.outputs
    assert restored.decisions == undisturbed.decisions
    assert np.array_equal(restored.freed_at, undisturbed.freed_at)


def test_a_policy_that_forgot_what_it_found_would_be_noticed() -> None:
    """So the test before can fail: gamma is held between two slopes here, and that matters."""

    def forgetful(chosen: Policy) -> Policy:
        anew = policy(text)
        anew.prepare(BURSTS.network.routes)
        return anew

    text, at = "mixed(latency=240)", 350
    undisturbed = host.simulate(BURSTS, policy(text))
    assert replayed(text, THROUGH_BYTES, at).outputs == undisturbed.outputs
    assert replayed(text, forgetful, at).outputs != undisturbed.outputs


# --- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "message"), [
    ("fivo", "no operator policy 'fivo'; did you mean 'fifo'"),
    ("!", "no operator policy '!'; there is fifo, round_robin"),
    ("", "no operator policy ''"),
    ("mixed(gamma=1", "no operator policy"),
    ("fifo(speed=3)", "'fifo' has no parameter 'speed'; it takes none"),
    ("edf(gamma=3)", "'edf' has no parameter 'gamma'; it takes latency"),
    ("mixed(_slopes=3)", "no parameter '_slopes'; it takes gamma, latency"),
    ("mixed(0.1)", "no parameter '0.1'"),
    ("mixed(gamma)", "'gamma' is not of the form parameter = number"),
    ("mixed(gamma=steep)", "'gamma=steep' is not of the form parameter = number"),
    ("mixed(gamma=true)", "'gamma=true' is not of the form parameter = number"),
    ("mixed(gamma=1, gamma=2)", "'gamma' is given twice"),
    ("mixed(gamma=-1)", "gamma must not be negative"),
    ("mixed(gamma=nan)", "gamma must not be negative"),
    ("mixed(latency=0)", "latency must be positive"),
    ("mixed(gamma=0.1, latency=2)", "give gamma or latency"),
    ("chain_flush(latency=-1)", "latency must be positive"),
    ("chain_flush(latency=nan)", "latency must be positive"),
    ("chain_flush(tuples=0)", "tuples must be a whole number of at least 1"),
    ("chain_flush(tuples=2.5)", "tuples must be a whole number of at least 1"),
    ("chain_flush(tuples=nan)", "tuples must be a whole number of at least 1"),
    ("chain_flush(exact=2)", "'exact=2' is not of the form parameter = true or false"),
    ("edf(latency=0)", "latency must be positive"),
    ("edf(latency=nan)", "latency must be positive"),
    ("round_robin(quantum=0)", "quantum must be positive"),
    ("round_robin(quantum=nan)", "quantum must be positive"),
])
def test_a_wrong_policy_text_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message.replace("(", r"\(")):
        policy(text)


@every_policy
def test_case_and_blanks_do_not_matter_in_a_policy_text(text: str) -> None:
    spaced = text.upper().replace("(", " ( ").replace("=", " = ").replace("INF", "inf")
    for name in ("LATENCY", "GAMMA", "QUANTUM", "TUPLES", "EXACT"):
        spaced = spaced.replace(name, name.lower())
    assert policy(spaced) == policy(text)


def test_several_policies_are_parted_by_the_commas_outside_of_parentheses() -> None:
    texts = ["chain", "chain_flush(latency=2, tuples=10)", "mixed(gamma=1)"]
    assert policies(",, ".join(texts)) == {text: policy(text) for text in texts}
