"""What the core tells a host to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.events.kinds import Event
from penstock.model import Block
from penstock.plan import Member


@dataclass(frozen=True, slots=True)
class Run:
    """Run some stages of a path on these blocks for these members, as one job.

    After the last stage the answers are delivered; after any other the rows are kept for a later
    run, in memory or (``on_disk``) out of it.
    """

    run: int
    segment: str
    path: str
    group: int
    members: tuple[Member, ...]
    blocks: tuple[Block, ...]
    """Consecutive work of one queue: a train."""
    keep: tuple[int, ...] = ()
    """Numbers of the blocks to hold in memory as they are read: others will read them soon."""
    first: int = 0
    last: int = 1
    """The stages first to last - 1."""
    final: bool = True
    """Whether the last stage is the path's last."""
    parts: tuple[int, ...] = ()
    """The runs whose kept rows this one takes up, instead of the blocks."""
    on_disk: bool = False
    urgent: bool = False
    """Whether it overtakes a run that is under way: it gets the cores as they become free."""
    yields: bool = False
    """Whether it may be overtaken itself: then it is done in short pieces."""
    expected: float = 0.0
    """Seconds that it will take, going by the latest run like it; 0 while unknown."""
    measure: bool = False
    """Whether to time the stages apart on a sample, beside the run."""


@dataclass(frozen=True, slots=True)
class Cool:
    """Let go of a hot block; the spool still has it."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Let go of the rows that a run kept: nobody will take them up."""

    run: int


@dataclass(frozen=True, slots=True)
class Release:
    """Delete a block from the spool."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True)
class Wake:
    """Send a `Tick` at this time: something falls due."""

    at: float


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do: ``drained``, or ``failed`` with a reason."""

    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Write an event of the core's own into the record: a decision, a query that failed."""

    event: Event


Instruction: TypeAlias = Run | Cool | Forget | Release | Wake | Finish | Note
