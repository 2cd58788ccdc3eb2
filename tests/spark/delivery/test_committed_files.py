"""Which files count: those of committed jobs, whole, wherever the driver died or is just now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.delivery import committed_files as room
from penstock.spark.delivery.committed_files import committed_files
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.staging import Move, Staging
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files

FILES = 2
"""Files of a job."""


class Jobs:
    """Jobs that stage, count and move their files, step by step."""

    def __init__(self, root: Path) -> None:
        self.checkpoint = Checkpoint.open(root)
        self.folder = str(self.checkpoint.folder("results", "one"))
        self.log = Deliveries(self.checkpoint.log(self.checkpoint.deliveries))
        self.staging = Staging(self.checkpoint, Files(None), lambda: ())
        self.moves: dict[int, list[Move]] = {}
        self.counted: set[int] = set()
        self.racing = False
        """Whether something happens during a look, so that two looks differ."""

    def stage(self, job: int) -> None:
        place = Path(self.staging.place(job, "0", self.folder))
        place.mkdir(parents=True)
        moves = []
        for number in range(FILES):
            (place / f"part-{number}.parquet").write_text(f"{job}")
            moves.append(self.staging.move(job, "0", f"part-{number}.parquet",
                                           folder=self.staging.seen(self.folder)))
        self.staging.write(job, moves)
        self.moves[job] = moves

    def commit(self, job: int) -> None:
        self.log.commit(job, rows={"q": FILES})
        self.counted.add(job)

    def publish(self, job: int) -> None:
        """Move one more file, and clear up after the last."""
        self.staging.finish(job, self.moves[job].pop(0))
        if not self.moves[job]:
            self.staging.clear(job)

    def step(self, job: int) -> bool:
        """The next step of a job; False after the last."""
        if job not in self.moves:
            self.stage(job)
        elif job not in self.counted:
            self.commit(job)
        elif self.moves[job]:
            self.publish(job)
        else:
            return False
        return True

    def shown(self) -> list[int]:
        reader = Checkpoint.look(self.checkpoint.root)
        found = committed_files(reader, [], str(Path(self.folder).parent))
        if not self.racing:
            assert found == committed_files(reader, [self.folder])
        assert all(Path(file.path).read_text() == str(file.job) for file in found)
        return [file.job for file in found]

    def expected(self) -> list[int]:
        return [job for job in sorted(self.counted) for _ in range(FILES)]


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    found = Jobs(tmp_path / "state")
    yield found
    found.checkpoint.close()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 3), max_size=14))
def test_a_job_is_shown_from_its_line_on_and_as_a_whole(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    jobs = Jobs(tmp_path_factory.mktemp("jobs") / "state")
    for job in order:
        jobs.step(job)
        assert jobs.shown() == jobs.expected()
    jobs.checkpoint.close()


def test_a_job_that_is_committed_during_a_look_waits_for_the_next(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    while jobs.step(1):
        pass
    jobs.stage(2)
    listed = room._listed

    def late(checkpoint: Checkpoint, folder: str) -> object:
        if 2 not in jobs.counted:  # after the log was read, and one file of two is in place
            jobs.commit(2)
            jobs.publish(2)
        return listed(checkpoint, folder)

    monkeypatch.setattr(room, "_listed", late)
    jobs.racing = True
    assert jobs.shown() == [1, 1]
    assert jobs.shown() == [1, 1, 2, 2]


def test_a_file_that_is_moved_during_a_look_is_shown_once(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.stage(1)
    jobs.commit(1)
    waiting = room._waiting

    def late(*given: object) -> object:
        found = list(waiting(*given))  # type: ignore[arg-type]
        jobs.publish(1)
        return found

    monkeypatch.setattr(room, "_waiting", late)
    jobs.racing = True
    assert jobs.shown() == [1, 1]


def test_a_folder_that_does_not_exist_yet_has_what_is_on_its_way(jobs: Jobs) -> None:
    Path(jobs.folder).rmdir()
    jobs.stage(1)
    assert jobs.shown() == []
    jobs.commit(1)
    assert jobs.shown() == [1, 1]


def test_a_shortened_log_hides_nothing(jobs: Jobs) -> None:
    for job in (1, 2):
        while jobs.step(job):
            pass
        jobs.log.settled(job)
    jobs.log._compact()
    jobs.stage(3)
    assert jobs.shown() == [1, 1, 2, 2]
