"""Response: one expensive Python query beside twenty cheap ones, on streams of unequal rates.

Five streams feed four cheap queries each, a sixth feeds one query that hashes every row in Python
for seconds per block. Whoever serves blocks in the order of their arrival lets the cheap ones wait
for the expensive one. Compared are the policies, and native Structured Streaming with one
streaming query per question, each in a FAIR pool of its own.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from harness.findings import Report
from harness.program import Progress
from penstock import Engine
from penstock.events import kinds as ev

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


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that appears ``at`` so many seconds after the beginning."""

    at: float
    stream: str
    number: int
    """The number of the block that the file will be."""


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


@dataclass
class Feeder:
    """Lets blocks appear, and knows when each did."""

    prepared: Path
    target: Path
    arrived: dict[tuple[str, int], float] = field(default_factory=dict)

    def put(self, stream: str, number: int) -> None:
        """Let one file appear whole; Spark reads files in the order of their ages."""
        folder = self.target / stream
        folder.mkdir(parents=True, exist_ok=True)
        hidden = folder / f".{number}"
        kind = "heavy" if stream == "heavy" else "cheap"
        shutil.copyfile(self.prepared / f"{kind}.parquet", hidden)
        os.utime(hidden, (1_700_000_000 + number,) * 2)
        self.arrived[stream, number] = time.time()
        hidden.rename(folder / f"{number:05d}.parquet")

    def play(self, traffic: Traffic) -> None:
        """Let all of it happen at its time."""
        began = time.time()
        for arrival in traffic.arrivals:
            time.sleep(max(0.0, began + arrival.at - time.time()))
            self.put(arrival.stream, arrival.number)


Delivered = Callable[[], dict[tuple[str, int, str], float]]
"""By stream, block and query: when its answers came out."""


def through(traffic: Traffic, feeder: Feeder, delivered: Delivered) -> float:
    """Warm up, play the traffic, wait until all is answered; when it began."""
    wanted = len(queries()) + 1
    for number in range(WARM_BLOCKS):
        for stream in streams():
            feeder.put(stream, number)
        _until(lambda n=number + 1: len(delivered()) >= n * wanted)  # type: ignore[misc]
    began = time.time()
    player = threading.Thread(target=feeder.play, args=(traffic,))
    player.start()
    answers = sum(1 if arrival.stream == "heavy" else CHEAP_QUERIES
                  for arrival in traffic.arrivals)
    _until(lambda: len(delivered()) >= WARM_BLOCKS * wanted + answers)
    player.join()
    return began


def _until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("not everything was answered")
        time.sleep(0.05)


# --- Penstock --------------------------------------------------------------------------------


@dataclass
class Watch:
    """What the report needs of the events."""

    events: list[ev.Event] = field(default_factory=list)
    delivered: dict[tuple[str, int, str], float] = field(default_factory=dict)
    _decided: dict[int, ev.JobDecided] = field(default_factory=dict)

    def __call__(self, event: ev.Event) -> None:
        match event:
            case ev.JobDecided():
                self._decided[event.job] = event
                self.events.append(event)
            case ev.JobFinished(kept=None):
                self.events.append(event)
                run = self._decided[event.job].work
                names = [name for name, (stream, _) in queries().items() if stream == run.stream]
                self.delivered.update({(run.stream, block, name): event.at
                                       for block in run.blocks for name in names or ["heavy"]})


@contextmanager
def running(policy: str, spark: Any, work: Path) -> Iterator[tuple[Engine, Watch]]:
    """An engine that answers all the queries, and what it tells."""
    for stream in streams():
        (work / "in" / stream).mkdir(parents=True)
    (work / "response_functions.py").write_text(FUNCTIONS)
    sys.modules.pop("response_functions", None)
    watch = Watch()
    with Engine(spark=spark, checkpoint=work / "state", on_event=watch) as engine:
        engine.load(application(policy), folder=work)
        engine.start()
        yield engine, watch
        engine.stop()


def calibrate(spark: Any, prepared: Path, work: Path) -> tuple[float, float]:
    """Seconds that FIFO takes for a cheap and for an expensive block, when nothing else waits."""
    with running("fifo", spark, work) as (_, watch):
        feeder = Feeder(prepared, work / "in")
        for number in range(WARM_BLOCKS + 3):
            for stream in ("s1", "heavy"):
                before = len(watch.delivered)
                feeder.put(stream, number)
                _until(lambda n=before: len(watch.delivered) > n)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {"s1": [], "heavy": []}
    decided = {e.job: e.work.stream for e in watch.events if isinstance(e, ev.JobDecided)}
    for event in watch.events:
        if isinstance(event, ev.JobFinished) and not event.kept:
            seconds[decided[event.job]].append(event.seconds)
    return float(np.median(seconds["s1"][-3:])), float(np.median(seconds["heavy"][-3:]))


def measure(
    policy: str, traffic: Traffic, spark: Any, prepared: Path, work: Path
) -> dict[str, Any]:
    """One policy through the traffic."""
    feeder = Feeder(prepared, work / "in")
    with running(policy, spark, work) as (engine, watch):
        began = through(traffic, feeder, lambda: watch.delivered)
    ended = max(watch.delivered.values())
    decided = [e for e in watch.events if isinstance(e, ev.JobDecided) and e.at >= began]
    return {
        "engine": policy, **responses(feeder, watch.delivered), "seconds": ended - began,
        "runs": len(decided), "overtaking": sum(e.work.urgent for e in decided),
        "deciding %": 100 * sum(e.seconds for e in decided) / (ended - began),
        "faults": len(engine.status().accounting()), "_answers": answers(work / "out"),
    }


# --- native Spark ----------------------------------------------------------------------------


def native(traffic: Traffic, spark: Any, prepared: Path, work: Path) -> dict[str, Any]:
    """One streaming query per question, each in a pool of its own."""
    done: dict[tuple[str, int, str], float] = {}
    feeder = Feeder(prepared, work / "in")
    for stream in streams():
        (work / "in" / stream).mkdir(parents=True)
    asked = [_ask(spark, work, name, stream, condition, done)
             for name, (stream, condition) in {**queries(), "heavy": ("heavy", "")}.items()]
    try:
        began = through(traffic, feeder, lambda: done)
    finally:
        for query in asked:
            query.stop()
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
    ended = max(done.values())
    return {"engine": "native", **responses(feeder, done), "seconds": ended - began,
            "runs": len(done) - WARM_BLOCKS * len(asked), "overtaking": None, "deciding %": None,
            "faults": 0, "_answers": answers(work / "out")}


def _ask(
    spark: Any, work: Path, name: str, stream: str, condition: str,
    done: dict[tuple[str, int, str], float],
) -> Any:
    source = (spark.readStream.schema(columns(stream)).option("maxFilesPerTrigger", 1)
              .parquet(str(work / "in" / stream)))
    if stream == "heavy":
        wanted = source.repartition(NATIVE_TASKS).mapInArrow(_rare(), source.schema).select("n")
    else:
        wanted = source.where(condition).select("n", "port", "length")

    def each(batch: Any, number: int) -> None:
        batch.write.mode("append").parquet(str(work / "out" / name))
        done[stream, number, name] = time.time()

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
    return (wanted.writeStream.foreachBatch(each)
            .trigger(processingTime=f"{TRIGGER * 1000:.0f} milliseconds")
            .option("checkpointLocation", str(work / "state" / name)).start())


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


def responses(feeder: Feeder, delivered: dict[tuple[str, int, str], float]) -> dict[str, float]:
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
    work = Path(tempfile.mkdtemp(prefix="penstock-response-"))
    try:
        prepare(work / "prepared")
        with Engine(checkpoint=work / "session", master="local[2]") as host:
            progress("what a block takes")
            cheap, heavy = calibrate(host.session, work / "prepared", work / "calibration")
            traffic = Traffic.of(4 if quick else 10, cheap, heavy)
            progress(f"{cheap:.2f} s a cheap block, {heavy:.2f} s an expensive one; "
                     f"{len(traffic.arrivals)} blocks in {traffic.arrivals[-1].at:.0f} s")
            for name in (*policies, "native"):
                progress(name)
                report.rows.append(
                    native(traffic, host.session, work / "prepared", work / name)
                    if name == "native" else
                    measure(name, traffic, host.session, work / "prepared", work / name))
                progress(f"{name}: mean response {report.rows[-1]['mean s']:.2f} s")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _checks(report)
    return report


def _checks(report: Report) -> None:
    given = [row.pop("_answers") for row in report.rows]
    rows = {row["engine"]: row for row in report.rows}
    ours, fifo, rated = (rows[name] for name in ("preemptive_rate_based", "fifo", "rate_based"))
    for kind, key in (("block", "mean s"), ("row", "mean by rows s")):
        ratio = ours[key] / fifo[key]
        report.check(f"half-{kind}", f"preemptive mean response per {kind} over FIFO's", "<= 0.5",
                     f"{ratio:.2f}", ratio <= 0.5)
        ratio = ours[key] / rated[key]
        report.check(f"rate-{kind}", f"preemptive mean response per {kind} over rate_based's",
                     "< 1", f"{ratio:.2f}", ratio < 1)
    equal = all(one == given[0] for one in given)
    told = f"{sum(count for count, _ in given[0].values()):,} rows of {len(given[0])} queries"
    faults = sum(row["faults"] for row in report.rows)
    report.check("answers", "all give the same answers, and the books balance",
                 "equal, no fault", f"{told}, {'equal' if equal else 'not equal'}, {faults} faults",
                 equal and not faults and len(given[0]) == len(queries()) + 1)
    worst = max(row["deciding %"] for row in report.rows if row["deciding %"] is not None)
    report.check("deciding", "deciding costs little", "< 2 %", f"{worst:.2f} %", worst < 2.0)
