"""The contract of a sink: one that a test writes is added by a line, and delivers exactly once."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import UnknownName
from penstock.language import bind
from penstock.model import Query
from penstock.sinks import SINKS, SinkKind
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sinks.base import AnswerSink, Published, Staged, WriteTask, collect
from tests.spark.delivery.test_sinks import Driver

APP = """
CREATE STREAM s (ts TIMESTAMP, v INT) FROM parquet 'in' TIME ts;
CREATE QUERY a INTO recording AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];
CREATE QUERY b INTO recording AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];
"""


class Store:
    """A store with transactions: it outlives the drivers that write to it."""

    def __init__(self) -> None:
        self.open: dict[str, list[int]] = {}
        self.seen: list[int] = []

    def commit(self, transaction: str) -> None:
        """Show the rows of a transaction; one that is not open was committed before."""
        self.seen += self.open.pop(transaction, [])


STORE = Store()


class RecordingSink(AnswerSink):
    """Writes each job into one transaction of the store."""

    def fault(self, query: Query) -> str:
        return "the store knows no c" if query.name == "c" else ""

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        collected = collect(task, answers)
        STORE.open[f"{task.job}"] = collected.table["n"].to_pylist()
        self.tools.staging.note(task.job, "recording", f"{task.job}")
        return collected.staged

    def publish(self, staged: Staged) -> Published:
        STORE.commit(f"{staged.job}")
        return Published()

    def discard(self, job: int) -> None:
        STORE.open.pop(f"{job}", None)

    def recover(self, job: int, warn: Any) -> None:
        STORE.commit(self.tools.staging.noted(job, "recording"))


class Died(BaseException):
    """The driver is no more."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store, and the line that makes its sink known to language, planner and delivery."""
    monkeypatch.setitem(SINKS, "recording", SinkKind(f"{__name__}:RecordingSink"))
    STORE.__init__()  # type: ignore[misc]
    return STORE


def test_a_sink_is_a_file_and_a_line(store: Store, tmp_path: Path) -> None:
    one = Driver(tmp_path, sql=APP).start()
    done = one.deliver(1, 2)
    assert (store.seen, store.open) == ([1, 2], {})
    assert (done.rows, done.failed) == ({"a": 2}, {})
    assert one.deliveries.last_job == 1
    assert list((one.checkpoint.root / "staging").iterdir()) == []
    one.close()


def test_without_its_line_the_language_does_not_know_it(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no sink 'recording'"):
        bind(APP, folder=tmp_path)


def test_a_sink_says_which_query_it_cannot_take(store: Store, tmp_path: Path) -> None:
    one = Driver(tmp_path, sql=APP.replace("QUERY b", "QUERY c")).start()
    queries = one.application.queries
    assert one.sinks.faults(queries.values()) == {"c": "the store knows no c"}
    one.close()


def test_what_is_staged_is_seen_by_nobody_until_the_line_is_there(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Driver(tmp_path, sql=APP).start()
    commit = one.deliveries.commit

    def watched(*args: Any, **kwargs: Any) -> None:
        assert (store.seen, store.open) == ([], {"1": [7]})
        commit(*args, **kwargs)

    monkeypatch.setattr(one.deliveries, "commit", watched)
    one.deliver(7)
    assert (store.seen, store.open) == ([7], {})
    one.close()


def test_a_job_that_fails_leaves_nothing_staged(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Driver(tmp_path, sql=APP).start()

    def refuse(self: AnswerSink, task: WriteTask, answers: Answers) -> Staged:
        stage(self, task, answers)
        raise OSError(28, "No space left on device")

    stage = RecordingSink.stage
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(RecordingSink, "stage", refuse)
        one.deliver(1)
    assert (store.seen, store.open) == ([], {})
    assert list((one.checkpoint.root / "staging").iterdir()) == []
    one.deliver(2)
    assert store.seen == [2]
    one.close()


def test_a_store_that_refuses_after_the_line_gets_the_rows_at_the_next_start(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Driver(tmp_path, sql=APP).start()

    def refuse(self: AnswerSink, staged: Staged) -> Published:
        raise ConnectionError("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(RecordingSink, "publish", refuse)
        done = one.deliver(5)
    assert done.failed == {"a": "its answers could not be published: the store does not answer"}
    assert (store.seen, one.deliveries.last_job) == ([], 1)
    one.close()
    again = Driver(tmp_path, sql=APP).start()
    assert (store.seen, store.open, again.warned) == ([5], {}, [])
    again.close()


@pytest.mark.parametrize("before", [True, False])
def test_whatever_moment_the_driver_dies_at_rows_are_seen_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    one = Driver(tmp_path, sql=APP).start()
    commit = one.deliveries.commit

    def die(*args: Any, **kwargs: Any) -> None:
        if not before:
            commit(*args, **kwargs)
        raise Died

    monkeypatch.setattr(one.deliveries, "commit", die)
    with pytest.raises(Died):
        one.deliver(1)
    assert (store.seen, store.open) == ([], {"1": [1]})
    one.close()
    for _ in range(2):  # a recovery may be followed by another one
        again = Driver(tmp_path, sql=APP).start()
        assert again.warned == []
        assert (store.seen, store.open) == ([] if before else [1], {})
        assert list((again.checkpoint.root / "staging").iterdir()) == []
        again.close()


# --- every sink of the catalogue -----------------------------------------------------------------


@pytest.mark.parametrize("kind", SINKS)
def test_every_kind_has_a_class_that_keeps_the_contract(kind: str) -> None:
    module, _, name = SINKS[kind].made_by.partition(":")
    made = getattr(import_module(module), name)
    assert issubclass(made, AnswerSink) and made.stage is not AnswerSink.stage and made.__doc__


@pytest.mark.parametrize("kind", [name for name, one in SINKS.items() if not one.is_ours])
def test_every_kind_delivers_what_the_driver_holds(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An earlier test may have left a JVM, which lacks Kafka's producer: here is no Spark.
    monkeypatch.setattr("penstock.spark.delivery.sinks.kafka._jvm", lambda: None)
    target = {"folder": "'out'", "function": "'os:getcwd'", "none": "",
              "topic": "'out' OPTIONS (kafka.bootstrap.servers = 'nowhere:1')"}[SINKS[kind].target]
    sql = APP.replace("INTO recording", f"INTO {kind} {target}", 1).split("CREATE QUERY b")[0]
    one = Driver(tmp_path, sql=sql).start()
    assert one.sinks.faults(one.application.queries.values()) == {}
    done = one.deliver(3, 4)
    assert (done.rows, one.deliveries.last_job) == ({"a": 2}, 1)
    assert list((one.checkpoint.root / "staging").iterdir()) == []
    one.close()
