"""The response benchmark: its traffic, and how it reckons."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.live import Feeder
from benchmarks.response import (
    CHEAP_LOAD,
    CHEAP_QUERIES,
    CHEAP_ROWS,
    HEAVY_LOAD,
    HEAVY_ROWS,
    WARM_BLOCKS,
    Traffic,
    answers,
    queries,
    responses,
    streams,
)


def test_there_are_twenty_cheap_queries() -> None:
    assert len(queries()) == 20


def test_streams_are_skewed_and_blocks_of_each_come_in_the_order_of_their_numbers() -> None:
    traffic = Traffic.of(40, cheap_seconds=0.1, heavy_seconds=2.0)
    counts = Counter(arrival.stream for arrival in traffic.arrivals)
    cheap = [counts[name] for name in streams()[1:]]
    assert cheap == sorted(cheap, reverse=True)
    assert cheap[0] == pytest.approx(5 * cheap[4], rel=0.1)
    for name in streams():
        numbers = [arrival.number for arrival in traffic.arrivals if arrival.stream == name]
        assert numbers == list(range(WARM_BLOCKS, WARM_BLOCKS + counts[name]))


def test_the_traffic_asks_for_its_share_of_the_time() -> None:
    traffic = Traffic.of(200, cheap_seconds=0.1, heavy_seconds=2.0)
    counts = Counter(arrival.stream == "heavy" for arrival in traffic.arrivals)
    length = traffic.arrivals[-1].at
    assert counts[True] * 2.0 / length == pytest.approx(HEAVY_LOAD, rel=0.02)
    assert counts[False] * 0.1 / length == pytest.approx(CHEAP_LOAD, rel=0.02)


def test_the_same_traffic_comes_every_time() -> None:
    assert Traffic.of(9, 0.1, 2.0) == Traffic.of(9, 0.1, 2.0)


def test_a_response_runs_from_the_file_to_the_answers_of_every_query() -> None:
    feeder = Feeder(lambda *_: Path(), lambda _: Path(),
                    {("s1", 9): 10.0, ("heavy", 9): 10.0, ("s1", 0): 1.0})
    delivered = {("s1", 9, f"s1_q{n}"): 11.0 for n in range(CHEAP_QUERIES)}
    told = responses(feeder, {**delivered, ("heavy", 9, "heavy"): 16.0, ("s1", 0, "s1_q0"): 99.0})
    assert told["mean s"] == pytest.approx((4 * 1.0 + 6.0) / 5), "warm-up blocks do not count"
    assert (told["cheap mean s"], told["heavy max s"]) == (1.0, 6.0)
    weights = 4 * CHEAP_ROWS + HEAVY_ROWS
    assert told["mean by rows s"] == pytest.approx(
        (4 * CHEAP_ROWS * 1.0 + HEAVY_ROWS * 6.0) / weights)


def test_answers_in_a_shared_folder_and_in_folders_of_their_own_are_counted_alike(
    tmp_path: Path,
) -> None:
    shared = pa.table({"query": ["a", "a", "b"], "n": [1, 2, 5]})
    (tmp_path / "ours" / "cheap").mkdir(parents=True)
    pq.write_table(shared, tmp_path / "ours" / "cheap" / "0.parquet")
    for name, numbers in {"a": [1, 2], "b": [5]}.items():
        (tmp_path / "native" / name).mkdir(parents=True)
        pq.write_table(pa.table({"n": numbers}), tmp_path / "native" / name / "0.parquet")
        (tmp_path / "native" / name / "_SUCCESS").touch()
    assert answers(tmp_path / "ours") == answers(tmp_path / "native") == {"a": (2, 3), "b": (1, 5)}
