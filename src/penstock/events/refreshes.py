"""What can happen to window aggregates in a run: synopses, decisions, answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.plan import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class SynopsisBegun:
    """A group of window aggregates has a synopsis without panes: a new one, or a larger one.

    Its panes are made of the blocks that come, and of earlier ones that its windows reach back to.
    """

    at: float
    group: str
    queries: tuple[str, ...]
    stream: str
    blocks: tuple[int, ...]
    """Earlier blocks, to be read for the panes alone."""
    pane: int
    """How long a pane is, in microseconds."""
    span: int
    """Panes in the longest window."""

    @staticmethod
    def of(group: Group, at: float, blocks: tuple[int, ...]) -> SynopsisBegun:
        """The synopsis of a group begins."""
        queries = tuple(member.query for member in group.members)
        return SynopsisBegun(at=at, group=group.id, queries=queries, stream=group.reads,
                             blocks=blocks, pane=group.pane, span=group.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodsChosen:
    """The answers of a group are renewed at least this often from now on, for a reason."""

    at: float
    group: str
    periods: Mapping[str, int]
    """Per query, in panes; a query may be answered more often than it asks."""
    costs: Mapping[str, float]
    """Per pane: of what was ``chosen``, and of the ``conservative`` and ``aggressive`` schedule."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshDecided:
    """The core ordered a joint run over a synopsis, for a reason."""

    at: float
    job: int
    group: str
    end: int
    """The pane before which all windows end."""
    queries: tuple[str, ...]
    reason: str
    waiting: int = 0
    """Tasks that were due when the choice was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersSkipped:
    """A joint run leaves answers out that fell due earlier: the machine is late."""

    at: float
    job: int
    group: str
    answers: Mapping[str, int]
    """Per query: the windows that hold rows, a slide apart, for which it is not answered."""
    after: int
    """They end after this, and before the windows of the run; both in microseconds."""
    before: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshFinished:
    """A joint run delivered its answers."""

    at: float
    job: int
    seconds: float
    rows_out: Mapping[str, int]
    """Rows delivered per query; a query that got none may be absent."""
    scanning: float | None = None
    """Seconds of it for reading and merging panes; None: all but the answering."""
    answering: float = 0.0
    """Seconds of it for making answers of merged panes."""
    answers: Mapping[str, int] = field(default_factory=dict)
    """Windows answered per query."""
    arrived: float = 0.0
    """When the rows came that closed the last of these windows."""
    jobs: int = 0
    bytes_out: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries whose sink refused the answers, and why."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """The end of the last window that each query is answered for, in microseconds."""
