"""The feed of a derived stream: each file is taken once, with all files of its job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.errors import SourceError
from penstock.spark.ingest.feed import DerivedFeed
from penstock.spark.storage.files import Files
from penstock.spark.storage.local_store import LocalStore


class Refusing(LocalStore):
    """A store from whose folders nothing can be removed for a while."""

    refuses = False

    def remove(self, path: Path) -> None:
        if self.refuses:
            raise OSError(16, "busy", str(path))
        super().remove(path)


def put(folder: Path, job: int, parts: int = 1) -> list[str]:
    names = [f"run-{job:08d}-ab12-part-{part:05d}.parquet" for part in range(parts)]
    for name in names:
        (folder / name).write_bytes(b"rows")
    return names


def feed(folder: Path, taken: Sequence[str] | None = None) -> DerivedFeed:
    place = None if taken is None else {"files": list(taken)}
    return DerivedFeed(Files(None), LocalStore(), folder, place)


def test_the_files_of_jobs_that_are_through_are_taken_together_and_once(tmp_path):
    made = feed(tmp_path)
    first, second = put(tmp_path, 1, parts=2), put(tmp_path, 2)
    put(tmp_path, 3)
    made.publish(1)
    made.publish(2)
    assert made.next() == [*first, *second]
    made.took([*first, *second])
    assert made.next() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == put(tmp_path, 3)
    made.publish(3)
    assert made.next() == put(tmp_path, 3)


def test_after_a_crash_what_the_last_manifest_names_is_removed_and_the_rest_is_taken(tmp_path):
    taken, left = put(tmp_path, 1, parts=2), put(tmp_path, 2)
    assert feed(tmp_path, taken).next() == left
    assert [path.name for path in tmp_path.iterdir()] == left


def test_nothing_is_taken_while_what_was_taken_cannot_be_removed(tmp_path):
    """The next manifest would name other files, and a crash after it would take these again."""
    store = Refusing()
    made = DerivedFeed(Files(None), store, tmp_path, None)
    first = put(tmp_path, 1)
    made.publish(1)
    made.took(made.next())
    store.refuses = True
    second = put(tmp_path, 2)
    made.publish(2)
    with pytest.raises(OSError, match="busy"):
        made.next()
    store.refuses = False
    assert made.next() == second and not (tmp_path / first[0]).exists()


def test_files_that_could_not_be_taken_are_taken_again(tmp_path):
    made = feed(tmp_path)
    names = put(tmp_path, 1)
    made.publish(1)
    made.put_back(made.next())
    assert made.next() == names


def test_a_feed_ends_after_the_last_job_or_fails_with_its_query(tmp_path):
    made = feed(tmp_path)
    put(tmp_path, 1)
    made.publish(1)
    made.end("its query failed: a fault")
    assert made.wait(0.0), "a job is still to be taken"
    made.took(made.next())
    with pytest.raises(SourceError, match="a fault"):
        made.wait(0.0)
    through = feed(tmp_path / "none")
    assert through.wait(0.0)
    through.end()
    assert not through.wait(0.0)
