"""Reading the record of a run back into events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.errors import CheckpointError
from penstock.events.kinds import Event
from penstock.events.lines import check_header, decode
from penstock.events.record import FILE


def find_record(place: Path) -> Path:
    """The record that ``place`` means: a file, a run's folder, or a checkpoint's newest run."""
    if place.is_file():
        return place
    if (place / FILE).is_file():
        return place / FILE
    # Stamps sort as the runs began.
    records = sorted(place.glob(f"runs/*/{FILE}"))
    if not records:
        raise CheckpointError(f"{place} holds no record of a run: neither {FILE} nor runs/*/{FILE}")
    return records[-1]


def read_events(place: Path | str) -> Iterator[Event]:
    """Every event of a record, in order; one of another format is refused.

    A driver that was killed may leave half a line at the end, which is ignored. Any other line that
    is not an event raises an error that names the line.
    """
    record = find_record(Path(place))
    with record.open("rb") as file:
        for number, line in enumerate(file, start=1):
            # A line without its line break is torn, even if its text happens to be valid JSON.
            if not line.endswith(b"\n"):
                return
            try:
                if number > 1:
                    yield decode(line)
                else:
                    check_header(line)
            except CheckpointError as error:
                raise CheckpointError(f"{record}, line {number}: {error}") from error
