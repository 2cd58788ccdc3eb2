"""Native Structured Streaming as benchmarks compare with it: one streaming query per question.

It gets the settings that the engine gives to its own session, and Parquet's push-down of filters,
which the engine does without. Every query is in a FAIR pool of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.live import until
from penstock.spark.session import tuned

_POOL = "spark.scheduler.pool"


def native_session(spark: Any) -> Any:
    """A clone of the session with the settings that serve native Spark best here."""
    session = tuned(spark)
    session.conf.set("spark.sql.parquet.filterPushdown", "true")
    session.conf.set("spark.sql.inMemoryColumnarStorage.partitionPruning", "true")
    return session


@dataclass
class StreamingQueries:
    """Streaming queries that run beside each other."""

    session: Any
    state: Path
    """Where their checkpoints go."""
    started: list[Any] = field(default_factory=list)

    def start(self, name: str, writer: Any, settle: bool = False) -> None:
        """Start a query in a pool of its own; the writer lacks nothing but its checkpoint.

        With ``settle`` wait until its source is there. A source in Python is a process, and twenty
        that start at once do not answer in time on two cores.
        """
        self.session.sparkContext.setLocalProperty(_POOL, name)
        try:
            query = writer.option("checkpointLocation", str(self.state / name)).start()
        finally:
            self.session.sparkContext.setLocalProperty(_POOL, None)
        self.started.append(query)
        if settle:
            until(lambda: not query.isActive or "nitializing" not in query.status["message"])

    def stop(self) -> None:
        """Stop them all; one that failed says so."""
        faults = [str(query.exception()) for query in self.started if query.exception()]
        for query in self.started:
            query.stop()
        if faults:
            raise RuntimeError(f"native Spark failed: {faults[0]}")


@contextmanager
def streaming(spark: Any, state: Path) -> Iterator[StreamingQueries]:
    """Streaming queries that are stopped at the end."""
    queries = StreamingQueries(native_session(spark), state)
    try:
        yield queries
    finally:
        queries.stop()
