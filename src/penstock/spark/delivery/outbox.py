"""Outboxes: answers that count and are still to be sent to Kafka, each exactly once.

A job's answers come into the outbox of their topic as files, when the job counts. A thread for each
cluster sends the files in transactions and then removes them::

    outbox/CLUSTER/cluster.json          how the cluster is reached
                   sending.json          the number of the last transaction, and its files
                   TOPIC/topic.json      the topic, the column that is the key, the form
                         run-...json     answers, one JSON object in a line

Before a transaction begins, its number and its files are noted. The transaction itself carries the
number to Kafka. After a crash Kafka tells the number of the last transaction that was committed. If
it is the noted one, the files have been sent and are removed. If not, nobody has seen a row of
them, and they are sent again. So a broker that is away holds up no job, and loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Protocol

from penstock.language.kafka import sent_as
from penstock.model import Sink, Variable
from penstock.spark.delivery.kafka_producer import Record, RefusedBySink
from penstock.spark.ingest.source_options import opened
from penstock.spark.storage.checkpoint import Checkpoint

AT_ONCE = 64 << 20
"""Bytes after which a transaction takes no further file."""
LOOK_AGAIN = 5.0
"""Seconds after which an idle sender looks whether there is something, though nothing was said."""
PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Seconds between two attempts; the last holds for all that follow."""


class Producer(Protocol):
    """What sends: `penstock.spark.delivery.kafka_producer.KafkaProducer`."""

    def committed(self) -> int:
        """The number of the last transaction that was committed."""

    def send(self, number: int, records: Mapping[str, Iterable[Record]]) -> None:
        """Send records, by topic, in one transaction, which has this number."""

    def close(self) -> None:
        """Let go of it."""


Connect = Callable[[Mapping[str, str], str], Producer]
"""Makes a producer of the options of a cluster and an id."""


@dataclass(slots=True)
class Outbox:
    """The files for one topic, sent in one way."""

    folder: Path
    sink: Sink
    queries: set[str] = field(default_factory=set)
    """The queries of this run that deliver to it."""
    refused: str = ""
    """Why Kafka does not take what is in it."""

    def records(self, files: Iterable[Path]) -> Iterator[Record]:
        """The rows of some files as records."""
        key, form = sent_as(self.sink.options)
        for file in files:
            with file.open("rb") as lines:
                for line in lines:
                    yield _record(line.rstrip(b"\r\n"), key, form)


class Outboxes:
    """The outboxes of a checkpoint."""

    def __init__(
        self, checkpoint: Checkpoint, connect: Connect, warn: Callable[[str, str], None],
        fail: Callable[[str, str], None],
    ) -> None:
        """``warn`` takes a subject and a text, ``fail`` a query and why it cannot go on."""
        self._checkpoint, self._connect = checkpoint, connect
        self._warn, self._fail = warn, fail
        self._senders: dict[str, Sender] = {}
        self._opening = threading.Lock()  # jobs open outboxes from their own threads

    def begin(self) -> None:
        """Send what an earlier run has left."""
        for folder in self._checkpoint.store.list(self._checkpoint.root / "outbox"):
            noted = folder / "cluster.json"
            if self._checkpoint.store.has(noted):
                sender = self._sender(folder.name, _options(self._checkpoint.read(noted)))
                sender.begin()

    def open(self, sink: Sink, queries: Iterable[str]) -> Path:
        """The folder of the outbox for a sink."""
        cluster = tuple((name, value) for name, value in sink.options
                        if name.lower().startswith("kafka."))
        name = _digest(cluster)
        with self._opening:
            if name not in self._senders:
                noted = self._checkpoint.folder("outbox", name) / "cluster.json"
                self._checkpoint.write(noted, _noted(cluster))
            return self._sender(name, cluster).open(sink, queries)

    def _sender(self, name: str, options: Any) -> Sender:
        if name not in self._senders:
            self._senders[name] = Sender(
                self._checkpoint, self._checkpoint.root / "outbox" / name, Sink("kafka", "",
                options), self._connect, self._warn, self._fail)
        return self._senders[name]

    def wake(self, folder: Path) -> None:
        """There is more to send in an outbox."""
        self._senders[folder.parent.name].wake()

    def flush(self, within: float, patience: float) -> dict[str, str]:
        """Wait until all is sent; return the queries of which answers wait, and why.

        It is over ``within`` this many seconds, or when a cluster has not answered for
        ``patience``.
        """
        until = time.monotonic() + within
        left: dict[str, str] = {}
        for sender in self._senders.values():
            left |= sender.flush(until, patience)
        return left

    def close(self) -> None:
        """Send no more."""
        for sender in self._senders.values():
            sender.close()
        self._senders = {}


class Sender:
    """The thread that sends to one cluster."""

    def __init__(
        self, checkpoint: Checkpoint, folder: Path, cluster: Sink, connect: Connect,
        warn: Callable[[str, str], None], fail: Callable[[str, str], None],
    ) -> None:
        """Begin without a thread: it starts when there is something to send."""
        self._checkpoint, self._store, self._folder = checkpoint, checkpoint.store, folder
        self._cluster, self._connect = cluster, connect
        self._warn, self._fail = warn, fail
        self._outboxes: dict[Path, Outbox] = {}
        self._changed = threading.Condition()
        self._due, self._closed = False, False
        self._trouble, self._troubled = "", inf
        self._single = False
        """Whether one outbox after the other is sent, since Kafka has refused some of them."""
        self._thread: threading.Thread | None = None
        self._producer: Producer | None = None

    # --- what the engine says ----------------------------------------------------------------

    def begin(self) -> None:
        """Know the outboxes of earlier runs, and send what is in them."""
        for folder in self._store.list(self._folder):
            noted = folder / "topic.json"
            if self._store.has(noted):
                content = self._checkpoint.read(noted)
                self._outboxes.setdefault(folder, Outbox(folder, Sink(
                    "kafka", content["topic"], _options(content["options"]))))
        if any(self._files(outbox) for outbox in self._outboxes.values()):
            self.wake()

    def open(self, sink: Sink, queries: Iterable[str]) -> Path:
        """The folder of the outbox for a topic."""
        folder = self._folder / _digest((sink.target, sink.options))
        with self._changed:
            if folder not in self._outboxes:
                self._store.make(folder)
                self._checkpoint.write(folder / "topic.json", {
                    "topic": sink.target, "options": _noted(sink.options)})
                self._outboxes[folder] = Outbox(folder, sink)
            outbox = self._outboxes[folder]
            fresh = set(queries) - outbox.queries
            outbox.queries |= fresh
        for query in sorted(fresh if outbox.refused else ()):
            self._fail(query, _refusal(outbox))
        return folder

    def wake(self) -> None:
        """There is something to send."""
        with self._changed:
            self._due = True
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="penstock-kafka",
                                                daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, until: float, patience: float) -> dict[str, str]:
        """Wait until nothing is left to send; return the queries of which answers wait, and why.

        For what an earlier run has left, nobody waits.
        """
        with self._changed:
            if not any(outbox.queries for outbox in self._outboxes.values()):
                return {}
            while self._due and not self._closed:
                now = time.monotonic()
                if now >= until or now >= self._troubled + patience:
                    break
                self._changed.wait(min(0.2, until - now))
            if not self._due:
                return {}
            trouble = self._trouble or "the run has ended before all was sent"
            return {query: f"answers for topic {outbox.sink.target} wait in the checkpoint for "
                    f"the next run: {trouble}" for outbox in self._outboxes.values()
                    if self._files(outbox) and not outbox.refused for query in outbox.queries}

    def close(self) -> None:
        """Send no more: what is not committed is sent by the next run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(1.0)

    # --- what the thread does ----------------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        while not self._closed:
            try:
                if self._wait_for_files():
                    self._send()
                failures = 0
                self._tell("")
            except RefusedBySink as error:
                self._drop_producer()
                self._refuse(str(error))
            except Exception as error:  # whatever keeps it from sending may pass
                self._drop_producer()
                self._tell(str(error) or type(error).__name__)
                pause = PAUSES[min(failures, len(PAUSES) - 1)]
                failures += 1
                with self._changed:
                    if not self._closed:
                        self._changed.wait(pause)
        self._drop_producer()

    def _wait_for_files(self) -> bool:
        """Whether there is something to send; wait for a while if not."""
        with self._changed:
            self._due = bool(self._waiting())
            if not self._due:
                self._changed.notify_all()
                self._changed.wait(LOOK_AGAIN)
            return bool(self._waiting())

    def _waiting(self) -> list[Outbox]:
        return [outbox for outbox in list(self._outboxes.values()) if not outbox.refused
                and self._files(outbox)]

    def _files(self, outbox: Outbox) -> list[Path]:
        return self._store.list(outbox.folder, "run-*")

    def _send(self) -> None:
        """Send the next files in one transaction."""
        producer, noted = self._connected()
        batch = self._batch()
        number = noted + 1
        names = [str(file.relative_to(self._folder)) for files in batch.values() for file in files]
        self._checkpoint.write(self._sending, {"number": number, "files": names})
        outboxes = [(self._outboxes[folder], files) for folder, files in batch.items()]
        topics = dict.fromkeys(str(outbox.sink.target) for outbox, _ in outboxes)
        producer.send(number, {topic: _all_records(
            (outbox, files) for outbox, files in outboxes if outbox.sink.target == topic)
            for topic in topics})
        self._remove(names)

    def _batch(self) -> dict[Path, list[Path]]:
        """The files that go next, by their outbox."""
        batch: dict[Path, list[Path]] = {}
        size = 0
        for outbox in self._waiting()[:1] if self._single else self._waiting():
            for file in self._files(outbox):
                if size < AT_ONCE:
                    batch.setdefault(outbox.folder, []).append(file)
                    size += file.stat().st_size
        return batch

    def _connected(self) -> tuple[Producer, int]:
        """The producer, and the number of the last transaction; what that has sent is removed."""
        nothing: dict[str, Any] = {"number": 0, "files": []}
        noted = (self._checkpoint.read(self._sending) if self._store.has(self._sending)
                 else nothing)
        if self._producer is not None:
            return self._producer, noted["number"]
        self._producer = self._connect(
            opened(self._cluster), f"penstock-{self._checkpoint.id}-{self._folder.name}")
        committed = self._producer.committed()
        if noted["files"] and committed >= noted["number"]:
            self._remove(noted["files"])
        return self._producer, max(noted["number"], committed)

    @property
    def _sending(self) -> Path:
        return self._folder / "sending.json"

    def _remove(self, names: Sequence[str]) -> None:
        """Remove files that Kafka has, durably: the next transaction forgets which they were."""
        for name in names:
            self._store.remove(self._folder / name)
        self._store.sync((), {(self._folder / name).parent for name in names})

    def _drop_producer(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _refuse(self, reason: str) -> None:
        """Kafka does not take a record. Alone, an outbox fails with its queries, else find it."""
        waiting = self._waiting()
        if not self._single and len(waiting) > 1:
            self._single = True
            return
        outbox = waiting[0]
        outbox.refused = reason
        self._single = False
        for query in sorted(outbox.queries):
            self._fail(query, _refusal(outbox))
        if not outbox.queries:
            self._warn("sink kafka", _refusal(outbox))

    def _tell(self, trouble: str) -> None:
        """Report that Kafka does not answer, and that it does again."""
        servers = dict(self._cluster.options).get("kafka.bootstrap.servers")
        if trouble and not self._trouble:
            self._warn("sink kafka", f"answers wait in the checkpoint, since {servers} does not "
                       f"take them: {trouble}")
        elif self._trouble and not trouble:
            self._warn("sink kafka", f"{servers} takes answers again")
        with self._changed:
            self._troubled = inf if not trouble else min(self._troubled, time.monotonic())
            self._trouble = trouble
            self._changed.notify_all()


def _refusal(outbox: Outbox) -> str:
    return (f"Kafka does not take answers for topic {outbox.sink.target}: {outbox.refused}; they "
            f"wait in {outbox.folder}")


def _all_records(of: Iterable[tuple[Outbox, Sequence[Path]]]) -> Iterator[Record]:
    for outbox, files in of:
        yield from outbox.records(files)


def _record(line: bytes, key: str, form: str) -> Record:
    """A row, which is an object of JSON, as a key and a value.

    >>> _record(b'{"id":7,"url":"/a"}', "id", "json")
    (b'7', b'{"id":7,"url":"/a"}')
    >>> _record(b'{"id":7,"url":"/a"}', "ID", "text"), _record(b'{}', "", "text")
    ((b'7', b'/a'), (None, None))
    """
    if not key and form == "json":
        return None, line
    row = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    found = next((row.pop(name) for name in list(row) if name.lower() == key.lower()), None)
    if form == "json":
        return _text(found), line
    return _text(found), _text(next(iter(row.values()), None))


def _text(value: Any) -> bytes | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "surrogatepass")


def _digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def _noted(options: Iterable[tuple[str, str | Variable]]) -> list[list[Any]]:
    """Options as JSON: a variable stays one, so that no secret is stored."""
    return [[name, {"env": value.name} if isinstance(value, Variable) else value]
            for name, value in options]


def _options(noted: Iterable[Any]) -> tuple[tuple[str, str | Variable], ...]:
    return tuple((name, Variable(value["env"]) if isinstance(value, dict) else value)
                 for name, value in noted)
