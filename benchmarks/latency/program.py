"""`python -m benchmarks latency`: how long after an event its answer comes, live.

Both engines run in one process and JVM, one after the other, on the same cores. Each is warmed up
before anything counts, by all kinds of queries, and each case again by its own. Penstock runs with
its defaults; every native query has a trigger that fires as soon as it can.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.latency import first_answer
from benchmarks.latency.answers import Latencies
from benchmarks.latency.measuring import Measured, Span, native, penstock
from benchmarks.latency.workloads import CASES, QUICK, Case, chosen
from benchmarks.live import workplace
from harness.findings import Report
from harness.program import Option, Progress, Selective

FULL_SPAN, QUICK_SPAN, WARM_SPAN = Span(10, 20), Span(6, 10), Span(4, 2, patience=0)
P50, P99, COLD, ARCHIVED = 0.4, 1.0, 8.0, 6.0
"""The targets, in seconds."""
START = "start"
"""The case of the first answer of a process."""
COLD_START, LATER_START = "penstock, cold", "penstock, with the archive"
OFTEN = 3
"""Processes of each kind; the median counts."""
COLUMNS = ("sink", "source", "engine", "p50 s", "p99 s", "max s", "window p50 s", "window p99 s",
           "p50 to native's", "p99 to native's", "window p50 to native's",
           "window p99 to native's", "behind s", "first s")


def _read(text: str) -> tuple[str, ...]:
    patterns = tuple(text.split(","))
    for pattern in patterns:
        if pattern != START and not chosen([pattern]):
            raise ValueError(f"no case is called {pattern!r}; there are {START}, "
                             f"{', '.join(map(str, CASES))}")
    return patterns


def run(
    quick: bool, out: Path, progress: Progress, cases: Sequence[str] | None = None
) -> Iterator[Report]:
    """A report per workload, and one on the start."""
    patterns = cases or ((*QUICK, START) if quick else ("*", START))
    wanted, span = chosen(patterns), QUICK_SPAN if quick else FULL_SPAN
    if wanted:
        with workplace("latency") as (spark, work):
            _warm_up(spark, work, wanted, progress)
            for workload, those in groupby(wanted, key=lambda case: case.workload.name):
                report = Report(f"latency-{workload}", about=[__doc__ or ""], columns=COLUMNS)
                for case in those:
                    report.rows += _case(case, span, spark, work / "case", progress)
                _checks(report)
                yield report
    if START in patterns:
        yield _start(1 if quick else OFTEN, progress)


PROGRAM = Selective(run, (
    Option("cases", "patterns of WORKLOAD/SINK/SOURCE, as 'filters-20/*/files', with commas "
           "between them; 'start' for the first answer", _read),))


def _warm_up(spark: Any, work: Path, wanted: Sequence[Case], progress: Progress) -> None:
    """Both engines with the fullest workload they will have, once for each sink and source."""
    for sink, source in dict.fromkeys((case.sink, case.source) for case in wanted):
        for engine in (penstock, native):
            full = [case for case in wanted if (case.sink, case.source) == (sink, source)
                    and (case.workload.native or engine is penstock)]
            if full:
                case = max(full, key=lambda case: (len(case.workload.windows), -case.workload.rate))
                progress(f"warming up {engine.__name__}: {case}")
                engine(case, WARM_SPAN, spark, work / "warm")
                shutil.rmtree(work / "warm")


def _case(
    case: Case, span: Span, spark: Any, work: Path, progress: Progress
) -> list[dict[str, Any]]:
    """Native Spark first in every other case, so that neither always has the warmer machine."""
    ways: dict[str, Any] = {"penstock": penstock}
    if case.workload.native:
        ways["native"] = native
        if case.workload.windows and case.sink == "callback":
            ways["native, update"] = lambda *given: native(*given, mode="update")
        if str(case) == "filters-5/callback/files":
            ways["native, 2 tasks"] = lambda *given: native(*given, tasks=2)
    order = list(ways) if CASES.index(case) % 2 else list(reversed(ways))
    found: dict[str, Measured] = {}
    for engine in order:
        progress(f"{case}: {engine}")
        found[engine] = ways[engine](case, span, spark, work)
        shutil.rmtree(work)
    return [_row(case, engine, found[engine], found.get("native")) for engine in ways]


def _row(case: Case, engine: str, found: Measured, beside: Measured | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "case": str(case), "sink": case.sink, "source": case.source, "engine": engine,
        "rows/s": case.workload.rate, "queries": len(case.workload.queries)}
    for kind, prefix in _kinds(case):
        mine, theirs = getattr(found, kind), getattr(beside, kind) if beside else None
        row |= {f"{prefix}p50 s": mine and mine.p50, f"{prefix}p99 s": mine and mine.p99,
                f"{prefix}max s": mine and mine.max, f"{prefix}answers": mine.count if mine else 0}
        if engine == "penstock" and beside:
            row |= {f"{prefix}{part} to native's": _ratio(mine, theirs, part)
                    for part in ("p50", "p99")}
    return row | {"behind s": found.behind, "first s": found.first}


def _kinds(case: Case) -> list[tuple[str, str]]:
    """What is measured, and how its columns begin."""
    return [("rows", ""), *([("windows", "window ")] if case.workload.windows else [])]


def _ratio(mine: Latencies | None, theirs: Latencies | None, part: str) -> float | None:
    """Of two latencies; 0 where native Spark never answered, None where Penstock did not."""
    if mine is None:
        return None
    return float(getattr(mine, part) / getattr(theirs, part)) if theirs else 0.0


# --- targets -------------------------------------------------------------------------------------


def _checks(report: Report) -> None:
    """Over all cases of a workload: each names the worst, and how many keep the target."""
    ours = [row for row in report.rows if row["engine"] == "penstock"]
    for prefix, what in (("", "a row's"), ("window ", "a window's")):
        for name, most in ((f"{prefix}p50 s", P50), (f"{prefix}p99 s", P99)):
            _all(report, ours, name, f"{what} {name.split()[-2]}, event to answer", most, " s")
        for name in (f"{prefix}p50 to native's", f"{prefix}p99 to native's"):
            _all(report, ours, name, f"{what} {name.removeprefix('window ')}", 1.0, "")
    behind = max(row["behind s"] for row in ours)
    report.check(f"{report.name}: behind", "every query has answered for the whole steady part",
                 "0 s behind", f"{behind:.1f} s", behind == 0)


def _all(
    report: Report, rows: Sequence[dict[str, Any]], name: str, text: str, most: float, unit: str
) -> None:
    """A check over all cases that have such a figure; one that never answered exceeds it."""
    asked = [row for row in rows if name in row]
    if not asked:
        return
    worst = max(asked, key=lambda row: inf if row[name] is None else row[name])
    kept = sum(row[name] is not None and row[name] <= most for row in asked)
    told = "never" if worst[name] is None else f"at most {worst[name]:.2f}{unit}"
    report.check(
        f"{report.name}: {name}", text, f"<= {most:g}{unit} in every case",
        f"{kept} of {len(asked)}; {told} ({worst['sink']}, {worst['source']})",
        kept == len(asked))


def _start(often: int, progress: Progress) -> Report:
    """The first answer of a process, cold and with what an earlier one has kept."""
    report = Report("latency-start", about=[first_answer.__doc__ or ""])
    found: dict[str, list[float]] = {COLD_START: [], LATER_START: [], "native, cold": []}
    kept = []
    for number in range(often):
        progress(f"from the start of a process to its first answer: {number + 1} of {often}")
        with tempfile.TemporaryDirectory(prefix="penstock-start-") as folder:
            cache = Path(folder, "cache")
            found["native, cold"].append(first_answer.measure("native", Path(folder, "native")))
            found[COLD_START].append(first_answer.measure("penstock", cache))
            kept.append(first_answer.settled(cache))
            found[LATER_START].append(first_answer.measure("penstock", cache))
            first_answer.settled(cache)
    for kind, seconds in found.items():
        report.rows.append({
            "engine": kind, "median s": sorted(seconds)[often // 2], "least s": min(seconds),
            "most s": max(seconds), "processes": often,
            "kept before MB": min(kept) / 1e6 if kind == LATER_START else 0.0})
    for kind, most in ((COLD_START, COLD), (LATER_START, ARCHIVED)):
        median = sorted(found[kind])[often // 2]
        told = "" if kind == COLD_START or min(kept) else "; nothing was kept"
        report.check(f"latency-start: {kind}", f"start to first answer: {kind}", f"<= {most:g} s",
                     f"{median:.1f} s{told}", median <= most)
    return report
