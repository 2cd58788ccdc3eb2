"""Makes the archive of Spark's classes: runs the demonstration in a JVM that notes its classes.

`penstock.spark.class_archive` starts `python -m penstock.rehearsal ARCHIVE` after a run that found
no archive. It works silently, at low priority, on packets of its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from penstock import demo
from penstock.api import Engine
from penstock.spark.class_archive import SWITCH, ClassArchive
from penstock.spark.session import session_for_archive

SECONDS, RATE = 2.0, 1000.0
"""How long packets come, and how many in a second: enough that every path has some."""


def main(target: str) -> int:
    """Make an archive, unless another process does; return 1 if it cannot be made."""
    with suppress(OSError):
        os.nice(19)
    archive = ClassArchive(Path(target))
    with archive.making() as fresh:
        if fresh is None:
            return 0
        try:
            _rehearse(fresh)
            archive.publish(fresh)
        except Exception as error:
            archive.fail(f"{type(error).__name__}: {error}")
            return 1
    return 0


def _rehearse(fresh: Path) -> None:
    os.environ[SWITCH] = "off"  # no other one is to be made after this run
    with tempfile.TemporaryDirectory(prefix="penstock-rehearsal-") as folder:
        file = demo.prepare(Path(folder), SECONDS, rate=RATE, fresh=True)
        with session_for_archive(fresh) as session, Engine(spark=session) as engine:
            engine.load(file.read_text(encoding="utf-8"), folder=folder)
            engine.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
