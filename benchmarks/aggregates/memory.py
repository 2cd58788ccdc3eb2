"""The memory of a run at its peak: the Python driver and the JVM, as the kernel counts them."""

from __future__ import annotations

import os
import threading
from types import TracebackType

from pyspark.sql import SparkSession

_EVERY = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """Looks ten times a second while the block runs."""

    def __init__(self, spark: SparkSession) -> None:
        """Nothing is measured yet."""
        jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
        self._processes = (os.getpid(), jvm)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Peak:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Look once more, and no longer."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            ended = self._done.wait(_EVERY)
            self.bytes = max(self.bytes, sum(map(resident, self._processes)))
            if ended:
                return


def resident(pid: int) -> int:
    """Bytes of memory that a process occupies."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * _PAGE
