"""Where figures come from: the day, the commit and the machine they were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CODE = ("src", "harness", "benchmarks", "experiments")
"""The folders that decide what is measured: a change elsewhere does not count."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The code and the day of a measurement."""

    date: str
    """ISO 8601, in UTC."""
    commit: str
    """Seven digits; empty where there is no repository."""
    changed: bool
    """Whether the code differed from that commit."""

    @classmethod
    def now(cls) -> Origin:
        """As it is at this moment: before a program starts, for somebody may commit meanwhile."""
        return cls(datetime.now(UTC).date().isoformat(), _git("rev-parse", "--short=7", "HEAD"),
                   bool(_git("status", "--porcelain", "--", *CODE)))


def _git(*arguments: str) -> str:
    """What git says about the repository; nothing where there is none."""
    try:
        told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True,
                              check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "pyspark": _version_of("pyspark"),
        "penstock": _version_of("penstock-spark"),
    }


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # run from a folder of sources
        return "not installed"
