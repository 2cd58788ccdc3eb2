"""Window joins in virtual time: rows are a time and a key, and pairs have equal keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from penstock.engine import ProbeJob, ProbeScan
from penstock.model import Block
from penstock.plan import Member, Plan


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
        for scan in job.scans:
            for pair in self._pairs(scan):
                for member in scan.members:
                    if _is_within(pair, plan, member):
                        pairs[member.query].append(pair)
        return {query: sorted(found, key=lambda pair: pair.later)
                for query, found in pairs.items()}

    def panes(self, job: ProbeJob, plan: Plan) -> list[tuple[int, int]]:
        """The times of the rows of each pair that window aggregates take, the earlier one first."""
        branch = plan.branch(job.members[0])
        return [(min(pair.left.time, pair.right.time), pair.later)
                for scan in job.scans for pair in self._pairs(scan)
                if branch.selected == branch.where or _is_within(pair, plan, job.members[0])]

    def _pairs(self, scan: ProbeScan) -> Iterator[JoinedPair]:
        fresh = [(left, right) for left in self._rows(scan.left.fresh)
                 for right in self._rows(scan.right.window) if right.time <= left.time]
        fresh += [(left, right) for right in self._rows(scan.right.fresh)
                  for left in self._rows(scan.left.window) if left.time < right.time]
        for left, right in fresh:
            pair = JoinedPair(left, right)
            apart = abs(left.time - right.time)
            if (left.key == right.key and scan.since <= pair.later < scan.until
                    and scan.nearest <= apart < scan.farthest):
                yield pair

    def _rows(self, blocks: Iterable[Block]) -> list[JoinRow]:
        return [row for block in blocks for row in self.blocks[block.stream, block.number]]


def _is_within(pair: JoinedPair, plan: Plan, member: Member) -> bool:
    join = plan.branch(member).join
    assert join is not None
    return join.lower <= pair.right.time - pair.left.time <= join.upper
