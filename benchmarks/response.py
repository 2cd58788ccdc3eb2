"""Response: one expensive Python query beside twenty cheap ones, on streams of unequal rates.

Five streams feed four cheap queries each, a sixth feeds one query that hashes every row in Python
for seconds per block. Whoever serves blocks in the order of their arrival lets the cheap ones wait
for the expensive one. Compared are the policies, and native Structured Streaming with one
streaming query per question, each in a FAIR pool of its own.

The expensive query needs more than half of the time, so that somebody nearly always waits for it,
and all together need 0.7 of it, so that FIFO does not fall behind for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.live import Arrival, BlockId, Feeder, running, through, until, workplace
from benchmarks.native import StreamingQueries, streaming
from harness.findings import Report
from harness.program import Progress

CHEAP_ROWS, HEAVY_ROWS = 5_000, 10_000
"""Rows of a block."""
CHEAP_STREAMS, CHEAP_QUERIES = 5, 4
"""Stream k gets blocks at a rate in proportion to 1/k, and has so many queries."""
CHEAP_LOAD, HEAVY_LOAD = 0.15, 0.55
"""The part of the time that FIFO needs for each kind, alone and warm."""
WARM_BLOCKS = 3
ROUNDS = 3500
"""Of hashing a row: more than a millisecond."""
NATIVE_TASKS = 16
"""Native Spark gets the expensive rows dealt out too: it would work on one core otherwise."""
TRIGGER = 0.2
CONDITIONS = ("port = 80", "length > 900 AND port < 1000", "length BETWEEN 100 AND 140",
              "port IN (22, 443)")
FUNCTIONS = f'''
import hashlib, penstock, pyarrow as pa

@penstock.predicate
def rare(text):
    return pa.array([hashlib.pbkdf2_hmac("sha256", value.encode(), b"salt", {ROUNDS})[0] < 32
                     for value in text.to_pylist()])
'''


@dataclass(frozen=True)
class Traffic:
    """When which block comes; the same for all that are compared."""

    arrivals: tuple[Arrival, ...]

    @classmethod
    def of(cls, heavy: int, cheap_seconds: float, heavy_seconds: float) -> Traffic:
        """At random times, so many expensive blocks, and cheap ones for their share of the time."""
        random = np.random.default_rng(11)
        length = heavy * heavy_seconds / HEAVY_LOAD
        total = length * CHEAP_LOAD / cheap_seconds
        shares = np.array([1 / k for k in range(1, CHEAP_STREAMS + 1)])
        counts = {name: max(1, round(total * share)) for name, share in
                  zip(streams()[1:], shares / shares.sum(), strict=True)}
        arrivals = [
            Arrival(float(at), name, WARM_BLOCKS + number)
            for name, count in {"heavy": heavy, **counts}.items()
            for number, at in enumerate(sorted(random.uniform(0, length, count)))]
        return cls(tuple(sorted(arrivals, key=lambda arrival: arrival.at)))


def streams() -> list[str]:
    return ["heavy", *(f"s{k}" for k in range(1, CHEAP_STREAMS + 1))]


def rows_of(stream: str) -> int:
    return HEAVY_ROWS if stream == "heavy" else CHEAP_ROWS


def queries() -> dict[str, tuple[str, str]]:
    """By name: the stream and the condition of every cheap query."""
    return {f"{stream}_q{n}": (stream, CONDITIONS[n])
            for stream in streams()[1:] for n in range(CHEAP_QUERIES)}


def application(policy: str) -> str:
    """Everything as Penstock is told it."""
    lines = [f"SET operators = '{policy}'; SET trigger = '{TRIGGER * 1000:.0f} ms';",
             "CREATE FUNCTION rare FROM 'response_functions:rare';"]
    lines += [f"CREATE STREAM {name} ({columns(name)}) FROM parquet 'in/{name}' "
              "OPTIONS (maxFilesPerTrigger = 1);" for name in streams()]
    lines += [f"CREATE QUERY {name} INTO parquet 'out/cheap' AS "
              f"SELECT n, port, length FROM {stream} WHERE {condition};"
              for name, (stream, condition) in queries().items()]
    lines += ["CREATE QUERY heavy INTO parquet 'out/heavy' AS "
              "SELECT n FROM heavy WHERE rare(text);"]
    return "\n".join(lines)


def columns(stream: str) -> str:
    return "n BIGINT, text STRING" if stream == "heavy" else "n BIGINT, port INT, length INT"


# --- blocks ----------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """One file of each kind; its copies are the blocks, so all hold the same rows."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    n = np.arange(HEAVY_ROWS)
    pq.write_table(pa.table({"n": n, "text": [f"row {i:012d}" for i in n]}),
                   folder / "heavy.parquet")
    ports = random.choice([22, 53, 80, 443, 8080], CHEAP_ROWS)
    pq.write_table(pa.table({
        "n": np.arange(CHEAP_ROWS), "port": ports.astype("int32"),
        "length": random.integers(40, 1500, CHEAP_ROWS, dtype="int32")}),
        folder / "cheap.parquet")


def feeder_of(prepared: Path, work: Path) -> Feeder:
    """Copies of the one file of each kind."""
    return Feeder(
        file=lambda stream, _: prepared / f"{'heavy' if stream == 'heavy' else 'cheap'}.parquet",
        folder=lambda stream: work / "in" / stream)


def warm() -> list[BlockId]:
    """The blocks that are let through before anything counts."""
    return [(stream, number) for number in range(WARM_BLOCKS) for stream in streams()]


Delivered = Mapping[tuple[str, int, str], float]
"""By stream, block and query: when its answers came out."""


# --- Penstock --------------------------------------------------------------------------------


def asked(stream: str) -> list[str]:
    """The queries of a stream."""
    return [name for name, (of, _) in queries().items() if of == stream] or ["heavy"]


def write(work: Path) -> None:
    """The folders and functions that an engine needs."""
    for stream in streams():
        (work / "in" / stream).mkdir(parents=True)
    (work / "response_functions.py").write_text(FUNCTIONS)


def calibrate(spark: Any, prepared: Path, work: Path) -> tuple[float, float]:
    """Seconds that FIFO takes for a cheap and for an expensive block, when nothing else waits."""
    write(work)
    feeder, blocks = feeder_of(prepared, work), range(WARM_BLOCKS + 3)
    with running(application("fifo"), spark, work, "response_functions") as (_, watch):
        for block in ((stream, number) for number in blocks for stream in ("s1", "heavy")):
            feeder.put(*block)
            until(lambda block=block: block in watch.done)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {"s1": [], "heavy": []}
    for decided, ended in watch.jobs():
        if not ended.kept:
            seconds[decided.work.stream].append(ended.seconds)  # type: ignore[union-attr]
    return float(np.median(seconds["s1"][-3:])), float(np.median(seconds["heavy"][-3:]))


def measure(
    policy: str, traffic: Traffic, spark: Any, prepared: Path, work: Path
) -> dict[str, Any]:
    """One policy through the traffic."""
    write(work)
    feeder = feeder_of(prepared, work)
    with running(application(policy), spark, work, "response_functions") as (_, watch):
        began = through(feeder, warm(), traffic.arrivals,
                        lambda stream, number: (stream, number) in watch.done)
    delivered = {(stream, number, name): at for (stream, number), at in watch.done.items()
                 for name in asked(stream)}
    seconds = max(delivered.values()) - began
    decided = [each for each, _ in watch.jobs(began)]
    return {
        "engine": policy, **responses(feeder, delivered), "seconds": seconds,
        "jobs": len(decided), "preempting": sum(each.work.urgent for each in decided),
        "deciding %": 100 * sum(each.seconds for each in decided) / seconds,
        "_answers": answers(work / "out"),
    }


# --- native Spark ----------------------------------------------------------------------------


def native(traffic: Traffic, spark: Any, prepared: Path, work: Path) -> dict[str, Any]:
    """One streaming query per question, each in a pool of its own."""
    done: dict[tuple[str, int, str], float] = {}
    feeder = feeder_of(prepared, work)
    for stream in streams():
        (work / "in" / stream).mkdir(parents=True)
    with streaming(spark, work / "state") as started:
        for name, (stream, condition) in {**queries(), "heavy": ("heavy", "")}.items():
            _ask(started, work, name, stream, condition, done)
        began = through(feeder, warm(), traffic.arrivals, lambda stream, number: all(
            (stream, number, name) in done for name in asked(stream)))
    return {"engine": "native", **responses(feeder, done), "seconds": max(done.values()) - began,
            "jobs": len(done) - WARM_BLOCKS * (len(queries()) + 1), "preempting": None,
            "deciding %": None, "_answers": answers(work / "out")}


def _ask(
    started: StreamingQueries, work: Path, name: str, stream: str, condition: str,
    done: dict[tuple[str, int, str], float],
) -> None:
    source = (started.session.readStream.schema(columns(stream)).option("maxFilesPerTrigger", 1)
              .parquet(str(work / "in" / stream)))
    if stream == "heavy":
        wanted = source.repartition(NATIVE_TASKS).mapInArrow(_rare(), source.schema).select("n")
    else:
        wanted = source.where(condition).select("n", "port", "length")

    def each(batch: Any, number: int) -> None:
        batch.write.mode("append").parquet(str(work / "out" / name))
        done[stream, number, name] = time.time()

    started.start(name, wanted.writeStream.foreachBatch(each).trigger(
        processingTime=f"{TRIGGER * 1000:.0f} milliseconds"))


def _rare() -> Callable[..., Any]:
    """The expensive condition on Arrow batches."""
    text = FUNCTIONS.replace("@penstock.predicate\n", "").replace(" penstock,", "")

    def held(batches: Any) -> Any:
        known: dict[str, Any] = {}
        exec(text, known)
        for batch in batches:
            yield batch.filter(known["rare"](batch["text"]))

    return held


# --- figures ---------------------------------------------------------------------------------


def responses(feeder: Feeder, delivered: Delivered) -> dict[str, float]:
    """From the appearance of a file to the delivery of its answers, for every query."""
    waits: dict[bool, list[float]] = {True: [], False: []}
    for (stream, number, _), at in delivered.items():
        if number >= WARM_BLOCKS:
            waits[stream == "heavy"].append(at - feeder.arrived[stream, number])
    cheap, heavy = np.array(waits[False]), np.array(waits[True])
    every = np.concatenate([cheap, heavy])
    rows = np.concatenate([np.full(len(cheap), CHEAP_ROWS), np.full(len(heavy), HEAVY_ROWS)])
    return {"mean s": float(every.mean()), "mean by rows s": float(np.average(every, weights=rows)),
            "cheap mean s": float(cheap.mean()), "cheap p99 s": float(np.quantile(cheap, 0.99)),
            "heavy mean s": float(heavy.mean()), "heavy max s": float(heavy.max())}


def answers(folder: Path) -> dict[str, tuple[int, int]]:
    """By query: how many rows came out, and the sum of their numbers."""
    found = {}
    for place in sorted(folder.iterdir()):
        table = ds.dataset(place, format="parquet", exclude_invalid_files=True).to_table()
        names = table["query"].unique().to_pylist() if "query" in table.column_names else [None]
        for name in names:
            mine = table if name is None else table.filter(pc.equal(table["query"], name))
            found[name or place.name] = mine.num_rows, pc.sum(mine["n"]).as_py() or 0
    return found


def run(quick: bool, out: Path, progress: Progress) -> Report:
    policies: Sequence[str] = ("fifo", "rate_based", "preemptive_rate_based")
    if not quick:
        policies = ("fifo", "round_robin", "chain", *policies[1:])
    report = Report("response", title="Response on Spark")
    report.about = [__doc__ or ""]
    with workplace("response") as (spark, work):
        prepared = work / "prepared"
        prepare(prepared)
        progress("what a block takes")
        cheap, heavy = calibrate(spark, prepared, work / "calibration")
        traffic = Traffic.of(4 if quick else 10, cheap, heavy)
        progress(f"{cheap:.2f} s a cheap block, {heavy:.2f} s an expensive one; "
                 f"{len(traffic.arrivals)} blocks in {traffic.arrivals[-1].at:.0f} s")
        for name in (*policies, "native"):
            progress(name)
            report.rows.append(
                native(traffic, spark, prepared, work / name) if name == "native" else
                measure(name, traffic, spark, prepared, work / name))
            progress(f"{name}: mean response {report.rows[-1]['mean s']:.2f} s")
    _checks(report)
    return report


TARGETS = {"fifo": 0.3, "native": 0.9, "rate_based": 1.0}
"""By rival the part of its mean response that the preemptive policy may have."""


def _checks(report: Report) -> None:
    given = [row.pop("_answers") for row in report.rows]
    rows = {row["engine"]: row for row in report.rows}
    ours = rows["preemptive_rate_based"]
    for rival, most in TARGETS.items():
        for kind, key in (("block", "mean s"), ("row", "mean by rows s")):
            ratio = ours[key] / rows[rival][key]
            report.check(f"{rival}-{kind}", f"preemptive mean response per {kind} over {rival}'s",
                         f"<= {most:g}", f"{ratio:.2f}", ratio <= most)
    equal = all(one == given[0] for one in given)
    told = f"{sum(count for count, _ in given[0].values()):,} rows of {len(given[0])} queries"
    report.check("answers", "all give the same answers", "equal",
                 f"{told}, {'equal' if equal else 'not equal'}",
                 equal and len(given[0]) == len(queries()) + 1)
    worst = max(row["deciding %"] for row in report.rows if row["deciding %"] is not None)
    report.check("deciding", "deciding costs little", "< 2 %", f"{worst:.2f} %", worst < 2.0)
