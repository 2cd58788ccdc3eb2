"""Runs an engine whose checkpoint is on a disk that fills up: a process of its own mounts it.

``unshare -rm python disk_driver.py FOLDER`` prints what was seen as JSON. FOLDER/disk is the disk;
what is read lies beside it, and so does what is written for good.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock import Engine
from penstock.events import Summary

SIZE = "8m"
SQL = """
SET trigger = '50 ms';
CREATE STREAM lines (n INT, word STRING) FROM csv 'lines';
CREATE QUERY kept AS SELECT n FROM lines;
CREATE QUERY given INTO parquet 'given' AS SELECT n FROM lines WHERE n >= 0;
CREATE QUERY counted AS SELECT COUNT(*) AS n FROM lines [WINDOW 1 DAY];
"""
QUERIES = ("kept", "given")
ROWS = 10
"""Rows of a file."""


def mount(folder: Path) -> None:
    """A small disk, which only this process and its children see."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)


def put(folder: Path, number: int) -> None:
    """A file appears whole."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number}"
    rows = range(number * ROWS, (number + 1) * ROWS)
    hidden.write_text("".join(f"{n},w{n}\n" for n in rows))
    hidden.rename(folder / f"{number}.csv")


def fill(path: Path) -> str:
    """Write until the disk takes no more, and say what it said."""
    with path.open("wb", buffering=0) as ballast:
        while True:
            try:
                ballast.write(b"\0" * 4096)
            except OSError as error:
                return str(error)


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.05)


def answered(status: Summary, files: int) -> bool:
    return all(status.queries[name].rows_in == files * ROWS for name in (*QUERIES, "counted"))


def filled_and_freed(engine: Engine, root: Path) -> dict[str, Any]:
    """The disk is full when the second file comes, and has room again later."""
    ballast = root / "disk" / "ballast"
    put(root / "lines", 0)
    engine.start()
    status = engine.status()
    eventually(lambda: answered(status, 1), "the first file was answered")
    said = fill(ballast)
    put(root / "lines", 1)
    eventually(lambda: status.streams["lines"].retries > 1, "it was tried again")
    full = {name: query.state for name, query in status.queries.items()}
    ballast.unlink()
    eventually(lambda: answered(status, 2), "it went on")
    return {"said": said, "full": full, "failures": status.failures(),
            "warnings": [(w.subject, w.text) for w in status.warnings]}


def filled_under_way(engine: Engine, root: Path) -> None:
    """The disk becomes full at whatever moment of reading and answering the third file."""
    ballast = root / "disk" / "ballast"
    put(root / "lines", 2)
    fill(ballast)
    time.sleep(2)
    ballast.unlink()
    engine.stop()


def main(root: Path) -> None:
    mount(root / "disk")
    with Engine(checkpoint=root / "disk" / "checkpoint", master="local[2]") as engine:
        engine.execute(SQL, folder=root)
        seen = filled_and_freed(engine, root)
        filled_under_way(engine, root)
        summary = engine.run()
        seen["left"] = [summary.failures(), summary.accounting()]
        seen["rows"] = {q: sorted(engine.results(q)["n"].to_pylist()) for q in QUERIES}
        seen["counted"] = engine.results("counted")["n"].to_pylist()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
