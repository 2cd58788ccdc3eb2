"""A checkpoint that was damaged is refused by name, or gives exactly the right answers."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from penstock.doctor import examine_checkpoint
from penstock.errors import CheckpointError
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.inspection import inspected

APPLICATION = """
    CREATE STREAM own (n BIGINT) FROM parquet 'own';
    CREATE STREAM copied (n BIGINT) FROM csv 'copied' OPTIONS (header = true);
    CREATE STREAM made (value BIGINT) FROM `rate-micro-batch` OPTIONS (rowsPerBatch = 40);
    CREATE STREAM packets (ts TIMESTAMP, port INT) FROM onoff OPTIONS (rows = 40, seed = 1);
    CREATE QUERY kept AS SELECT n FROM own;
    CREATE QUERY given INTO parquet 'out' AS SELECT n FROM copied;
    CREATE QUERY values INTO noop AS SELECT value FROM made;
    CREATE QUERY ports INTO noop AS SELECT port FROM packets;
"""


class Site:
    """A small checkpoint that has run twice, what it was before, and another of its kind."""

    def __init__(self, root: Path, spark: Any) -> None:
        self.root, self.spark = root, spark
        self.checkpoint = root / "checkpoint"
        self.fed = 0
        self.feed()
        self.run("another")
        self.run("another")  # `made` has a batch for every run
        shutil.rmtree(root / "out")
        self.run()
        shutil.copytree(self.checkpoint, root / "older")
        self.feed()
        self.run()
        for name in ("checkpoint", "out"):
            shutil.copytree(root / name, root / "whole" / name)
        self.feed()  # what a run on a damaged checkpoint would have to add

    def feed(self) -> None:
        rows = range(10 * self.fed, 10 * self.fed + 10)
        for name in ("own", "copied"):
            (self.root / name).mkdir(exist_ok=True)
        pq.write_table(pa.table({"n": list(rows)}), self.root / "own" / f"{self.fed}.parquet")
        text = "n\n" + "".join(f"{n}\n" for n in rows)
        (self.root / "copied" / f"{self.fed}.csv").write_text(text)
        self.fed += 1

    def restore(self) -> None:
        for name in ("checkpoint", "out"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            shutil.copytree(self.root / "whole" / name, self.root / name)

    def run(self, name: str = "checkpoint", more: str = "") -> tuple[Any, dict[str, list[int]]]:
        from penstock.api import Engine

        with Engine(self.spark, self.root / name) as engine:
            engine.load(APPLICATION + more, folder=self.root)
            summary = engine.run()
            found = {query: sorted(engine.results(query)["n"].to_pylist())
                     for query in ("kept", "given")}
            return summary, found


@pytest.fixture(scope="module")
def site(spark, tmp_path_factory) -> Site:
    return Site(tmp_path_factory.mktemp("sabotage"), spark)


def halved(path: Path, _: Site) -> None:
    os.truncate(path, path.stat().st_size // 2)


def without_last_line(path: Path, _: Site) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


def of_another(path: Path, site: Site) -> None:
    shutil.copy(site.root / "another" / path.relative_to(site.checkpoint), path)


def older(path: Path, site: Site) -> None:
    shutil.copy(site.root / "older" / path.relative_to(site.checkpoint), path)


DAMAGES: dict[str, Callable[[Path, Site], None]] = {
    "deleted": lambda path, _: path.unlink(),
    "emptied": lambda path, _: path.write_bytes(b""),
    "cut in half": halved,
    "without its last line": without_last_line,
    "of another checkpoint": of_another,
    "an older copy": older,
}
FILES = (
    "checkpoint.json", "application.json", "folders.json", "deliveries.jsonl", "deliveries.end",
    "spool/copied/first", "spool/copied/00000000.json", "spool/copied/00000001.json",
    "spool/own/00000001.json", "spool/made/00000000.json", "spool/packets/00000000.json",
    "offsets/copied/files.jsonl", "offsets/copied/files.end", "offsets/made/offsets/1",
)
HARMLESS = {
    # A witness may lag behind, and some files are the same in an older copy.
    ("an older copy", "checkpoint.json"), ("an older copy", "deliveries.end"),
    ("an older copy", "offsets/copied/files.end"),
}


def cases(site: Site, damage: str) -> list[str]:
    found = []
    for name in FILES:
        before = (site.root / "whole" / "checkpoint" / name).read_bytes()
        same = site.root / "older" / name
        if damage == "an older copy" and not (same.exists() and same.read_bytes() != before):
            continue
        if damage == "of another checkpoint" and not (site.root / "another" / name).exists():
            continue
        if (damage, name) not in HARMLESS:
            found.append(name)
    return found


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_name(site, damage):
    from penstock.api import Engine

    for name in cases(site, damage):
        site.restore()
        DAMAGES[damage](site.checkpoint / name, site)
        with pytest.raises(CheckpointError) as told, Engine(site.spark, site.checkpoint) as engine:
            engine.run()
        # Of files that do not go together either may be named.
        also = {"checkpoint.json": "application.json", "deliveries.end": "deliveries.jsonl"}
        assert Path(name).name in str(told.value) or also.get(name, "?") in str(told.value), (
            damage, name, str(told.value))
        assert "start over with another --checkpoint" in str(told.value)
        assert inspected(site.checkpoint)[1], f"doctor finds {name} whole, and it is {damage}"


def test_what_is_harmless_changes_no_answer(site):
    everything = list(range(10 * site.fed))
    site.restore()
    for damage, name in HARMLESS:
        DAMAGES[damage](site.checkpoint / name, site)
    for folder in ("spool", "spool/copied", "staging", "results", "runs"):
        (site.checkpoint / folder / ".DS_Store").write_bytes(b"\0")
        (site.checkpoint / folder / "lost+found").mkdir()
    for record in site.checkpoint.glob("runs/*/events.jsonl"):
        halved(record, site)
    (site.checkpoint / "lock").write_text("")
    summary, found = site.run()
    assert summary.failures() == [] and summary.accounting() == []
    assert found == {"kept": everything, "given": everything}


@pytest.mark.parametrize("gone", [
    "spool/copied", "spool/made", "offsets/copied", "offsets/made", "spool/packets",
    "spool", "offsets"])
def test_a_folder_that_is_gone_is_refused(site, gone):
    from penstock.api import Engine

    site.restore()
    shutil.rmtree(site.checkpoint / gone)
    with pytest.raises(CheckpointError, match=f"{gone}.* is missing"):
        with Engine(site.spark, site.checkpoint) as engine:
            engine.run()
    assert inspected(site.checkpoint)[1]


def damaged_data(site: Site, how: str) -> Path:
    if how == "own deleted":
        path = site.root / "own" / "0.parquet"
        path.rename(site.root / "aside")
        return path
    path = next((site.checkpoint / "spool" / "copied" / "00000000").glob("*.parquet"))
    if how == "deleted":
        path.unlink()
    elif how == "another":
        pq.write_table(pa.table({"n": [7] * 3}), path)
    return path


@pytest.mark.parametrize("how", ["deleted", "another", "own deleted"])
def test_a_block_without_its_file_fails_the_query_before_a_row_is_missing(site, how):
    site.restore()
    path = damaged_data(site, how)
    stream = "own" if how.startswith("own") else "copied"
    summary, found = site.run(more=f"CREATE QUERY again INTO parquet 'again-{how}' WITH "
                              f"(start = 'earliest') AS SELECT n FROM {stream};")
    if how == "own deleted":
        (site.root / "aside").rename(path)
    failed = dict(summary.failures())
    assert list(failed) == ["query again"]
    assert f"{path} was " in failed["query again"] and "block 0 of stream" in failed["query again"]
    assert not list((site.root / f"again-{how}").glob("*.parquet"))
    everything = list(range(10 * site.fed))
    assert found == {"kept": everything, "given": everything}


# --- who has it, and what it is called -----------------------------------------------------------


def test_a_second_engine_is_refused_also_when_the_lock_is_gone(tmp_path):
    one = Checkpoint.open(tmp_path / "checkpoint")
    (one.root / "lock").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="another engine is running"):
        Checkpoint.open(tmp_path / "checkpoint")
    one.check_own()
    one.root.rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="was moved, deleted or replaced"):
        one.check_own()
    one.close()


def test_doctor_says_whether_a_checkpoint_is_whole(site):
    site.restore()
    out = Console(file=io.StringIO(), width=200)
    before = {path: path.stat().st_mtime_ns for path in site.checkpoint.rglob("*")}
    assert examine_checkpoint(out, site.checkpoint) == 0
    assert before == {path: path.stat().st_mtime_ns for path in site.checkpoint.rglob("*")}
    (site.checkpoint / "folders.json").unlink()
    halved(site.checkpoint / "spool" / "own" / "00000001.json", site)
    assert examine_checkpoint(out, site.checkpoint) == 1
    said = out.file.getvalue()
    assert "the checkpoint is whole" in said and "2 faults" in said
    assert "folders.json is missing" in said and "00000001.json is damaged" in said
    assert examine_checkpoint(out, site.root / "nowhere") == 1


def test_names_may_be_long_and_odd(tmp_path):
    checkpoint = Checkpoint.open(tmp_path / "checkpoint")
    names = ["n" * 300, "n" * 301, "ü" * 300, "\ud800", "a/b", "..", "[x]{y}%z"]
    folders = [checkpoint.folder("spool", name) for name in names]
    assert len(set(folders)) == len(names)
    assert all(folder.is_dir() for folder in folders)
    checkpoint.close()
