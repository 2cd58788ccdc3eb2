"""What can happen to the synopses of window aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.plan import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class SynopsisBegun:
    """A group of window aggregates has a synopsis without panes: a new one, or one that is rebuilt.

    Its panes are made from new blocks, and from the earlier ones that its windows reach back to.
    """

    at: float
    group: str
    queries: tuple[str, ...]
    stream: str
    blocks: tuple[int, ...]
    """Earlier blocks, which are read for the panes only."""
    pane: int
    """The length of a pane, in microseconds."""
    span: int
    """Panes in the longest window."""

    @staticmethod
    def of(group: Group, at: float, blocks: tuple[int, ...]) -> SynopsisBegun:
        """The event that the synopsis of a group begins."""
        queries = tuple(member.query for member in group.members)
        return SynopsisBegun(at=at, group=group.id, queries=queries, stream=group.reads,
                             blocks=blocks, pane=group.pane, span=group.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodsChosen:
    """The answers of a group are refreshed at least this often from now on, with the reason."""

    at: float
    group: str
    periods: Mapping[str, int]
    """Per query, in panes; a query may be answered more often than it asks."""
    costs: Mapping[str, float]
    """The cost per pane of the ``chosen`` schedule, the ``conservative`` and the ``aggressive``
    one."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersSkipped:
    """A refresh skips answers that fell due earlier, because the machine is late."""

    at: float
    job: int
    group: str
    answers: Mapping[str, int]
    """Per query, the windows that are not answered: those, a slide apart, that hold rows."""
    after: int
    """The skipped windows end after this time, and before those of the refresh, in microseconds."""
    before: int
    reason: str
