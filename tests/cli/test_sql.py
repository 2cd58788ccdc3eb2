"""The shell: what it does with statements, and how it feels in a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.cli.prompt import completions
from penstock.cli.shell import Shell
from penstock.events import Summary
from penstock.language import bind, bind_all
from penstock.model import Application

DECLARED = "CREATE STREAM packets (ts TIMESTAMP, length INT) FROM onoff TIME ts;"


class FakeEngine:
    """Binds statements, and remembers what it was told to do."""

    def __init__(self, reading: bool = False) -> None:
        self.application, self.reading, self.runs = Application(), reading, False
        self.checkpoint = Path("state")
        self.told: list[str] = []

    def load(self, sql: str, folder: Path) -> tuple[pa.Table, ...]:
        return self.execute(sql, folder=folder)

    def execute(self, sql: str, folder: Path | str = ".") -> tuple[pa.Table, ...]:
        self.application, shown, _ = bind_all(sql, self.application, folder=folder)
        return tuple(pa.table({"what": [one.what]}) for one in shown)

    def ask(self, sql: str) -> pa.Table:
        self.told.append(f"ask {sql}")
        return pa.table({"asked": [1]})

    def start(self, until_drained: bool) -> None:
        self.runs = True
        self.told.append(f"start {until_drained}")

    def wait(self, timeout: float) -> bool:
        if timeout and self.runs:
            self.runs = False
            self.told.append("drained")
        return not self.runs

    def stop(self, within: float | None = None) -> None:
        self.runs = False

    def status(self) -> Summary:
        return Summary()


def shell(engine: FakeEngine, **options: Any) -> Shell:
    given = Namespace(**{"format": "csv", "until_drained": False, **options})
    return Shell(engine, given, Path("."))  # type: ignore[arg-type]


def test_the_run_begins_with_the_first_query_and_questions_are_asked_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine = FakeEngine()
    typed = [f"{DECLARED} SHOW STREAMS;\n", "CREATE QUERY q AS\n", "SELECT length FROM packets;\n",
             "-- a comment;\n", "select * from q\n", "order by length; SHOW QUERIES"]
    assert shell(engine).carry_out(typed) == 0
    assert engine.told == ["start False", "ask select * from q\norder by length"]
    assert capsys.readouterr().out.split() == ["what", "STREAMS", "asked", "1", "what", "QUERIES"]


def test_the_first_error_ends_a_script_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine()
    assert shell(engine).carry_out([DECLARED + "\n", "SHOW NOTHING;\n", "SELECT 1;\n"]) == 1
    assert engine.told == [] and "expected one of FUNCTIONS" in capsys.readouterr().err


def test_a_question_in_a_script_waits_for_the_end_of_the_inputs() -> None:
    engine = FakeEngine()
    script = [DECLARED, "CREATE QUERY q AS SELECT length FROM packets;", "SELECT length FROM q;"]
    assert shell(engine, until_drained=True).carry_out(script) == 0
    assert engine.told == ["start True", "drained", "ask SELECT length FROM q"]


def test_a_shell_that_looks_starts_nothing() -> None:
    engine = FakeEngine(reading=True)
    engine.application = bind(DECLARED + "CREATE QUERY q AS SELECT length FROM packets;")
    looking = shell(engine)
    looking.go_on()
    looking.leave()
    assert engine.told == []


def test_names_are_completed_those_declared_first() -> None:
    application = bind(DECLARED + "CREATE QUERY longest AS SELECT length FROM packets")
    assert completions("l", application)[:2] == ["length", "longest"]
    assert completions("pack", application) == ["packets"]
    assert completions("chain_f", application) == ["chain_flush"]
    assert completions("", application) == []


# --- a pseudo-terminal --------------------------------------------------------------------------


class Terminal:
    """A shell in a pseudo-terminal: what is typed, and what is seen."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self.screen = ""
        self.ours, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(folder / "home"),
               "PROMPT_TOOLKIT_NO_CPR": "1", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "sql", *arguments], stdin=theirs, stdout=theirs,
            stderr=theirs, cwd=folder, env=env, start_new_session=True)
        os.close(theirs)

    def type(self, text: str) -> None:
        self.screen = ""
        os.write(self.ours, text.encode())

    def see(self, wanted: str, seconds: float = 90) -> str:
        """Wait until this is on the screen, and return all that has come since what was typed."""
        until = time.monotonic() + seconds
        while not re.search(wanted, self.screen):
            assert time.monotonic() < until, f"{wanted!r} is not in\n{self.screen[-3000:]}"
            if select.select([self.ours], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):  # the other end is closed
                    self.screen += self._plain(os.read(self.ours, 65536))
        return self.screen

    @staticmethod
    def _plain(written: bytes) -> str:
        text = written.decode(errors="replace")
        return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>]|\][^\x07]*\x07)", "", text)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "app.sql").write_text(
        "CREATE STREAM packets (ts TIMESTAMP, src INT, length INT) FROM onoff\n"
        "  OPTIONS (rate = 400, seed = 3, burst = 1) TIME ts;\n"
        "CREATE QUERY longest AS SELECT src, length FROM packets WHERE length > 1400;\n")
    found = Terminal(["app.sql", "--checkpoint", "state"], tmp_path)
    yield found
    found.close()


@pytest.mark.spark
@pytest.mark.processes
@pytest.mark.slow
def test_a_session_in_a_pseudo_terminal(terminal: Terminal, tmp_path: Path) -> None:
    """What the line editor draws is drawn in pieces; what statements print comes whole."""
    terminal.see("penstock>")
    terminal.type("SHOW QUERIES;\r")
    terminal.see(r"longest\s+packets\s+memory")
    terminal.type("SELECT * FROM longst;\r")
    terminal.see("did you mean 'longest'")
    terminal.type("CREATE QUERY sources AS\rSELECT src FROM packets WHERE src < 50;\r")
    terminal.type("SHOW QUERIES;\r")
    terminal.see(r"sources\s+packets\s+memory")
    for _ in range(30):  # until Spark has started and something has come
        terminal.type("SELECT COUNT(*) > 0 AS some FROM longest;\r")
        if "True" in terminal.see(r"some\s+(True|False)|nothing is held"):
            break
    else:
        pytest.fail("no answers came")
    terminal.type("DESCRIBE longe\t")
    time.sleep(1)  # names are looked up beside the typing
    terminal.type(";\r")
    terminal.see(r"property\s+query\s+longest")
    terminal.type("\x1bOQ")  # F2
    terminal.see("any key: back")
    terminal.type("q")
    terminal.see("penstock>")
    terminal.type("DROP QUERY sources;\rSHOW QUERIES;\r")
    assert "sources  " not in terminal.see(r"longest\s+packets\s+memory")
    terminal.type("\x1b[A\x1b[A\x1b[A\x1b[A")  # four statements back
    terminal.see(r"COUNT\(\*\)")
    terminal.type("\x03")
    terminal.type("exit\r")
    terminal.see("to go on from here: .* sql --checkpoint")
    assert terminal.process.wait(60) == 0
    history = tmp_path / "home" / "penstock" / "history"
    assert "DROP QUERY sources;" in history.read_text() and history.stat().st_mode & 0o77 == 0
