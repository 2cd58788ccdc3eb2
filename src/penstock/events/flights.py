"""Jobs over blocks that were decided and have not ended, as the summary remembers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.events import kinds as k
from penstock.events.ledger import Ledger, WaitingBlock
from penstock.events.measures import QueryMeasures


@dataclass(frozen=True, slots=True)
class RidingGroup:
    """Members that ride together, resolved to their queries when the group was formed."""

    riders: tuple[tuple[str, QueryMeasures, Ledger | None], ...]
    queries: Mapping[str, QueryMeasures]


@dataclass(frozen=True, slots=True)
class ProbeFlight:
    """A probe that was decided and has not ended."""

    group: RidingGroup


@dataclass(frozen=True, slots=True)
class Flight:
    """A job that was decided and has not ended, with the blocks as they were then."""

    work: k.PathWork
    group: RidingGroup
    blocks: tuple[WaitingBlock | None, ...]
