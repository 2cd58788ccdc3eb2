"""The latency goals of queries, and how often they were missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from penstock.engine.instructions import Note
from penstock.engine.paths.active_job import ActiveJob
from penstock.events.kinds import JobFinished, LatencyMissed
from penstock.model import Block
from penstock.plan import Member, Plan


@dataclass(slots=True)
class LatencyGoals:
    """Counts the blocks that were delivered later than the goal, once per branch, and their rows.

    A window aggregate counts answers instead, timed from the rows that closed the window. Blocks
    from before a query joined have no goal. The record gets a query's first miss, and another one
    whenever the number of missed blocks has one more digit. So a query that is always late does not
    fill the record.
    """

    _goals: dict[str, float] = field(default_factory=dict)
    _missed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Blocks and rows per query."""
    _earlier: dict[Member, set[int]] = field(default_factory=dict)
    """Blocks from before a member joined that it has not seen yet."""

    def adopt(self, plan: Plan) -> None:
        """Watch the goals of these queries from now on."""
        self._goals = {q.name: q.latency for q in plan.queries if q.latency is not None}
        self._missed = {name: n for name, n in self._missed.items() if name in self._goals}
        self._earlier = {m: n for m, n in self._earlier.items() if m.query in self._goals}

    def join(self, member: Member, backlog: Iterable[int]) -> None:
        """A branch of a query begins; what an earlier query of its name missed does not count."""
        self._missed.pop(member.query, None)
        if member.query in self._goals:
            self._earlier[member] = set(backlog)

    def promised(self, job: ActiveJob) -> Iterator[tuple[str, list[tuple[float, int]]]]:
        """By query with a goal, the arrival and the rows of each block that a job delivers."""
        blocks = [block for entry in job.entries for block in entry.blocks]
        for member in job.entries[0].members:
            if member.query in self._goals and member.query not in job.left:
                yield member.query, [(block.arrived, block.rows)
                                     for block in self._promised(member, blocks)]

    def timed(self, member: Member, blocks: Sequence[Block]) -> list[tuple[float, int]]:
        """The arrival and the rows of those blocks of a member that have a goal."""
        if member.query not in self._goals:
            return []
        return [(block.arrived, block.rows) for block in self._promised(member, list(blocks))]

    def check(
        self, event: JobFinished, oldest: float,
        delivered: Iterable[tuple[str, Iterable[tuple[float, int]]]],
    ) -> Iterator[Note]:
        """Note the deliveries of a job that are late.

        ``delivered`` has, per query, the arrival and the rows of each block or answer that it got;
        ``oldest`` is the earliest arrival of all.
        """
        slowest = event.at - oldest
        missed: dict[str, list[int]] = {}
        for query, came in delivered:
            goal = self._goals.get(query, inf)
            if slowest > goal and query not in event.failed:
                late = [rows for arrived, rows in came if event.at - arrived > goal]
                missed.setdefault(query, []).extend(late)
        for query, rows in missed.items():
            yield from self._miss(event.at, query, slowest, rows)

    def _miss(self, at: float, query: str, seconds: float, rows: list[int]) -> Iterator[Note]:
        """Count blocks of this many rows, or answers, as late."""
        if rows:
            before, sum_before = self._missed.get(query, (0, 0))
            count, total = before + len(rows), sum_before + sum(rows)
            self._missed[query] = count, total
            if not before or len(str(count)) > len(str(before)):
                yield Note(event=LatencyMissed(at=at, query=query, promised=self._goals[query],
                                               seconds=seconds, blocks=count, rows=total))

    def _promised(self, member: Member, blocks: list[Block]) -> list[Block]:
        """The blocks with a goal: those that arrived after the member joined."""
        earlier = self._earlier.get(member)
        if not earlier:
            return blocks
        promised = [block for block in blocks if block.number not in earlier]
        earlier.difference_update(block.number for block in blocks)
        return promised
