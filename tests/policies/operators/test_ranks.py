"""What each policy ranks by, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.policies.operators import Queue, Route, Stage, View, policy
from penstock.policies.operators.model.charts import Chart

THREE = Route("p", (Stage("a", 4.0, 0.5), Stage("b", 2.0, 3.0), Stage("c", 1.0, 0.4)))
"""Of 1 row 0.5 reach b, 1.5 reach c, 0.6 come out; the chart is (4, 0.5), (5, 1.5), (6.5, 0)."""


def ranks(text: str, route: Route = THREE) -> list[float]:
    return [cut.rank for cut in policy(text).prepare([route])]


def test_greedy_ranks_an_operator_by_what_it_frees_of_a_row_per_second() -> None:
    """The last one frees all that reaches it, whatever it lets out: (1 - 0) / 1, not (1 - 0.4)."""
    assert ranks("greedy") == pytest.approx([-(1 - 0.5) / 4, -(1 - 3) / 2, -1.0])


def test_chain_ranks_by_the_slopes_of_the_envelope() -> None:
    cuts = policy("chain").prepare([THREE])
    assert [cut.operators for cut in cuts] == [("a", "b", "c")]
    assert cuts[0].rank == pytest.approx(-1 / 6.5)
    steps = Chart.of_points([(0, 1), (1, 0.1), (99, 0.001), (100, 0)])
    assert ranks("chain", Route("p", steps.stages())) == pytest.approx([-0.9, -0.099 / 98, -0.001])


def test_rate_based_ranks_by_rows_out_per_second_of_work_from_there_on() -> None:
    """Equation 1 of the prb paper; the cost left replaces the whole once a block is under way."""
    assert ranks("rate_based") == pytest.approx([-0.6 / 6.5, -1.2 / 5, -0.4 / 1])
    first, second, _ = policy("preemptive_rate_based").prepare([THREE])
    chosen = policy("preemptive_rate_based")
    assert chosen.rank(first, done=1.5, last=0.0) == pytest.approx(-0.6 / (6.5 - 1.5))
    assert chosen.rank(second, done=2.0, last=0.0) == pytest.approx(-1.2 / (5 - 2))


def test_rate_based_does_not_look_at_progress() -> None:
    first, *_ = policy("rate_based").prepare([THREE])
    assert policy("rate_based").rank(first, done=3.0, last=0.0) == first.rank


@pytest.mark.parametrize("text", ["greedy", "chain", "mixed", "chain_flush", "rate_based"])
def test_a_row_of_priority_3_counts_as_three(text: str) -> None:
    plain, dear = ranks(text), ranks(text, replace(THREE, priority=3.0))
    assert dear == pytest.approx([3 * rank for rank in plain])


@pytest.mark.parametrize("text", ["fifo", "edf", "round_robin"])
def test_age_deadline_and_turn_do_not_look_at_priority(text: str) -> None:
    assert ranks(text, replace(THREE, priority=3.0)) == ranks(text)


def test_mixed_unites_the_gentle_segments_of_a_path_and_ranks_them_after_the_steep() -> None:
    steps = Route("p", Chart.of_points([(0, 1), (1, 0.3), (1.99, 0.2), (3.49, 0.1), (5.49, 0)])
                  .stages("abcd"))
    united = {gamma: [cut.operators for cut in policy(f"mixed(gamma={gamma})").prepare([steps])]
              for gamma in (0.06, 0.1, 0.2, 0.8)}
    assert united == {  # section 6.2 of the chain paper, whose gammas are per microsecond
        0.06: [("a",), ("b",), ("c",), ("d",)],
        0.1: [("a",), ("b",), ("c", "d")],
        0.2: [("a",), ("b", "c", "d")],
        0.8: [("a", "b", "c", "d")],
    }
    steep, gentle = policy("mixed(gamma=0.2)").prepare([steps])
    assert steep.rank == pytest.approx(-0.7)
    assert gentle.rank == 0.0


def test_the_gentle_segments_of_several_queries_are_served_by_age() -> None:
    """Though one of them frees ten times as much as the other."""
    chosen = policy("mixed(gamma=100)")
    slow, fast = chosen.prepare([Route("slow", (Stage("s", 10.0),)),
                                 Route("fast", (Stage("f", 1.0),))])
    queues = Queue(slow, 1, oldest=1.0), Queue(fast, 1, oldest=2.0)
    choice = chosen.choose(View(3.0, queues))
    assert choice is not None
    assert choice.segment == "slow"


def test_edf_serves_what_was_promised_nothing_last_and_by_age() -> None:
    edf = policy("edf")
    cuts = edf.prepare([Route("a", ()), Route("b", ()), Route("c", (), latency=50.0)])
    queues = tuple(Queue(cut, 1, oldest) for cut, oldest in zip(cuts, (2.0, 1.0, 9.0), strict=True))
    order = []
    while queues:
        choice = edf.choose(View(10.0, queues))
        assert choice is not None
        order.append(choice.segment)
        queues = tuple(queue for queue in queues if queue.segment.id != choice.segment)
    assert order == ["c", "b", "a"]


def test_a_turn_of_round_robin_is_its_quantum_and_other_turns_are_a_block() -> None:
    (cut,) = policy("fifo").prepare([Route("p", (Stage("a"),))])
    turn = policy("round_robin(quantum=3)").turn(cut)
    assert (turn.quantum, turn.limit) == (3.0, inf)
    for text in ("fifo", "greedy", "chain", "mixed", "edf", "rate_based", "preemptive_rate_based"):
        turn = policy(text).turn(cut)
        assert (turn.quantum, turn.limit) == (inf, 1)


def test_which_policies_let_an_arrival_interrupt() -> None:
    """FIFO, Rate-Based and Round-Robin do not: Table 1 of the prb paper, quanta apart."""
    calm = [text for text in ("fifo", "round_robin", "greedy", "chain", "chain_flush", "mixed",
                              "edf", "rate_based", "preemptive_rate_based")
            if not policy(text).preemptive]
    assert calm == ["fifo", "round_robin", "rate_based"]
