"""How jobs are begun and cancelled, and how the engine stops, also when Spark is gone."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.engine import Core
from penstock.errors import RunError
from penstock.events import kinds as ev
from penstock.spark.aggregates.synopsis_store import Windows
from penstock.spark.compile.references import Needs
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.sinks import Sinks
from penstock.spark.ingest.sources import plain
from penstock.spark.ingest.stream_ingest import Ingest
from penstock.spark.jobs.intermediate import Parts
from penstock.spark.session import lost
from penstock.spark.storage.spool import Spool

TICK = 1.0
"""Seconds between two looks at the clock when nothing happens."""
HURRY = 0.5
"""The part of the time to stop within that work under way has to finish by itself."""


def stop_all(ingests: Sequence[Ingest], within: float | None) -> None:
    """Stop all streams; where time is short, at once: one that is stuck takes all of it."""
    if within is None:
        for ingest in ingests:
            ingest.stop()
        return
    stopping = [threading.Thread(target=ingest.stop, args=(within,), daemon=True)
                for ingest in ingests]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join()


class Stopping:
    """The part of the host that ends things."""

    _spark: SparkSession
    _core: Core
    _needs: Needs
    _sinks: Sinks
    _parts: Parts
    _windows: Windows
    _deliveries: Deliveries
    _spools: dict[str, Spool]
    _ingests: dict[str, Ingest]
    _inbox: queue.Queue[ev.Event | Callable[[], None]]
    _workers: ThreadPoolExecutor
    _ask: Callable[[Callable[[], None]], None]
    _end: Callable[[str, str], None]
    _warn: Callable[[str, str], None]

    def __init__(self) -> None:
        """Nothing is under way."""
        self._jobs: set[Future[None]] = set()
        self._cancelled: dict[int, str] = {}
        """Runs that were told to stop and have not, and why; empty when the engine stops."""
        self._groups = f"penstock-{uuid4().hex[:8]}"  # engines may share a session
        self._room = threading.Event()
        """Set while the spool has room."""
        self._room.set()
        self._looked = 0.0

    def stop(self, within: float | None = None) -> None:
        """Let the work under way finish, and end.

        Where it must be over ``within`` so many seconds, what takes longer is cancelled: nothing of
        it was committed, so the next run on the checkpoint does it again.
        """
        ingests = list(self._ingests.values())
        until = time.monotonic() + (within or 0.0)
        with contextlib.suppress(RunError):  # it may have ended by itself, or never begun
            self._ask(self._close_slots)
        for ingest in ingests:
            ingest.hold()
        if within is not None:
            self._finish_within(within * HURRY)
        left = None if within is None else max(0.5, (until - time.monotonic()) / 2)
        stop_all(ingests, left)
        self._workers.shutdown(wait=within is None)
        with contextlib.suppress(RunError):
            self._ask(lambda: self._end("stopped", ""))
        self._let_go()

    def _close_slots(self) -> None:
        self._core.settings = replace(self._core.settings, slots=0)

    def _finish_within(self, seconds: float) -> None:
        """Give the jobs under way so much time, then cancel them."""
        _, late = wait(list(self._jobs), timeout=seconds)
        if late:
            with contextlib.suppress(RunError):
                self._ask(self._cancel_all)
            wait(late, timeout=seconds / 2)

    def _cancel_all(self) -> None:
        under_way = [*self._core.under_way, *self._core.refreshing]
        self._warn("run", f"{len(under_way)} of its jobs did not finish in time and were cancelled;"
                   " nothing of them was delivered, and the next run on this checkpoint does them "
                   "again")
        for run in under_way:
            self._cancel(run)

    def _let_go(self) -> None:
        """Let go of what is held; Spark itself may be gone."""
        closing = [self._needs.relations.close, self._parts.close, self._windows.close,
                   *(spool.close for spool in self._spools.values())]
        for close in closing:
            try:
                close()
            except Exception:
                if not lost(self._spark):
                    raise
        self._deliveries.close()

    def _look_after(self) -> None:
        """Now and then: is Spark there, and have cancelled runs begun another job?"""
        now = time.monotonic()
        if now - self._looked >= TICK:
            self._looked = now
            if gone := lost(self._spark):
                self._end("broken", gone)
            for run in list(self._cancelled):
                self._spark.sparkContext.cancelJobGroup(self._job_group(run))

    def _submit(self, work: Callable[..., None], *args: Any) -> None:
        job = self._workers.submit(work, *args)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def _cancel(self, run: int, when: str = "") -> None:
        """Stop a run: leave its callback behind, or have Spark end its job and kill its workers."""
        if not when:
            self._cancelled[run] = ""
        if not self._sinks.calls.give_up(run, when):
            self._cancelled.setdefault(run, f"it did not finish {when}")
            self._spark.sparkContext.cancelJobGroup(self._job_group(run))

    def _fault(self, run: int, error: BaseException) -> str:
        """Why a run failed; nothing if it is not its fault: Spark is gone, or the engine stops."""
        if gone := lost(self._spark):
            self._inbox.put(partial(self._end, "broken", gone))
            return ""
        return self._cancelled[run] if run in self._cancelled else plain(error)

    def _job_group(self, run: int) -> str:
        return f"{self._groups}-{run}"
