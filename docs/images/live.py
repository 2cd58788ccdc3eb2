"""Draw the picture of a live run that the README shows, from the record of a real one.

    make picture

runs the demonstration and then this script, which takes the record, the picture, and the moment to
draw in seconds after the first event:

    python docs/images/live.py penstock-demo/checkpoint docs/images/live.svg 30
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console

from penstock.events import Summary, read_events
from penstock.view import Picture

WIDTH = 110
"""Columns of the terminal that is drawn."""


def main(record: str, target: str, moment: str) -> None:
    """Replay the events up to the moment and draw what the terminal showed then."""
    summary = Summary()
    for event in read_events(record):
        summary.apply(event)
        if summary.run.seconds_open > float(moment):
            break
    console = Console(record=True, width=WIDTH, height=42, force_terminal=True, file=sys.stderr)
    console.print(Picture(summary, "packets.sql"))
    picture = console.export_svg(title="penstock run packets.sql")
    # Fonts of other hosts are not fetched for a picture in a page; any monospaced one serves.
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.S)
    Path(target).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
