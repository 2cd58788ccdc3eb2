"""Groups of window aggregates that were too large for the driver: they begin on the executors.

A group is found to be large when its panes pass ``SET synopses``. That is kept in the checkpoint,
so that after a restart its panes do not fill the driver first. Who gives the driver more memory has
the group tried there again.
"""

from __future__ import annotations

from contextlib import suppress

from penstock.spark.storage.checkpoint import Checkpoint


class Large:
    """The groups by their ids, each with the bytes that the driver had for panes."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Read what earlier runs have found."""
        self._checkpoint, self._place = checkpoint, checkpoint.large
        self._most: dict[str, int] = (
            checkpoint.read(self._place) if checkpoint.has(self._place) else {})

    def has(self, group: str, most: int) -> bool:
        """Whether a group was too large for so many bytes."""
        return self._most.get(group, -1) >= most

    def add(self, group: str, most: int) -> None:
        """A group is too large for so many bytes."""
        if not self.has(group, most):
            self._most[group] = most
            with suppress(OSError):  # a full disk: then the next run finds it out again
                self._checkpoint.write(self._place, self._most)
