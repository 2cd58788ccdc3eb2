"""kafka: answers are records of a topic, which a reader of committed messages sees exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark import SparkContext

from penstock.errors import SourceError
from penstock.model import Query
from penstock.plan import Member, Plan
from penstock.spark.delivery.kafka_producer import KafkaProducer, NoAnswer
from penstock.spark.delivery.outbox import Outboxes
from penstock.spark.delivery.sinks.base import Published, SinkTools, Staged
from penstock.spark.delivery.sinks.staged_files import StagedFiles
from penstock.spark.delivery.write_jobs import WriteJob, query_by_query
from penstock.spark.ingest.source_options import opened
from penstock.spark.packages import PRODUCER, lacking


class KafkaSink(StagedFiles):
    """Files in an outbox; `penstock.spark.delivery.outbox` sends them."""

    def __init__(self, tools: SinkTools) -> None:
        """Begin with nothing to send."""
        super().__init__(tools)
        self._outboxes = Outboxes(tools.staging.checkpoint, _connect, tools.warn, tools.fail)

    def fault(self, query: Query) -> str:
        """Why nothing can be sent: the producer is missing, or a variable is not set."""
        try:
            opened(query.sink)
        except SourceError as error:
            return str(error)
        jvm = _jvm()
        return lacking(jvm, PRODUCER) if jvm is not None else ""

    def begin(self) -> None:
        """Send what an earlier run has left."""
        if _jvm() is not None:
            self._outboxes.begin()

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """A job for each query; queries of one topic and form have an outbox together."""
        for job in query_by_query(plan, members):
            query = plan.query(job.members[0].query)
            folder = str(self._outboxes.open(query.sink, [query.name]))
            yield WriteJob(job.kind, job.members, "json", (folder,), (0,) * len(job.members))

    def publish(self, staged: Staged) -> Published:
        """Put files into the outbox, from where they are sent."""
        published = super().publish(staged)
        self._wake(staged)
        return published

    def _wake(self, staged: Staged) -> None:
        root = self.tools.staging.checkpoint.root
        if _jvm() is not None:
            for folder in dict.fromkeys(move.folder for move in staged.moves):
                self._outboxes.wake(root / folder)

    def flush(self, within: float, patience: float) -> Mapping[str, str]:
        """Wait until all is sent."""
        return self._outboxes.flush(within, patience)

    def end(self) -> None:
        """Send no more."""
        self._outboxes.close()


def _jvm() -> Any:
    context = SparkContext._active_spark_context
    return context._jvm if context is not None else None


def _connect(options: Mapping[str, str], id: str) -> KafkaProducer:
    jvm = _jvm()
    if jvm is None:
        raise NoAnswer("Spark has ended")
    if fault := lacking(jvm, PRODUCER):
        raise NoAnswer(fault)
    return KafkaProducer(jvm, options, id)
