"""Writing and reading the record."""

from __future__ import annotations

import errno
import os
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CheckpointError
from penstock.events import (
    KINDS,
    Event,
    JobFinished,
    Recorder,
    SegmentResult,
    StreamEnded,
    Tick,
    find_record,
    new_record,
    read_events,
    record,
)
from penstock.events.lines import FORMAT, HEADER, decode, encode


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that events use."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of([values(arg) for arg in args])
    if origin is tuple and args[-1] is ...:
        return st.lists(values(args[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin is Mapping:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=4)
    if hint is float:
        return st.floats(allow_nan=False)
    if is_dataclass(hint):
        return built(hint)
    return st.from_type(hint)


def built(cls: type[Any]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    return st.builds(cls, **{field.name: values(hints[field.name]) for field in fields(cls)})


def test_the_list_of_kinds_is_the_union_of_events() -> None:
    assert set(KINDS) == set(get_args(Event))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_an_event_read_back_equals_the_one_written(kind: type[Any], data: st.DataObject) -> None:
    event = data.draw(built(kind))
    line = encode(event)
    assert "\n" not in line
    assert decode(line) == event
    assert decode(line.encode()) == event


def test_integers_of_numpy_are_written_as_integers() -> None:
    event = JobFinished(
        at=1.0, job=1, kind="segment", seconds=0.5, rows_out={"q": np.int32(2)},
        result=SegmentResult(rows_in=np.int64(3)))  # type: ignore[arg-type, dict-item]
    assert decode(encode(event)) == JobFinished(at=1.0, job=1, kind="segment", seconds=0.5,
                                                rows_out={"q": 2}, result=SegmentResult(rows_in=3))


def test_a_recorder_makes_its_folders_and_keeps_the_order(tmp_path: Path) -> None:
    path = new_record(tmp_path / "state", 1e9)
    events = [Tick(at=float(n)) for n in range(5000)]
    with Recorder(path) as recorder:
        for event in events:
            recorder.record(event)
    assert list(read_events(path)) == events
    assert (recorder.written, recorder.lost, recorder.fault) == (5000, 0, "")


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "events.jsonl")
    recorder.close()
    recorder.close()


def test_events_reach_the_file_without_being_closed(tmp_path: Path) -> None:
    with Recorder(tmp_path / "events.jsonl", interval=0.01) as recorder:
        recorder(Tick(at=1.0))
        until_written(recorder, 1)
        assert list(read_events(tmp_path)) == [Tick(at=1.0)]


def until_written(recorder: Recorder, count: int) -> None:
    """Give the writing thread the time it needs, five seconds at most."""
    for _ in range(5000):
        if recorder.written >= count:
            return
        recorder._thread.join(0.001)
    raise AssertionError("nothing was written")


def test_a_full_disk_is_counted_and_said_but_never_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: int, data: bytes) -> None:
        os.write(file, data[:10])  # a part still fitted
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "events.jsonl"
    with Recorder(path, interval=0.01) as recorder:
        recorder.record(Tick(at=1.0))
        until_written(recorder, 1)
        with monkeypatch.context() as patch:
            patch.setattr(record, "write_all", full)
            recorder.record(Tick(at=2.0))
            while not recorder.lost:
                recorder._thread.join(0.001)
        recorder.record(Tick(at=3.0))
    assert recorder.lost == 1
    assert "No space left" in recorder.fault
    assert "is incomplete" in caplog.text
    assert list(read_events(path)) == [Tick(at=1.0), Tick(at=3.0)]


def test_a_record_that_cannot_be_opened_does_not_stop_the_run(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    with Recorder(tmp_path / "taken" / "events.jsonl") as recorder:
        recorder.record(Tick(at=1.0))
    assert recorder.lost == 1
    assert recorder.fault


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = f"{HEADER}\n{encode(Tick(at=1.0))}\n"
    lines = whole + encode(StreamEnded(at=2.0, stream="s"))
    for cut in range(len(whole), len(lines) + 1):
        path.write_text(lines[:cut])
        assert list(read_events(path)) == [Tick(at=1.0)]


def test_a_bad_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tick = encode(Tick(at=1.0))
    path.write_text(f'{HEADER}\n{tick}\n{{"event": "comet"}}\n{tick}\n')
    with pytest.raises(CheckpointError, match="line 3"):
        list(read_events(path))


@pytest.mark.parametrize(("header", "found"), [
    ('{"kind": "tick", "at": 1.0}', 1), ('{"record": "penstock", "format": 1}', 1),
    (f'{{"record": "penstock", "format": {FORMAT + 1}}}', FORMAT + 1)])
def test_a_record_of_another_format_is_refused_with_a_sentence(
    tmp_path: Path, header: str, found: int
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{header}\n{encode(Tick(at=1.0))}\n")
    told = f"the record has format {found}, and this version reads format {FORMAT} only"
    with pytest.raises(CheckpointError, match=told):
        list(read_events(path))


@pytest.mark.parametrize(
    "line", ["[]", "3", "{}", '{"event": "tick"}', '{"event": ["tick"]}', "nul"])
def test_what_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(CheckpointError):
        decode(line)


def test_a_checkpoint_means_its_newest_run(tmp_path: Path) -> None:
    for at in (1e9, 2e9, 1.5e9):
        with Recorder(new_record(tmp_path, at)) as recorder:
            recorder.record(Tick(at=at))
    assert list(read_events(tmp_path)) == [Tick(at=1.5e9)], "the clock was set back before it"
    assert find_record(tmp_path).parent.name.startswith("2033")


def test_a_folder_without_a_record_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no record of a run"):
        list(read_events(tmp_path / "nowhere"))
