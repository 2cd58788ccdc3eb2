"""Where queries stand in the blocks of their streams: what is theirs to see, and what they owe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.model import Application, Block, Query
from penstock.plan import Group, Plan
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.storage.spool import Spool

EVER = -(1 << 62)
"""Before all panes: who needs it needs all that ever were."""
ALL = EVER - 1
"""Before what any synopsis has."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Reads the log of deliveries against what the spools hold."""

    deliveries: Deliveries
    spools: Mapping[str, Spool]
    newest: Callable[[str], int]
    """The highest number of a stream's blocks that the core knows; -1 when there is none."""

    def join(
        self, queries: Sequence[Query], application: Application, at: float, last_run: int
    ) -> None:
        """Let the log know of queries that are new, or declared otherwise than they were."""
        standing = self.deliveries.standing
        texts = _texts(application)
        fresh = [q for q in queries
                 if q.name not in standing or standing[q.name].text != texts.get(q.name, "")]
        if fresh:
            starts = {query.name: self._starts(query) for query in fresh}
            self.deliveries.join(starts, at, texts, last_run)

    def refuse_missing(self, application: Application) -> None:
        """Refuse a checkpoint that lacks the newest blocks of which it has delivered rows.

        A block without a manifest is read again, and its rows would be delivered twice.
        """
        texts = _texts(application)
        for query in application.queries.values():
            known = self.deliveries.standing.get(query.name)
            if known is None or known.text != texts.get(query.name, ""):
                continue  # its namesake read other streams, perhaps
            for number, had in known.had.items():
                spool = self.spools.get(query.branches[number].stream)
                if spool is not None:
                    spool.refuse_before(had.ranges[-1][1])

    def _starts(self, query: Query) -> dict[str, int]:
        """The first block of each stream that is a new query's to see."""
        starts = {}
        for stream in {branch.stream for branch in query.branches} & self.spools.keys():
            held = self.spools[stream].held()
            if query.start == "earliest":
                starts[stream] = held[0].number if held else 0
            else:
                starts[stream] = self.newest(stream) + 1
        return starts

    def backlog(self, query: Query) -> tuple[tuple[int, int], ...]:
        """Per branch the blocks that it has not delivered, among those that the core knows."""
        return tuple((number, block.number) for number, branch in enumerate(query.branches)
                     for block in self._known(branch.stream)
                     if self._owes(query.name, number, block))

    def since(self, query: Query) -> int | None:
        """A window aggregate answers for windows that end after this; None: for all there are.

        A new one begins with the first window of which the spool has every row.
        """
        standing = self.deliveries.standing[query.name]
        if standing.answered is not None:
            return standing.answered
        stream, grouping = query.branches[0].stream, query.branches[0].grouping
        start = standing.start.get(stream, 0)
        before = [block.watermark for block in self._known(stream) if block.number < start]
        whole = self._whole(stream)
        length = grouping.window.length if grouping else 0
        bounds = [before[-1] if before else None, None if whole is None else whole + length - 1]
        return max((bound for bound in bounds if bound is not None), default=None)

    def _whole(self, stream: str) -> int | None:
        """The time from which on all rows of a stream are there; None: from the first on."""
        spool = self.spools.get(stream)
        if spool is None or spool.last is None:
            return None
        held = spool.held()
        if not held:
            gone = spool.block(spool.last.number).newest
        elif held[0].number == 0 or held[0].cutoff is None:
            return None
        else:
            gone = held[0].cutoff + round(spool.stream.lateness * 1e6)
        return None if gone is None else gone + 1

    def reach(self, group: Group, plan: Plan) -> tuple[int, ...]:
        """The known blocks that the windows of a group's queries reach back to.

        Some of them may be waiting for these queries anyhow: the core knows.
        """
        oldest = [self._reaches(plan.query(member.query)) for member in group.members]
        since = None if None in oldest else min(time for time in oldest if time is not None)
        return tuple(block.number for block in self._known(group.stream)
                     if since is None or block.newest is None or block.newest >= since)

    def needs(
        self, group: Group, joining: Sequence[Query], is_alive: Callable[[str], bool]
    ) -> int | None:
        """The first pane that those look at who join a group; None when nobody does.

        If nobody else is alive there, no block has been taken in meanwhile: all is needed.
        """
        members = {member.query for member in group.members}
        mine = {q.name: q for q in joining if q.name in members}
        if mine and not any(is_alive(name) for name in members - mine.keys()):
            return ALL
        needed = []
        for query in mine.values():
            grouping, since = query.branches[0].grouping, self.since(query)
            assert grouping is not None
            needed.append(EVER if since is None else
                          since // group.pane + 1 - grouping.window.length // group.pane)
        return min(needed, default=None)

    def _reaches(self, query: Query) -> int | None:
        """The time from which on a query's next window may hold rows; None: from the first on."""
        grouping, since = query.branches[0].grouping, self.since(query)
        return None if grouping is None or since is None else since - grouping.window.length

    def _known(self, stream: str) -> list[Block]:
        if stream not in self.spools:
            return []
        newest = self.newest(stream)
        return [block for block in self.spools[stream].held() if block.number <= newest]

    def _owes(self, query: str, branch: int, block: Block) -> bool:
        standing = self.deliveries.standing[query]
        had = standing.had.get(branch)
        return (block.number >= standing.start.get(block.stream, 0)
                and not (had and block.number in had))


def _texts(application: Application) -> dict[str, str]:
    """A digest of the declaration of each query."""
    return {s.name: _digest(s.text) for s in application.statements if s.kind == "query"}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
