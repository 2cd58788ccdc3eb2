"""The archive of Spark's classes is used when it is whole and ours, and never needed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock import rehearsal
from penstock.spark import class_archive as module
from penstock.spark.class_archive import SWITCH, UNUSED, ClassArchive, cache_folder


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    monkeypatch.setenv(SWITCH, "on")
    tmp_path.chmod(0o700)
    return ClassArchive(tmp_path / "spark-4-java-17-abc.jsa")


def made(archive: ClassArchive, content: bytes = b"classes") -> ClassArchive:
    with archive.making() as fresh:
        assert fresh is not None
        fresh.write_bytes(content)
        archive.publish(fresh)
    return archive


def test_an_archive_is_used_once_it_is_published(archive: ClassArchive) -> None:
    assert archive.state()[0] == "absent"
    assert archive.options() == ()
    made(archive)
    assert archive.state() == ("there", "")
    assert archive.options()[0] == f"-XX:SharedArchiveFile={archive.path}"


def test_only_its_owner_may_read_and_write_it(archive: ClassArchive) -> None:
    old = os.umask(0)
    try:
        made(archive)
    finally:
        os.umask(old)
    for path in archive.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "without a note", "garbled note"])
def test_a_damaged_archive_is_not_used(archive: ClassArchive, damage: str) -> None:
    made(archive)
    note = archive.path.with_suffix(".json")
    if damage == "cut":
        os.truncate(archive.path, 3)
    elif damage == "changed":
        archive.path.write_bytes(b"CLASSES")
        os.utime(archive.path, (0, 0))
    elif damage == "gone":
        archive.path.unlink()
    elif damage == "without a note":
        note.unlink()
    else:
        note.write_text("{")
    assert archive.state()[0] == "absent"
    assert archive.options() == ()


@pytest.mark.parametrize("place", ["folder", "file"])
def test_what_others_may_write_to_is_not_used(archive: ClassArchive, place: str) -> None:
    made(archive)
    shared = archive.path if place == "file" else archive.path.parent
    shared.chmod(0o770)
    state, reason = archive.state()
    assert state == "unusable"
    assert str(shared) in reason
    shared.chmod(0o700)
    assert archive.state()[0] == "there"


def test_what_belongs_to_somebody_else_is_not_used(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(archive)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert archive.state()[0] == "unusable"


def test_the_switch_turns_it_off(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    made(archive)
    monkeypatch.setenv(SWITCH, "off")
    assert archive.options() == ()
    assert not archive.make_in_background()


def test_only_one_maker_works_at_a_time(archive: ClassArchive) -> None:
    with archive.making() as first:
        assert first is not None
        with archive.making() as second:
            assert second is None
        first.write_bytes(b"one")
        archive.publish(first)
    with archive.making() as late:  # it is there
        assert late is None
    assert archive.path.read_bytes() == b"one"


def test_readers_see_the_old_archive_or_the_new_one(archive: ClassArchive) -> None:
    made(archive, b"a" * 10_000)
    seen, ended = set(), threading.Event()

    def look() -> None:
        while not ended.is_set():
            if archive.options():
                seen.add(archive.path.read_bytes()[:1])

    reader = threading.Thread(target=look)
    reader.start()
    for letter in b"bcdefgh":
        fresh = archive.path.with_suffix(".tmp")
        fresh.write_bytes(bytes([letter]) * 10_000)
        archive.publish(fresh)
        assert archive.is_usable()
    ended.set()
    reader.join()
    assert seen <= {bytes([letter]) for letter in b"abcdefgh"}


def test_what_a_maker_leaves_unpublished_is_removed(archive: ClassArchive) -> None:
    with pytest.raises(ZeroDivisionError), archive.making() as fresh:
        assert fresh is not None
        fresh.write_bytes(b"half")
        raise ZeroDivisionError
    assert not list(archive.path.parent.glob("*.tmp"))
    assert archive.state()[0] == "absent"


def test_a_failure_is_noted_and_not_tried_after_every_run(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fresh: Path) -> None:
        raise OSError("no room")

    monkeypatch.setattr(rehearsal, "_rehearse", broken)
    monkeypatch.setattr(os, "nice", lambda by: None)
    assert rehearsal.main(str(archive.path)) == 1
    assert archive.state() == ("failed", "OSError: no room")
    assert not archive.make_in_background()


def test_an_archive_is_made_in_a_process_of_its_own(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: begun.append(command))
    assert archive.make_in_background()
    assert begun == [[sys.executable, "-m", "penstock.rehearsal", str(archive.path)]]
    made(archive)
    assert not archive.make_in_background()


def test_no_folder_to_keep_it_in_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "on")
    (tmp_path / "file").write_text("in the way")
    assert not ClassArchive(tmp_path / "file" / "penstock" / "spark-x.jsa").make_in_background()


def test_unused_archives_go_when_a_new_one_comes(archive: ClassArchive) -> None:
    old, recent = (archive.path.parent / f"spark-{name}.jsa" for name in ("old", "recent"))
    for path in (old, recent):
        path.write_bytes(b"classes")
    long_ago = old.stat().st_mtime - UNUSED - 60
    os.utime(old, (long_ago, long_ago))
    made(archive)
    assert (old.exists(), recent.exists(), archive.is_usable()) == (False, True, True)


def test_the_name_tells_java_pyspark_and_flags_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = module.class_archive(()), module.class_archive(("-XX:+UseSerialGC",))
    assert one is not None and other is not None
    assert one.path != other.path
    assert one == module.class_archive(())
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "/somewhere")
    assert one != module.class_archive(())


def test_the_cache_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "penstock"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().name == "penstock"
    assert cache_folder() != tmp_path / "penstock"
