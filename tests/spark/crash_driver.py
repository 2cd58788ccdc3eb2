"""An application whose driver dies at a chosen moment; `test_crash` starts it again and again.

    python crash_driver.py FOLDER [CHAIN MOMENT [TIMES]]

Without a moment it runs until it is drained and prints what its books say. A moment wraps a
function of the product, which is then cut short by SIGKILL, as by `kill -9`. With a number of times
the driver dies when the moment comes for that time, and stops if nothing happens any more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

QUIET = 6.0
"""Seconds without an event after which a live run has nothing left to do."""


@dataclass(frozen=True)
class Moment:
    """The ``nth`` call of a function, as it is entered or left, or some time after it began."""

    where: str
    """``module:Class.method`` or ``module:function``, below `penstock.spark`."""
    when: str = "before"
    """before, after, or the milliseconds after it was entered."""
    nth: int = 1
    about: str = ""
    """Only calls count in which some argument contains this text."""
    alone: bool = False
    """Only Python dies; the JVM finds out by itself, while the next driver starts."""


# Every chain runs on one checkpoint: a moment, a restart that dies at the next moment, and so on.
# Each start finds one more file in every stream, so that there is always something left to do.
CHAINS: dict[str, dict[str, Moment]] = {
    "ingest": {
        "spark starts": Moment("session:SessionStart.session", "1500"),
        "queries join": Moment("delivery.delivery_log:Deliveries.join", "after"),
        "streaming starts": Moment("ingest.stream_ingest:Ingest.start", "after", about="csv"),
        "a batch was handed over": Moment("ingest.stream_ingest:Ingest._store", about="csv"),
        "while rows are copied": Moment("ingest.stream_ingest:Ingest._copy", "60"),
        "rows copied, not counted": Moment("ingest.stream_ingest:Ingest._copy", "after"),
        "footers read": Moment("ingest.stream_ingest:Ingest._look", "after"),
        "rejects set aside": Moment("ingest.stream_ingest:Ingest._set_aside", "after"),
        "half a manifest": Moment("storage.local_store:os.replace", about="/.0000000"),
        "manifest, no commit": Moment("storage.spool:Spool.add", "after", about="csv"),
        "block told of, no commit": Moment(
            "ingest.stream_ingest:Ingest._take_files", "after", alone=True),
        "log rewritten": Moment("storage.local_store:os.replace", about="deliveries"),
        "block half deleted": Moment("storage.files:Files.remove", about="/spool/"),
    },
    "delivery": {
        "in a segment": Moment("delivery.commit:Delivery.deliver", "80"),
        "in a segment, the JVM lives on": Moment(
            "delivery.commit:Delivery.deliver", "120", alone=True),
        "through Python": Moment("compile.compiler:PathAnswers.collect", "50", about="detected"),
        "in a stage": Moment("jobs.intermediate:IntermediateStore.keep", "50"),
        "rows kept between stages": Moment("jobs.intermediate:IntermediateStore.keep", "after"),
        "between two units": Moment("delivery.sinks.staged_files:write_files", nth=2),
        "recovery removes what never counted": Moment("delivery.commit:Delivery._settle"),
        "moves written, not committed": Moment("delivery.delivery_log:Deliveries.commit"),
        "half a commit": Moment("storage.local_store:write_all", "torn", about='"blocks"'),
        "committed, nothing moved": Moment("delivery.delivery_log:Deliveries.commit", "after"),
        "recovery, nothing moved": Moment("delivery.staging:Staging.redo"),
        "recovery, one file moved": Moment("storage.files:Files.move", "after"),
        "between two sinks of a query": Moment("storage.files:Files.move", about="both", nth=2),
        "moved, not settled": Moment("delivery.commit:Delivery._settle"),
        "staging half removed": Moment("storage.files:Files.remove", about="/staging/"),
        "rejects staged": Moment("delivery.asides:Asides.stage_rejects", "after", about="detected"),
        "a job is over": Moment("host:SparkHost._execute", "after", alone=True),
    },
    "windows": {
        "in panes, not committed": Moment("aggregates.synopsis_store:SynopsisStore.take", "after"),
        "answered, not staged": Moment("aggregates.synopsis_store:SynopsisStore.answers", "after"),
        "answers staged, not committed": Moment("storage.guarded:Log.append", about="'ends'"),
        "half a commit of answers": Moment("storage.local_store:write_all", "torn", about='"ends"'),
        "answers committed, not moved": Moment(
            "storage.guarded:Log.append", "after", about="'ends'"),
        "a refresh is over": Moment("jobs.refreshes:Refreshes.run", "after", alone=True),
    },
    "joins": {
        "in a probe": Moment("delivery.commit:Delivery.deliver", "150", about="near"),
        "a probe is staged, not committed": Moment("storage.guarded:Log.append", about="'partial'"),
        "half a commit of pairs": Moment("storage.local_store:write_all", "torn", about='"near"'),
        "nearest pairs committed, not moved": Moment(
            "storage.guarded:Log.append", "after", about="'partial'"),
        "all pairs committed": Moment("storage.guarded:Log.append", "after", about="'ends'", nth=2),
        "late rows set aside, not probed": Moment(
            "storage.spool:Spool.set_late_aside", "after", nth=2),
        "pairs in panes, not committed": Moment("jobs.probes:Probes.summarise", "after", nth=2),
        "answers over pairs committed": Moment(
            "storage.guarded:Log.append", "after", about="'tallied'"),
        "pairs by rows staged": Moment("delivery.commit:Delivery.deliver", "200", about="latest"),
        "keys are dropped, nothing is joined": Moment("jobs.drop_probes:DropProbes.run", "after"),
        "a probe is over": Moment("jobs.probes:Probes.run", "after", alone=True),
    },
    "derived": {
        "rows of a stream taken, no manifest": Moment(
            "ingest.stream_ingest:Ingest._store", "after", about="query"),
        "half a manifest of a derived stream": Moment(
            "storage.local_store:os.replace", about="spool/few/"),
        "in a block, and still in the feed": Moment(
            "storage.spool:Spool.add", "after", about="query"),
        "a feed that was taken is cleared": Moment("ingest.feed:DerivedFeed.remove", about="run-"),
        "rows of a stream committed, not moved": Moment(
            "storage.guarded:Log.append", "after", about="'few'"),
        "while a stream takes rows": Moment(
            "ingest.stream_ingest:Ingest._take_delivered", "60", about="query"),
        "windows of a stream committed": Moment(
            "storage.guarded:Log.append", "after", about="'tens'"),
        "a derived block is told of": Moment(
            "ingest.stream_ingest:Ingest._take_delivered", "after", about="query", alone=True),
    },
    "executors": {
        "a group moves to the executors": Moment("host:SparkHost._move_away"),
        "in panes on the executors": Moment("aggregates.executor_panes:ExecutorPanes.add", "after"),
        "while executors answer": Moment("delivery.commit:Delivery.deliver", "300"),
        "between two units of executors": Moment("delivery.sinks.staged_files:_write", nth=2),
        "answers of executors committed": Moment(
            "storage.guarded:Log.append", "after", about="'ends'"),
    },
}  # fmt: skip


CHANGES: dict[str, Moment] = {
    "half of the list of versions": Moment(
        "storage.local_store:os.replace", about="relations.json"),
    "a version is stored, nothing is joined": Moment(
        "compile.relation_versions:RelationVersions.store", "after"),
    "in a job": Moment("delivery.commit:Delivery.deliver", "60"),
    "answers committed, nothing moved": Moment("delivery.delivery_log:Deliveries.commit", "after"),
    "a version is written, nothing is decided": Moment(
        "compile.relation_versions:RelationVersions.read", "after"),
    "answers staged, not committed": Moment("delivery.delivery_log:Deliveries.commit"),
    "pairs committed, nothing moved": Moment(
        "storage.guarded:Log.append", "after", about="'pairs'", nth=2),
}  # fmt: skip
"""Those of `test_crash_relations`, where a relation changes before every start."""


def die(alone: bool) -> None:
    """Be killed, with the JVM (which is in our group) or without."""
    if alone:
        os.kill(os.getpid(), signal.SIGKILL)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def found(moment: Moment) -> tuple[Any, str]:
    """Whose the function of a moment is, and its name there."""
    module, _, path = moment.where.partition(":")
    owner: Any = import_module(f"penstock.spark.{module}")
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def install(moment: Moment) -> None:
    """Wrap the function of a moment."""
    owner, name = found(moment)
    setattr(owner, name, _wrapped(getattr(owner, name), moment))


def _wrapped(function: Callable[..., Any], moment: Moment) -> Callable[..., Any]:
    lock, calls = threading.Lock(), [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        with lock:
            calls[0] += _is_about(args, moment.about)
            now = _is_about(args, moment.about) and calls[0] == moment.nth
        if now and moment.when == "before":
            die(moment.alone)
        if now and moment.when == "torn":
            os.write(args[0], args[1][: len(args[1]) // 2])
            die(moment.alone)
        if now and moment.when.isdigit():
            threading.Thread(target=_die_in, args=(int(moment.when), moment.alone)).start()
        result = function(*args, **kwargs)
        if now and moment.when == "after":
            die(moment.alone)
        if now and moment.when.isdigit():
            time.sleep(60)  # it ended too early: the end has to come here
        return result

    return call


def _die_in(milliseconds: int, alone: bool) -> None:
    time.sleep(milliseconds / 1000)
    die(alone)


def _is_about(args: tuple[Any, ...], about: str) -> bool:
    return not about or any(about in _text(arg) for arg in args)


def _text(value: Any) -> str:
    """What tells calls apart: the format of a stream, the queries of a run, a path, bytes."""
    stream = getattr(value, "_stream", None) or getattr(value, "stream", None)
    if stream is not None:
        return str(getattr(stream, "format", ""))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode()
    members = getattr(value, "members", None)
    return " ".join(member.query for member in members) if members else str(value)


class Acted:
    """When the engine did something last."""

    def __init__(self) -> None:
        self.at = time.monotonic()

    def __call__(self, event: Any) -> None:
        if type(event).__name__ not in ("Tick", "Memory"):
            self.at = time.monotonic()

    def wait(self) -> None:
        """Until nothing has happened for a while, so that the moment will not come any more."""
        while time.monotonic() < self.at + QUIET:
            time.sleep(0.2)


def main(folder: Path, chain: str = "", moment: str = "", times: str = "") -> None:
    """Run the application until it is drained, or dead."""
    if moment:
        chosen = (CHANGES if chain == "changes" else CHAINS[chain])[moment]
        install(replace(chosen, nth=chosen.nth + int(times or 1) - 1))
    from penstock.api import Engine
    from penstock.engine.joins import department

    department.WORTH_PROBING = 0  # the keys of few rows are probed, too
    department.MOST_FRESH = float("inf")
    acted = Acted()
    with Engine(checkpoint=folder / "checkpoint", master="local[2]", on_event=acted) as engine:
        engine.load((folder / "app.sql").read_text(), folder=folder)
        if times:
            engine.start()
            acted.wait()
            return
        # A drain would close the windows that the next file goes on with.
        summary = engine.run(until_drained=not (
            chain in ("windows", "joins", "derived") and moment))
        print(json.dumps({
            "state": summary.run.state, "failures": summary.failures(),
            "accounting": summary.accounting(),
        }))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
