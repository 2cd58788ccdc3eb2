"""What the driver holds: the Python process and the JVM beside it."""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

from pyspark.sql import SparkSession

from penstock.events.kinds import Memory


def measured(spark: SparkSession, at: float, synopses: int = 0) -> Memory:
    """Bytes held at this moment: by Python, and by the JVM's heap in use."""
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = int(runtime.totalMemory()) - int(runtime.freeMemory())
    return Memory(at=at, driver=resident(), jvm=heap, synopses=synopses)


def resident() -> int:
    """Bytes of memory that this process occupies."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
