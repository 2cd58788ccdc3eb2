"""A function that rejects every row is told of at once, and stops its query if that was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.engine import Core, SegmentJob
from penstock.engine.rejections import Rejections
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.functions import PythonFunction, predicate
from penstock.language import bind
from penstock.planning import plan
from penstock.policies.operators import policy
from penstock.testing import FakeHost


@predicate
def odd(a):  # type: ignore[no-untyped-def]
    return a


def load(module: str, attribute: str, folder: str) -> PythonFunction:
    return odd


def host_of(rejected: Callable[[SegmentJob], int], options: str = "", **settings: bool) -> FakeHost:
    """A host on which a predicate raises for so many rows of a run and lets the others pass."""

    class Rejecting(FakeHost):
        def outcome(self, job: SegmentJob) -> ev.JobFinished | ev.JobFailed:
            end = super().outcome(job)
            if isinstance(end, ev.JobFailed) or end.kept or job.members[0].query != "q":
                return end
            bad = rejected(job)
            left = end.result.rows_in - bad
            counts = {op.id: left for op in self.core.plan.path(job.path).operators
                      if op.kind == "python"}
            return replace(end, rows_out={"q": left}, result=replace(
                end.result, rejected={"q": bad}, errors={"q": "ValueError: bad luck"},
                operators=counts))

    application = bind(f"""
        CREATE STREAM s (a INT) FROM rate;
        CREATE FUNCTION odd FROM 'm:odd';
        CREATE QUERY q {options} AS SELECT a FROM s WHERE odd(a);
        CREATE QUERY good AS SELECT a FROM s;
    """, load=load)
    core = Core({"operators": policy("fifo")}, Settings(**settings))  # type: ignore[arg-type]
    core.adopt(plan(application))
    host = Rejecting(core, application=application)
    host.handle(ev.EngineStarted(at=0.0, streams=("s",), policies={"operators": "fifo"}, cores=1))
    host._join(application.queries)
    return host


def warnings(host: FakeHost) -> list[tuple[float, str]]:
    return [(e.at, e.text) for e in host.record if isinstance(e, ev.Warned)]


def test_three_blocks_of_nothing_but_rejects_are_a_warning_at_once_and_only_once() -> None:
    host = host_of(lambda run: sum(block.rows for block in run.blocks))
    for at in range(1, 60, 10):
        host.arrive("s", at=float(at), rows=2)
    host.run()
    ((at, text),) = warnings(host)
    assert at < 30
    assert text == ("its function rejected every row of 3 blocks (6 rows), beginning with: "
                    "ValueError: bad luck")
    assert host.failures == {}


def test_many_rows_are_enough() -> None:
    host = host_of(lambda run: sum(block.rows for block in run.blocks))
    host.arrive("s", at=1.0, rows=5000)
    host.run()
    ((_, text),) = warnings(host)
    assert "every row of 1 block (5000 rows)" in text


def test_a_row_that_passes_is_no_reason_to_warn() -> None:
    host = host_of(lambda run: sum(block.rows for block in run.blocks) - 1)
    for at in range(1, 60, 10):
        host.arrive("s", at=float(at), rows=200)
    host.run()
    assert warnings(host) == []


def test_rejects_now_and_then_are_no_reason_to_warn() -> None:
    host = host_of(lambda run: run.blocks[0].rows if run.blocks[0].number % 3 else 0)
    for at in range(1, 90, 10):
        host.arrive("s", at=float(at), rows=9)
    host.run()
    assert warnings(host) == []


def test_the_query_stops_if_that_was_asked_and_the_others_go_on() -> None:
    host = host_of(lambda run: sum(block.rows for block in run.blocks),
                   "WITH (rejects = 'fail')", until_drained=True)
    for at in range(1, 60, 10):
        host.arrive("s", at=float(at), rows=2)
    host.end("s", 70.0)
    host.run()
    assert host.failures["q"].startswith("its function rejected every row of 3 blocks")
    assert "good" not in host.failures
    assert host.finished is not None and host.finished.outcome == "drained"


@pytest.mark.parametrize("option", ["keep", "fail"])
def test_at_the_end_of_a_drain_few_rows_are_enough(option: str) -> None:
    host = host_of(lambda run: sum(block.rows for block in run.blocks),
                   f"WITH (rejects = '{option}')", until_drained=True)
    host.arrive("s", at=1.0, rows=2)
    host.end("s", 2.0)
    host.run()
    told = [text for _, text in warnings(host)] or list(host.failures.values())
    assert told == ["its function rejected every row of 1 block (2 rows), beginning with: "
                    "ValueError: bad luck"]
    assert set(host.failures) == ({"q"} if option == "fail" else set())
    assert host.finished is not None and host.finished.outcome == "drained"


def test_pairs_that_are_all_rejected_are_told_of_too() -> None:
    application = bind("""
        CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
        CREATE FUNCTION odd FROM 'm:odd';
        CREATE QUERY q AS SELECT A.a FROM s A, s B WHERE A.a = B.a AND odd(A.a) WINDOW 9 SECONDS;
    """, load=load)
    (join,) = plan(application).joins
    operators = join.path.operators
    within, called = (one for one in operators if one.kind in ("filter", "python"))

    def told(pairs: int, rejected: int) -> list[tuple[str, str]]:
        result = ev.ProbeResult(rejected={"q": rejected}, errors={"q": "ValueError: bad luck"},
                                operators={within.id: pairs, called.id: 0})
        event = ev.JobFinished(at=1.0, job=1, kind="probe", seconds=1.0, result=result)
        return list(Rejections().take(event, result, operators, blocks=2))

    assert told(120, 119) == [], "the function is false for one of them"
    assert told(120, 120) == [("q", "its function rejected every row of 2 blocks (120 rows), "
                                    "beginning with: ValueError: bad luck")]
