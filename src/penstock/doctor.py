"""Whether this machine has what a run needs: each check is one line, each fault has its remedy."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from penstock.errors import PenstockError
from penstock.java import OLDEST, found_java, install_java, java_major, version_text

GIGABYTE = 2**30
MEMORY = 2 * GIGABYTE
"""Room for the driver's heap, Python and the system."""
DISK = GIGABYTE


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found."""

    what: str
    text: str
    remedy: str = ""
    """What to do about it; empty when all is well."""
    grave: bool = True
    """Whether a run would fail; if not, the remedy is advice."""

    @property
    def ok(self) -> bool:
        """Whether nothing needs to be done."""
        return not self.remedy

    @property
    def fault(self) -> bool:
        """Whether something must be done."""
        return bool(self.remedy) and self.grave

    @property
    def state(self) -> str:
        """``ok``, ``advice`` or ``fault``."""
        return "ok" if self.ok else "fault" if self.fault else "advice"


def findings(*, spark: bool = True) -> Iterator[Finding]:
    """What every check finds; Spark is tried last, and only if nothing else is wrong."""
    faults = 0
    for check in CHECKS:
        for finding in check():
            faults += finding.fault
            yield finding
    if spark and not faults:
        yield check_spark()
    elif spark:
        yield Finding("Spark", "was not tried: the faults above come first",
                      "put the faults right, and try again", grave=False)


def checkpoint_findings(folder: Path) -> Iterator[Finding]:
    """What a checkpoint holds, and what of it is damaged."""
    from penstock.spark.storage.inspection import inspected

    found, faults = inspected(folder)
    for text in found:
        yield Finding("holds", text)
    for text in faults:
        what, _, remedy = text.rpartition("; ")
        yield Finding("damaged", what, remedy) if what else Finding(
            "damaged", text, "name the folder that was given as --checkpoint")


def examine(console: Console, *, spark: bool = True) -> int:
    """Make every check and print what it found; 1 when there is a fault."""
    return _printed(console, findings(spark=spark), "all is well")


def examine_checkpoint(console: Console, folder: Path) -> int:
    """Read all of a checkpoint and say what is damaged; return 1 if anything is."""
    return _printed(console, checkpoint_findings(folder), "the checkpoint is whole")


def _printed(console: Console, found: Iterable[Finding], well: str) -> int:
    faults = 0
    for finding in found:
        _print(console, finding)
        faults += finding.fault
    verdict = _verdict(faults) if faults else well
    console.print(Text(verdict, "bold red" if faults else "bold green"))
    return 1 if faults else 0


def _verdict(faults: int) -> str:
    return f"{faults} fault{'s' if faults > 1 else ''} to be put right"


_STYLES = {"ok": "green", "advice": "yellow", "fault": "bold red"}


def _print(console: Console, finding: Finding) -> None:
    style = _STYLES[finding.state]
    line = Text.assemble((f"{finding.state:>7}  ", style), (f"{finding.what:<8} ", "bold"),
                         finding.text)
    console.print(line, soft_wrap=True)
    if finding.remedy:
        console.print(Text(f"{'':>18}{finding.remedy}", style), soft_wrap=True)


# --- Python and PySpark -------------------------------------------------------------------------


def check_python() -> Iterator[Finding]:
    """The interpreter's version."""
    version = platform.python_version()
    remedy = "use Python 3.11 or later" if sys.version_info < (3, 11) else ""
    yield Finding("Python", f"{version} ({sys.executable})", remedy)


def check_pyspark() -> Iterator[Finding]:
    """The installed PySpark."""
    remedy = "install it: `make setup` in a clone, `pip install penstock-spark` elsewhere"
    if importlib.util.find_spec("pyspark") is None:
        yield Finding("PySpark", "is not installed", remedy)
        return
    version = importlib.metadata.version("pyspark")
    fits = version.startswith("4.3.")
    yield Finding("PySpark", version, "" if fits else f"4.3 is needed; {remedy}")


# --- Java ---------------------------------------------------------------------------------------


def check_java() -> Iterator[Finding]:
    """The Java that Spark would start: that of JAVA_HOME, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    java = found_java()
    if home and not os.access(str(java), os.X_OK):
        remedy = "correct JAVA_HOME, or unset it to use the Java on the path"
        yield Finding("Java", f"JAVA_HOME is {home}, but there is no {java}", remedy)
    elif java is None:
        yield Finding("Java", "was not found", install_java())
    else:
        yield _judged(java)
        yield from _odd_home(home)


def _judged(java: str) -> Finding:
    said = version_text(java)
    major = java_major(said)
    if major is None:
        return Finding("Java", f"{java} does not say its version: {said or 'it does not start'}",
                       install_java())
    if major < OLDEST:
        return Finding("Java", f"{java} is Java {major}, too old", install_java())
    return Finding("Java", f"{major} ({java})")


def _odd_home(home: str | None) -> Iterator[Finding]:
    """JAVA_HOME precedes the path, which surprises people who installed a Java there."""
    on_path = shutil.which("java")
    if home and on_path and java_major(version_text(on_path)) != java_major(
        version_text(f"{home}/bin/java")
    ):
        yield Finding("Java", f"JAVA_HOME and the path ({on_path}) name different versions",
                      "nothing, if JAVA_HOME is the one you mean: Spark follows it", grave=False)


# --- the machine --------------------------------------------------------------------------------


def check_memory() -> Iterator[Finding]:
    """Physical memory, or the limit of the container."""
    memory = physical_memory()
    if memory is None:
        yield Finding("Memory", "this system does not tell", "see to 2 GB or more", grave=False)
        return
    short = memory < MEMORY
    yield Finding("Memory", f"{memory / GIGABYTE:.1f} GB",
                  "give the machine or the container 2 GB or more" if short else "")


def physical_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes of memory that this process may come to use."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return min(machine, int((root / name).read_text()))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return machine


def check_cores() -> Iterator[Finding]:
    """Cores that this process may run on."""
    allowed = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    cores = len(allowed(0))
    advice = "one core serves; bursts drain faster with two or more" if cores < 2 else ""
    yield Finding("Cores", str(cores), advice, grave=False)


def check_disk() -> Iterator[Finding]:
    """The folder for temporary files, which Spark spills to."""
    folder = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    remedy = "point TMPDIR at a folder with room that you may write to"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Finding("Disk", f"{folder} cannot be written: {error.strerror}", remedy)
        return
    text = f"{free / GIGABYTE:.1f} GB free in {folder}"
    yield Finding("Disk", text, remedy if free < DISK else "")


def check_port() -> Iterator[Finding]:
    """Whether a port can be bound on the loopback: Spark and Python talk through one."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass
    except OSError as error:
        yield Finding("Network", f"127.0.0.1 cannot be used: {error.strerror}",
                      "allow connections to 127.0.0.1 (firewall, sandbox, container settings)")
        return
    yield Finding("Network", "127.0.0.1 takes connections")


def check_archive() -> Iterator[Finding]:
    """The archive of Spark's classes, without which all works, but starts later."""
    if importlib.util.find_spec("pyspark") is None or found_java() is None:
        return  # reported already
    from penstock.spark.jvm import archive

    found = archive()
    if found is None:
        yield Finding("Start", "without a class archive: there is no folder to keep one in",
                      "set XDG_CACHE_HOME to a folder of yours for a faster start", grave=False)
        return
    state, reason = found.state()
    advice = {
        "failed": f"remove {found.path.with_suffix('.json')} to have it tried again",
        "unusable": f"make {found.path.parent} your own, with `chmod 700`",
    }
    if state == "there":
        size = found.path.stat().st_size / 2**20
        yield Finding("Start", f"from a class archive ({size:.0f} MB, {found.path})")
    else:
        text = f"without a class archive: {reason}"
        if state == "absent":
            text += "; a process in the background makes one after the next run"
        yield Finding("Start", text, advice.get(state, ""), grave=False)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python, check_pyspark, check_java, check_memory, check_cores, check_disk, check_port,
    check_archive,
)  # fmt: skip
"""In the order in which they are made: Python first, since all else needs it."""


# --- Spark itself -------------------------------------------------------------------------------

_TRIAL = """
CREATE STREAM packets (port INT, length INT) FROM onoff OPTIONS (rows = 1000, seed = 1);
CREATE QUERY long AS SELECT port, length FROM packets WHERE length > 1000;
"""


def check_spark() -> Finding:
    """A thousand packets and one query, through the whole engine."""
    from penstock.api import Engine

    began = time.monotonic()
    try:
        with Engine() as engine:
            engine.execute(_TRIAL)
            engine.start(until_drained=True)
            started = time.monotonic()
            engine.wait(120)
            engine.stop()
            summary, rows = engine.status(), len(engine.results("long"))
    except PenstockError as error:
        return Finding("Spark", f"does not work: {error}", "put right what it says")
    if summary.run.state != "drained" or summary.failures() or summary.accounting():
        reasons = [reason for _, reason in summary.failures()] or summary.accounting()
        text = "; ".join([summary.run.reason, *reasons]).strip("; ") or "it does not end"
        return Finding("Spark", f"the trial failed: {text}", "report this: it is a defect")
    spent = f"started in {started - began:.1f} s, answered in {time.monotonic() - started:.1f} s"
    return Finding("Spark", f"{spent} ({rows} of 1,000 packets)")
