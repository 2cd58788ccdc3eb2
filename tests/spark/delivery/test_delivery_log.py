"""The log of deliveries: whatever moment it is cut off at, it says the truth."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.positions import Intervals
from penstock.errors import CheckpointError
from penstock.plan import Member
from penstock.spark.delivery import delivery_log as module
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.storage.guarded import Log, Witness

ID = "5e1f"


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


def positions(log: Deliveries) -> dict:
    return {
        name: (s.start, {place: had.ranges for place, had in s.had.items()}, s.rows)
        for name, s in log.positions.items()
    }


def reopened(path) -> Deliveries:
    log = Deliveries(Log(path, ID))
    log.close()
    return log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deliveries.jsonl"


def written(path) -> Deliveries:
    log = Deliveries(Log(path, ID))
    log.join({"a": {"s": 0}})
    log.join({"b": {"s": 2, "t": 5}})
    log.commit(1, riders=1, members=[Member("a", 0), Member("b", 0)], blocks=[0, 1], rows={"a": 10})
    log.commit(2, riders=1, members=[Member("a", 0), Member("b", 0)], blocks=[2],
               rows={"a": 1, "b": 2})
    log.commit(3, riders=2, members=[Member("b", 1)], blocks=[7, 9], rows={"b": 5})
    log.leave("a")
    log.commit(4, riders=1, members=[Member("a", 0), Member("b", 0)], blocks=[3], rows={"b": 2})
    log.close()
    return log


def test_the_log_remembers_where_every_query_stands(path):
    log = written(path)
    again = reopened(path)
    assert positions(again) == positions(log) == {
        "b": ({"s": 2, "t": 5}, {(0, 0): [[0, 3]], (1, 0): [[7, 7], [9, 9]]}, 9)}
    assert (again.last_job, again.committed) == (4, {1, 2, 3, 4})


def test_inputs_of_a_branch_have_had_their_own_blocks(path):
    log = Deliveries(Log(path, ID))
    log.join({"j": {"s": 0, "t": 0}})
    log.commit(1, riders=1, members=[Member("j", 0, 0)], blocks=[0, 1], rows={})
    log.commit(2, riders=2, members=[Member("j", 0, 1)], blocks=[5], rows={})
    log.close()
    had = {(0, 0): [[0, 1]], (0, 1): [[5, 5]]}
    assert positions(reopened(path)) == positions(reopened(path)) == {
        "j": ({"s": 0, "t": 0}, had, 0)}, "written line by line, and as a snapshot"


def places(text: bytes) -> list[int]:
    """Where a log may be cut: around every end of a line, and here and there between them."""
    ends = [n for n, byte in enumerate(text) if byte == ord("\n")]
    near = {end + more for end in ends for more in (-1, 0, 1, 2)}
    return sorted((near | set(range(0, len(text), 9))) & set(range(len(text))) | {len(text)})


def test_a_log_torn_at_any_byte_tells_of_the_whole_lines_only(path, tmp_path, monkeypatch):
    """A crash leaves half a line that its witness does not know of."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    written(path)
    text = path.read_bytes()
    torn = tmp_path / "torn.jsonl"
    seen = []
    for size in places(text):
        whole = text[:size].count(b"\n")
        torn.write_bytes(text[:size])
        Witness(torn.with_suffix(".end"), ID).begin(whole)
        log = reopened(torn)
        if len(seen) == whole:
            seen.append((positions(log), log.last_job, log.committed))
        assert (positions(log), log.last_job, log.committed) == seen[whole]
        # and what is written after it is not glued to the half line
        log = Deliveries(Log(torn, ID))
        log.join({"z": {"s": 1}})
        log.close()
        assert "z" in reopened(torn).positions
    assert seen[-1][1:] == (4, {1, 2, 3, 4})


def test_a_log_that_was_cut_is_refused_wherever_it_was_cut(path):
    written(path)
    text = path.read_bytes()
    for size in places(text)[:-1]:
        path.write_bytes(text[:size])
        with pytest.raises(CheckpointError, match="deliveries.jsonl ends with number"):
            Deliveries(Log(path, ID))
        assert path.read_bytes() == text[:size], "a log that cannot be read is not touched"


def changed(what: str, path, lines: list[bytes]) -> None:
    end = path.with_suffix(".end")
    match what:
        case "a line is gone":
            path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
        case "a line is there twice":
            path.write_bytes(b"".join([*lines[:3], *lines[2:]]))
        case "a digit has changed":
            path.write_bytes(b"".join(lines).replace(b'"rows": {"a": 10}', b'"rows": {"a": 11}'))
        case "it is empty":
            path.write_bytes(b"")
        case "it is deleted":
            path.unlink()
        case "an older copy":
            path.write_bytes(b"".join(lines[:8]))
        case "another checkpoint's":
            path.unlink()
            end.unlink()
            log = Deliveries(Log(path, "other"))
            log.join({"a": {"s": 0}})
            log.close()
        case "its witness is deleted":
            end.unlink()
        case "its witness is empty":
            end.write_bytes(b"")


@pytest.mark.parametrize(("what", "said"), [
    ("a line is gone", "line 3 has the number 4 after 2: lines are missing"),
    ("a line is there twice", "line 4 has the number 3 after 3"),
    ("a digit has changed", "line 5 is damaged: its checksum does not fit"),
    ("it is empty", "ends with number 0, but 10 were written"),
    ("it is deleted", "is missing: deliveries.end knows of 10 lines"),
    ("an older copy", "ends with number 8, but 10 were written"),
    ("another checkpoint's", "belongs to another checkpoint: to other, not to 5e1f"),
    ("its witness is deleted", "deliveries.end is missing"),
    ("its witness is empty", "deliveries.end is empty"),
])
def test_a_damaged_log_is_refused_by_name_with_what_to_do(path, what, said):
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    changed(what, path, lines)
    with pytest.raises(CheckpointError) as told:
        Deliveries(Log(path, ID))
    assert said in str(told.value) and str(path.parent) in str(told.value)
    assert "restore the whole checkpoint from one copy, or start over" in str(told.value)


def test_a_compacted_log_says_the_same(path, monkeypatch):
    monkeypatch.setattr(module, "COMPACT_LINES", 3)
    log = Deliveries(Log(path, ID))
    log.join({"a": {"s": 0}})
    for run in range(1, 30):
        log.commit(run, riders=1, members=[Member("a", 0)], blocks=[2 * run], rows={"a": 1})
        if run != 17:
            log.settled(run)
    log.close()
    assert len(path.read_text().splitlines()) <= 5
    again = reopened(path)
    assert positions(again) == positions(log)
    assert again.last_job == 29
    assert 17 in again.committed and 16 not in again.committed
    assert {p.name for p in path.parent.iterdir()} == {path.name, "deliveries.end"}


def test_a_crash_while_compacting_leaves_the_old_log(path, tmp_path):
    written(path)
    before = positions(reopened(path))
    (tmp_path / "deliveries.jsonl.new").write_text('{"snapshot": {"a"')
    assert positions(reopened(path)) == before


def test_a_full_disk_while_compacting_does_not_undo_a_commit(path, monkeypatch):
    monkeypatch.setattr(module, "COMPACT_LINES", 0)
    log = Deliveries(Log(path, ID))
    log.join({"a": {"s": 0}})

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    log.commit(1, riders=1, members=[Member("a", 0)], blocks=[0], rows={"a": 1})
    log.commit(2, riders=1, members=[Member("a", 0)], blocks=[1], rows={"a": 1})
    log.close()
    monkeypatch.undo()
    assert positions(reopened(path)) == {"a": ({"s": 0}, {(0, 0): [[0, 1]]}, 2)}


@pytest.mark.parametrize("taken", [0, 1, 30])
def test_a_commit_that_the_disk_refused_never_happened(path, monkeypatch, taken):
    log = Deliveries(Log(path, ID))
    log.join({"a": {"s": 0}})
    write = os.write

    def full(file, data):
        if len(data) > taken:
            write(file, bytes(data[:taken]))
            raise OSError(28, "No space left on device")
        return write(file, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        log.commit(1, riders=1, members=[Member("a", 0)], blocks=[0], rows={"a": 5})
    monkeypatch.setattr(os, "write", write)
    log.commit(2, riders=1, members=[Member("a", 0)], blocks=[0], rows={"a": 5})
    log.close()
    again = reopened(path)
    assert (positions(again)["a"][2], again.committed) == (5, {2})


def test_recovery_forgets_what_is_settled_and_uses_no_number_twice(path):
    written(path)
    log = Deliveries(Log(path, ID))
    log.recovered([3, 6], last_job=6)
    assert (log.committed, log.last_job) == ({3}, 6)
    log.commit(7, riders=1, members=[Member("b", 0)], blocks=[8], rows={})
    log.close()
    assert reopened(path).committed >= {3, 7}


def test_a_damaged_line_is_named(path):
    written(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "half a li\n", *lines[2:]]))
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="line 3 is damaged"):
        Deliveries(Log(path, ID))
    assert path.read_bytes() == before, "a log that cannot be read is not touched"


def test_every_line_is_one_json_object(path):
    written(path)
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())


def test_a_run_under_way_is_not_the_namesakes(path):
    log = Deliveries(Log(path, ID))
    log.join({"a": {"s": 0}})
    log.commit(1, riders=1, members=[Member("a", 0)], blocks=[0], rows={"a": 1})
    log.leave("a")
    log.join({"a": {"s": 0}}, since=2)
    log.commit(2, riders=1, members=[Member("a", 0)], blocks=[1], rows={"a": 1})
    log.commit(3, riders=1, members=[Member("a", 0)], blocks=[0], rows={"a": 5})
    log.close()
    assert positions(reopened(path)) == positions(log) == {"a": ({"s": 0}, {(0, 0): [[0, 0]]}, 5)}


def test_runs_that_were_not_a_querys_own_are_not_its_own_after_a_restart(tmp_path):
    """Jobs that rebuild panes are numbered but not logged; their numbers must not come again."""
    log = Deliveries(Log(tmp_path / "log", ID))
    log.commit(3, ends={"a": 10}, rows={})
    log.join({"b": {}}, since=7)
    log.close()
    again = Deliveries(Log(tmp_path / "log", ID))
    again.commit(again.last_job + 1, ends={"b": 20}, rows={})
    assert again.positions["b"].answered == 20
    again.close()
