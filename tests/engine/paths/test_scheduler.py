"""The scheduler's heap decides as the policy would if it were shown every ready queue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.paths.scheduler import Scheduler
from penstock.policies.operators import (
    POLICIES,
    Decision,
    Policy,
    Queue,
    Route,
    Segment,
    Stage,
    View,
    policy,
)

RANKED = [text for text in (*POLICIES, "round_robin(quantum=0.25)", "mixed(gamma=0.2)",
                            "mixed(gamma=inf)", "edf(latency=3)", "chain_flush(latency=3)",
                            "chain_flush(latency=9, tuples=10)")
          if not policy(text).sees_all]

ROUTES = [
    Route("a", (Stage("a.1", 1.0, 0.5), Stage("a.2", 2.0, 0.5), Stage("a.3", 1.0)), latency=4.0),
    Route("b", (Stage("b.1", 1.0, 0.5), Stage("b.2", 2.0, 0.5), Stage("b.3", 1.0)), latency=9.0),
    Route("c", (Stage("c.1", 0.2, 2.0), Stage("c.2", 0.1, 0.1), Stage("c.3", 30.0)), priority=2.0),
    Route("d", (Stage("d.1", 0.0, 1.0), Stage("d.2", 0.0, 0.5))),
]


@dataclass(frozen=True)
class Head:
    """What a host knows of a queue that is ready."""

    arrived: float
    done: float = 0.0
    rows: float = 1.0


class Twin:
    """A scheduler, and what its policy would say to a view of all that it was told."""

    def __init__(self, chosen: Policy, now: float = 100.0) -> None:
        self.policy, self.now = chosen, now
        self.scheduler = Scheduler(chosen, chosen.prepare(ROUTES))
        self.ready: dict[int, Head] = {}

    def wake(self, place: int, head: Head) -> None:
        self.ready[place] = head
        self.scheduler.wake(place, head.arrived, head.done, head.rows)

    def sleep(self, place: int) -> None:
        self.ready.pop(place, None)
        self.scheduler.sleep(place)

    def segment(self, place: int) -> Segment:
        return self.scheduler.segments[place]

    def decide(self) -> int:
        """Both decide; the place they agree on, -1 for none."""
        queues = tuple(Queue(self.segment(i), 1, head.arrived, head.done, head.rows)
                       for i, head in sorted(self.ready.items()))
        expected = self.policy.choose(View(self.now, queues, self.scheduler._last))
        turn = self.scheduler.decide(self.now)
        if expected is None or turn is None:
            assert turn is None and expected is None
            return -1
        assert expected == Decision(self.segment(turn.place).id, turn.reason, turn.quantum,
                                    turn.limit, turn.most_blocks, turn.lasting, turn.whole)
        return turn.place


steps = st.lists(st.one_of(
    st.tuples(st.just("wake"), st.integers(0, 11), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.just(0), st.integers(0, 8)),
    st.tuples(st.just("sleep"), st.integers(0, 11), st.just(0)),
    st.tuples(st.just("run"), st.sampled_from(["finish", "go on", "drain"]), st.integers(0, 3)),
), max_size=60)


@pytest.mark.parametrize("text", RANKED)
@settings(max_examples=150)
@given(steps=steps)
def test_the_heap_agrees_with_choosing_among_all(
    text: str, steps: list[tuple[str, int | str, int]]
) -> None:
    """As hosts do it: what ran is said again, with its next head, its progress, or as empty."""
    twin = Twin(policy(text), now=0.0)
    count = len(twin.scheduler.segments)
    for verb, what, number in steps:
        if verb == "wake":
            twin.wake(int(what) % count, Head(float(number), rows=1.0 + number % 2))
        elif verb == "wait":
            twin.now += number / 4
        elif verb == "sleep":
            twin.sleep(int(what) % count)
        elif (place := twin.decide()) >= 0:
            _after(twin, place, str(what), number)
    twin.decide()


def _after(twin: Twin, place: int, what: str, number: int) -> None:
    head = twin.ready[place]
    if what == "finish":
        twin.wake(place, replace(head, arrived=head.arrived + number, done=0.0))
    elif what == "drain":
        twin.sleep(place)
    else:
        left = twin.segment(place).rest - head.done
        twin.wake(place, replace(head, done=head.done + left * number / 4))


@pytest.mark.parametrize("text", RANKED)
def test_adopting_new_segments_puts_every_queue_to_sleep(text: str) -> None:
    twin = Twin(policy(text))
    twin.wake(0, Head(0.0))
    assert twin.decide() == 0
    twin.scheduler.adopt(twin.policy.prepare(ROUTES))
    assert twin.scheduler.decide(1.0) is None


def test_round_robin_visits_every_ready_queue_before_it_comes_back() -> None:
    twin = Twin(policy("round_robin"))
    ready = [1, 4, 7, 8]
    for place in ready:
        twin.wake(place, Head(0.0))
    visited = []
    for _ in range(12):
        visited.append(place := twin.decide())
        twin.wake(place, Head(0.0))
    assert visited == ready * 3


def test_a_queue_that_wakes_behind_round_robin_waits_for_the_next_lap() -> None:
    twin = Twin(policy("round_robin"))
    twin.wake(5, Head(0.0))
    assert twin.decide() == 5
    twin.wake(5, Head(0.0))
    twin.wake(2, Head(0.0))
    twin.wake(6, Head(0.0))
    visited = []
    for _ in range(3):
        visited.append(place := twin.decide())
        twin.sleep(place)
    assert visited == [6, 2, 5]


def test_a_block_under_way_keeps_the_better_rank_that_its_progress_gave_it() -> None:
    """Section 3.3 of the prb paper: the priority of a preempted operator stays as it was."""
    twin = Twin(policy("preemptive_rate_based"))
    quick, long = twin.segment(2), twin.segment(7)  # 1 row in 1 s, 1/10 row in 3.1 s
    assert quick.gain / quick.rest > long.gain / long.rest
    twin.wake(2, Head(9.0))
    twin.wake(7, Head(0.0))
    assert twin.decide() == 2
    twin.sleep(2)
    twin.wake(7, Head(0.0, done=long.rest * 0.99))
    twin.wake(2, Head(9.0))
    assert twin.decide() == 7


def test_saying_the_same_again_does_not_make_the_heap_grow() -> None:
    """A host may wake every ready queue before every decision."""
    chain = policy("chain")
    scheduler = Scheduler(chain, chain.prepare(ROUTES))
    for now in range(1000):
        for place in range(3):
            scheduler.wake(place, oldest=0.0)
        assert scheduler.decide(float(now)) is not None
    assert len(scheduler._heap) == 3


def test_a_policy_that_chooses_for_itself_sees_the_ready_queues_in_plan_order() -> None:
    seen = []

    class Last(Policy):
        def choose(self, view: View) -> Decision | None:
            seen.append([queue.segment.id for queue in view.queues])
            return Decision(view.queues[-1].segment.id, "") if view.queues else None

    chosen = Last()
    cuts = chosen.prepare(ROUTES)
    scheduler = Scheduler(chosen, cuts, lambda place: Queue(scheduler.segments[place], 1, 0.0))
    assert chosen_place(scheduler) is None
    scheduler.wake(2, 0.0)
    scheduler.wake(0, inf)
    assert chosen_place(scheduler) == 2
    scheduler.sleep(2)
    assert chosen_place(scheduler) == 0
    assert seen == [[], ["a", "c"], ["a"]]


def chosen_place(scheduler: Scheduler) -> int | None:
    turn = scheduler.decide(0.0)
    return None if turn is None else turn.place
