"""Groups of window aggregates that were too large for the driver: they begin on the executors.

A group is large when its panes exceed ``SET synopses``. The checkpoint remembers it, so that after
a restart its panes do not fill the driver first. If the driver is given more memory, the group is
tried there again.
"""

from __future__ import annotations

from contextlib import suppress

from penstock.spark.storage.checkpoint import Checkpoint


class LargeGroups:
    """The ids of large groups, each with the bytes that the driver had for panes."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Read the groups that earlier runs found to be large."""
        self._checkpoint, self._place = checkpoint, checkpoint.large
        self._most: dict[str, int] = (
            checkpoint.read(self._place) if checkpoint.has(self._place) else {})

    def has(self, group: str, most: int) -> bool:
        """Whether a group was too large for ``most`` bytes."""
        return self._most.get(group, -1) >= most

    def add(self, group: str, most: int) -> None:
        """Note that a group does not fit into ``most`` bytes."""
        if not self.has(group, most):
            self._most[group] = most
            with suppress(OSError):  # a full disk: then the next run finds it out again
                self._checkpoint.write(self._place, self._most)
