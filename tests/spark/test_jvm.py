"""Spark's JVM is started without waiting, and ends when nobody wants it; a script plays it here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark import SparkConf

from penstock.errors import SetupError
from penstock.spark import jvm
from penstock.spark.class_archive import SWITCH
from tests.spark.kit import eventually


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark without classes."""
    (tmp_path / "spark" / "bin").mkdir(parents=True)
    (tmp_path / "spark" / "jars").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def submit(home: Path, script: str) -> None:
    program = home / "spark" / "bin" / "spark-submit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def conf() -> SparkConf:
    return SparkConf(loadDefaults=False).setMaster("local[1]")


def test_a_jvm_that_nobody_wants_is_ended_and_leaves_nothing(home: Path) -> None:
    submit(home, 'echo $$ > "$TMPDIR/pid"; exec sleep 1000')
    start = jvm.JvmStart(conf(), None)
    eventually(lambda: (home / "pid").exists() and (home / "pid").read_text().strip() != "",
               "the script has begun")
    start.abandon()
    with pytest.raises(ProcessLookupError):
        os.kill(int((home / "pid").read_text()), 0)
    assert not list(home.glob("penstock-jvm-*"))
    with pytest.raises(SetupError):
        start.gateway()


def test_a_jvm_that_does_not_start_says_where_to_look(home: Path) -> None:
    submit(home, "echo no room >&2; exit 1")
    with pytest.raises(SetupError, match=r"does not start.*spark\.log has what it said"):
        jvm.JvmStart(conf(), home / "spark.log").gateway()
    assert (home / "spark.log").read_text() == "no room\n"
    assert (home / "spark.log").stat().st_mode & 0o777 == 0o600
    assert not list(home.glob("penstock-jvm-*"))


def test_a_jvm_that_does_not_start_from_the_archive_is_started_without(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "on")
    archive = jvm.archive()
    assert archive is not None
    archive.path.parent.mkdir(mode=0o700, parents=True)
    with archive.making() as fresh:
        assert fresh is not None
        fresh.write_bytes(b"classes")
        archive.publish(fresh)
    submit(home, 'echo "$@" >> "$TMPDIR/calls"; exit 1')
    with pytest.raises(SetupError):
        jvm.JvmStart(conf(), None).gateway()
    with_it, without = (home / "calls").read_text().splitlines()
    assert f"-XX:SharedArchiveFile={archive.path}" in with_it
    assert "SharedArchiveFile" not in without
    assert not archive.path.exists()


def test_flags_leave_room_for_those_of_the_user(home: Path) -> None:
    submit(home, 'echo "$@" >> "$TMPDIR/calls"; exit 1')
    for brief in (False, True):
        with pytest.raises(SetupError):
            jvm.JvmStart(conf(), None, brief=brief).gateway()
    long, short = (home / "calls").read_text().splitlines()
    assert "spark.driver.extraJavaOptions" not in long + short
    assert (jvm.BRIEF[0] in long, jvm.BRIEF[0] in short) == (False, True)
