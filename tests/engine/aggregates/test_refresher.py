"""The refresher: deadlines of section 3 and 4, exact queries, drains, restarts, costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.aggregates.deadlines import Deadlines
from penstock.engine.aggregates.refresher import Refresher
from penstock.engine.statistics import Statistics
from penstock.events import kinds as ev
from penstock.policies.refresh import Costs, QueryGroup, WindowQuery, policy

Q = tuple(WindowQuery(f"Q{i}", window, slide) for i, (window, slide) in enumerate(
    ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5)), 1))
G1, G2, G3 = ("Q1", "Q2", "Q3"), ("Q4", "Q5"), ("Q6", "Q7")
Timeline = list[tuple[int, tuple[str, ...]]]


def refresher(text: str, *groups: QueryGroup, drained: bool = False) -> Refresher:
    made = Refresher(policy(text), drained)
    made.adopt(0.0, groups or [QueryGroup("g", Q)])
    return made


def settle(made: Refresher, at: float = 0.0) -> Timeline:
    """Carry out all that is due, in no time."""
    done = []
    while run := made.decide(at):
        made.finished(at, run, 0.0)
        done.append((run.end, tuple(name for name, _ in run.queries)))
    return done


def timeline(text: str, panes: int, busy: tuple[int, ...] = ()) -> Timeline:
    """What is answered when, if the host is busy with other things while some panes are current."""
    made, done = refresher(text), []
    for end in range(1, panes + 1):
        made.close("g", end)
        if end not in busy:
            done += settle(made, float(end))
    return done


# --- Figure 4 --------------------------------------------------------------------------------


def test_figure_4a_aggressive_answers_all_every_two_minutes() -> None:
    assert timeline("aggressive", 10) == [(end, G1 + G2 + G3) for end in (2, 4, 6, 8, 10)]


def test_figure_4b_conservative_shares_where_periods_coincide() -> None:
    assert timeline("conservative", 10) == [
        (2, G1), (3, G2), (4, G1), (5, G3), (6, G1 + G2), (8, G1), (9, G2), (10, G1 + G3)]


def test_figure_4b_after_thirty_minutes_all_coincide() -> None:
    assert timeline("conservative", 30)[-1] == (30, G1 + G2 + G3)


def test_figure_4c_hybrid_runs_the_first_two_sub_groups_together() -> None:
    assert timeline("hybrid", 10) == [
        (2, G1 + G2), (4, G1 + G2), (5, G3), (6, G1 + G2), (8, G1 + G2), (10, G1 + G2 + G3)]


def test_figure_4d_late_and_pending_run_together() -> None:
    """The first two are late by one at 5, when the third is pending."""
    assert timeline("hybrid+late_pending", 11, busy=(4,)) == [
        (2, G1 + G2), (5, G1 + G2 + G3), (7, G1 + G2), (9, G1 + G2), (10, G3), (11, G1 + G2)]


@pytest.mark.parametrize("text", ["hybrid", "hybrid+late"])
def test_without_it_the_pending_run_after_the_late(text: str) -> None:
    assert timeline(text, 5, busy=(4,)) == [(2, G1 + G2), (5, G1 + G2), (5, G3)]


def test_late_sharing_joins_what_is_late_to_different_degrees() -> None:
    busy = (2, 3)
    assert timeline("conservative", 4, busy) == [(4, G1), (4, G2)]
    assert timeline("conservative+late", 4, busy) == [(4, G1 + G2)]
    assert timeline("conservative", 3, busy=(2,)) == [(3, G1), (3, G2)]
    assert timeline("conservative+late", 3, busy=(2,)) == [(3, G1), (3, G2)]  # G2 is only pending
    assert timeline("conservative+late_pending", 3, busy=(2,)) == [(3, G1 + G2)]


def test_no_sharing_scans_once_for_each_period_and_edf_once_for_each_query() -> None:
    assert timeline("no_sharing", 6)[-2:] == [(6, G1), (6, G2)]
    assert timeline("edf", 2) == [(2, ("Q1",)), (2, ("Q2",)), (2, ("Q3",))]


# --- Figure 3: the arithmetic of d(T) --------------------------------------------------------


def left(made: Refresher) -> int | None:
    """d(T) of the only task that is due."""
    due = [one.left for one in made._groups["g"].due(at=0.0)]
    return due[0] if due else None


def test_figure_3_a_query_with_a_slide_of_two_is_due_at_the_second_update() -> None:
    made = refresher("edf", QueryGroup("g", (WindowQuery("q", 4, 2),)))
    made.close("g", 2)
    assert settle(made) == [(2, ("q",))]
    made.close("g", 3)
    assert left(made) is None  # d(T) = 1
    made.close("g", 4)
    assert left(made) == 0
    made.close("g", 5)
    assert left(made) == -1  # it should have run before t + 3s
    assert settle(made) == [(5, ("q",))]
    made.close("g", 6)
    assert left(made) is None  # the whole period again, although it was late
    made.close("g", 7)
    assert left(made) == 0


def test_panes_that_close_during_a_run_count_from_what_the_run_has_seen() -> None:
    made = refresher("edf", QueryGroup("g", (WindowQuery("q", 4, 2),)))
    made.close("g", 2)
    run = made.decide(2.0)
    assert run is not None
    for end in (3, 4, 5):
        made.close("g", end)
    assert made.decide(5.0) is None  # it is under way
    made.finished(5.0, run, 3.0)
    assert left(made) == -1


def test_groups_with_longer_panes_are_compared_in_time() -> None:
    long = QueryGroup("long", (WindowQuery("l", 4, 2),), pane=10)
    short = QueryGroup("short", (WindowQuery("s", 4, 2),))
    made = refresher("edf", short, long)
    for end in range(1, 6):
        made.close("short", end)
    for end in range(1, 4):
        made.close("long", end)
    assert [name for _, (name,) in settle(made)] == ["l", "s"]  # 10 late against 4


def test_among_equals_the_higher_priority_goes_first() -> None:
    group = QueryGroup("g", (WindowQuery("low", 4, 2), WindowQuery("high", 4, 2, priority=5)))
    made = refresher("edf", group)
    made.close("g", 2)
    assert [names for _, names in settle(made)] == [("high",), ("low",)]


# --- exactly ---------------------------------------------------------------------------------

EXACT = QueryGroup("g", (WindowQuery("free", 6, 2), WindowQuery("exact", 4, 3, exactly=True)))


def test_an_exact_query_is_answered_at_the_multiples_of_its_slide_only() -> None:
    made, done = refresher("aggressive", EXACT), []
    for end in range(1, 13):
        made.close("g", end)
        done += settle(made)
    assert [end for end, names in done if "exact" in names] == [3, 6, 9, 12]
    assert (6, ("free", "exact")) in done  # one scan for both


def test_under_overload_none_of_its_ends_is_left_out_and_its_panes_are_kept() -> None:
    made = refresher("hybrid+late_pending", EXACT)
    for end in range(1, 12):
        made.close("g", end)
    assert made.oldest("g") == 2 - 6
    assert settle(made) == [(11, ("free",)), (3, ("exact",)), (6, ("exact",)), (9, ("exact",))]
    assert made.oldest("g") == 11 - 6
    made.close("g", 13)
    assert made.oldest("g") == 13 - 6


def test_a_running_scan_keeps_its_panes_while_others_close() -> None:
    made = refresher("conservative", QueryGroup("g", (WindowQuery("q", 4, 2),)))
    made.close("g", 2)
    run = made.decide(2.0)
    made.close("g", 9)
    assert made.oldest("g") == 2 - 4
    assert run is not None
    made.finished(9.0, run, 1.0)
    assert made.oldest("g") == 4 - 4
    assert [end for end, _ in settle(made)] == [4, 6, 8]
    assert made.oldest("g") == 9 - 4


def test_a_gap_without_rows_is_passed_over() -> None:
    made = refresher("hybrid", QueryGroup("g", (WindowQuery("q", 4, 3, exactly=True),)))
    made.close("g", 5, filled=[4])
    made.close("g", 10**12, filled=[10**12 - 1])
    made.close("g", 10**12 + 3, filled=[])
    assert [end for end, _ in settle(made)] == [6, 10**12 + 2]  # the next multiple of three


def test_a_row_that_comes_later_for_the_same_end_is_answered_with_the_others() -> None:
    long = WindowQuery("long", 10, 10, exactly=True)
    short = WindowQuery("short", 2, 10, exactly=True)
    made = refresher("hybrid", QueryGroup("g", (long, short)), drained=True)
    made.close("g", 4, filled=[3])  # only the long window has a row so far
    made.close("g", 10, filled=[8])
    made.close("g", 30, filled=[11, 29])
    assert settle(made) == [(10, ("long", "short")), (20, ("long",)), (30, ("long", "short"))]


def test_panes_before_1970_have_negative_numbers_and_are_answered_alike() -> None:
    made = refresher("hybrid", QueryGroup("g", (WindowQuery("q", 4, 3, exactly=True),)),
                     drained=True)
    made.close("g", -20, filled=[-21])
    made.close("g", -10, filled=[-14])
    made.conclude("g")
    assert [end for end, _ in settle(made)] == [-18, -12]


# --- drained ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=st.data(), text=st.sampled_from(["no_sharing", "edf", "aggressive", "hybrid+late"]))
def test_a_drain_answers_every_window_that_holds_a_row_once_whatever_the_policy(
    data: st.DataObject, text: str
) -> None:
    queries = tuple(WindowQuery(f"q{i}", data.draw(st.integers(1, 8)), data.draw(st.integers(1, 6)))
                    for i in range(data.draw(st.integers(1, 3))))
    filled = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1, max_size=12)))
    made = refresher(text, QueryGroup("g", queries), drained=True)
    answered: dict[str, list[int]] = {query.name: [] for query in queries}
    told = 0
    for end in sorted(data.draw(st.sets(st.integers(1, 61), max_size=5)) | {61}):
        made.close("g", end, [pane for pane in filled if told <= pane < end])
        told = end
        if data.draw(st.booleans()):
            take(made, answered)
    made.conclude("g")
    take(made, answered)
    for query in queries:
        window, period = query.window, query.period
        assert answered[query.name] == [
            end for end in range(0, 100, period) if any(end - window <= p < end for p in filled)]


def take(made: Refresher, answered: dict[str, list[int]]) -> None:
    """Carry out what is due; the panes that each run reads must still be there."""
    while run := made.decide(0.0):
        oldest = made.oldest("g")
        assert oldest is not None
        for name, window in run.queries:
            assert oldest <= run.end - window
            answered[name].append(run.end)
        made.finished(0.0, run, 0.0)


# --- queries come and go ---------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(joins=st.integers(2, 20), leaves=st.integers(2, 20), period=st.integers(1, 6))
def test_queries_that_come_and_go_change_no_others_answers(
    joins: int, leaves: int, period: int
) -> None:
    """Under a policy that does not shorten periods, and without overload."""
    group = QueryGroup("g", Q)
    more = QueryGroup("g", (*Q, WindowQuery("new", 8, period)))
    alone, disturbed = refresher("conservative", group), refresher("conservative", group)
    for end in range(1, 30):
        if end == joins:
            disturbed.adopt(float(end), [more])
        if end == joins + leaves:
            disturbed.adopt(float(end), [group])
        kept = [made_at(made, end) for made in (alone, disturbed)]
        assert kept[0] == kept[1]


def made_at(made: Refresher, end: int) -> dict[str, int]:
    made.close("g", end)
    return {name: at for at, names in settle(made) for name in names if name != "new"}


def test_an_exact_query_that_comes_with_another_slide_or_answer_has_other_ends() -> None:
    made = refresher("hybrid", QueryGroup("g", (WindowQuery("q", 4, 5, exactly=True),)),
                     drained=True)
    made.close("g", 1, filled=[0])
    made.adopt(1.0, [QueryGroup("g", (WindowQuery("q", 4, 3, exactly=True),))])
    made.close("g", 20, filled=range(1, 20))
    made.adopt(2.0, [QueryGroup("g", (WindowQuery("q", 4, 3, exactly=True),))], {"q": 12})
    assert [end for end, _ in settle(made)] == [15, 18]


def test_a_query_that_leaves_during_its_run_is_forgotten() -> None:
    made = refresher("conservative",
                     QueryGroup("g", (WindowQuery("a", 4, 2), WindowQuery("b", 4, 3))))
    made.close("g", 2)
    run = made.decide(2.0)
    assert run is not None
    made.adopt(2.0, [QueryGroup("g", (WindowQuery("b", 4, 3),))])
    made.finished(2.5, run, 0.5)
    made.close("g", 6)
    assert settle(made) == [(3, ("b",)), (6, ("b",))]


def test_a_query_under_way_is_not_run_twice_when_its_task_changes() -> None:
    """By the new plan it rides with another; it waits until its own run has ended."""
    a, b = WindowQuery("a", 4, 2, exactly=True), WindowQuery("b", 4, 2, exactly=True)
    made = refresher("conservative", QueryGroup("g", (a,)))
    made.close("g", 2)
    run = made.decide(2.0)
    assert run is not None
    made.adopt(2.0, [QueryGroup("g", (a, b))])
    assert made.decide(2.0) is None
    made.finished(2.5, run, 0.5)
    assert settle(made) == [(2, ("b",))]


def test_a_group_that_is_gone_is_no_trouble_to_its_run() -> None:
    made = refresher("conservative", QueryGroup("g", (WindowQuery("a", 4, 2),)))
    made.close("g", 2)
    first = made.decide(2.0)
    assert first is not None
    made.adopt(2.0, [])
    made.finished(2.5, first, 0.5)
    assert made.decide(3.0) is None


def test_a_restart_goes_on_after_the_last_answers() -> None:
    made = Refresher(policy("conservative"))
    made.adopt(0.0, [EXACT], answered={"free": 5, "exact": 6})
    made.close("g", 7)
    assert settle(made) == [(7, ("free",))]
    made.close("g", 12)
    assert settle(made) == [
        (9, ("free", "exact")), (11, ("free",)), (12, ("exact",))]


# --- costs and the record --------------------------------------------------------------------


def test_measured_costs_are_used_after_a_window_and_periods_are_noted() -> None:
    """Merges alone say: run 2 and 3 together. Dear answers say: leave 3 alone."""
    made = Refresher(policy("hybrid"), statistics=Statistics(window=10.0))
    made.adopt(0.0, [QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3)))])
    assert made.periods("g") == {"a": 2, "b": 2}
    (chosen,) = made.noted()
    assert isinstance(chosen, ev.PeriodsChosen)
    assert chosen.costs == pytest.approx(
        {"chosen": 7.0, "conservative": 46 / 6, "aggressive": 7.0})
    for end in range(1, 31):
        made.close("g", end)
        while run := made.decide(float(end)):
            made.finished(float(end), run, 1.0, scanning=0.001, answering=0.999)
    assert made.periods("g") == {"a": 2, "b": 3}
    changed = [note for note in made.noted() if isinstance(note, ev.PeriodsChosen)]
    assert [note.reason for note in changed] == ["costs have changed"]


# --- late groups -----------------------------------------------------------------------------

DOUBLE = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 12, 4)),
                    costs=Costs(answer=1.0))


def periods_chosen(
    made: Refresher, panes: int, busy: tuple[int, ...] = (), first: int = 1
) -> list[tuple[int, tuple[int, ...], str]]:
    """When which periods are chosen for which reason; refreshes take no time."""
    noted = [(0, tuple(note.periods.values()), note.reason) for note in made.noted()]
    for end in range(first, panes + 1):
        made.close("g", end)
        while end not in busy and (run := made.decide(float(end))):
            made.passed(run)
        noted += [(end, tuple(note.periods.values()), note.reason) for note in made.noted()]
    return noted


LATE = "tasks are late, so that different periods share no scan"
IN_TIME = "tasks are in time again"


@pytest.mark.parametrize("text", ["hybrid", "hybrid+late", "hybrid+late_pending"])
def test_hybrid_weighs_without_shared_scans_while_tasks_are_late(text: str) -> None:
    made = refresher(text, DOUBLE)
    assert periods_chosen(made, 20, busy=(8,)) == [
        (0, (2, 4), "the queries are these"),
        (9, (2, 2), LATE),  # both were due at 8
        (13, (2, 4), IN_TIME),  # for four panes, the longest period, none was late
    ]


def test_a_group_that_is_late_again_and_again_stays_as_it_is() -> None:
    made = refresher("hybrid", DOUBLE)
    noted = periods_chosen(made, 40, busy=tuple(range(2, 40, 3)))
    assert [reason for _, _, reason in noted] == ["the queries are these", LATE]


def test_what_is_late_in_one_group_changes_no_other() -> None:
    made = refresher("hybrid", DOUBLE, QueryGroup("h", tuple(
        WindowQuery(f"h{query.name}", query.window, query.period) for query in DOUBLE.queries),
        costs=DOUBLE.costs))
    made.noted()
    for end in (1, 2, 3):
        made.close("g", end)
    made.close("h", 1)
    while run := made.decide(3.0):
        made.passed(run)
    assert [(note.group, note.reason) for note in made.noted()] == [("g", LATE)]


def test_a_query_that_joins_finds_its_group_late() -> None:
    made = refresher("hybrid", DOUBLE)
    periods_chosen(made, 9, busy=(8,))
    made.adopt(9.0, [replace(DOUBLE, queries=(*DOUBLE.queries, WindowQuery("c", 12, 8)))])
    assert made.periods("g") == dict.fromkeys("abc", 2)
    assert periods_chosen(made, 30, first=10)[-1][1:] == ((2, 4, 8), IN_TIME)


@settings(max_examples=60, deadline=None)
@given(windows=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=6),
       answer=st.sampled_from([0.0, 1.0, 10.0]),
       text=st.sampled_from(["hybrid", "hybrid+late", "hybrid+late_pending"]))
def test_while_no_task_is_late_periods_are_those_of_shared_scans(
    windows: list[tuple[int, int]], answer: float, text: str
) -> None:
    group = QueryGroup("g", tuple(WindowQuery(f"q{i}", *of) for i, of in enumerate(windows)),
                       costs=Costs(answer=answer))
    expected = {query.name: one.period
                for one in policy("hybrid").prepare([group]) for query in one.queries}
    made = refresher(text, group)
    assert [reason for _, _, reason in periods_chosen(made, 60)] == ["the queries are these"]
    assert made.periods("g") == expected


@settings(max_examples=60, deadline=None)
@given(windows=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=6),
       busy=st.sets(st.integers(1, 40)),
       text=st.sampled_from(["edf", "no_sharing", "aggressive", "conservative", "conservative+late",
                             "conservative+late_pending"]))
def test_policies_that_do_not_weigh_answer_the_same_whether_they_are_told_or_not(
    windows: list[tuple[int, int]], busy: set[int], text: str
) -> None:
    queries = tuple(WindowQuery(f"q{i}", *of) for i, of in enumerate(windows))

    def answered() -> Timeline:
        made, done = refresher(text, QueryGroup("g", queries)), []
        for end in range(1, 45):
            made.close("g", end)
            if end not in busy:
                done += settle(made)
        return done

    told = answered()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deadlines, "is_late", lambda self, due: False)
        assert answered() == told


def test_a_drain_is_never_late() -> None:
    made = refresher("hybrid", DOUBLE, drained=True)
    noted = periods_chosen(made, 20, busy=(4, 5, 6, 7, 8, 9))
    assert [reason for _, _, reason in noted] == ["the queries are these"]


def test_a_query_that_joins_finds_the_measured_costs() -> None:
    made = refresher("hybrid", QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3))))
    made.close("g", 2)
    run = made.decide(2.0)
    assert run is not None
    made.finished(2.0, run, 1.0, scanning=0.15, answering=0.5)
    made.adopt(3.0, [QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3),
                                      WindowQuery("c", 15, 3)))])
    costs = made._groups["g"].group.costs
    assert (costs.read, costs.merge, costs.answer) == pytest.approx((0.01, 0.0, 0.25))
    assert costs.start == pytest.approx(0.35)


def test_a_drain_does_not_look_at_the_clock() -> None:
    made = refresher("hybrid", QueryGroup("g", Q), drained=True)
    for end in range(1, 31):
        made.close("g", end)
        while run := made.decide(float(end)):
            made.finished(float(end), run, 5.0, scanning=0.0, answering=5.0)
    assert made._groups["g"].group.costs == Costs()


def test_every_decision_has_its_reason() -> None:
    made = refresher("conservative")
    made.noted()
    made.close("g", 2)
    run = made.decide(2.5)
    assert run is not None
    assert (run.group, run.end, tuple(name for name, _ in run.queries)) == ("g", 2, G1)
    assert (run.reason, run.waiting) == ("g every 2 is due now", 1)
    assert made.noted() == []


def test_another_policy_takes_over_from_where_the_answers_are() -> None:
    made = refresher("conservative")
    for end in (1, 2, 3):
        made.close("g", end)
        settle(made)
    made.use(3.0, policy("aggressive"))
    made.close("g", 4)
    assert settle(made) == [(4, G1 + G2 + G3)]


def test_a_query_is_answered_once_for_an_end_though_its_task_changes() -> None:
    a, b = WindowQuery("a", 4, 2), WindowQuery("b", 4, 3)
    made = refresher("conservative", QueryGroup("g", (a, b)))
    for end in (1, 2, 3):
        made.close("g", end)
        settle(made)
    made.close("g", 4)
    assert settle(made) == [(4, ("a",))]
    made.use(4.0, policy("aggressive"))
    made.close("g", 5)
    assert settle(made) == [(5, ("a", "b"))]  # b is due at 3 + 2
    made.use(5.0, policy("edf"))
    made.use(5.0, policy("aggressive"))
    assert settle(made) == []


@given(st.sets(st.integers(0, 120), min_size=1, max_size=25), st.integers(1, 6), st.integers(1, 30),
       st.integers(1, 5), st.integers(1, 8), st.booleans(), st.integers(0, 6))
def test_windows_with_empty_groups_go_on_while_groups_are_known_and_end_with_the_last_row(
    rows: set[int], covers: int, kept: int, period: int, size: int, beside: bool, crash: int
) -> None:
    """Whatever else is in the group, however rows come in blocks, and across a restart."""
    panes, found = sorted(rows), list[int]()
    query = WindowQuery("q", covers + kept, period, exactly=True, covers=covers)
    others = (WindowQuery("long", 40, 7, exactly=True),) if beside else ()

    def begun() -> Refresher:
        made = Refresher(policy("hybrid"), drained=True)
        made.adopt(0.0, [QueryGroup("g", (query, *others))],
                   {"q": found[-1], "long": found[-1]} if found else {})
        return made

    made = begun()
    for number in range(0, len(panes), size):
        known = panes[: number + size]
        if number // size == crash:
            made = begun()  # what is needed is closed again
        made.close("g", known[-1] + 1, filled=known)
        found += [end for end, names in settle(made) if "q" in names]
    made.conclude("g")
    found += [end for end, names in settle(made) if "q" in names]
    assert found == [end for end in range(panes[0] + 1, panes[-1] + covers + 1)
                     if end % period == 0
                     and any(end - covers - kept <= pane < end for pane in panes)]
