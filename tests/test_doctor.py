"""Every fault of a machine is found and has its remedy."""

from __future__ import annotations

import io
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from penstock import doctor
from penstock.doctor import Finding


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


def java(folder: Path, version: str) -> Path:
    """A Java that says its version and can do nothing else."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_a_missing_java_is_a_fault_that_says_what_to_install(no_java: Path) -> None:
    finding = only(doctor.check_java())
    assert finding.fault
    assert finding.remedy == doctor.install_java()


@pytest.mark.parametrize("system", ["Linux", "Darwin", "Windows", "Plan 9"])
def test_every_system_has_a_way_to_get_java(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    assert doctor.install_java().startswith("install a Java runtime")


@pytest.mark.parametrize(("version", "ok"), [("17.0.1", True), ("21", True), ("1.8.0_40", False),
                                             ("11.0.2", False), ("?", False)])
def test_java_must_be_17_or_later(version: str, ok: bool, no_java: Path) -> None:
    java(no_java, version)
    assert only(doctor.check_java()).ok is ok


def test_a_java_home_without_java_is_a_fault(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(no_java, "17")
    monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")
    finding = only(doctor.check_java())
    assert finding.fault
    assert "unset" in finding.remedy


def test_a_java_home_that_differs_from_the_path_is_worth_a_word(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(no_java, "11")
    java(no_java / "home", "17")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "home"))
    good, odd = doctor.check_java()
    assert good.ok
    assert not odd.ok
    assert not odd.fault


def test_an_old_python_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(doctor.check_python()).ok
    monkeypatch.setattr(sys, "version_info", (3, 10, 1))
    assert only(doctor.check_python()).fault


def test_a_missing_or_wrong_pyspark_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(doctor.check_pyspark()).ok
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.5.1")
    assert only(doctor.check_pyspark()).fault
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert only(doctor.check_pyspark()).fault


def test_too_little_memory_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "physical_memory", lambda: 2**30)
    assert only(doctor.check_memory()).fault
    monkeypatch.setattr(doctor, "physical_memory", lambda: None)
    assert not only(doctor.check_memory()).fault


@pytest.mark.parametrize(("name", "text", "limited"), [
    ("memory.max", "1000000", True), ("memory.max", "max", False),
    ("memory/memory.limit_in_bytes", "1000000", True), ("nothing", "", False)])
def test_the_limit_of_a_container_counts(
    name: str, text: str, limited: bool, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    memory = doctor.physical_memory(tmp_path)
    assert (memory == 1_000_000) is limited


def test_one_core_is_worth_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    finding = only(doctor.check_cores())
    assert not finding.ok
    assert not finding.fault


class Usage(NamedTuple):
    free: int


def test_a_folder_without_room_or_permission_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    assert only(doctor.check_disk()).ok
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1000))
    assert only(doctor.check_disk()).fault
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "missing"))
    assert only(doctor.check_disk()).fault


def test_a_loopback_that_cannot_be_bound_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(doctor.check_port()).ok

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "create_server", refuse)
    assert only(doctor.check_port()).fault


def examined(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> tuple[int, str]:
    monkeypatch.setattr(doctor, "CHECKS", (lambda: iter(findings),))
    monkeypatch.setattr(doctor, "check_spark", lambda: Finding("Spark", "answered"))
    console = Console(file=io.StringIO(), width=80)
    status = doctor.examine(console)
    assert isinstance(console.file, io.StringIO)
    return status, console.file.getvalue()


def test_a_machine_without_faults_gets_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = examined(monkeypatch, Finding("Disk", "9 GB"))
    assert status == 0
    assert "ok  Disk" in text
    assert "Spark    answered" in text
    assert "all is well" in text


def test_advice_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = examined(monkeypatch, Finding("Cores", "1", "two are better", grave=False))
    assert status == 0
    assert "two are better" in text


def test_a_fault_gets_status_1_its_remedy_and_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = examined(monkeypatch, Finding("Java", "is not there", "install it"))
    assert status == 1
    assert "fault  Java" in text
    assert "install it" in text
    assert "Spark    was not tried" in text


@pytest.mark.spark
@pytest.mark.processes  # it ends the Spark that it tries, which others would share
def test_the_trial_goes_through_the_whole_engine() -> None:
    finding = doctor.check_spark()
    assert finding.ok, finding


# --- the class archive ----------------------------------------------------------------------------


def test_the_class_archive_is_told_of_and_never_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.spark import jvm

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_CLASS_ARCHIVE", "on")
    found = only(doctor.check_archive())
    assert found.ok and "after the next run" in found.text
    archive = jvm.archive()
    assert archive is not None
    archive.path.parent.mkdir(mode=0o700)
    archive.fail("OSError: no room")
    found = only(doctor.check_archive())
    assert not found.ok and not found.fault and "no room" in found.text
    archive.forget()
    with archive.making() as fresh:
        assert fresh is not None
        fresh.write_bytes(b"classes")
        archive.publish(fresh)
    assert only(doctor.check_archive()).text.startswith("from a class archive")
    archive.path.chmod(0o666)
    found = only(doctor.check_archive())
    assert not found.fault and "chmod" in found.remedy
    monkeypatch.setenv("PENSTOCK_CLASS_ARCHIVE", "off")
    assert only(doctor.check_archive()).ok
