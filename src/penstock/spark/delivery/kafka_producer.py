"""A producer of Kafka in Spark's JVM: transactions that also tell how far a sender has come.

Kafka remembers a number for each transaction, as the offset of a consumer group that nobody reads
with. It is part of the transaction, so it tells afterwards whether that was committed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

CHUNK = 1 << 20
"""Bytes of records that go to the JVM in one call: a call for each record would take 0.2 ms."""
SETTINGS = {
    # A broker that does not answer is noticed soon. What is sent waits in the checkpoint anyway.
    "max.block.ms": "10000",
    "request.timeout.ms": "10000",
    "delivery.timeout.ms": "30000",
    # A large job takes longer than Kafka's minute.
    "transaction.timeout.ms": "300000",
    "linger.ms": "5",
}
"""Settings of the producer, unless the sink's options name others."""
_ANSWER_WITHIN = 10
"""Seconds that the broker may take to tell what was committed."""
# Compiled by Janino, with which Spark compiles its own generated code.
_LOOP = """
public class PenstockRecords {
  public void send(org.apache.kafka.clients.producer.Producer producer, String topic, byte[] rows) {
    java.nio.ByteBuffer from = java.nio.ByteBuffer.wrap(rows);
    while (from.hasRemaining()) {
      byte[] key = part(from);
      byte[] value = part(from);
      producer.send(new org.apache.kafka.clients.producer.ProducerRecord(topic, key, value));
    }
  }
  private static byte[] part(java.nio.ByteBuffer from) {
    int size = from.getInt();
    if (size < 0) return null;
    byte[] bytes = new byte[size];
    from.get(bytes);
    return bytes;
  }
}
"""
_REFUSALS = ("RecordTooLargeException", "InvalidTopicException", "TopicAuthorizationException",
             "RecordBatchTooLargeException", "InvalidRecordException", "PolicyViolationException")
"""What Kafka says of records that it will refuse however often they are sent."""

Record = tuple[bytes | None, bytes | None]
"""A key and a value."""


class RefusedBySink(Exception):
    """Kafka will never take these records."""


class NoAnswer(Exception):
    """Kafka cannot be reached, or not now."""


class KafkaProducer:
    """A producer with a transactional id of its own: an earlier one of the same id is shut out."""

    def __init__(self, jvm: Any, options: Mapping[str, str], id: str) -> None:
        """Connect, and end what a producer of this id has left open."""
        self._jvm, self._group = jvm, id
        given = {name.lower().removeprefix("kafka."): value for name, value in options.items()}
        self._settings = {**SETTINGS, **given}
        with _as_ours():
            bytes_ = jvm.org.apache.kafka.common.serialization.ByteArraySerializer
            self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(
                self._map({**self._settings, "transactional.id": id}), bytes_(), bytes_())
            self._loop = _loop(jvm)
        try:
            with _as_ours():
                self._producer.initTransactions()
        except BaseException:
            self.close()
            raise

    def committed(self) -> int:
        """The number of the last transaction that was committed; 0 if none was."""
        admin_room = self._jvm.org.apache.kafka.clients.admin
        with _as_ours():
            admin = admin_room.Admin.create(self._map(self._settings))
            try:
                stable = admin_room.ListConsumerGroupOffsetsOptions().requireStable(True)
                found = admin.listConsumerGroupOffsets(self._group, stable)
                offsets = found.partitionsToOffsetAndMetadata().get(
                    _ANSWER_WITHIN, self._jvm.java.util.concurrent.TimeUnit.SECONDS)
                return max((int(offset.offset()) for offset in offsets.values()
                            if offset is not None), default=0)
            finally:
                admin.close(self._jvm.java.time.Duration.ZERO)

    def send(self, number: int, records: Mapping[str, Iterable[Record]]) -> None:
        """Send records, by topic, in one transaction, which has this number."""
        common = self._jvm.org.apache.kafka.common
        consumer = self._jvm.org.apache.kafka.clients.consumer
        with _as_ours():
            self._producer.beginTransaction()
            for topic, some in records.items():
                for chunk in _chunks(some):
                    self._loop.send(self._producer, topic, chunk)
            self._producer.flush()  # by now the topics are there
            told = self._jvm.java.util.HashMap()
            told.put(common.TopicPartition(next(iter(records)), 0),
                     consumer.OffsetAndMetadata(number))
            self._producer.sendOffsetsToTransaction(
                told, consumer.ConsumerGroupMetadata(self._group))
            self._producer.commitTransaction()

    def close(self) -> None:
        """Close it at once; a transaction that is open comes to nothing."""
        with suppress(Exception):  # Spark may be gone
            self._producer.close(self._jvm.java.time.Duration.ZERO)

    def _map(self, settings: Mapping[str, str]) -> Any:
        found = self._jvm.java.util.HashMap()
        for name, value in settings.items():
            found.put(name, value)
        return found


def _loop(jvm: Any) -> Any:
    """The loop over records, in the JVM."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(
        jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_LOOP)
    return compiler.getClassLoader().loadClass("PenstockRecords").newInstance()


def _chunks(records: Iterable[Record]) -> Iterator[bytes]:
    """Records as the loop reads them: each part behind its length, which is -1 for NULL.

    >>> list(_chunks([(None, b"ab")]))
    [b'\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x02ab']
    """
    chunk = bytearray()
    for record in records:
        for part in record:
            chunk += struct.pack(">i", -1 if part is None else len(part))
            chunk += part or b""
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    if chunk:
        yield bytes(chunk)


class _as_ours:  # noqa: N801 - it reads as a verb
    """What Kafka raises becomes one of our two exceptions."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Py4JJavaError):
            causes = list(_causes(error.java_exception))
            told = next((text for name, text in reversed(causes) if text), causes[0][0])
            if any(name in _REFUSALS for name, _ in causes):
                raise RefusedBySink(told) from None
            raise NoAnswer(told) from None
        if isinstance(error, Py4JError):
            said = " ".join(str(error).splitlines()[:2])
            raise NoAnswer(f"Spark's JVM does not answer: {said}") from None


def _causes(error: Any) -> Iterator[tuple[str, str]]:
    """The simple name and the message of an exception and of its causes."""
    for _ in range(10):
        if error is None:
            return
        yield error.getClass().getSimpleName(), str(error.getMessage() or "")
        error = error.getCause()
