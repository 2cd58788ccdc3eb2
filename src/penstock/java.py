"""The Java that Spark would start: which one, how old, and how to get one."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from penstock.errors import SetupError

OLDEST = 17
"""The oldest Java that Spark 4 takes."""

INSTALL = {
    "Linux": f"install a Java runtime: `apt install openjdk-{OLDEST}-jre-headless` on Debian and "
    f"Ubuntu, `dnf install java-{OLDEST}-openjdk-headless` on Fedora and Red Hat",
    "Darwin": f"install a Java runtime: `brew install openjdk@{OLDEST}`, and do what brew then "
    "says",
    "Windows": f"install a Java runtime: `winget install EclipseAdoptium.Temurin.{OLDEST}.JRE`",
}
"""How to get Java, for each family of systems."""


def install_java() -> str:
    """How to get Java on this system."""
    return INSTALL.get(platform.system(), f"install a Java runtime, {OLDEST} or later")


def found_java() -> str | None:
    """The program Spark would start: that of JAVA_HOME, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java")


def version_text(java: str) -> str:
    """What `java -version` says; empty when it does not start."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (answer.stderr + answer.stdout).strip()


def release(java: str) -> str:
    """What the folder of a Java says about it; empty if it says nothing.

    Reading it takes no time; starting `java -version` takes a tenth of a second.
    """
    try:
        return (Path(os.path.realpath(java)).parents[1] / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def known_version(java: str) -> str:
    """The version of a Java: as its folder tells it, else what `java -version` says."""
    told = re.search(r'^JAVA_VERSION="([^"]+)"', release(java), re.MULTILINE)
    return f'version "{told[1]}"' if told and os.access(java, os.X_OK) else version_text(java)


def java_major(text: str) -> int | None:
    """The major version that `java -version` tells.

    >>> java_major('openjdk version "17.0.15" 2025-04-15'), java_major('java version "1.8.0_392"')
    (17, 8)
    >>> java_major("command not found") is None
    True
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def require_java() -> None:
    """Raise one clear sentence when there is no Java that Spark can use."""
    java = found_java()
    major = java_major(known_version(java)) if java else None
    if major is None:
        raise SetupError(f"Penstock needs Java {OLDEST} or newer and found none: {install_java()}")
    if major < OLDEST:
        raise SetupError(
            f"Penstock needs Java {OLDEST} or newer and found Java {major}: {install_java()}")
