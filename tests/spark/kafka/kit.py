"""A real broker for tests: Apache Kafka in KRaft mode on loopback, started from its jars.

The jars come from Maven, once: they stay in the user's folder for caches. Where they cannot be had,
the tests are skipped and say why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

POM = Path(__file__).parent / "pom.xml"
_CONNECTOR = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
num.partitions=2
"""
_META = "version=1\nnode.id=1\ncluster.id=penstockPenstockPens1A\n"


class NoJarsError(Exception):
    """The jars cannot be had here."""


@cache
def jars() -> Path:
    """The folder with all jars; NoJarsError says why there is none."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / f"penstock-kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        if shutil.which("mvn") is None:
            raise NoJarsError("the jars of Kafka come from Maven, and there is no mvn")
        fresh = folder.with_name(f"{folder.name}-{os.getpid()}")
        made = subprocess.run(
            ["mvn", "-B", "-q", "-ntp", "-f", POM, "dependency:copy-dependencies",
             f"-DoutputDirectory={fresh}"], capture_output=True, text=True, timeout=240)
        if made.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            why = next((line for line in made.stdout.splitlines() if "ERROR" in line), "")
            raise NoJarsError(f"Maven does not get the jars of Kafka: {why[:300]}")
        fresh.rename(folder)
    return folder


def connector() -> tuple[str, ...]:
    """The jars that Spark needs for Kafka."""
    return tuple(str(jar) for jar in sorted(jars().glob("*.jar"))
                 if jar.name.startswith(_CONNECTOR))


class Broker:
    """A broker with a folder of its own, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, controller = _free_ports(2)
        (folder / "log").mkdir(parents=True)
        (folder / "log" / "meta.properties").write_text(_META)
        self._settings = folder / "server.properties"
        self._settings.write_text(
            _SETTINGS.format(port=self.port, controller=controller, folder=folder))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Broker:
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*",
                 "kafka.Kafka", str(self._settings)], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the broker does not start"
            time.sleep(0.1)
        return self

    def _answers(self) -> bool:
        with socket.socket() as trying:
            trying.settimeout(1)
            return trying.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """As `kill -9`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Client:
    """Writes and reads records with Kafka's own client, in Spark's JVM."""

    def __init__(self, jvm: Any, servers: str) -> None:
        self._jvm, self._servers = jvm, servers

    def write(self, topic: str, values: Iterable[str | bytes | None], key: str = "") -> None:
        producer = self._jvm.org.apache.kafka.clients.producer
        bytes_ = self._jvm.org.apache.kafka.common.serialization.ByteArraySerializer
        one = producer.KafkaProducer(self._settings(), bytes_(), bytes_())
        for value in values:
            raw = value.encode() if isinstance(value, str) else value
            one.send(producer.ProducerRecord(topic, key.encode() or None, raw))
        one.flush()
        one.close()

    def read(
        self, topic: str, level: str = "read_committed"
    ) -> list[tuple[str | None, str | None]]:
        """All keys and values of a topic, as a reader of this isolation level sees them."""
        jvm = self._jvm
        bytes_ = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            self._settings({"isolation.level": level}), bytes_(), bytes_())
        try:
            return list(self._read(consumer, topic))
        finally:
            consumer.close()

    def _read(self, consumer: Any, topic: str) -> Iterator[tuple[str | None, str | None]]:
        jvm = self._jvm
        places = jvm.java.util.ArrayList()
        for part in consumer.partitionsFor(topic):
            places.add(jvm.org.apache.kafka.common.TopicPartition(topic, part.partition()))
        consumer.assign(places)
        consumer.seekToBeginning(places)
        ends = consumer.endOffsets(places)  # of a reader of this level
        while any(consumer.position(place) < ends[place] for place in places):
            for record in consumer.poll(jvm.java.time.Duration.ofMillis(200)).iterator():
                yield _text(record.key()), _text(record.value())

    def _settings(self, more: dict[str, str] | None = None) -> Any:
        found = self._jvm.java.util.HashMap()
        for name, value in {"bootstrap.servers": self._servers, **(more or {})}.items():
            found.put(name, value)
        return found


def _text(raw: Any) -> str | None:
    return None if raw is None else bytes(raw).decode()
