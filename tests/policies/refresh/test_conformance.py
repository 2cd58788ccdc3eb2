"""One conformance suite for every refresh policy of the catalogue, and what each promises."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf, lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.aggregates.refresher import Refresher
from penstock.errors import PolicyError
from penstock.policies.refresh import (
    DEFAULT,
    MODIFIERS,
    POLICIES,
    Costs,
    Due,
    QueryGroup,
    Task,
    View,
    WindowQuery,
    policies,
    policy,
)
from penstock.policies.refresh.hybrid import KEPT, SETTLED
from penstock.policies.refresh.model.coincidences import alone, mean_cost
from penstock.policies.refresh.model.tasks import cost_per_pane, subgroups, task

TEXTS = [*POLICIES, *(f"{name}+{modifier}" for name in POLICIES if POLICIES[name].shares
                      for modifier in MODIFIERS)]
SHARING = [text for text in TEXTS if policy(text).shares]

every_policy = pytest.mark.parametrize("text", TEXTS)
quick = settings(max_examples=25, deadline=None)


def query(draw: st.DrawFn, name: str, longest: int = 24) -> WindowQuery:
    return WindowQuery(name, draw(st.integers(1, 40)), draw(st.integers(1, longest)),
                 priority=draw(st.integers(1, 3)),
                 exactly=draw(st.sampled_from([False] * 4 + [True])),
                 asks=draw(st.sampled_from(["", "", "max"])))


@st.composite
def groups(draw: st.DrawFn, most: int = 6, longest: int = 24, id: str = "g") -> QueryGroup:
    count = draw(st.integers(1, most))
    costs = Costs(start=draw(st.sampled_from([0.0, 5.0])), read=draw(st.sampled_from([0.0, 0.5])),
                  answer=draw(st.sampled_from([0.0, 0.0, 1.0, 10.0, 60.0])))
    queries = tuple(query(draw, f"{id}{i}", longest) for i in range(count))
    return QueryGroup(id, queries, pane=draw(st.sampled_from([1, 7])), costs=costs)


@st.composite
def views(draw: st.DrawFn, text: str) -> View:
    """Tasks of two groups that are due, in time or late."""
    made = policy(text).prepare([draw(groups(id="g")), draw(groups(id="h"))])
    due = [Due(one, end=100 + left if one.exactly else 100, left=left)
           for one in made if (left := draw(st.integers(-3, 1))) <= 0]
    return View(tuple(due))


# --- the contract ----------------------------------------------------------------------------


@every_policy
@quick
@given(group=groups())
def test_every_query_is_in_one_task_and_none_waits_longer_than_it_asked(
    text: str, group: QueryGroup
) -> None:
    tasks = policy(text).prepare([group])
    placed = [query.name for one in tasks for query in one.queries]
    assert sorted(placed) == sorted(query.name for query in group.queries)
    assert len({one.id for one in tasks}) == len(tasks)
    asked = {query.name: query for query in group.queries}
    for one in tasks:
        for member in one.queries:
            assert one.period <= asked[member.name].period
            assert one.exactly == asked[member.name].exactly
            assert not one.exactly or one.period == asked[member.name].period


@every_policy
@quick
@given(data=st.data())
def test_the_first_is_the_one_due_the_earliest_then_priority_then_plan_order(
    text: str, data: st.DataObject
) -> None:
    view = data.draw(views(text))
    decision = policy(text).choose(view)
    if not view.due:
        assert decision is None
        return
    assert decision is not None
    assert decision.reason
    first = min(view.due, key=lambda due: (due.slack, -due.task.priority, view.due.index(due)))
    assert first.task.id in decision.tasks
    chosen = [due for due in view.due if due.task.id in decision.tasks]
    assert [due.task.id for due in chosen] == list(decision.tasks)
    assert {(due.task.group, due.end) for due in chosen} == {(first.task.group, first.end)}
    if not policy(text).shares:
        assert chosen == [first]


@every_policy
@quick
@given(data=st.data())
def test_the_same_view_gives_the_same_decision_and_policies_travel(
    text: str, data: st.DataObject
) -> None:
    view = data.draw(views(text))
    chosen = policy(text)
    restored = pickle.loads(pickle.dumps(copy.deepcopy(chosen)))
    assert restored == chosen
    assert restored.choose(view) == chosen.choose(view)


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].shares])
@quick
@given(data=st.data())
def test_late_pending_shares_at_least_what_late_shares_and_late_what_the_policy_does(
    name: str, data: st.DataObject
) -> None:
    view = data.draw(views(name))
    if view.due:
        plain, late, pending = (set(policy(text).choose(view).tasks)  # type: ignore[union-attr]
                                for text in (name, f"{name}+late", f"{name}+late_pending"))
        assert plain <= late <= pending


@every_policy
@quick
@given(group=groups(longest=8), start=st.integers(0, 30))
def test_when_nothing_is_late_answers_are_at_most_a_period_apart(
    text: str, group: QueryGroup, start: int
) -> None:
    refresher = Refresher(policy(text))
    refresher.adopt(0.0, [group])
    ends: dict[str, list[int]] = {query.name: [] for query in group.queries}
    for end in range(start + 1, start + 40):
        refresher.close("g", end)
        while run := refresher.decide(float(end)):
            for name, _ in run.queries:
                ends[name].append(run.end)
            refresher.finished(float(end), run, 0.0)
    for asked in group.queries:
        gaps = [after - before for before, after in pairwise([start, *ends[asked.name]])]
        assert all(0 < gap <= asked.period for gap in gaps[1:])
        assert gaps[0] <= asked.period
        if asked.exactly:
            assert ends[asked.name] == [end for end in range(start + 1, start + 40)
                                        if end % asked.period == 0]


# --- costs -----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(tasks=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 30)), min_size=1, max_size=5))
def test_the_mean_cost_is_that_of_counting_through_the_common_multiple(
    tasks: list[tuple[int, int]]
) -> None:
    whole = lcm(*(period for period, _ in tasks))
    counted = sum(max((cost for period, cost in tasks if pane % period == 0), default=0)
                  for pane in range(whole)) / whole
    assert mean_cost([(p, float(c)) for p, c in tasks]) == pytest.approx(counted)


def test_periods_without_a_manageable_common_multiple_are_no_trouble() -> None:
    periods = range(2, 51)
    assert lcm(*periods) > 10**20
    spared = 1 - sum(alone(p, range(2, p)) for p in periods)
    primes = [p for p in periods if all(p % q for q in range(2, p))]
    expected = 1.0
    for prime in primes:
        expected *= 1 - 1 / prime
    assert spared == pytest.approx(expected)


def partitions(items: list[Task]) -> Iterator[list[list[Task]]]:
    """Every way to put tasks together."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for i, part in enumerate(rest):
            yield [*rest[:i], [items[0], *part], *rest[i + 1:]]


def least(group: QueryGroup) -> float:
    """By trying every way of shortening periods."""
    apart = subgroups(group)
    fixed = [part for part in apart if part.exactly]
    best = inf
    for parts in partitions([part for part in apart if not part.exactly]):
        tasks = [task(group, [query for one in part for query in one.queries],
                      min(one.period for one in part)) for part in parts]
        best = min(best, cost_per_pane(group, [*tasks, *fixed]))
    return best


@settings(max_examples=80, deadline=None)
@given(group=groups())
def test_hybrid_finds_the_cheapest_of_all_ways_to_shorten_periods(group: QueryGroup) -> None:
    assert 2 ** len(group.queries) <= KEPT
    assert cost_per_pane(group, policy("hybrid").prepare([group])) == pytest.approx(least(group))


@settings(max_examples=30, deadline=None)
@given(group=groups(most=25, longest=60))
def test_hybrid_never_costs_more_than_the_conservative_or_the_aggressive_schedule(
    group: QueryGroup
) -> None:
    costs = {name: cost_per_pane(group, policy(name).prepare([group]))
             for name in ("hybrid", "conservative", "aggressive")}
    assert costs["hybrid"] <= min(costs.values()) * (1 + 1e-9)


# --- a late group ----------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(group=groups())
def test_the_tasks_of_a_late_group_pay_for_their_own_scans(group: QueryGroup) -> None:
    late = replace(group, late=True)
    for text in SHARING:
        tasks = policy(text).prepare([late])
        alone = sum(group.cost(one.queries) / one.period for one in tasks)
        assert policy(text).cost(late, tasks) == pytest.approx(alone)
        assert policy(text).cost(late, tasks) >= policy(text).cost(group, tasks) * (1 - 1e-9)


@settings(max_examples=80, deadline=None)
@given(group=groups())
def test_hybrid_finds_the_cheapest_of_all_ways_for_a_late_group_too(group: QueryGroup) -> None:
    late = replace(group, late=True)
    assert cost_per_pane(late, policy("hybrid").prepare([late])) == pytest.approx(least(late))


@settings(max_examples=30, deadline=None)
@given(group=groups(most=25, longest=60))
def test_late_it_costs_no_more_than_the_extremes_or_than_the_schedule_of_a_group_in_time(
    group: QueryGroup
) -> None:
    late = replace(group, late=True)
    chosen = cost_per_pane(late, policy("hybrid").prepare([late]))
    rivals = [policy(name).prepare([group]) for name in ("hybrid", "conservative", "aggressive")]
    assert chosen <= min(cost_per_pane(late, tasks) for tasks in rivals) * (1 + 1e-9)


@pytest.mark.parametrize("text", [text for text in TEXTS if not text.startswith("hybrid")])
@quick
@given(group=groups())
def test_no_policy_but_hybrid_makes_other_tasks_of_a_late_group(
    text: str, group: QueryGroup
) -> None:
    assert policy(text).prepare([replace(group, late=True)]) == policy(text).prepare([group])


@pytest.mark.parametrize(("answer", "late"), [(0.0, [2]), (6.9, [2]), (7.0, [2]), (7.1, [2, 4])])
def test_a_task_whose_every_scan_is_shared_in_time_rides_for_good_when_late(
    answer: float, late: list[int]
) -> None:
    """Period 4 meets period 2 whenever it is due; late, it never does.

    Apart they then cost 9/2 + 11/4 and 3/4 of an answer, together 11/2 and an answer: less up to
    an answer of 7, and a tie goes to the shorter period.
    """
    group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 12, 4)),
                       costs=Costs(answer=answer))
    assert [one.period for one in policy("hybrid").prepare([group])] == [2, 4]
    assert [one.period for one in policy("hybrid").prepare([replace(group, late=True)])] == late


def test_with_very_many_periods_a_late_group_still_costs_no_more_than_the_extremes() -> None:
    queries = tuple(WindowQuery(f"q{i}", 200 + i * 37 % 80, i + 1) for i in range(SETTLED + 8))
    late = QueryGroup("g", queries, costs=Costs(answer=20.0), late=True)
    costs = {name: cost_per_pane(late, policy(name).prepare([late]))
             for name in ("hybrid", "conservative", "aggressive")}
    assert costs["hybrid"] <= min(costs.values())


def test_a_thousand_queries_of_a_late_group_are_prepared_within_seconds() -> None:
    queries = tuple(WindowQuery(f"q{i}", 20 + i * 37 % 80, 1 + i * 7919 % 50) for i in range(1000))
    assert policy("hybrid").prepare([QueryGroup("g", queries, late=True)])


def test_a_thousand_queries_are_prepared_by_hybrid_within_seconds() -> None:
    queries = tuple(WindowQuery(f"q{i}", 20 + i * 37 % 80, 1 + i * 7919 % 50) for i in range(1000))
    assert policy("hybrid").prepare([QueryGroup("g", queries)])


# --- the paper's example ---------------------------------------------------------------------

Q = tuple(WindowQuery(f"Q{i}", window, slide) for i, (window, slide) in enumerate(
    ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5)), 1))
G1 = QueryGroup("G1", Q)


def shortened(periods: tuple[int, ...]) -> list[Task]:
    """The three sub-groups of the paper with these periods."""
    together: dict[int, list[WindowQuery]] = {}
    for part, period in zip((Q[:3], Q[3:5], Q[5:]), periods, strict=True):
        together.setdefault(period, []).extend(part)
    return [task(G1, queries, period) for period, queries in together.items()]


@pytest.mark.parametrize(("periods", "cost"), [
    ((2, 3, 5), 11.93), ((2, 2, 5), 11.4), ((2, 2, 2), 14.5), ((2, 3, 3), 12.67),
    ((2, 3, 2), 16.83)])
def test_the_schedules_of_section_4_3_cost_what_the_definition_gives(
    periods: tuple[int, ...], cost: float
) -> None:
    assert cost_per_pane(G1, shortened(periods)) == pytest.approx(cost, abs=0.005)


def test_hybrid_shortens_the_second_sub_group_of_the_paper() -> None:
    made = policy("hybrid").prepare([G1])
    assert [(one.period, len(one.queries)) for one in made] == [(2, 5), (5, 2)]


@pytest.mark.parametrize(("periods", "cost"), [
    ((2, 3, 5), 14.97), ((2, 2, 5), 12.8), ((2, 2, 2), 14.5), ((2, 3, 3), 14.17),
    ((2, 3, 2), 19.17)])
def test_late_the_schedules_of_section_4_3_cost_the_sum_of_their_tasks(
    periods: tuple[int, ...], cost: float
) -> None:
    late = replace(G1, late=True)
    assert cost_per_pane(late, shortened(periods)) == pytest.approx(cost, abs=0.005)
    chosen = policy("hybrid").prepare([late])
    assert cost_per_pane(late, chosen) == pytest.approx(12.8)  # the same schedule as in time


def test_the_costs_of_the_papers_sub_groups_are_9_14_and_29() -> None:
    assert [G1.cost(part.queries) for part in subgroups(G1)] == [9.0, 14.0, 29.0]


# --- identical queries -----------------------------------------------------------------------

TWINS = QueryGroup("g", (WindowQuery("often", 10, 2, asks="max"),
                         WindowQuery("seldom", 10, 7, asks="max"),
                         WindowQuery("other", 10, 7, asks="min")), costs=Costs(answer=100.0))


@pytest.mark.parametrize("text", ["conservative", "hybrid"])
def test_a_query_that_asks_the_same_less_often_takes_the_others_answer(text: str) -> None:
    together = policy(text).prepare([TWINS])[0]
    assert [query.name for query in together.queries] == ["often", "seldom"]
    assert TWINS.answering(together.queries) == 100.0  # one answer for both


def test_without_the_other_it_has_its_own_period_again() -> None:
    alone = QueryGroup("g", TWINS.queries[1:])
    assert [one.period for one in policy("conservative").prepare([alone])] == [7]


# --- text ------------------------------------------------------------------------------------


def test_the_default_is_a_policy() -> None:
    assert policy(DEFAULT) == policy("hybrid+late_pending")


@pytest.mark.parametrize(("text", "message"), [
    ("hibrid", "no refresh policy 'hibrid'; did you mean 'hybrid'"),
    ("!", "no refresh policy '!'; there is no_sharing, edf"),
    ("", "no refresh policy ''"),
    ("late", "no refresh policy 'late'"),
    ("hybrid+later", "no modifier of a refresh policy 'later'; did you mean 'late'"),
    ("hybrid(depth=3)", "'hybrid' has no parameter 'depth'; it takes none"),
    ("hybrid+late(of=3)", "'late' has no parameter 'of'; it takes none"),
    ("no_sharing+late", "every task by itself"),
    ("edf+late_pending", "every task by itself"),
])
def test_a_wrong_policy_text_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message.replace("(", r"\(")):
        policy(text)


@every_policy
def test_case_and_blanks_do_not_matter_in_a_policy_text(text: str) -> None:
    assert policy(text.upper().replace("+", " + ")) == policy(text)


def test_several_policies_are_parted_by_commas() -> None:
    assert policies(",, ".join(TEXTS)) == {text: policy(text) for text in TEXTS}


def test_no_policy_takes_parameters_so_far() -> None:
    """Whoever adds one tests it above."""
    assert not any(inspect.signature(kind).parameters for kind in POLICIES.values())
