"""Who gets a free slot: departments that offer work have as long as each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.dispatch import Dispatcher
from penstock.engine.instructions import Cancel, Instruction, Note, Wake
from penstock.engine.overlap import UNKNOWN
from penstock.engine.settings import Settings
from penstock.engine.state import EngineState
from penstock.engine.time_shares import TimeShares
from penstock.engine.timeouts import Timeouts
from penstock.engine.work import Begun, Ended
from penstock.events import kinds as ev


@dataclass
class Scripted:
    """A department with so many jobs to do; what it orders is marked by its name."""

    name: str
    jobs: int
    preempts: bool = False
    goes_first: bool = False
    wake_at: float | None = None
    expected: float = 2.0
    fixed: float = 0.0
    active: dict[int, None] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    @property
    def slots(self) -> int:
        return len(self.active)

    def offer(self, at: float, preempting: bool) -> str | None:
        return ("urgent" if preempting else "usual") if self.jobs else None

    def begin(self, at: float, job: int, offer: str) -> Begun:
        self.jobs -= 1
        self.active[job] = None
        self.log.append(f"{self.name} {job} {offer}")
        decided = ev.JobDecided(at=at, job=job, kind="refresh", reason="why",
                                work=ev.RefreshWork(group="g", scans=()))
        return Begun(instructions=[Note(event=decided), Cancel(job=job, limit=0.0)],
                     riders=(self.name,), expected=self.expected, fixed=self.fixed)

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        del self.active[event.job]
        return Ended(stops={self.name: "why"} if isinstance(event, ev.JobFailed) else {})


def dispatcher(*departments: Scripted, slots: int = 1, timeout: float = 9.0) -> Dispatcher:
    return Dispatcher(EngineState(Settings(slots=slots)), departments, Timeouts(timeout))


def finished(job: int, seconds: float) -> ev.JobFinished:
    return ev.JobFinished(at=0.0, job=job, kind="segment", seconds=seconds,
                          result=ev.SegmentResult(rows_in=1))


def begun(made: Sequence[Instruction]) -> list[int]:
    return [one.job for one in made if isinstance(one, Cancel)]


def test_free_slots_are_filled_and_jobs_numbered_across_departments() -> None:
    a, b = Scripted("a", 2), Scripted("b", 2)
    made = dispatcher(a, b, slots=3)
    made.last_job = 7
    assert begun(list(made.fill(0.0))) == [8, 9, 10]
    assert made.under_way == (8, 9, 10) and made.last_job == 10
    assert (a.log, b.log) == (["a 8 usual", "a 9 usual"], ["b 10 usual"])


def test_who_has_had_less_time_goes_first_and_ties_go_by_order() -> None:
    a, b = Scripted("a", 9), Scripted("b", 9)
    made = dispatcher(a, b)
    turns = []
    for seconds in (2.0, 1.0, 1.0, 5.0, 1.0):
        (job,) = begun(list(made.fill(0.0)))
        turns.append(next(d.name for d in (a, b) if job in d.active))
        made.end(finished(job, seconds))
    assert turns == ["a", "b", "b", "a", "b"]


def test_a_department_that_goes_first_does_whatever_time_it_has_had() -> None:
    a, b = Scripted("a", 9), Scripted("b", 2, goes_first=True)
    made = dispatcher(a, b)
    turns = []
    for _ in range(3):
        (job,) = begun(list(made.fill(0.0)))
        turns.append("b" if job in b.active else "a")
        made.end(finished(job, 10.0))
    assert turns == ["b", "b", "a"]


def test_with_all_slots_taken_one_more_job_may_preempt() -> None:
    a, b = Scripted("a", 1), Scripted("b", 2, preempts=True)
    made = dispatcher(a, b)
    list(made.fill(0.0))
    assert (a.log, b.log) == (["a 1 usual"], ["b 2 urgent"])
    assert list(made.fill(1.0)) == []


def test_whoever_waits_by_the_clock_is_asked_again() -> None:
    made = dispatcher(Scripted("a", 0, wake_at=4.5), Scripted("b", 0))
    assert list(made.fill(0.0)) == [Wake(at=4.5)]


def test_a_job_has_the_limit_of_what_is_expected_and_of_who_is_in_it() -> None:
    made = dispatcher(Scripted("a", 3), timeout=100.0)
    list(made.fill(0.0))
    assert made.timeouts.over(100.0) == [(1, 100.0)]
    made.timeouts.suspect(["a"], 100.0)
    made.end(ev.JobFailed(at=100.0, job=1, kind="segment", reason="cancelled"))
    list(made.fill(100.0))
    assert made.timeouts.over(120.0) == [(2, 20.0)]  # ten times the two seconds expected
    made.end(finished(2, 1.0))
    assert not made.timeouts.has_suspects(["a"])


def test_a_job_that_failed_counts_for_no_share_and_its_department_says_who_stops() -> None:
    a, b = Scripted("a", 9), Scripted("b", 9)
    made = dispatcher(a, b)
    list(made.fill(0.0))
    ended = made.end(ev.JobFailed(at=9.0, job=1, kind="segment", reason="why"))
    assert ended.stops == {"a": "why"}
    list(made.fill(9.0))
    assert a.log == ["a 1 usual", "a 2 usual"]


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=80), st.integers(2, 4))
def test_departments_that_always_have_work_differ_by_less_than_two_jobs(
    seconds: list[float], count: int
) -> None:
    shares, had = TimeShares(count), [0.0] * count
    for each in seconds:
        first = shares.order()[0]
        shares.record(first, each)
        had[first] += each
        assert max(had) - min(had) <= 2 * max(seconds)


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=40), st.floats(0.01, 10.0))
def test_a_department_that_had_no_work_saves_up_no_more_than_the_latest_job(
    alone: list[float], own: float
) -> None:
    shares = TimeShares(2)
    for seconds in alone:
        shares.record(0, seconds)
    taken = 0.0
    while shares.order()[0] == 1:
        shares.record(1, own)
        taken += own
    assert taken <= alone[-1] + own + 1e-6


# --- jobs that overlap ---------------------------------------------------------------------------


def overlapping(*departments: Scripted) -> Dispatcher:
    return Dispatcher(EngineState(Settings(overlap=True)), departments, Timeouts(900.0))


def test_the_next_job_begins_when_the_present_one_has_its_fixed_part_left() -> None:
    a = Scripted("a", 9, fixed=0.5)  # two seconds are expected
    made = overlapping(a)
    first = list(made.fill(10.0))
    assert begun(first) == [1] and first[-1] == Wake(at=11.5)
    assert begun(list(made.fill(11.0))) == []
    assert begun(list(made.fill(11.5))) == [2]
    assert begun(list(made.fill(13.0))) == [], "at most one more than there are slots"
    made.end(finished(1, 2.5))
    assert begun(list(made.fill(13.0))) == [3], "the second should end at 13.5"


def test_a_decision_to_begin_beside_another_job_says_so() -> None:
    a = Scripted("a", 2, fixed=0.5)
    made = overlapping(a)
    reasons = [note.event.reason for at in (0.0, 1.75) for note in made.fill(at)
               if isinstance(note, Note)]
    assert reasons == ["why", "why, beside job 1, which should end in 0.25 s"]


def test_a_job_of_unknown_cost_has_the_cores_to_itself_for_a_moment() -> None:
    a = Scripted("a", 2, expected=0.0)
    made = overlapping(a)
    first = list(made.fill(0.0))
    assert begun(first) == [1] and Wake(at=UNKNOWN) in first
    assert begun(list(made.fill(UNKNOWN / 2))) == []
    assert begun(list(made.fill(UNKNOWN))) == [2]


def test_others_begin_at_once_beside_what_the_driver_does_alone() -> None:
    a = Scripted("a", 5, expected=0.0, fixed=inf)
    assert begun(list(overlapping(a).fill(0.0))) == [1, 2]


def test_without_slots_nothing_begins_although_a_job_is_about_to_end() -> None:
    a = Scripted("a", 5, fixed=2.0)
    made = overlapping(a)
    made.state.settings = Settings(slots=0, overlap=True)
    assert begun(list(made.fill(0.0))) == []


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 3.0)), min_size=1, max_size=40))
def test_never_more_than_one_job_too_many(jobs: list[tuple[float, float]]) -> None:
    a = Scripted("a", 10**6)
    made = overlapping(a)
    for at, (expected, fixed) in enumerate(jobs):
        a.expected, a.fixed = expected, fixed
        list(made.fill(float(at)))
        assert 1 <= len(a.active) <= 2
        made.end(finished(next(iter(a.active)), 1.0))
