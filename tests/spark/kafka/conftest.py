"""A broker for all tests of a session, and clients that look at it from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.kafka.kit import Broker, Client, NoJarsError, jars


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Broker]]:
    """Starts brokers, which end with the session; skips where there are no jars."""
    try:
        jars()
    except NoJarsError as error:
        pytest.skip(str(error))
    started: list[Broker] = []

    def start() -> Broker:
        started.append(Broker(tmp_path_factory.mktemp("kafka") / "broker"))
        return started[-1].start()

    yield start
    for one in started:
        one.kill()


@pytest.fixture(scope="session")
def broker(brokers: Callable[[], Broker]) -> Broker:
    """One broker for all tests that do not kill it; each has topics of its own."""
    return brokers()


@pytest.fixture
def client(spark: Any, broker: Broker) -> Client:
    return Client(spark._jvm, broker.servers)


@pytest.fixture
def topics(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Names of topics that no other test has."""
    return lambda name: f"{name}-{tmp_path.parent.name}-{tmp_path.name}"[:200]
