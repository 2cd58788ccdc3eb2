"""Kafka with a real broker: values as columns, and answers that a committed reader sees once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from penstock.model import Sink
from penstock.spark.delivery.kafka_producer import KafkaProducer
from penstock.spark.delivery.outbox import Outboxes
from penstock.spark.storage.checkpoint import Checkpoint
from tests.spark.kafka.kit import Client, connector
from tests.spark.kit import eventually

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DRIVER = Path(__file__).with_name("kafka_driver.py")


def _values(rows: Iterable[tuple[str | None, str | None]]) -> list[Any]:
    return [json.loads(value) for _, value in rows if value is not None]


# --- reading -------------------------------------------------------------------------------------


def test_values_are_columns_and_the_time_is_inside_them(engine, broker, client, topics) -> None:
    topic = topics("clicks")
    good = [{"at": f"2026-01-01T00:00:{second:02}Z", "url": f"/{second % 3}", "ms": second * 10}
            for second in range(30)]
    client.write(topic, map(json.dumps, good), key="k")
    client.write(topic, ["no json", '{"at": "2026-01-01T00:00:05Z", "ms": "many"}', None])
    one = engine()
    one.execute(f"""
        CREATE STREAM clicks (at TIMESTAMP, url STRING, ms INT, kafka_key STRING,
                              twice BIGINT AS (ms * 2))
          FROM kafka '{topic}' OPTIONS (kafka.bootstrap.servers = '{broker.servers}',
                                        startingOffsets = 'earliest', valueFormat = 'json')
          TIME at LATENESS 1 MINUTE;
        CREATE QUERY slow AS SELECT url, ms, kafka_key, twice FROM clicks WHERE ms > 250;
        CREATE QUERY views AS SELECT url, COUNT(*) AS n, SUM(ms) AS total FROM clicks
          GROUP BY url, TUMBLE(at, INTERVAL '10' SECOND);
    """)
    summary = one.run()
    assert summary.failures() == []
    assert summary.streams["clicks"].rejected == 2
    assert Counter(map(str, one.results("slow").to_pylist())) == Counter(
        str({"url": row["url"], "ms": row["ms"], "kafka_key": "k", "twice": 2 * row["ms"]})
        for row in good if row["ms"] > 250)
    expected: Counter[tuple[int, str]] = Counter()
    for second, row in enumerate(good):
        expected[second // 10, row["url"]] += row["ms"]
    assert sorted(row["total"] for row in one.results("views").to_pylist()) == sorted(
        expected.values())
    aside = "".join(path.read_text() for path in one.checkpoint.glob("rejects/clicks/**/part*"))
    assert "no json" in aside and "many" in aside and aside.count("malformed row") == 2


def test_without_a_format_the_columns_are_kafkas_own(engine, broker, client, topics) -> None:
    topic = topics("lines")
    client.write(topic, ["a", "b"], key="key")
    one = engine()
    one.execute(f"""
        CREATE STREAM lines (key BINARY, value STRING, topic STRING, offset BIGINT,
                             timestamp TIMESTAMP)
          FROM kafka '{topic}' OPTIONS (kafka.bootstrap.servers = '{broker.servers}',
                                        startingOffsets = 'earliest') TIME timestamp;
        CREATE QUERY q AS SELECT key, value, topic, offset FROM lines;
    """)
    assert one.run().failures() == []
    assert sorted(one.results("q").to_pylist(), key=lambda row: row["value"]) == [
        {"key": b"key", "value": value, "topic": topic, "offset": offset}
        for offset, value in enumerate("ab")]


@pytest.mark.parametrize(("columns", "options", "why"), [
    ("url STRING", "", "Kafka has no column 'url'; if the values have it, say what they are"),
    ("value INT", "", "column 'value' is declared INT; in Kafka it is BINARY or STRING"),
    ("a INT", ", valueFormat = 'avro', avroSchema = '{}'",
     "start with --packages org.apache.spark:spark-avro_2.13:"),
])
def test_what_cannot_be_read_is_said_at_the_start(engine, broker, columns, options, why) -> None:
    one = engine()
    one.execute(f"""
        CREATE STREAM s ({columns}) FROM kafka 'none' OPTIONS (
          kafka.bootstrap.servers = '{broker.servers}'{options});
        CREATE QUERY q AS SELECT * FROM s;
    """)
    assert why in one.run().streams["s"].reason


# --- writing -------------------------------------------------------------------------------------


def test_answers_are_records_with_a_key(engine, broker, client, topics, tmp_path) -> None:
    rows = [{"id": number, "name": f"n{number % 4}"} for number in range(100)]
    _drop_in(tmp_path, "1.json", rows)
    one, told, texts = engine(), topics("told"), topics("texts")
    cluster = f"kafka.bootstrap.servers = '{broker.servers}'"
    one.execute(f"""
        CREATE STREAM s (id INT, name STRING) FROM json 'in';
        CREATE QUERY odd INTO kafka '{told}' OPTIONS ({cluster}, key = 'id') AS
          SELECT id, name FROM s WHERE id % 2 = 1;
        CREATE QUERY few INTO kafka '{told}' OPTIONS ({cluster}, key = 'id') AS
          SELECT id, NULL AS nothing FROM s WHERE id < 3;
        CREATE QUERY names INTO kafka '{texts}' OPTIONS ({cluster}, valueFormat = 'text') AS
          SELECT name FROM s WHERE id < 4;
    """, folder=tmp_path)
    summary = one.run()
    assert summary.failures() == [] and summary.queries["odd"].rows_out == 50
    seen = client.read(told)
    assert sorted(_values(seen), key=str) == sorted(
        [row for row in rows if row["id"] % 2] + [{"id": number} for number in range(3)], key=str)
    assert all(key == str(json.loads(value)["id"]) for key, value in seen)
    assert sorted(client.read(texts)) == [(None, f"n{number}") for number in range(4)]
    assert not list(one.checkpoint.glob("outbox/*/*/run-*"))


def test_a_broker_that_is_killed_loses_and_repeats_nothing(
    engine, brokers, spark, tmp_path
) -> None:
    broker = brokers()
    events: list[Any] = []
    one = engine(on_event=events.append)
    _drop_in(tmp_path, "0.json", [{"id": 0}])
    one.execute(f"""
        CREATE STREAM s (id INT) FROM json 'in';
        CREATE QUERY q INTO kafka 'answers' OPTIONS (
          kafka.bootstrap.servers = '{broker.servers}', kafka.max.block.ms = 2000) AS
          SELECT id FROM s;
    """, folder=tmp_path)
    one.start()
    client = Client(spark._jvm, broker.servers)
    waiting = lambda: list(one.checkpoint.glob("outbox/*/*/run-*"))  # noqa: E731
    delivered = lambda: one.status().queries["q"].rows_out  # noqa: E731
    eventually(lambda: delivered() == 1 and not waiting(), "the first answer is sent")
    broker.kill()
    for number in range(1, 4):
        _drop_in(tmp_path, f"{number}.json", [{"id": number}])
        eventually(lambda wanted=number + 1: delivered() == wanted, "the answer counts")
    assert waiting()
    broker.start()
    eventually(lambda: not waiting(), "all is sent")
    one.stop()
    assert sorted(row["id"] for row in _values(client.read("answers"))) == [0, 1, 2, 3]
    assert not one.status().failures()
    broker.kill()


def test_a_record_that_kafka_refuses_fails_its_query_alone(
    engine, broker, client, topics, tmp_path
) -> None:
    _drop_in(tmp_path, "1.json", [{"id": 1}])
    one, good, bad = engine(), topics("good"), topics("bad")
    one.execute(f"""
        CREATE STREAM s (id INT) FROM json 'in';
        CREATE QUERY small INTO kafka '{good}' OPTIONS (
          kafka.bootstrap.servers = '{broker.servers}') AS SELECT id FROM s;
        CREATE QUERY large INTO kafka '{bad}' OPTIONS (
          kafka.bootstrap.servers = '{broker.servers}') AS
          SELECT REPEAT('x', 1100000) AS text FROM s;
    """, folder=tmp_path)
    one.start()
    eventually(lambda: one.status().queries["large"].state == "failed", "it fails")
    eventually(lambda: bool(_all(client, good)), "the other is sent")
    one.stop()
    assert "Kafka does not take answers for topic" in one.status().queries["large"].reason
    assert _values(client.read(good)) == [{"id": 1}]


def _all(client: Client, topic: str) -> list[Any]:
    return client.read(topic)


def _drop_in(folder: Path, name: str, rows: Iterable[dict[str, Any]]) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / name).rename(folder / "in" / name)


# --- crashes -------------------------------------------------------------------------------------


class Died(BaseException):
    """The driver is no more."""


@pytest.mark.parametrize("when", ["noted", "begun", "committed"])
def test_files_are_sent_once_whenever_a_sender_dies(
    spark, broker, client, topics, tmp_path, when
) -> None:
    """As of `kill -9`, but for the processes: nobody tidies up, and a successor finds it all."""
    topic, checkpoint = topics("out"), Checkpoint.open(tmp_path / "checkpoint")
    sink = Sink("kafka", topic, (("kafka.bootstrap.servers", broker.servers),))

    class Mortal(KafkaProducer):
        def send(self, number: int, records: Any) -> None:
            if when == "begun":
                self._producer.beginTransaction()
                self._loop.send(self._producer, topic, b"\xff\xff\xff\xff\0\0\0\x03bad")
                self._producer.flush()
            if when == "committed":
                super().send(number, records)
            raise Died

    def made(kind: type[KafkaProducer]) -> Outboxes:
        def fail(query: str, reason: str) -> None:
            raise AssertionError(reason)

        return Outboxes(checkpoint, lambda options, id: kind(spark._jvm, options, id),
                        lambda subject, text: None, fail)

    def put(outboxes: Outboxes, name: str, *ids: int) -> Path:
        folder = outboxes.open(sink, ["q"])
        (folder / name).write_text("".join(f'{{"id":{id}}}\n' for id in ids))
        return folder

    first = made(KafkaProducer)
    first.wake(put(first, "run-1.json", 1, 2))
    assert first.flush(30, 30) == {}
    first.close()
    dying = made(Mortal)
    folder = put(dying, "run-2.json", 3)
    with pytest.raises(Died):
        dying._senders[folder.parent.name]._send()
    last = made(KafkaProducer)
    last.begin()
    assert last.flush(30, 30) == {}
    last.wake(put(last, "run-3.json", 4))
    assert last.flush(30, 30) == {}
    last.close()
    assert sorted(row["id"] for row in _values(client.read(topic))) == [1, 2, 3, 4]
    assert not list(folder.glob("run-*"))
    checkpoint.close()


MOMENTS = ("staged", "half a commit", "committed", "in the outbox", "noted", "sending", "sent",
           "a file is removed")


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("moments", [
    pytest.param(("sending", "sent"), id="two"),
    pytest.param((*MOMENTS, "sending", "noted"), id="ten", marks=pytest.mark.long)])
def test_a_driver_that_is_killed_repeats_nothing(
    broker, spark, topics, tmp_path, moments: tuple[str, ...]
) -> None:
    """JSON in Kafka, its time inside; two queries, one over a derived stream, into Kafka."""
    client, source, out = Client(spark._jvm, broker.servers), topics("in"), topics("out")
    sums = topics("sums")
    cluster = f"kafka.bootstrap.servers = '{broker.servers}'"
    (tmp_path / "app.sql").write_text(f"""
        CREATE STREAM clicks (at TIMESTAMP, id INT) FROM kafka '{source}' OPTIONS ({cluster},
          startingOffsets = 'earliest', valueFormat = 'json', maxOffsetsPerTrigger = 40)
          TIME at LATENESS 1 HOUR;
        CREATE STREAM odd TIME at LATENESS 1 HOUR AS SELECT at, id FROM clicks WHERE id % 2 = 1;
        CREATE QUERY every INTO kafka '{out}' OPTIONS ({cluster}, key = 'id') AS
          SELECT id, at FROM clicks;
        CREATE QUERY sums INTO kafka '{sums}' OPTIONS ({cluster}) AS
          SELECT SUM(id) AS total, COUNT(*) AS n FROM odd GROUP BY TUMBLE(at, INTERVAL '1' MINUTE);
    """)
    rows = 0
    for moment in (*moments, ""):
        client.write(source, [json.dumps({"at": f"2026-01-01T00:{id % 60:02}:00Z", "id": id})
                              for id in range(rows, rows + 60)])
        rows += 60
        ended = _driver(tmp_path, moment)
        assert ended.returncode == (-signal.SIGKILL if moment else 0), ended.stdout + ended.stderr
    assert sorted(row["id"] for row in _values(client.read(out))) == list(range(rows))
    minutes = [sum(id for id in range(rows) if id % 60 == minute) for minute in range(1, 60, 2)]
    assert sorted(row["total"] for row in _values(client.read(sums))) == sorted(minutes)


def _driver(folder: Path, moment: str) -> subprocess.CompletedProcess[str]:
    child = subprocess.Popen(
        [sys.executable, str(DRIVER), str(folder), moment, *connector()], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True, cwd=DRIVER.parents[3],
        env=os.environ | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"})
    try:
        out, _ = child.communicate(timeout=120)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    return subprocess.CompletedProcess([], child.returncode, out, "")


@pytest.mark.processes
@pytest.mark.slow
def test_the_command_line_takes_jars_and_settings(broker, spark, topics, tmp_path) -> None:
    client, source, out = Client(spark._jvm, broker.servers), topics("in"), topics("out")
    client.write(source, ["a", "b"])
    cluster = f"kafka.bootstrap.servers = '{broker.servers}'"
    (tmp_path / "app.sql").write_text(f"""
        CREATE STREAM s (value STRING) FROM kafka '{source}' OPTIONS ({cluster},
          startingOffsets = 'earliest');
        CREATE QUERY q INTO kafka '{out}' OPTIONS ({cluster}, valueFormat = 'text') AS
          SELECT UPPER(value) AS value FROM s;
    """)
    run = [sys.executable, "-m", "penstock.cli", "run", "app.sql", "--until-drained",
           "--conf", "spark.driver.memory=600m"]
    without = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert without.returncode == 1
    assert "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:" in " ".join(
        without.stdout.split())
    done = subprocess.run([*run, "--jars", ",".join(connector())], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(client.read(out)) == [(None, "A"), (None, "B")]


