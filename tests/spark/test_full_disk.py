"""A disk that is really full: a small one is mounted, filled up, and given room again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import disk_driver
from tests.spark.test_endings import QUICK_START

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.slow,
              pytest.mark.timeout(300)]

APART = ("unshare", "--map-root-user", "--mount")
"""A process that may mount disks, which nobody else sees."""


def refusal(folder: Path) -> str:
    """Why this machine mounts no disk for us; empty when it does."""
    try:
        tried = subprocess.run([*APART, "mount", "-t", "tmpfs", "tmpfs", folder],
                               capture_output=True, text=True)
    except FileNotFoundError as error:
        return str(error)
    return tried.stderr.strip() if tried.returncode else ""


def test_a_stream_goes_on_when_its_full_disk_has_room(tmp_path: Path) -> None:
    """One warning names the disk; no row is lost, none comes twice."""
    reason = refusal(tmp_path)
    if reason:
        pytest.skip(f"no disk can be mounted here: {reason}")
    driver = subprocess.run(
        [*APART, sys.executable, disk_driver.__file__, tmp_path], capture_output=True, text=True,
        timeout=280, env={**os.environ, "JDK_JAVA_OPTIONS": QUICK_START})
    assert driver.returncode == 0, driver.stderr
    seen = json.loads(driver.stdout.splitlines()[-1])
    assert "No space left on device" in seen["said"]
    assert set(seen["full"].values()) == {"running"} and seen["failures"] == []
    ((subject, text),) = seen["warnings"]
    assert subject == "stream lines" and text.startswith("failed and is tried again: ")
    assert "No space left on device" in text and str(tmp_path / "disk") in text
    everything = list(range(3 * disk_driver.ROWS))
    assert seen["rows"] == {name: everything for name in disk_driver.QUERIES}
    assert sum(seen["counted"]) == len(everything)
    assert seen["left"] == [[], []]
