"""Latencies that queries were promised, and how often they were not kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from penstock.engine.instructions import Note
from penstock.engine.paths.active_job import ActiveJob
from penstock.events.kinds import JobFinished, LatencyMissed
from penstock.model import Block
from penstock.plan import Member, Plan


@dataclass(slots=True)
class LatencyGoals:
    """Counts what is delivered later than promised: blocks, once for each branch, and their rows.

    Of a window aggregate these are its answers: how long after the rows that closed its window.
    Blocks from before a query joined were promised to nobody. A miss is told when it is a query's
    first, and again whenever the number of its blocks has one more digit: a query that is always
    late does not fill the record.
    """

    _goals: dict[str, float] = field(default_factory=dict)
    _missed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Blocks and rows per query."""
    _earlier: dict[Member, set[int]] = field(default_factory=dict)
    """Blocks from before a member joined that it has not seen yet."""

    def adopt(self, plan: Plan) -> None:
        """Keep the promises of these queries from now on."""
        self._goals = {q.name: q.latency for q in plan.queries if q.latency is not None}
        self._missed = {name: n for name, n in self._missed.items() if name in self._goals}
        self._earlier = {m: n for m, n in self._earlier.items() if m.query in self._goals}

    def join(self, member: Member, backlog: Iterable[int]) -> None:
        """A branch of a query begins, after whatever its namesakes were."""
        self._missed.pop(member.query, None)
        if member.query in self._goals:
            self._earlier[member] = set(backlog)

    def promised(self, job: ActiveJob) -> Iterator[tuple[str, list[tuple[float, int]]]]:
        """What a job over blocks delivers to whoever has a goal: when each came, and its rows."""
        blocks = [block for entry in job.entries for block in entry.blocks]
        for member in job.entries[0].members:
            if member.query in self._goals and member.query not in job.left:
                yield member.query, [(block.arrived, block.rows)
                                     for block in self._promised(member, blocks)]

    def check(
        self, event: JobFinished, oldest: float,
        delivered: Iterable[tuple[str, Iterable[tuple[float, int]]]],
    ) -> Iterator[Note]:
        """What is to be told of a job's deliveries that are late.

        ``delivered`` has, per query, when what it got had come, and its rows; the ``oldest`` of all
        came then.
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
        """Blocks of so many rows, or answers, are late."""
        if rows:
            before, sum_before = self._missed.get(query, (0, 0))
            count, total = before + len(rows), sum_before + sum(rows)
            self._missed[query] = count, total
            if not before or len(str(count)) > len(str(before)):
                yield Note(event=LatencyMissed(at=at, query=query, promised=self._goals[query],
                                               seconds=seconds, blocks=count, rows=total))

    def _promised(self, member: Member, blocks: list[Block]) -> list[Block]:
        """The blocks that arrived after the member joined; of the others it sees each once."""
        earlier = self._earlier.get(member)
        if not earlier:
            return blocks
        promised = [block for block in blocks if block.number not in earlier]
        earlier.difference_update(block.number for block in blocks)
        return promised
