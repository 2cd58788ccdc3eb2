"""The policy of the page "How to write a policy", added as one file and one line."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from penstock import policies
from penstock.events import JobDecided, Summary
from penstock.language import bind
from penstock.policies.operators import POLICIES
from penstock.testing import FakeHost

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-policy.md"
APPLICATION = """
    CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 1 SECOND;
    CREATE QUERY few AS SELECT a FROM s WHERE a < 5;
"""


def test_a_policy_is_added_by_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test kit then runs an application under its name, and the record has its reasons."""
    listing = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    (tmp_path / "shortest_first.py").write_text(listing, encoding="utf-8")  # the file
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("shortest_first")
    monkeypatch.setitem(POLICIES, "shortest_first", module.ShortestFirst)  # the line

    chosen = policies.read(bind("SET operators = 'shortest_first'").settings)["operators"]
    assert isinstance(chosen, module.ShortestFirst)
    host = FakeHost.of(APPLICATION)
    host.core.use("operators", chosen, 0.0, "shortest_first")
    for number in range(3):
        host.arrive("s", at=float(number), times=[float(number)])
    host.end("s", at=9.0)
    host.run()
    decided = [event for event in host.record if isinstance(event, JobDecided)]
    assert decided
    assert all("the output is" in event.reason for event in decided)
    assert Summary.of(host.record).accounting() == []
