"""How jobs begin and are cancelled, and how the engine stops, even if Spark is gone."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.engine import Core
from penstock.errors import RunError
from penstock.events import kinds as ev
from penstock.spark.aggregates.synopsis_store import SynopsisStore
from penstock.spark.compile.references import References
from penstock.spark.delivery.commit import Delivery
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.ingest.sources import plain
from penstock.spark.ingest.stream_ingest import Ingest
from penstock.spark.jobs.intermediate import IntermediateStore
from penstock.spark.session import lost
from penstock.spark.storage.spool import Spool

FLUSH = 5.0
"""Seconds that a sink gets to send what it holds, when a run is stopped: the rest waits."""
TICK = 1.0
"""Seconds between two looks at the clock when nothing happens."""
HURRY = 0.5
"""The part of the time for stopping in which active jobs may finish by themselves."""
ANSWER = 0.1
"""The part of the remaining time that the loop gets to do what it is asked."""


def stop_all(ingests: Sequence[Ingest], within: float | None) -> None:
    """Stop all streams; if time is short, at once: a stuck stream takes all of it."""
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


def _part(until: float, part: float = 0.5) -> float | None:
    """A part of the seconds that are left, but at least half a second; None for ever."""
    return None if until == inf else max(0.5, part * (until - time.monotonic()))


class HostShutdown:
    """The part of the host that cancels jobs and stops the engine."""

    _spark: SparkSession
    _core: Core
    _needs: References
    _delivery: Delivery
    _parts: IntermediateStore
    _windows: SynopsisStore
    _deliveries: Deliveries
    _spools: dict[str, Spool]
    _ingests: dict[str, Ingest]
    _inbox: queue.Queue[ev.Event | Callable[[], None]]
    _workers: ThreadPoolExecutor
    _ended: threading.Event
    _ask: Callable[[Callable[[], None], float | None], None]
    _end: Callable[[ev.Outcome, str], None]
    _warn: Callable[[str, str], None]

    def __init__(self) -> None:
        """Begin without active jobs."""
        self._jobs: set[Future[None]] = set()
        self._cancelled: dict[int, str] = {}
        """Cancelled jobs that have not ended, with the reason; empty when the engine stops."""
        self._groups = f"penstock-{uuid4().hex[:8]}"  # engines may share a session
        self._room = threading.Event()
        """Set while the spool has room."""
        self._room.set()
        self._looked = 0.0

    def stop(self, within: float | None = None) -> None:
        """Let active jobs finish, and end.

        If it must be over ``within`` this many seconds, longer jobs are cancelled. Nothing of them
        was committed, so the next run on the checkpoint repeats them.
        """
        ingests = list(self._ingests.values())
        until = inf if within is None else time.monotonic() + within
        self._have(self._close_slots, _part(until, ANSWER))
        for ingest in ingests:
            ingest.hold()
        if within is not None:
            self._finish_within(within * HURRY, until)
        stop_all(ingests, _part(until))
        self._workers.shutdown(wait=within is None)
        waiting = self._delivery.flush(FLUSH if until == inf else _part(until) or 0.0, FLUSH)
        for query, why in waiting.items():
            self._warn(f"query {query}", why)
        if self._have(lambda: self._end("stopped", ""), _part(until)):
            self._let_go()
        else:
            self._end_without_loop(until)

    def _have(self, act: Callable[[], None], within: float | None) -> bool:
        """Have the loop do something; return False if it does not get to it in time."""
        try:
            self._ask(act, within)
        except TimeoutError:
            return False
        except RunError:  # it may have ended by itself, or never begun
            pass
        return True

    def _end_without_loop(self, until: float) -> None:
        """The loop hangs, in a callback or in a disk. Do its work, as far as that ends."""
        for act in (partial(self._end, "stopped", "its loop did not answer"), self._let_go):
            trying = threading.Thread(target=act, daemon=True)
            trying.start()
            trying.join(_part(until))
        self._ended.set()

    def _close_slots(self) -> None:
        self._core.settings = replace(self._core.settings, slots=0)

    def _finish_within(self, seconds: float, until: float) -> None:
        """Give the active jobs this much time, then cancel them."""
        _, late = wait(list(self._jobs), timeout=seconds)
        if late:
            if not self._have(self._cancel_all, _part(until, ANSWER)):
                self._cancel_jobs()
            wait(late, timeout=seconds / 2)

    def _cancel_all(self) -> None:
        cancelled = self._cancel_jobs()
        self._warn("run", f"{cancelled} of its jobs did not finish in time and were cancelled;"
                   " nothing of them was delivered, and the next run on this checkpoint does them "
                   "again")

    def _cancel_jobs(self) -> int:
        under_way = self._core.under_way
        for run in under_way:
            self._cancel(run)
        return len(under_way)

    def _let_go(self) -> None:
        """Release what is held; Spark itself may be gone."""
        closing = [self._delivery.end, self._needs.close, self._parts.close, self._windows.close,
                   *(spool.close for spool in self._spools.values())]
        for close in closing:
            try:
                close()
            except Exception:
                if not lost(self._spark):
                    raise
        self._deliveries.close()

    def _look_after(self) -> None:
        """Once per `TICK`: end if Spark is gone, and cancel what cancelled jobs began since."""
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
        """Stop a job: abandon its callback, or have Spark cancel its Spark jobs."""
        if not when:
            self._cancelled[run] = ""
        if not self._delivery.give_up(run, when):
            self._cancelled.setdefault(run, f"it did not finish {when}")
            self._spark.sparkContext.cancelJobGroup(self._job_group(run))

    def _fault(self, run: int, error: BaseException) -> str:
        """Why a job failed; empty if Spark is gone or the engine stops."""
        if gone := lost(self._spark):
            self._inbox.put(partial(self._end, "broken", gone))
            return ""
        return self._cancelled[run] if run in self._cancelled else plain(error)

    def _job_group(self, run: int) -> str:
        return f"{self._groups}-{run}"
