"""What `SET` and the host decide about a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.engine.paths.queue_entries import TRAIN_ROWS


@dataclass(frozen=True, slots=True)
class Settings:
    """Settled when the run begins."""

    slots: int = 1
    """Jobs under way at once."""
    overlap: bool = False
    """Whether one more job may begin while those under way are about to end."""
    memory: int = 512 * 2**20
    """Bytes of blocks that may be hot."""
    retention: float = 3600.0
    """Seconds a block stays in the spool after it arrived, once all have read it."""
    until_drained: bool = False
    hold: float = 0.5
    """The part of a query's latency for which its blocks may gather before they are run."""
    gather: float = 0.0
    """Seconds for which any block may wait for others to ride with: few large jobs cost less. For
    runs in which nobody waits for the first answer."""
    measure_every: float = 60.0
    """Seconds after which the stages of a path are timed apart again."""
    quantum: float = inf
    """A train takes no more blocks than would run for so many seconds, so that decisions come."""
    spool: float = inf
    """Bytes that the spool may hold before the streams have to wait."""
    timeout: float = inf
    """Seconds after which a job is cancelled, unless jobs like it are known to take as long."""

    @property
    def concurrent(self) -> bool:
        """Whether two jobs may be under way at once."""
        return self.overlap or self.slots > 1

    def lasting(self, panes: bool) -> float:
        """Seconds for which a run should last.

        One that makes panes answers nothing. Where nobody waits for a first answer it takes all
        that is there, however long: the job itself may cost more than its rows.
        """
        return inf if panes and self.until_drained else self.quantum

    def longest(self, panes: bool) -> float:
        """Rows of a train at most: more where panes are made and nobody waits for answers.

        Not all there are: the driver answers from the panes of one train while the next is made.
        """
        return (2 if panes and self.until_drained else 1) * TRAIN_ROWS
