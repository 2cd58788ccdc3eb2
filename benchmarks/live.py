"""What benchmarks of live streams share: a session, files that appear, and an engine watched."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Engine
from penstock.events import kinds as ev

MASTER = "local[2]"
"""All benchmarks run on two cores, whatever the machine has."""
BlockId = tuple[str, int]
"""A stream, and the number of a block in it."""


@contextmanager
def workplace(name: str) -> Iterator[tuple[Any, Path]]:
    """A Spark session for both sides, and a folder; neither is left behind."""
    work = Path(tempfile.mkdtemp(prefix=f"penstock-{name}-"))
    try:
        with Engine(checkpoint=work / "session", master=MASTER) as host:
            yield host.session, work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def until(condition: Callable[[], bool], seconds: float = 600.0, look: float = 0.02) -> None:
    """Wait."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("not everything was answered")
        time.sleep(look)


# --- files that appear -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that appears ``at`` so many seconds after the beginning."""

    at: float
    stream: str
    number: int
    """The number of the block that the file will be."""


@dataclass
class Feeder:
    """Lets files appear in the folders of streams, and knows when each did."""

    file: Callable[[str, int], Path]
    """What the block of a stream with a number is a copy of."""
    folder: Callable[[str], Path]
    """Where the files of a stream appear."""
    arrived: dict[BlockId, float] = field(default_factory=dict)

    def put(self, stream: str, number: int) -> None:
        """Let one file appear whole; files are read in the order of their ages."""
        folder = self.folder(stream)
        folder.mkdir(parents=True, exist_ok=True)
        hidden = folder / f".{number}"
        shutil.copyfile(self.file(stream, number), hidden)
        os.utime(hidden, (1_700_000_000 + number,) * 2)
        self.arrived[stream, number] = time.time()
        hidden.rename(folder / f"{number:05d}.parquet")

    def play(self, arrivals: Iterable[Arrival]) -> None:
        """Let all of them happen at their times from now on."""
        began = time.time()
        for arrival in arrivals:
            time.sleep(max(0.0, began + arrival.at - time.time()))
            self.put(arrival.stream, arrival.number)


def through(
    feeder: Feeder, warm: Iterable[BlockId], arrivals: Sequence[Arrival],
    answered: Callable[[str, int], bool], pause: float = 0.0,
) -> float:
    """Let blocks through one by one, then all arrivals at their times; when these began.

    ``answered`` says whether a block of a stream is answered for all who asked. After each of the
    first blocks there is a pause, and one of four times that before the arrivals.
    """
    for block in warm:
        feeder.put(*block)
        until(lambda block=block: answered(*block))  # type: ignore[misc]
        time.sleep(pause)
    time.sleep(4 * pause)
    began = time.time()
    player = threading.Thread(target=feeder.play, args=(arrivals,))
    player.start()
    open_ = [(each.stream, each.number) for each in arrivals]
    while open_:  # the last are looked at first: they are the last to be answered
        until(lambda: answered(*open_[-1]))
        open_.pop()
    player.join()
    return began


# --- an engine that is watched -----------------------------------------------------------------


@dataclass
class Watch:
    """The events of a run, and which blocks are through."""

    events: list[ev.Event] = field(default_factory=list)
    """All but those of memory."""
    memory: list[ev.Memory] = field(default_factory=list)
    done: dict[BlockId, float] = field(default_factory=dict)
    """When a block's answers came out, row by row: panes are not answers yet."""
    finished: dict[int, float] = field(default_factory=dict)
    """When a job did."""
    _decided: dict[int, ev.JobDecided] = field(default_factory=dict)

    def __call__(self, event: ev.Event) -> None:
        """Take an event in."""
        if isinstance(event, ev.Memory):
            self.memory.append(event)
            return
        self.events.append(event)
        if isinstance(event, ev.JobDecided):
            self._decided[event.job] = event
        elif isinstance(event, ev.JobFinished):
            self.finished[event.job] = event.at
            of = self._decided[event.job].work
            if event.kind == "segment" and not event.kept and isinstance(of, ev.PathWork):
                self.done.update(((of.stream, number), event.at) for number in of.blocks)

    def jobs(self, since: float = 0.0) -> list[tuple[ev.JobDecided, ev.JobFinished]]:
        """The jobs that ended since a time."""
        return [(self._decided[e.job], e) for e in self.events
                if isinstance(e, ev.JobFinished) and e.at >= since]


@contextmanager
def running(
    sql: str, spark: Any, work: Path, module: str = ""
) -> Iterator[tuple[Engine, Watch]]:
    """An engine that answers an application, and what it tells; its books must balance.

    ``module`` is one of functions in the folder; one of the same name may have been there before.
    """
    sys.modules.pop(module, None)
    watch = Watch()
    with Engine(spark=spark, checkpoint=work / "state", on_event=watch) as engine:
        engine.load(sql, folder=work)
        engine.start()
        yield engine, watch
        engine.stop()
        if faults := engine.status().accounting():
            raise AssertionError(f"the books do not balance: {faults}")
