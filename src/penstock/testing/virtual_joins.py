"""Window joins in virtual time: rows are a time and a key, and pairs have equal keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from penstock.engine import ProbeJob, ProbeScan
from penstock.model import Block
from penstock.plan import EARLIEST, Member, Plan


@dataclass(frozen=True, slots=True, order=True)
class JoinRow:
    """A row of a stream: when, with which key, and its number on the stream."""

    time: int
    """In microseconds."""
    key: int
    number: int


@dataclass(frozen=True, slots=True)
class JoinedPair:
    """A pair as a query got it."""

    left: JoinRow
    right: JoinRow

    @property
    def later(self) -> int:
        """The time of the later of the two rows."""
        return max(self.left.time, self.right.time)


@dataclass(slots=True)
class JoinRows:
    """The rows of all blocks, and the pairs that probes find among them."""

    blocks: dict[tuple[str, int], tuple[JoinRow, ...]] = field(default_factory=dict)
    """By stream and block, without late rows."""
    _numbered: dict[str, int] = field(default_factory=dict)

    def add(self, block: Block, times: Sequence[float], keys: Sequence[int]) -> None:
        """Keep the rows of a block; those before its cut-off are late."""
        first = self._numbered.get(block.stream, 0)
        self._numbered[block.stream] = first + len(times)
        rows = [JoinRow(round(time * 1e6), key, first + n)
                for n, (time, key) in enumerate(zip(times, keys, strict=True))]
        self.blocks[block.stream, block.number] = tuple(
            row for row in rows if block.cutoff is None or row.time >= block.cutoff)

    def found(self, job: ProbeJob, plan: Plan) -> dict[str, list[JoinedPair]]:
        """By query the pairs that a probe delivers, in the order of their later rows."""
        pairs: dict[str, list[JoinedPair]] = {member.query: [] for member in job.members}
        over_rows = plan.join(job.join).rows
        for scan in job.scans:
            found = self._over_rows(scan) if over_rows else self._by_time(scan)
            for pair, apart in found:
                for member in scan.members:
                    if _is_within(apart, plan, member):
                        pairs[member.query].append(pair)
        return {query: sorted(found, key=lambda pair: pair.later)
                for query, found in pairs.items()}

    def panes(self, job: ProbeJob, plan: Plan) -> list[tuple[int, int]]:
        """The times of the rows of each pair that window aggregates take, the earlier one first."""
        branch = plan.branch(job.members[0])
        return [(min(pair.left.time, pair.right.time), pair.later)
                for scan in job.scans for pair, apart in self._by_time(scan)
                if branch.selected == branch.where or _is_within(apart, plan, job.members[0])]

    def oldest(self, job: ProbeJob, plan: Plan) -> tuple[int, ...]:
        """By side, the time of the oldest row that rows after a probe over windows of rows meet."""
        join = plan.join(job.join)
        if not join.rows or not job.scans:
            return ()
        scan = job.scans[0]
        sides = (_before(self._rows(side.window), scan.until) for side in scan.sides)
        return tuple(rows[-join.span].time if len(rows) >= join.span else EARLIEST
                     for rows in sides)

    def _over_rows(self, scan: ProbeScan) -> Iterator[tuple[JoinedPair, int]]:
        """Pairs, and how many rows of the earlier one's stream lie between their rows."""
        lefts, rights = (_before(self._rows(side.window), scan.until)
                         for side in scan.sides)
        for left in lefts:
            for right in rights:
                pair = JoinedPair(left, right)
                apart = [_between(others, one) for others, one in (
                    ([row for row in rights if row.time <= left.time], right),
                    ([row for row in lefts if row.time <= right.time], left)) if one in others]
                if (left.key == right.key and scan.since <= pair.later
                        and scan.nearest <= min(apart) < scan.farthest):
                    yield pair, min(apart)

    def _by_time(self, scan: ProbeScan) -> Iterator[tuple[JoinedPair, int]]:
        """Pairs, and how far apart their times are."""
        one, other = scan.sides
        fresh = [(left, right) for left in self._rows(one.fresh)
                 for right in self._rows(other.window) if right.time <= left.time]
        fresh += [(left, right) for right in self._rows(other.fresh)
                  for left in self._rows(one.window) if left.time < right.time]
        for left, right in fresh:
            pair = JoinedPair(left, right)
            apart = abs(left.time - right.time)
            if (left.key == right.key and scan.since <= pair.later < scan.until
                    and scan.nearest <= apart < scan.farthest):
                yield pair, right.time - left.time

    def _rows(self, blocks: Iterable[Block]) -> list[JoinRow]:
        return [row for block in blocks for row in self.blocks[block.stream, block.number]]


def _is_within(apart: int, plan: Plan, member: Member) -> bool:
    join = plan.branch(member).join
    assert join is not None
    return join.lower <= apart <= join.upper


def _before(rows: Iterable[JoinRow], until: int) -> list[JoinRow]:
    """The rows before a time, in the order in which windows of rows count them."""
    return sorted((row for row in rows if row.time < until),
                  key=lambda row: (row.time, row.number))


def _between(rows: Sequence[JoinRow], one: JoinRow) -> int:
    """How many of these rows come after one of them."""
    return len(rows) - 1 - rows.index(one)
