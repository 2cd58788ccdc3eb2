"""Many simulations at once, as a Spark job: what `simulator.fleet` does on a whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock.spark.session import local_session

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def scatter(
    function: Callable[[_Item], _Answer], items: Iterable[_Item], master: str | None = None
) -> Iterator[_Answer]:
    """The answers of a function for each item, in order; every item is a task of its own.

    It uses the present session, or starts one that ends with the last answer. The answers come when
    all tasks are done. Workers need Penstock installed.
    """
    listed = list(items)
    there = SparkSession.getActiveSession()
    session = there or local_session(master)
    try:
        tasks = session.sparkContext.parallelize(listed, max(1, len(listed)))
        yield from tasks.map(function).collect()
    finally:
        if there is None:
            session.stop()
