"""`python -m benchmarks filters`: what the order of Python conditions costs, and who finds it.

Eight predicates in Python over blocks of rows, in correlated pairs, each of which keeps a half. The
first one is many times as costly as the others, and it is written first: the worst order. Beside
Penstock stand Spark's own filter and one `mapInArrow` that was written by hand, both in the worst
and in the best order, and one `mapInArrow` that evaluates nothing. All have both cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.filters.rows import PREDICATES, Load, decisive, kept, write, write_module
from benchmarks.filters.sides import Ran, by_hand, floor, native, penstock
from benchmarks.filters.sql_conditions import CONDITIONS, SqlLoad, native_sql, penstock_sql
from benchmarks.live import workplace
from harness.findings import Report
from harness.program import Option, Progress, Selective, several
from penstock.events import JobDecided, JobFinished, PathWork, SegmentResult

WORST = list(range(PREDICATES))
CORES = 2
ROUNDS = 3


def run(
    quick: bool, out: Path, progress: Progress, loads: Sequence[str] | None = None
) -> Iterator[Report]:
    """A report per part."""
    for name, part in PARTS.items():
        if loads is None or name in loads:
            report = Report(f"filters-{name}", about=[(part.__doc__ or "").strip()])
            with workplace("filters") as (spark, work):
                part(report, spark, work, quick, progress)
            yield report


def cost40(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """The first predicate is 40 times as costly as each of the others."""
    load = Load(8, 500_000) if quick else Load(50, 1_000_000)
    took = _beside(report, spark, work, load, progress)
    _ratio(report, "native", "times as fast as Spark's filter in its best order",
           took["native, best order"].seconds / took["penstock"].seconds, least=2)


def cost400(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """The first predicate is 400 times as costly as each of the others."""
    load = Load(4, 100_000, costly=400) if quick else Load(20, 1_000_000, costly=400)
    took = _beside(report, spark, work, load, progress)
    _ratio(report, "native", "times as fast as Spark's filter in its best order",
           took["native, best order"].seconds / took["penstock"].seconds, least=8)


def _beside(
    report: Report, spark: Any, work: Path, load: Load, progress: Progress
) -> dict[str, Ran]:
    """All sides over the same blocks, each after a warm-up over two of them."""
    data, home = write(load, work / "data"), write_module(load, work)
    warm = write(load, work / "warm", load.blocks, 2)
    few = Load(2, load.rows, load.costly)
    sides: dict[str, Callable[[Path, Load, str], Ran]] = {
        "penstock": lambda at, of, name: penstock(spark, at, home, work / name, [WORST]),
        "native, worst order": lambda at, of, name: native(spark, at, home, of, WORST),
        "native, best order": lambda at, of, name: native(spark, at, home, of, load.best),
        "mapInArrow, worst order": lambda at, of, name: by_hand(spark, at, home, of, WORST),
        "mapInArrow, best order": lambda at, of, name: by_hand(spark, at, home, of, load.best),
        "mapInArrow, nothing": lambda at, of, name: floor(spark, at, of),
    }
    took: dict[str, Ran] = {}
    for name, act in sides.items():
        progress(name)
        act(warm, few, f"warm {name}")
        took[name] = act(data, load, name)
        report.rows.append({
            "what": name, "s": round(took[name].seconds, 2),
            "s per million rows": round(took[name].seconds * 1e6 / load.blocks / load.rows, 3),
            "rows out": took[name].rows})
    ours = took["penstock"]
    report.about.append("From the worst order on, the orders of Penstock: " + (
        "; ".join(" ".join(change.order) for change in ours.orders) or "none other"))
    _ratio(report, "hand", "time over the hand-written best order",
           ours.seconds / took["mapInArrow, best order"].seconds, most=1.1)
    _profiling(report, ours)
    wanted = kept(load, WORST)
    found = {one.rows for name, one in took.items() if name != "mapInArrow, nothing"}
    report.check("rows", "all sides keep the rows that NumPy keeps", str(wanted),
                 ", ".join(map(str, sorted(found))), found == {wanted})
    return took


def queries(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """Twenty queries, each with four of the same eight predicates, and one that has all eight."""
    load = Load(4, 200_000) if quick else Load(20, 1_000_000)
    data, home = write(load, work / "data"), write_module(load, work)
    warm = write(load, work / "warm", load.blocks, 2)
    chance = np.random.default_rng(3)
    twenty = [sorted(chance.choice(PREDICATES, 4, replace=False).tolist()) for _ in range(20)]
    took: dict[str, Ran] = {}
    for name, wanted in (("one query", [WORST]), ("20 queries", twenty)):
        progress(name)
        penstock(spark, warm, home, work / f"warm {name}", wanted)
        took[name] = penstock(spark, data, home, work / name, wanted)
        report.rows.append({"what": name, "s": round(took[name].seconds, 2),
                            "rows out": took[name].rows, "jobs": len(took[name].jobs),
                            "cheap predicates per row": round(_work(took[name], load), 1)})
        report.about.append(f"{name}: the costly predicate, which counts as {load.costly} cheap "
                            f"ones, has the last word on {decisive(load, wanted):.1%} of the rows.")
    _ratio(report, "twenty", "20 queries over one, in time",
           took["20 queries"].seconds / took["one query"].seconds, most=1.5)
    rows = sum(kept(load, wanted) for wanted in twenty)
    report.check("rows", "every query gets the rows that NumPy keeps for it", str(rows),
                 str(took["20 queries"].rows), rows == took["20 queries"].rows)


def sql(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """SQL conditions alone: a pattern and a conversion, written before a comparison.

    In the best order Spark's plain filter has nothing to gain, and says what ordering costs. Of
    each side the fastest of three runs counts.
    """
    load = SqlLoad(4, 1_000_000) if quick else SqlLoad(20, 1_000_000)
    data, warm = load.write(work / "data"), SqlLoad(2, load.rows).write(work / "warm")
    worst, best = CONDITIONS, tuple(reversed(CONDITIONS))
    took: dict[str, Ran] = {}
    sides: dict[str, Callable[[Path, str], Ran]] = {
        "penstock, worst order": lambda at, to: penstock_sql(spark, at, work / to, worst),
        "penstock, best order": lambda at, to: penstock_sql(spark, at, work / to, best),
        "native, worst order": lambda at, to: native_sql(spark, at, worst),
        "native, best order": lambda at, to: native_sql(spark, at, best),
    }
    for name, act in sides.items():
        progress(f"warming {name}")
        act(warm, f"warm {name}")
    for again in range(ROUNDS):  # side by side: generated code becomes faster for half a minute
        for name, act in sides.items():
            progress(f"{name}, round {again + 1} of {ROUNDS}")
            ran = act(data, f"{name} {again}")
            took[name] = min(ran, took.get(name, ran), key=lambda one: one.seconds)
    for name, ran in took.items():
        report.rows.append({"what": name, "s": round(ran.seconds, 2), "rows out": ran.rows})
    ours = took["penstock, worst order"]
    _ratio(report, "worst", "times as fast as Spark in the order written",
           took["native, worst order"].seconds / ours.seconds, least=1.5)
    _ratio(report, "best", "time over that of Spark's filter, where ordering saves nothing",
           took["penstock, best order"].seconds / took["native, best order"].seconds, most=1.03)
    found = {one.rows for one in took.values()}
    report.check("rows", "all sides keep the same rows", "one number",
                 ", ".join(map(str, sorted(found))), len(found) == 1)


def drift(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """The predicate that drops most drops least from the middle of the blocks on."""
    first, second = [0.5] * PREDICATES, [0.5] * PREDICATES
    first[3], second[3] = 0.02, 0.98
    first[5], second[5] = 0.98, 0.02
    load = Load(12 if quick else 24, 1_000_000, keeps=(tuple(first), tuple(second)))
    data, home = write(load, work / "data"), write_module(load, work)
    progress("penstock")
    took = penstock(spark, data, home, work / "ours", [WORST])
    leading = _leaders(took)
    middle = load.blocks // 2
    changed = next((number for number in sorted(leading)
                    if number >= middle and leading[number] == "p5(c5)"), load.blocks)
    report.rows += [{"block": number, "first predicate": leading[number]}
                    for number in sorted(leading)]
    report.check("before", "the best predicate comes first before the drift", "p3(c3)",
                 leading[middle - 1], leading[middle - 1] == "p3(c3)")
    _ratio(report, "blocks", "blocks after the drift until the best predicate comes first",
           changed - middle, most=3)
    _profiling(report, took)


def _work(took: Ran, load: Load) -> float:
    """How many cheap predicates take as long, per row, as those that were evaluated."""
    found = sum(stage.rows_in * (load.costly if name.endswith("python1") else 1)
                for job in took.jobs if isinstance(job.result, SegmentResult)
                for name, stage in job.result.measured.items())
    return found / load.blocks / load.rows


def _leaders(took: Ran) -> dict[int, str]:
    """By block, the predicate that its job evaluated first: on the most rows."""
    jobs, found = dict[int, PathWork](), dict[int, str]()
    for event in took.events:
        match event:
            case JobDecided(job=job, work=PathWork() as work):
                jobs[job] = work
            case JobFinished(job=job, result=SegmentResult(measured=measured)) if measured:
                first = max(measured, key=lambda stage: measured[stage].rows_in)
                number = int(first.rpartition("python")[2]) - 1  # stages are counted from 1
                found |= dict.fromkeys(jobs[job].blocks, f"p{number}(c{number})")
    return found


def _profiling(report: Report, took: Ran) -> None:
    spent = took.summary.profiling.seconds / CORES / took.seconds
    _ratio(report, "profiling", "the share of the time that profiling takes", spent, most=0.03)


def _ratio(
    report: Report, id: str, text: str, measured: float, *, least: float | None = None,
    most: float | None = None,
) -> None:
    if least is not None:
        report.check(id, text, f">= {least}", f"{measured:.2f}", measured >= least)
    if most is not None:
        report.check(id, text, f"<= {most}", f"{measured:.3g}", measured <= most)


Part = Callable[[Report, Any, Path, bool, Progress], None]
PARTS: dict[str, Part] = {"cost40": cost40, "cost400": cost400, "queries": queries, "sql": sql,
                          "drift": drift}
PROGRAM = Selective(run, (Option(
    "loads", "which ones, with commas between them: " + ", ".join(PARTS), several(PARTS)),))
