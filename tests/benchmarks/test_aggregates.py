"""The benchmark of window aggregates: its windows, its rival by hand, and its reckoning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.aggregates.answers import wrong
from benchmarks.aggregates.pipelines import SUM, PaneTable
from benchmarks.aggregates.program import Bench, Size
from benchmarks.aggregates.traffic import BEGIN, RATE, Window, windows, write_packets
from harness.findings import Report

SECONDS = 3


def test_windows_are_20_to_100_seconds_with_slides_up_to_half() -> None:
    many = windows(1000)
    assert {one.length for one in many} == set(range(20, 101))
    assert all(1 <= one.slide <= one.length / 2 for one in many)
    assert many[:16] == windows(16)


def test_the_single_window_is_neither_the_easiest_nor_the_hardest_for_native_spark() -> None:
    copies = np.array([one.copies for one in windows(1000)])
    assert np.quantile(copies, 0.25) < copies[0] < np.quantile(copies, 0.75)


def test_windows_that_hold_a_second_with_packets_are_the_ones_expected() -> None:
    window = Window(length=20, slide=7)
    first = BEGIN // 1_000_000
    held = [end - first for end in range(first - 50, first + 100)
            if end % 7 == 0 and end > first and end - 20 < first + SECONDS]
    assert list(window.ends(SECONDS)) == held


@pytest.fixture
def packets(tmp_path: Path) -> Path:
    write_packets(tmp_path / "packets", SECONDS * RATE, RATE)
    return tmp_path / "packets"


def test_packets_come_evenly_and_the_same_every_time(packets: Path, tmp_path: Path) -> None:
    table = pq.read_table(packets)
    seconds = np.asarray(table["ts"].cast(pa.int64())) // 1_000_000 - BEGIN // 1_000_000
    assert np.bincount(seconds).tolist() == [RATE] * SECONDS
    write_packets(tmp_path / "again", SECONDS * RATE, RATE)
    assert pq.read_table(tmp_path / "again").equals(table)


def summed(packets: Path, start: int, end: int) -> np.ndarray:
    table = pq.read_table(packets)
    seconds = np.asarray(table["ts"].cast(pa.int64())) // 1_000_000 - BEGIN // 1_000_000
    held = (seconds >= start) & (seconds < end)
    return np.bincount(np.asarray(table["src"])[held], np.asarray(table["length"])[held], 1000)


def answers(packets: Path, asked: list[Window]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(asked):
        for end in one.ends(SECONDS):
            totals = summed(packets, end - one.length, end)
            rows += [{"query": f"q{number}", "src": int(src), "answer": int(totals[src]),
                      "window_end": BEGIN + 1_000_000 * end} for src in np.flatnonzero(totals)]
    table = pa.Table.from_pylist(rows)
    return table.set_column(3, "window_end", table["window_end"].cast(pa.timestamp("us", "UTC")))


def test_a_wrong_answer_among_right_ones_is_found(packets: Path, tmp_path: Path) -> None:
    asked, folder = [Window(2, 1)], tmp_path / "answers"
    folder.mkdir()
    table = answers(packets, asked)
    pq.write_table(table, folder / "part.parquet")
    assert wrong(packets, folder, asked, SECONDS, "SUM(length)", "src") == []
    false = pa.array(np.asarray(table["answer"]) + (np.asarray(table["src"]) == 7))
    pq.write_table(table.set_column(2, "answer", false), folder / "part.parquet")
    assert wrong(packets, folder, asked, SECONDS, "SUM(length)", "src") != []


def test_the_pane_table_by_hand_answers_every_window_once(packets: Path) -> None:
    asked = [Window(2, 1), Window(4, 2)]
    table = PaneTable.over(asked, SECONDS)
    for second in range(SECONDS):
        sums = summed(packets, second, second + 1)
        held = np.flatnonzero(sums)
        table.take(pa.table({
            "second": np.full(len(held), BEGIN // 1_000_000 + second), "src": held,
            "total": sums[held].astype(int)}), second - 1)
    table.answer(SECONDS + 4)
    assert table.answers == sum(len(one.ends(SECONDS)) for one in asked)
    assert table.rows == answers(packets, asked).num_rows


def test_native_spark_is_compared_only_where_it_was_measured(tmp_path: Path) -> None:
    size = Size(RATE, RATE, (1, 16, 64, 240), (1, 16))
    bench = Bench(None, tmp_path, size, Report("x"), print)  # type: ignore[arg-type]
    bench.rates = {("native", 1): 100.0, ("native", 16): 10.0, ("penstock", 1): 300.0}
    for n in (1, 16, 64):
        bench.report.rows.append({"engine": "penstock", "queries": str(n), "aggregate": SUM,
                                  "packets/s": 300.0})
    bench.beside_native()
    assert [row["times native"] for row in bench.report.rows] == [3.0, 30.0, None]
