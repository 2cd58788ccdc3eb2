"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests that end engines leave no process behind that makes an archive of Spark's classes.
os.environ.setdefault("PENSTOCK_CLASS_ARCHIVE", "off")

# A machine that is busy with Spark is slow now and then, which says nothing about the code.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """One Spark for all tests, as `penstock.Engine` would start it; with Kafka if any needs it."""
    from penstock.spark.session import local_session
    from penstock.spark.submit_options import SubmitOptions
    from tests.spark.kafka.kit import NoJarsError, connector

    jars: tuple[str, ...] = ()
    if any(item.get_closest_marker("kafka") for item in request.session.items):
        with suppress(NoJarsError):
            jars = connector()
    session = local_session("local[2]", more=SubmitOptions(jars=jars))
    yield session
    session.stop()
