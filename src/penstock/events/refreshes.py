"""What can happen to the synopses of window aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    """The answers of a group are refreshed at least this often from now on, for a reason."""

    at: float
    group: str
    periods: Mapping[str, int]
    """Per query, in panes; a query may be answered more often than it asks."""
    costs: Mapping[str, float]
    """Per pane: of what was ``chosen``, and of the ``conservative`` and ``aggressive`` schedule."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersSkipped:
    """A refresh leaves answers out that fell due earlier: the machine is late."""

    at: float
    job: int
    group: str
    answers: Mapping[str, int]
    """Per query: the windows that hold rows, a slide apart, for which it is not answered."""
    after: int
    """They end after this, and before the windows of the refresh; both in microseconds."""
    before: int
    reason: str
