"""A watched folder shows the files that a full listing would, and costs little while it rests."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.clock import VirtualClock
from penstock.spark.ingest.folder_watch import SETTLED, WHOLE, FolderWatch
from penstock.spark.storage.files import Files


class Watched:
    """A folder, a watch, and a reader that takes what it is shown."""

    def __init__(self, root: Path) -> None:
        self.root, self.files = root, Files(None)
        self.wall, self.passed = VirtualClock(time.time()), 0.0
        self.watch = FolderWatch(self.files, str(root), self.wall, lambda: self.passed)
        self.taken: set[str] = set()
        self.left = False

    def look(self) -> set[str]:
        """The files that are new to the reader; it leaves them until it takes them."""
        shown = {file.path for file in self.watch.listing(self.taken.__contains__, self.left)}
        self.left = bool(shown - self.taken)
        return shown - self.taken

    def take(self) -> set[str]:
        """Take all that is new."""
        found = self.look()
        self.taken |= found
        self.left = False
        return found

    def everything(self) -> set[str]:
        return {file.path for file in self.files.listing(str(self.root))} - self.taken


actions = st.lists(st.tuples(
    st.sampled_from(["write", "write", "rename in", "delete", "make folder", "rest", "take"]),
    st.sampled_from(["a", "b", "c", ".d", "_e"]), st.sampled_from(["", "x", "x/y=1"])),
    min_size=1, max_size=25)


@given(actions)
@settings(max_examples=60, deadline=None)
def test_no_file_that_came_is_missed_however_folders_change(steps):
    with tempfile.TemporaryDirectory() as place:
        watched = Watched(Path(place))
        watched.look()
        for act, name, below in steps:
            folder = watched.root / below
            if act in ("write", "rename in", "make folder"):
                folder.mkdir(parents=True, exist_ok=True)
            if act == "write":
                (folder / name).write_text("x")
            elif act == "rename in":
                (folder / ".new").write_text("x")
                (folder / ".new").rename(folder / name)
            elif act == "delete":
                (folder / name).unlink(missing_ok=True)
            elif act == "rest":  # folders come to rest: their times tell every change from now on
                past = time.time_ns() - 2 * SETTLED
                for known in [watched.root, *(p for p in watched.root.rglob("*") if p.is_dir())]:
                    os.utime(known, ns=(past, past))
                    past -= 1
                watched.look()
            elif act == "take":
                watched.take()
            assert watched.look() == watched.everything()


def test_a_folder_at_rest_is_not_listed(tmp_path, monkeypatch):
    watched = Watched(tmp_path)
    (tmp_path / "a").write_text("x")
    past = time.time_ns() - 2 * SETTLED
    os.utime(tmp_path, ns=(past, past))
    assert watched.take() == {str(tmp_path / "a")}
    listed: list[str] = []
    scan = os.scandir
    monkeypatch.setattr("penstock.spark.storage.files.os.scandir", lambda folder: (
        listed.append(folder), scan(folder))[1])
    assert watched.look() == set() and listed == []
    (tmp_path / "b").write_text("x")
    assert watched.look() == {str(tmp_path / "b")} and listed == [str(tmp_path)]


def test_only_files_that_were_not_taken_are_looked_at_and_all_of_them_now_and_then(
    tmp_path, monkeypatch
):
    watched = Watched(tmp_path)
    for name in "abc":
        (tmp_path / name).write_text("x")
    watched.take()
    looked: list[str] = []
    stat = os.stat
    monkeypatch.setattr("penstock.spark.storage.files.os.stat", lambda path: (
        looked.append(Path(path).name), stat(path))[1])
    (tmp_path / "d").write_text("x")
    assert watched.look() == {str(tmp_path / "d")}
    assert looked.count("d") == 1 and not {"a", "b", "c"} & set(looked)
    assert watched.left, "it may have grown when it is looked at next"
    assert watched.look() == {str(tmp_path / "d")}
    watched.passed += WHOLE
    watched.look()
    assert {"a", "b", "c"} < set(looked)


def test_a_pattern_is_listed_in_full(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("x")
    watch = FolderWatch(Files(None), f"{tmp_path}/*", VirtualClock(0.0))
    for _ in range(2):
        listed = watch.listing(lambda path: True, undecided=False)
        assert [Path(file.path).name for file in listed] == ["x"]
