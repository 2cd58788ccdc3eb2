"""What `SET` and the host decide about a run of the application."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.engine.paths.queue_entries import TRAIN_ROWS


@dataclass(frozen=True, slots=True)
class Settings:
    """Settled when the run begins."""

    slots: int = 1
    """How many jobs may be active at once."""
    overlap: bool = False
    """Whether one more job may begin while the active ones are about to end."""
    memory: int = 512 * 2**20
    """Bytes of blocks that may be hot."""
    retention: float = 3600.0
    """Seconds a block stays in the spool after it arrived, once all have read it."""
    keep_from: int = 0
    """Bytes of the smallest block that is worth holding in memory."""
    until_drained: bool = False
    """Whether the run ends when all rows of its streams are answered for."""
    paced: bool = False
    """Whether rows come at their own pace even if the run ends with them."""
    hold: float = 0.5
    """The part of a query's latency goal for which its blocks may wait to be batched."""
    gather: float = 0.0
    """Seconds for which any block may wait to be batched, since few large jobs cost less. It is for
    runs in which nobody waits for the first answer."""
    measure_every: float = 60.0
    """Seconds between two samples of stages that jobs do not measure themselves."""
    quantum: float = inf
    """A train takes no more blocks than fit into this many seconds, so that decisions stay
    frequent, but enough of them that the fixed cost of a job is a small part of it."""
    spool: float = inf
    """The bytes that the spool may hold before the streams pause."""
    timeout: float = inf
    """Seconds after which a job is cancelled, unless jobs like it are known to take as long."""

    @property
    def only_the_end_counts(self) -> bool:
        """Whether nobody waits for the first answer."""
        return self.until_drained and not self.paced

    def lasting(self, panes: bool) -> float:
        """Seconds that a job should take.

        A job that makes panes answers nothing. If nobody waits for a first answer it takes all
        blocks, however long: its fixed cost may exceed that of its rows.
        """
        return inf if panes and self.only_the_end_counts else self.quantum

    def longest(self, panes: bool) -> float:
        """The most rows of a train: more for panes, if nobody waits for answers.

        But not all rows: the driver answers from the panes of one train while the next is made.
        """
        return (2 if panes and self.only_the_end_counts else 1) * TRAIN_ROWS
