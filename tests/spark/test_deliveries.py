"""The log of deliveries: whatever moment it is cut off at, it says the truth."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CheckpointError
from penstock.spark import deliveries as module
from penstock.spark.deliveries import Deliveries, Intervals


@given(st.lists(st.integers(0, 40)))
def test_intervals_are_a_set(numbers):
    intervals = Intervals()
    for number in numbers:
        intervals.add(number)
    assert {n for n in range(-2, 45) if n in intervals} == set(numbers)


@given(st.lists(st.integers(0, 40)))
def test_intervals_are_as_few_as_can_be(numbers):
    intervals = Intervals()
    for number in numbers:
        intervals.add(number)
    ranges = intervals.ranges
    assert all(low <= high for low, high in ranges)
    assert all(a[1] + 1 < b[0] for a, b in zip(ranges, ranges[1:], strict=False))


def standing(log: Deliveries) -> dict:
    return {
        name: (s.start, {branch: had.ranges for branch, had in s.had.items()}, s.rows)
        for name, s in log.standing.items()
    }


def reopened(path) -> Deliveries:
    log = Deliveries(path)
    log.close()
    return log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deliveries.jsonl"


def written(path) -> Deliveries:
    log = Deliveries(path)
    log.join({"a": {"s": 0}})
    log.join({"b": {"s": 2, "t": 5}})
    log.commit(1, 1, [("a", 0), ("b", 0)], [0, 1], {"a": 10})
    log.commit(2, 1, [("a", 0), ("b", 0)], [2], {"a": 1, "b": 2})
    log.commit(3, 2, [("b", 1)], [7, 9], {"b": 5})
    log.leave("a")
    log.commit(4, 1, [("a", 0), ("b", 0)], [3], {"b": 2})
    log.close()
    return log


def test_the_log_remembers_where_every_query_stands(path):
    log = written(path)
    again = reopened(path)
    assert standing(again) == standing(log) == {
        "b": ({"s": 2, "t": 5}, {0: [[0, 3]], 1: [[7, 7], [9, 9]]}, 9)}
    assert (again.last_run, again.committed) == (4, {1, 2, 3, 4})


def test_a_log_torn_at_any_byte_tells_of_the_whole_lines_only(path, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)
    written(path)
    text = path.read_bytes()
    torn = tmp_path / "torn.jsonl"
    seen = []
    for size in range(len(text) + 1):
        torn.write_bytes(text[:size])
        log = reopened(torn)
        whole = text[:size].count(b"\n")
        if len(seen) == whole:
            seen.append((standing(log), log.last_run, log.committed))
        assert (standing(log), log.last_run, log.committed) == seen[whole]
        # and what is written after it is not glued to the half line
        log = Deliveries(torn)
        log.join({"z": {"s": 1}})
        log.close()
        assert "z" in reopened(torn).standing
    assert seen[-1][1:] == (4, {1, 2, 3, 4})


def test_a_compacted_log_says_the_same(path, monkeypatch):
    monkeypatch.setattr(module, "COMPACT_LINES", 3)
    log = Deliveries(path)
    log.join({"a": {"s": 0}})
    for run in range(1, 30):
        log.commit(run, 1, [("a", 0)], [2 * run], {"a": 1})
        if run != 17:
            log.settled(run)
    log.close()
    assert len(path.read_text().splitlines()) <= 5
    again = reopened(path)
    assert standing(again) == standing(log)
    assert again.last_run == 29
    assert 17 in again.committed and 16 not in again.committed
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_crash_while_compacting_leaves_the_old_log(path, tmp_path):
    written(path)
    before = standing(reopened(path))
    (tmp_path / "deliveries.jsonl.new").write_text('{"snapshot": {"a"')
    assert standing(reopened(path)) == before


def test_a_full_disk_while_compacting_does_not_undo_a_commit(path, monkeypatch):
    monkeypatch.setattr(module, "COMPACT_LINES", 0)
    log = Deliveries(path)
    log.join({"a": {"s": 0}})

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    log.commit(1, 1, [("a", 0)], [0], {"a": 1})
    log.commit(2, 1, [("a", 0)], [1], {"a": 1})
    log.close()
    monkeypatch.undo()
    assert standing(reopened(path)) == {"a": ({"s": 0}, {0: [[0, 1]]}, 2)}


@pytest.mark.parametrize("taken", [0, 1, 30])
def test_a_commit_that_the_disk_refused_never_happened(path, monkeypatch, taken):
    log = Deliveries(path)
    log.join({"a": {"s": 0}})
    write = os.write

    def full(file, data):
        if len(data) > taken:
            write(file, bytes(data[:taken]))
            raise OSError(28, "No space left on device")
        return write(file, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        log.commit(1, 1, [("a", 0)], [0], {"a": 5})
    monkeypatch.setattr(os, "write", write)
    log.commit(2, 1, [("a", 0)], [0], {"a": 5})
    log.close()
    again = reopened(path)
    assert (standing(again)["a"][2], again.committed) == (5, {2})


def test_recovery_forgets_what_is_settled_and_uses_no_number_twice(path):
    written(path)
    log = Deliveries(path)
    log.recovered([3, 6], last_run=6)
    assert (log.committed, log.last_run) == ({3}, 6)
    log.commit(7, 1, [("b", 0)], [8], {})
    log.close()
    assert reopened(path).committed >= {3, 7}


def test_a_damaged_line_is_named(path):
    written(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "half a li\n", *lines[2:]]))
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="line 3 is damaged"):
        Deliveries(path)
    assert path.read_bytes() == before, "a log that cannot be read is not touched"


def test_every_line_is_one_json_object(path):
    written(path)
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())


def test_a_run_under_way_is_not_the_namesakes(path):
    log = Deliveries(path)
    log.join({"a": {"s": 0}})
    log.commit(1, 1, [("a", 0)], [0], {"a": 1})
    log.leave("a")
    log.join({"a": {"s": 0}}, since=2)
    log.commit(2, 1, [("a", 0)], [1], {"a": 1})  # ordered while the other one was there
    log.commit(3, 1, [("a", 0)], [0], {"a": 5})
    log.close()
    assert standing(reopened(path)) == standing(log) == {"a": ({"s": 0}, {0: [[0, 0]]}, 5)}


def test_runs_that_were_not_a_querys_own_are_not_its_own_after_a_restart(tmp_path):
    """Runs that make panes anew are numbered but not logged; their numbers must not come again."""
    log = Deliveries(tmp_path / "log")
    log.answer(3, {"a": 10}, {})
    log.join({"b": {}}, since=7)
    log.close()
    again = Deliveries(tmp_path / "log")
    again.answer(again.last_run + 1, {"b": 20}, {})
    assert again.standing["b"].answered == 20
    again.close()
