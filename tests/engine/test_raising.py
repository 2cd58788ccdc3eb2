"""A predicate that raises for all rows is told of its own query, whoever shares the job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.engine import SegmentJob
from penstock.events import JobFinished, SegmentResult, Warned
from penstock.testing import FakeHost

APPLICATION = """
    CREATE STREAM s (port INT, length INT) FROM rate;
    CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';
    CREATE QUERY sound AS SELECT port FROM s WHERE f(port, length);
    CREATE QUERY broken AS SELECT port FROM s WHERE f(port, length) AND f(length, port);
"""


class Raising(FakeHost):
    """Some rows are rejected for both queries; one predicate of the second raises for all."""

    def outcome(self, job: SegmentJob) -> Any:
        end = super().outcome(job)
        assert isinstance(end, JobFinished) and isinstance(end.result, SegmentResult)
        return replace(end, result=replace(
            end.result, rejected={"sound": 3, "broken": 5}, errors={"broken": "RuntimeError: x"},
            raising={"broken": 60}))


def test_a_predicate_that_raises_for_all_rows_is_a_warning_for_its_own_query_only() -> None:
    plain = FakeHost.of(APPLICATION)
    host = Raising(plain.core, application=plain.application, clock=plain.clock)
    for number in range(3):
        host.arrive("s", at=float(number), rows=100)
    host.end("s", at=9.0)
    host.run()
    warned = [event for event in host.record if isinstance(event, Warned)]
    assert [event.subject for event in warned] == ["query broken"]
    assert "(120 rows), beginning with: RuntimeError: x" in warned[0].text
