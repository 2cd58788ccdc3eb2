"""The store: what each verb promises, whatever moment it is cut off at."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.spark
from penstock.errors import CheckpointError
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.local_store import LocalStore
from penstock.spark.storage.store import Store


@pytest.fixture
def store() -> Store:
    return LocalStore()


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_and_is_for_its_owner_alone(store, tmp_path):
    store.make(tmp_path / "a" / "b")
    store.write(tmp_path / "a" / "b" / "file", b"one")
    store.write(tmp_path / "a" / "b" / "file", b"two")
    assert store.read(tmp_path / "a" / "b" / "file") == b"two"
    assert (mode(tmp_path / "a" / "b"), mode(tmp_path / "a" / "b" / "file")) == (0o700, 0o600)
    with pytest.raises(FileNotFoundError):
        store.read(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        store.write(tmp_path / "nothing" / "file", b"")


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("verb", ["write", "begin"])
def test_a_write_that_fails_leaves_the_old_file(store, tmp_path, monkeypatch, call, verb):
    path = tmp_path / "file"
    store.write(path, b"old")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, call, full)
        getattr(store, verb)(path, b"new")
    assert store.read(path) == b"old"
    store.write(path, b"newer")
    assert store.read(path) == b"newer" and store.list(tmp_path) == [path]


def test_a_file_is_on_the_disk_before_it_has_its_name(store, tmp_path, monkeypatch):
    order: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (order.append("sync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("name"), replace(a, b)))
    store.write(tmp_path / "file", b"one")
    assert order == ["sync", "name", "sync"], "the file, its name, the folder"


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_a_file_is_created_whole_or_not_at_all(store, tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, call, full)
        store.create(path, b"never")
    assert not store.has(path)
    store.create(path, b"one")
    assert store.read(path) == b"one" and mode(path) == 0o600 and store.list(tmp_path) == [path]


def test_the_second_who_creates_a_file_is_refused_and_changes_nothing(store, tmp_path):
    path = tmp_path / "file"
    store.create(path, b"one")
    with pytest.raises(FileExistsError):
        store.create(path, b"two")
    assert store.read(path) == b"one" and store.list(tmp_path) == [path]
    store.write(path, b"three")
    assert store.read(path) == b"three"


@pytest.mark.parametrize("verb", ["create", "write", "begin"])
def test_a_created_file_outlives_a_crash_before_its_first_name_went(
    store, tmp_path, monkeypatch, verb
):
    """The name that was left leads to the same file, so nobody may write through it."""
    path, names = tmp_path / "file", []
    link = os.link
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", lambda a, b: (names.append(a), link(a, b)))
        store.create(path, b"one")
    link(path, names[0])
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, "fsync", full)
        getattr(store, verb)(path, b"two")
    assert store.read(path) == b"one"


@pytest.mark.parametrize("links", [True, False])
def test_a_move_replaces_no_file(store, tmp_path, monkeypatch, links):
    def without(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", without)
    source, target, other = (tmp_path / name for name in ("source", "target", "other"))
    store.write(source, b"one")
    store.move(source, target)
    assert store.read(target) == b"one" and not store.has(source)
    store.write(other, b"two")
    with pytest.raises(FileExistsError, match="is there already"):
        store.move(other, target)
    assert store.read(target) == b"one" and store.read(other) == b"two"
    with pytest.raises(FileNotFoundError):
        store.move(source, tmp_path / "elsewhere")


def test_a_move_that_a_crash_cut_short_is_repeated(store, tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "target"
    store.write(source, b"one")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, "unlink", full)
        store.move(source, target)
    store.move(source, target)
    assert store.list(tmp_path) == [target] and store.read(target) == b"one"


@given(st.lists(st.tuples(
    st.sampled_from(["write", "create", "move", "remove"]), st.sampled_from("abc"),
    st.sampled_from("abc"), st.binary(max_size=4)), max_size=20))
def test_any_row_of_verbs_leaves_what_a_dictionary_would_hold(tmp_path_factory, verbs):
    folder, store, model = tmp_path_factory.mktemp("store"), LocalStore(), {}
    for verb, name, other, data in verbs:
        path, taken = folder / name, name in model
        if verb == "write":
            store.write(path, data)
            model[name] = data
        elif verb == "create":
            with pytest.raises(FileExistsError) if taken else nullcontext():
                store.create(path, data)
            model.setdefault(name, data)
        elif verb == "remove":
            store.remove(path)
            model.pop(name, None)
        elif name != other and taken:
            with pytest.raises(FileExistsError) if other in model else nullcontext():
                store.move(path, folder / other)
            if other not in model:
                model[other] = model.pop(name)
        assert {path.name: store.read(path) for path in store.list(folder)} == model


def test_an_appender_goes_on_where_it_is_told_to(store, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\nhalf a li")
    lines = store.append(path, keep=8)
    lines.add(b"three\n")
    lines.close()
    assert store.read(path) == b"one\ntwo\nthree\n"
    lines = store.append(tmp_path / "new", keep=0)
    lines.add(b"first\n")
    lines.close()
    assert store.read(tmp_path / "new") == b"first\n" and mode(tmp_path / "new") == 0o600


@pytest.mark.parametrize("make", [
    lambda store, path: store.begin(path, b"one\n"), lambda store, path: store.append(path, 0)])
def test_a_line_that_is_refused_was_never_written(
    store, tmp_path, monkeypatch, make: Callable[..., object]
):
    path = tmp_path / "log"
    lines = make(store, path)
    before = store.read(path)
    write = os.write

    def half(file: int, data: bytes) -> int:
        write(file, bytes(data[:3]))
        raise OSError(28, "No space left on device")

    for call, refuse in (("write", half), ("fsync", full)):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            patch.setattr(os, call, refuse)
            lines.add(b"never\n")
        assert store.read(path) == before
    lines.add(b"then\n")
    lines.close()
    assert store.read(path) == before + b"then\n"


def test_a_stamp_is_written_over_in_place(store, tmp_path):
    path = tmp_path / "stamp"
    with pytest.raises(FileNotFoundError):
        store.stamp(path)
    store.write(path, b"0001")
    stamp = store.stamp(path)
    stamp.write(b"0002", durable=False)
    stamp.write(b"0003", durable=True)
    stamp.close()
    assert store.read(path) == b"0003"


def test_a_list_has_all_that_fits_by_name_and_hides_no_fault(store, tmp_path):
    for name in ("b.json", "a.json", ".hidden", "c"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert [path.name for path in store.list(tmp_path)] == [
        ".hidden", "a.json", "b.json", "c", "folder"]
    assert [path.name for path in store.list(tmp_path, "*.json")] == ["a.json", "b.json"]
    assert store.list(tmp_path / "nothing") == []
    assert store.has(tmp_path / "folder") and not store.has(tmp_path / "nothing")
    store.remove(tmp_path / "c")
    store.remove(tmp_path / "c")
    assert not store.has(tmp_path / "c")


def test_a_folder_has_one_owner_who_learns_that_it_is_gone(store, tmp_path):
    folder = tmp_path / "owned"
    store.make(folder)
    assert not store.is_owned(folder)
    mine = store.own(folder)
    assert store.is_owned(folder) and not mine.is_lost() and mine.path == folder
    with pytest.raises(BlockingIOError):
        store.own(folder)
    folder.rename(tmp_path / "away")
    assert mine.is_lost()
    store.make(folder)
    assert mine.is_lost(), "another folder of the same name is not it"
    mine.release()
    store.own(tmp_path / "away").release()
    assert not store.is_owned(tmp_path / "away")


class Watched(LocalStore):
    """Notes which files each verb was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name in ("read", "write", "create", "append", "begin", "stamp", "own"):
            return lambda path, *rest: (self.asked.append((name, path.name)), found(path, *rest))[1]
        return found


def test_a_checkpoint_and_its_log_go_through_the_store(tmp_path):
    store = Watched()
    checkpoint = Checkpoint.open(tmp_path / "checkpoint", store)
    checkpoint.write(checkpoint.application, ["CREATE ..."])
    log = Deliveries(checkpoint.log(checkpoint.deliveries))
    log.join({"a": {"s": 0}})
    log.close()
    checkpoint.close()
    assert {("own", "checkpoint"), ("create", "checkpoint.json"), ("write", "application.json"),
            ("write", "deliveries.end"), ("stamp", "deliveries.end"),
            ("begin", "deliveries.jsonl")} <= set(store.asked)
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        Checkpoint.look(tmp_path)


def test_nobody_else_calls_the_disk_by_its_own_names():
    """Another form of the store would miss what goes around it. The cache of classes is no part of
    a checkpoint, and Python workers, who have no store, write into local folders only."""
    calls = re.compile(r"fcntl|os\.(replace|rename|fsync|ftruncate|pwrite|link|unlink)\b")
    room = Path(penstock.spark.__path__[0])
    found = {path.relative_to(room).as_posix() for path in room.rglob("*.py")
             if calls.search(path.read_text(encoding="utf-8"))}
    assert found == {"class_archive.py", "delivery/worker_files.py", "storage/local_store.py"}
