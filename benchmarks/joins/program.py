"""`python -m benchmarks joins`: what windows over the same two streams cost together.

Two streams of rows with a key, over the same stretch of event time. Each query joins them on the
key, with a window of its own, and its pairs are counted. Beside it stand stream-stream joins of
Spark's own, and one batch join of the largest window: what Spark needs for the pairs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.joins import response
from benchmarks.joins.streams import (
    FULL,
    LARGEST,
    MANY,
    QUICK,
    WARM,
    WINDOWS,
    Joined,
    batch,
    best,
    native,
    penstock,
    write_streams,
)
from benchmarks.live import workplace
from harness.findings import Report
from harness.program import Option, Progress, Selective, several

TIMES = 3
"""Every join is measured so often, and the fastest counts."""
MEGABYTE = 1 << 20


def run(
    quick: bool, out: Path, progress: Progress, parts: Sequence[str] | None = None
) -> Iterator[Report]:
    """A report per part."""
    for name, part in PARTS.items():
        if parts is None or name in parts:
            report = Report(f"joins-{name}", about=[(part.__doc__ or "").strip()])
            with workplace("joins") as (spark, work):
                part(report, spark, work, quick, progress)
            yield report


def windows(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """Seven windows, the largest of them alone, and a hundred, beside Spark's own joins."""
    data = write_streams(work / "data", QUICK if quick else FULL)
    warm = write_streams(work / "warm", WARM)
    took: dict[str, Joined] = {}
    ours = {"seven windows": WINDOWS, "the largest alone": LARGEST, "a hundred windows": MANY}
    for again in ("warming up", "measuring"):  # all kinds in turn: code is compiled meanwhile
        for name, lengths in ours.items():
            progress(f"penstock, {name}: {again}")
            took[name] = best(
                TIMES, partial(_ours, spark, data, work / f"{name} {again}", lengths))
    progress("one batch join")
    took["batch"] = best(TIMES, lambda n: batch(spark, data, WINDOWS[-1]))
    progress("native, seven windows")
    native(spark, warm, work / "warm native", WINDOWS)
    took["native"] = best(
        TIMES, lambda n: native(spark, data, work / f"native {n}", WINDOWS))
    _tell(report, took)
    seven, alone = took["seven windows"], took["the largest alone"]
    _ratio(report, "native", "times as fast as seven stream-stream joins of Spark's",
           took["native"].seconds / seven.seconds, least=10)
    _ratio(report, "batch", "seven windows over one batch join",
           seven.seconds / took["batch"].seconds, most=1.3)
    _ratio(report, "alone", "seven windows over the largest alone",
           seven.seconds / alone.seconds, most=1.2)
    _ratio(report, "many", "a hundred windows over the largest alone",
           took["a hundred windows"].seconds / alone.seconds, most=1.5)
    _ratio(report, "memory", "Spark's storage over the state of its own joins",
           seven.memory / took["native"].memory, most=0.25)
    _same(report, took["batch"].pairs, seven.pairs)


def folder(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """Seven windows whose pairs are written into one folder."""
    import pyarrow.dataset as ds

    data = write_streams(work / "data", QUICK if quick else FULL)
    warm = write_streams(work / "warm", WARM)
    penstock(spark, warm, work / "warm-up", WINDOWS, sink=f"parquet '{work}/warm-out'")
    progress("writing the pairs of seven windows")
    took = penstock(spark, data, work / "ours", WINDOWS, sink=f"parquet '{work}/out'")
    progress("one batch join")
    wanted = best(1, lambda n: batch(spark, data, WINDOWS[-1]))
    written = ds.dataset(work / "out")
    size = sum(Path(file).stat().st_size for file in written.files)
    rows = written.count_rows()
    _tell(report, {"seven windows, one folder": took, "batch, counted": wanted})
    report.rows[0] |= {"rows written": rows, "MB written": round(size / MEGABYTE)}
    largest = written.count_rows(filter=ds.field("query") == f"w{WINDOWS[-1]}")
    _same(report, wanted.pairs, largest)


def keys(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """A hot key: a fifth of all rows of both streams have it."""
    size = QUICK if quick else FULL
    took: dict[str, Joined] = {}
    for name, hot in (("even keys", 0.0), ("a hot key", 0.2)):
        data = write_streams(work / name, replace(size, hot=hot))
        progress(name)
        took[name] = best(2, partial(_ours, spark, data, work / f"ours {name}", WINDOWS))
    _tell(report, took)
    even, hot = took.values()
    _ratio(report, "hot", "a hot key over even keys, in time",
           hot.seconds / even.seconds, most=10)
    _ratio(report, "pair", "the same, by pair",
           hot.seconds / hot.pairs / (even.seconds / even.pairs), most=1)


def rate(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """Rows in the window: the same probes, of windows with ever more rows."""
    seconds, pairs = {}, {}
    for rows in (125_000, 250_000) if quick else (250_000, 500_000, 1_000_000, 2_000_000):
        progress(f"{rows:,} rows in the window")
        seconds[rows], memory, pairs[rows] = response.probe_seconds(spark, work / str(rows), rows)
        report.rows.append({"rows in the window": rows, "s per block": round(seconds[rows], 3),
                            "pairs per block": pairs[rows],
                            "storage MB": round(memory / MEGABYTE, 1)})
    (few, brief), (many, long) = min(seconds.items()), max(seconds.items())
    _ratio(report, "linear", f"seconds per block, {many // few} times the rows over once",
           long / brief, most=many // few)
    _ratio(report, "found", f"pairs per block, {many // few} times the rows over once",
           pairs[many] / pairs[few], least=0.8 * (many // few))


def bursts(report: Report, spark: Any, work: Path, quick: bool, progress: Progress) -> None:
    """Bursts and large windows: how long a query waits for its pairs, by policy."""
    response.responses(spark, work / "warm", "mqt", True, progress)  # code is compiled meanwhile
    found = {policy: response.responses(spark, work / policy, policy, quick, progress)
             for policy in ("lwo", "mqt")}
    for policy, answered in found.items():
        for length, seconds in answered.mean.items():
            report.rows.append({"policy": policy, "window s": length,
                                "mean response s": round(seconds, 2),
                                "max s": round(answered.worst[length], 2)})
    lwo, mqt = found["lwo"], found["mqt"]
    first = WINDOWS[0]
    _ratio(report, "smallest", "mean response of the 1 s query, mqt over lwo",
           mqt.mean[first] / lwo.mean[first], most=1 / 3)
    _ratio(report, "mean", "mean response of all queries, mqt over lwo",
           mqt.overall / lwo.overall, most=1.0)
    report.check("same", "both policies find the same pairs", str(lwo.pairs), str(mqt.pairs),
                 lwo.pairs == mqt.pairs)


def _ours(spark: Any, data: Path, work: Path, lengths: Sequence[int], number: int) -> Joined:
    return penstock(spark, data, work / str(number), lengths)


def _tell(report: Report, took: dict[str, Joined]) -> None:
    report.rows += [
        {"what": name, "s": round(one.seconds, 2), "million pairs": round(one.pairs / 1e6, 2)
         if one.pairs else None, "MB held": round(one.memory / MEGABYTE, 1) if one.memory else None}
        for name, one in took.items()]


def _ratio(
    report: Report, id: str, text: str, measured: float, *, least: float | None = None,
    most: float | None = None,
) -> None:
    if least is not None:
        report.check(id, text, f">= {least}", f"{measured:.1f}", measured >= least)
    if most is not None:
        report.check(id, text, f"<= {most:.3g}", f"{measured:.3g}", measured <= most)


def _same(report: Report, wanted: int, found: int) -> None:
    report.check("pairs", "as many pairs of the largest window as the batch join finds",
                 str(wanted), str(found), wanted == found)


Part = Callable[[Report, Any, Path, bool, Progress], None]
PARTS: dict[str, Part] = {"windows": windows, "folder": folder, "keys": keys, "rate": rate,
                          "bursts": bursts}
PROGRAM = Selective(run, (Option(
    "parts", "which ones, with commas between them: " + ", ".join(PARTS), several(PARTS)),))
