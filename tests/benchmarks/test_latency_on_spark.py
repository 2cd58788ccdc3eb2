"""The benchmark of latency on Spark: both engines answer a small case, and it is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.latency.measuring import Span, native, penstock
from benchmarks.latency.workloads import Case, Window, Workload

pytestmark = pytest.mark.spark
SMALL = Workload("small", 200, 2, (Window(1, 1, "protocol"),))


@pytest.mark.parametrize("engine", [penstock, native], ids=lambda engine: engine.__name__)
@pytest.mark.parametrize(("sink", "source"), [("callback", "generated"), ("shared", "files")])
def test_rows_and_windows_are_answered_after_their_events(
    engine: Any, sink: str, source: str, spark: Any, tmp_path: Path
) -> None:
    found = engine(Case(SMALL, sink, source), Span(warm=1.0, steady=3.0), spark,
                   tmp_path / "case")
    assert found.rows is not None and 0 < found.rows.p50 <= found.rows.p99 <= found.rows.max
    assert found.windows is not None and found.windows.p50 > 0
    assert found.first > 0 and found.behind == 0
