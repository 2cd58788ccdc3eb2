"""Window joins in virtual time: rows are a time and a key, and results have equal keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from penstock.engine import ProbeJob, ProbeScan
from penstock.events import kinds as ev
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
class JoinedRows:
    """A result as a query got it: a pair, or a row of each of more streams."""

    rows: tuple[JoinRow, ...]
    """In the order of the streams."""

    @property
    def left(self) -> JoinRow:
        """The row of the first stream."""
        return self.rows[0]

    @property
    def right(self) -> JoinRow:
        """The row of the last stream."""
        return self.rows[-1]

    @property
    def earlier(self) -> int:
        """The time of the earliest of the rows."""
        return min(row.time for row in self.rows)

    @property
    def later(self) -> int:
        """The time of the latest of the rows."""
        return max(row.time for row in self.rows)


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

    def found(self, job: ProbeJob, plan: Plan) -> dict[str, list[JoinedRows]]:
        """By query the pairs that a probe delivers, in the order of their later rows."""
        pairs: dict[str, list[JoinedRows]] = {member.query: [] for member in job.members}
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
        return [(pair.earlier, pair.later)
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

    def _over_rows(self, scan: ProbeScan) -> Iterator[tuple[JoinedRows, int]]:
        """Pairs, and how many rows of the earlier one's stream lie between their rows."""
        lefts, rights = (_before(self._rows(side.window), scan.until)
                         for side in scan.sides)
        for left in lefts:
            for right in rights:
                pair = JoinedRows((left, right))
                apart = [_between(others, one) for others, one in (
                    ([row for row in rights if row.time <= left.time], right),
                    ([row for row in lefts if row.time <= right.time], left)) if one in others]
                if (left.key == right.key and scan.since <= pair.later
                        and scan.nearest <= min(apart) < scan.farthest):
                    yield pair, min(apart)

    def _by_time(self, scan: ProbeScan) -> Iterator[tuple[JoinedRows, int]]:
        """Results, and how far apart their rows are: of pairs with a sign.

        The latest row of a result is fresh; among rows with the same time that is the first.
        """
        fresh = [set(self._rows(side.fresh)) for side in scan.sides]
        windows = [self._rows(side.window) for side in scan.sides]
        around = [[*window, *(row for row in own if row not in window)]
                  for window, own in zip(windows, fresh, strict=True)]
        for key in dict.fromkeys(row.key for row in around[0]):
            for rows in product(*([row for row in some if row.key == key] for some in around)):
                found = JoinedRows(rows)
                latest = next(n for n, row in enumerate(rows) if row.time == found.later)
                known = rows[latest] in fresh[latest] and all(
                    row in windows[n] for n, row in enumerate(rows) if n != latest)
                apart = found.later - found.earlier
                if (known and scan.since <= found.later < scan.until
                        and scan.nearest <= apart < scan.farthest):
                    is_pair = len(rows) == 2
                    yield found, rows[1].time - rows[0].time if is_pair else apart

    def profiles(self, job: ProbeJob, plan: Plan) -> tuple[ev.ProbeProfile, ...]:
        """How the fresh keys of each stream of a multiway join fare; all dropped are profiled."""
        return tuple(profile for scan in job.scans if job.orders
                     for profile in self._profiles(job, scan))

    def _profiles(self, job: ProbeJob, scan: ProbeScan) -> Iterator[ev.ProbeProfile]:
        """In rounds, which end when nothing is left or every stream has been asked."""
        drops = {stream: found for stream in range(len(scan.sides))
                 if (found := self._dropped(scan, stream))}
        left = {stream: [list(found)] for stream, found in drops.items()}
        rounds = 0
        while rounds < len(scan.sides) - 1 and any(keys[-1] for keys in left.values()):
            for stream, found in drops.items():
                other = job.orders[stream].order[rounds]
                left[stream].append([key for key in left[stream][-1] if other not in found[key]])
            rounds += 1
        for stream, found in drops.items():
            others = [other for other in range(len(scan.sides)) if other != stream]
            patterns = Counter(sum(1 << others.index(other) for other in dropping)
                               for dropping in found.values() if dropping)
            ordered = job.orders[stream]
            yield ev.ProbeProfile(
                stream=stream, version=ordered.version, order=ordered.order,
                probed=tuple(map(len, left[stream][:-1])), left=len(left[stream][-1]),
                seconds=(1.0,) * rounds,
                dropped=tuple(sorted(patterns.items())) if rounds == len(others) else ())

    def _dropped(self, scan: ProbeScan, stream: int) -> dict[int, set[int]]:
        """By key of a stream's fresh rows: the streams that have nothing for them."""
        found: dict[int, list[JoinRow]] = {}
        for row in self._rows(scan.sides[stream].fresh):
            if scan.since <= row.time < scan.until:
                found.setdefault(row.key, []).append(row)
        return {key: {other for other in range(len(scan.sides))
                      if other != stream and self._drops(scan, other, rows)}
                for key, rows in sorted(found.items())}

    def _drops(self, scan: ProbeScan, other: int, rows: Sequence[JoinRow]) -> bool:
        """Whether a stream has nothing for fresh rows with a key."""
        first, last = (pick(row.time for row in rows) for pick in (min, max))
        return not any(row.key == rows[0].key and row.time < scan.until
                       and first - scan.farthest < row.time < last + scan.farthest
                       for row in self._rows(scan.sides[other].window))

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
