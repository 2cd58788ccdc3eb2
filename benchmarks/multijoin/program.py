"""`python -m benchmarks multijoin`: the packets that four routers have in common.

Four streams are joined on one key over windows of ten minutes, as in Example 1 of the filters
paper. Beside it stand a tree of three stream-stream joins of Spark's own, and one batch join: what
Spark needs for the results alone. All of them take all data, on both cores, after a warm-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.live import workplace
from benchmarks.multijoin.routers import (
    FULL,
    QUICK,
    WARM,
    Found,
    batch,
    native,
    penstock,
    rows,
    write_routers,
)
from harness.findings import Report
from harness.program import Progress

TIMES = 3
"""Each side is measured so often, and the fastest counts."""
MEGABYTE = 1 << 20


def run(quick: bool, out: Path, progress: Progress) -> Iterator[Report]:
    """One report."""
    report = Report("multijoin", about=[" ".join((__doc__ or "").split("\n\n")[1].split())])
    with workplace("multijoin") as (spark, work):
        _measure(report, spark, work, quick, progress)
    yield report


def _measure(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    data = write_routers(work / "data", QUICK if quick else FULL)
    warm = write_routers(work / "warm", WARM)
    progress("warming up")
    penstock(spark, warm, work / "warm penstock")
    native(spark, warm, work / "warm native")
    batch(spark, warm)
    took: dict[str, Found] = {}
    progress("penstock")
    took["penstock"] = _best(lambda n: penstock(spark, data, work / f"ours {n}"))
    progress("one batch join")
    took["one batch join"] = _best(lambda n: batch(spark, data))
    progress("native, three stream-stream joins")
    took["three stream-stream joins"] = _best(lambda n: native(spark, data, work / f"native {n}"))
    count = rows(data)
    report.rows += [_row(name, found, count) for name, found in took.items()]
    report.about += [f"{count:,} rows in all. Orders of probes that were learnt: "
                     f"{'; '.join(took['penstock'].orders) or 'those that were written'}."]
    _check(report, took["penstock"], took["three stream-stream joins"], took["one batch join"])


def _best(join: Callable[[int], Found]) -> Found:
    """The fastest of several: what else the machine did is no cost of the join."""
    return min(map(join, range(TIMES)), key=lambda found: found.seconds)


def _row(name: str, found: Found, count: int) -> dict[str, Any]:
    return {"what": name, "s": round(found.seconds, 2), "rows/s": round(count / found.seconds),
            "results": found.results or None,
            "MB held": round(found.memory / MEGABYTE, 1) if found.memory else None,
            "probes per key": round(found.probed, 2) or None}


def _check(report: Report, ours: Found, tree: Found, wanted: Found) -> None:
    faster = tree.seconds / ours.seconds
    report.check("native", "rows a second, over three stream-stream joins of Spark's", ">= 10",
                 f"{faster:.1f}", faster >= 10)
    state = ours.memory / tree.memory
    report.check("memory", "Spark's storage over the state of its own joins", "<= 0.25",
                 f"{state:.3g}", state <= 0.25)
    report.check("results", "as many results as the batch join finds", str(wanted.results),
                 str(ours.results), ours.results == wanted.results)
