"""Window aggregates on Spark: rows into panes, and panes into answers.

A *synopsis* holds the panes of a group of queries (see `penstock.synopses`). It lives in the
driver's memory, or on the executors if it is too large for that, and nowhere else. After a crash,
or when a query with a longer window joins, it is rebuilt from the blocks of the spool.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from penstock.engine.aggregates.coverage import COUNTING, Coverage, families_of, to_rebuild
from penstock.engine.instructions import ProbeJob, RefreshJob, SegmentJob, Trim
from penstock.errors import RunError
from penstock.model import Aggregate, Block, Branch, Expression, Query
from penstock.plan import EARLIEST, Group, Member, Plan
from penstock.spark.aggregates.driver_answers import DriverAnswers, asked_of, kept_of, session_of
from penstock.spark.aggregates.executor_answers import ExecutorAnswers
from penstock.spark.aggregates.executor_panes import ExecutorPanes, rows_per_pane
from penstock.spark.aggregates.large_groups import LargeGroups
from penstock.spark.aggregates.pane_groupings import CELL, PANE, PaneGroup
from penstock.spark.aggregates.pane_job import FEW_ROWS, SPARE, PaneJob
from penstock.spark.compile.compiler import Summarised
from penstock.synopses import Family, Question, Synopsis
from penstock.synopses.pair_panes import later_of

Tables: TypeAlias = Mapping[Family, pa.Table]


@dataclass(slots=True)
class GroupSynopsis(Coverage):
    """The synopsis of one group, in the driver or on the executors, and the blocks in it."""

    near: Synopsis
    far: ExecutorPanes | None = None
    """The panes on the executors, if they are not in the driver."""
    had: dict[int, dict[int, int]] = field(default_factory=dict)
    """By block in it, the panes that got its rows, and how many rows each got."""
    pairs: int | None = None
    """Over a join: the pairs that the last probe brought. ``had`` is then by probe, not by block.
    """
    job: PaneJob | None = None
    """Over a join: what makes its panes."""
    begun: bool = False
    """Whether the core knows of it. Until then, the core's orders are about its predecessor."""
    size: int = 0
    """The bytes it took when they were last measured."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def parts(self, here: Mapping[str, GroupSynopsis]) -> list[GroupSynopsis]:
        """The synopses that its panes can be taken from, if all are here and hold what it needs."""
        found = [here[id] for id in self.group.parts if id in here]
        whole = len(found) == len(self.group.parts) and all(
            self.group.pane % part.group.pane == 0 and part.keeps(self.families)
            for part in found)
        return found if whole else []

    def trim(self, trim: Trim) -> None:
        """Drop panes that no answer will read."""
        with self.lock:
            if trim.settled is not None:
                self.near.settle(trim.settled)
            self.first = max(self.first, trim.before if trim.settled is None else trim.settled)
            (self.far or self.near).forget(trim.before)

    def take(self, blocks: Sequence[Block], found: Mapping[int, int]) -> None:
        """Note that these blocks are in it, and how many rows each pane got from them together.

        A block counts for no more rows than it has, so that the books balance if a job is retried
        with some of the blocks. Rows that joins have added count for the last block.
        """
        left = dict(found)
        for block in blocks:
            timely = block.rows - block.late
            room = timely if block is not blocks[-1] else sum(left.values())
            mine = dict.fromkeys(left, 0)
            for pane, rows in left.items():
                mine[pane] = min(rows, room)
                room -= mine[pane]
                left[pane] -= mine[pane]
            self.had[block.number] = mine

    def refuse_twice(self, blocks: Iterable[int]) -> None:
        """Refuse a train that holds blocks already in it: retries go block by block."""
        twice = [block for block in blocks if block in self.had]
        if twice:
            raise RunError(f"the rows of block {twice[0]} are in its panes already")

    def brought(self, blocks: Iterable[int]) -> Counter[int]:
        """The rows that some of its blocks have brought to each pane."""
        found: Counter[int] = Counter()
        for block in blocks:
            found.update(self.had[block])
        return found

    def close(self) -> None:
        """Release everything."""
        if self.far is not None:
            self.far.close()


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows that came too late: their query has already answered their windows."""

    group: Group
    before: int
    """The time from which on future windows hold rows, in microseconds."""
    rows: int


@dataclass(slots=True)
class PaneCounts:
    """How many rows a job has put into panes, and how many came too late."""

    panes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """By group, the panes that got rows."""
    rows: dict[str, int] = field(default_factory=dict)
    """By query, rows that went into panes of windows still to be answered."""
    late: dict[str, LateRows] = field(default_factory=dict)
    """By query, rows whose windows have all been answered, if there are any."""
    missed: dict[str, int] = field(default_factory=dict)
    """By query, the late rows, and those that came too late for all windows."""
    jobs: int = 0
    outgrown: list[Group] = field(default_factory=list)
    """Groups that are too large for the driver."""
    left_out: list[str] = field(default_factory=list)
    """Those of them that have taken in nothing."""

    @property
    def passed(self) -> Counter[str]:
        """By query, its rows in panes plus the late ones."""
        return Counter(self.rows) + Counter(self.missed)

    def count(self, group: Group, found: Mapping[int, int], reach: Mapping[str, int]) -> None:
        """Count the rows of a group that went into each pane.

        ``reach`` has, by query, the time from which on its future windows hold rows.
        """
        self.panes[group.id] = tuple(sorted(found))
        whole = sum(found.values())
        for query in (member.query for member in group.members):
            first = reach[query] // group.pane if query in reach else EARLIEST
            late = sum(rows for pane, rows in found.items() if pane < first)
            self.rows[query] = whole - late
            if late:
                self.late[query] = LateRows(group, first * group.pane, late)


class SynopsisStore:
    """The synopses of an application's window aggregates.

    Together they take about ``most`` bytes of the driver's memory. A synopsis that would exceed
    that moves to the executors. One that is known to be large begins there.
    """

    def __init__(self, spark: SparkSession, most: int, large: LargeGroups) -> None:
        """Begin without any synopsis."""
        self._spark, self._most, self._large = spark, most, large
        self._kept: dict[str, GroupSynopsis] = {}
        self._latest: PaneJob | None = None
        self._reach: dict[str, int] = {}
        """By query, the time before which rows are in no window that it has yet to answer."""

    def adopt(self, plan: Plan, needs: Callable[[Group], int | None]) -> list[Group]:
        """Keep the synopses of this plan's groups; return the groups that begin without panes.

        ``needs(group)`` is the oldest pane that newly joined queries read.
        """
        known = {group.id: group for group in plan.groups}
        asking = {member.query for group in plan.groups for member in group.members}
        self._reach = {query: time for query, time in self._reach.items() if query in asking}
        for id in [id for id in self._kept if id not in known]:
            self._kept.pop(id).close()
        fresh = to_rebuild(plan, self._kept, needs)
        for group in plan.groups:
            if group in fresh:
                before = self._kept.get(group.id)
                self.begin(group, far=before is not None and before.far is not None)
            else:
                self._kept[group.id].group = group
        return fresh

    def begin(self, group: Group, far: bool) -> None:
        """Begin a group's synopsis without panes, on the executors if ``far``."""
        if far:
            self._large.add(group.id, self._most)
        if group.id in self._kept:
            self._kept[group.id].close()
        families = families_of(group)
        near = Synopsis([key.type for key in group.keys], families, group.span,
                        paired=group.paired)
        known = not group.paired and self._large.has(group.id, self._most)
        panes = ExecutorPanes(self._spark, group, families) if known else None
        self._kept[group.id] = GroupSynopsis(group, families, near, panes)

    def join(self, query: Query, since: int | None, drained: bool) -> None:
        """Let a query answer windows that end after ``since``; rows of earlier ones are late."""
        self._reach.pop(query.name, None)
        window = query.branches[0].window
        if window is not None and since is not None:
            window = replace(window, exactly=window.exactly or drained)
            self._reach[query.name] = window.reaches_back(since)

    def of(self, group: str) -> GroupSynopsis:
        """A group's synopsis as it is now; it may be another by the time it is used."""
        return self._kept[group]

    @property
    def now(self) -> dict[str, GroupSynopsis]:
        """All synopses as they are now."""
        return dict(self._kept)

    def trim(self, trim: Trim) -> None:
        """Drop panes that no answer will read."""
        if trim.group in self._kept and self._kept[trim.group].begun:
            self._kept[trim.group].trim(trim)

    def reads(self, stream: str, block: int) -> bool:
        """Whether panes on the executors are made from a block: Spark rebuilds lost ones."""
        return any(kept.far is not None and kept.group.reads == stream and kept.far.reads(block)
                   for kept in self._kept.values())

    def find(self, group: str) -> GroupSynopsis | None:
        """A group's synopsis as it is now, if there is one."""
        return self._kept.get(group)

    @property
    def nbytes(self) -> int:
        """Bytes that they take in the driver; one in use counts as it was last measured."""
        known = list(self._kept.values())
        for kept in known:
            if kept.lock.acquire(blocking=False):
                kept.size = kept.near.nbytes
                kept.lock.release()
        return sum(kept.size for kept in known)

    def close(self) -> None:
        """Release all synopses."""
        for kept in self._kept.values():
            kept.close()

    # --- rows into panes ---------------------------------------------------------------------

    def take(
        self, job: SegmentJob, plan: Plan, rows: Summarised, synopses: Mapping[str, GroupSynopsis]
    ) -> PaneCounts:
        """Put the rows of a job into the panes of its members' groups, as it was ordered.

        One Spark job makes the panes of all groups that the driver holds; a second is needed if
        only Spark can make some of them. Each group that stays on the executors has a job of its
        own. Blocks of a job that failed after this call are not taken in twice.
        """
        riding = {member.query for member in job.members}
        groups = [group for group in plan.groups_on(job.path)
                  if not riding.isdisjoint(member.query for member in group.members)]
        blocks = [block.number for block in job.blocks]
        taken = PaneCounts({group.id: () for group in groups})
        wanted: list[GroupSynopsis] = []
        for group in groups:
            kept = synopses.get(group.id)
            if kept is not None and kept.had.keys() >= set(blocks):
                taken.count(group, kept.brought(blocks), self._reach)
            elif kept is not None:
                kept.refuse_twice(blocks)
                wanted.append(kept)
        read = sum(block.rows for block in job.blocks)
        found = self._take_near([kept for kept in wanted if kept.far is None], rows, read, taken)
        for kept in wanted:
            if kept.far is not None:
                taken.jobs += 1
                with kept.lock:
                    found[kept.group.id] = kept.far.add(rows, blocks)
            taken.count(plan.group(kept.group.id), found[kept.group.id], self._reach)
            if kept.group.id not in taken.left_out:
                kept.take(job.blocks, found[kept.group.id])
        if not wanted:
            rows.compute()
        taken.rows = {query: rows for query, rows in taken.rows.items() if query in riding}
        taken.late = {query: late for query, late in taken.late.items() if query in riding}
        alone = Counter({query: late.rows for query, late in taken.late.items()})
        taken.missed = dict(alone + Counter(job.late))
        return taken

    def take_pairs(
        self, job: ProbeJob, rows: Summarised, kept: GroupSynopsis
    ) -> tuple[dict[int, int], int]:
        """Put the pairs of a probe into the panes of their group.

        Return how many each pane of their later rows got, and how many Spark jobs that took. A
        probe that failed after this call is not taken in twice.
        """
        if job.outer in kept.had:
            return kept.had[job.outer], 0
        number = FEW_ROWS + 1 if kept.pairs is None else SPARE * kept.pairs
        made = kept.job or PaneJob([rows.group(kept.group, kept.families)], rows.time)
        # Where Python's values stand in the frame depends on the plan of the job.
        kept.job = made if rows.python is None else None
        (tables,) = made.tables(rows.frame, number)
        size = self.nbytes + sum(table.nbytes for table in tables.values())
        if size > self._most:
            raise RunError(f"the panes of {kept.group.id} do not fit into the driver; SET synopses "
                           "gives them more memory, and a longer SLIDE needs less")
        with kept.lock:
            kept.near.add(tables)
        counted: Counter[int] = Counter()
        for pane, pairs in _counted(tables).items():
            counted[later_of(pane)] += pairs
        kept.had[job.outer], kept.pairs = dict(counted), sum(counted.values())
        return kept.had[job.outer], made.spark_jobs(number)

    def _take_near(
        self, wanted: Sequence[GroupSynopsis], rows: Summarised, read: int, taken: PaneCounts
    ) -> dict[str, dict[int, int]]:
        """Make panes in the driver; return how many of the ``read`` rows each pane got."""
        if not wanted:
            return {}
        here = {kept.group.id: kept for kept in wanted}
        made = {kept.group.id: kept.parts(here) for kept in wanted}
        first = [kept for kept in wanted if not made[kept.group.id]]
        asked = [rows.group(kept.group, kept.families) for kept in first]
        job = self._job(tuple(asked), rows.time)
        if self.nbytes + job.size(read) > self._most:
            large = self._too_large(job, first, rows.frame, taken)
            if large:
                staying = [kept for kept in wanted if kept.group.id not in large]
                return large | self._take_near(staying, rows, read, taken)
        taken.jobs += job.spark_jobs(read)
        tables: dict[str, Tables] = {}
        for kept, known, own in zip(first, asked, job.tables(rows.frame, read), strict=True):
            tables[kept.group.id] = {
                f: own[at] for f, at in zip(kept.families, known.families, strict=True)}
        rows.check()  # before a row counts
        counted: dict[str, dict[int, int]] = {}
        for kept in wanted:
            parts = made[kept.group.id] or [kept]
            mine = merged(kept, [(part, tables[part.group.id]) for part in parts])
            with kept.lock:
                kept.near.add(mine)
            counted[kept.group.id] = _counted(mine)
        if self.nbytes > self._most:
            taken.outgrown.append(max(wanted, key=lambda kept: kept.near.nbytes).group)
        return counted

    def _too_large(
        self, job: PaneJob, wanted: Sequence[GroupSynopsis], frame: DataFrame, taken: PaneCounts
    ) -> dict[str, dict[int, int]]:
        """Find the group whose panes would not fit into the driver; return the rows they get.

        Spark counts the cells before any of them is brought to the driver. The group takes in
        nothing: when it begins on the executors, these blocks are read again.
        """
        taken.jobs += 1
        made = job.frame(frame).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            sizes = job.sizes(made)
            if self.nbytes + sum(sizes) <= self._most:
                return {}
            largest = sizes.index(max(sizes))
            group = wanted[largest].group
            taken.outgrown.append(group)
            taken.left_out.append(group.id)
            return {group.id: rows_per_pane(job, made, largest)}
        finally:
            made.unpersist()

    def _job(self, groups: tuple[PaneGroup, ...], time: Expression) -> PaneJob:
        """The pane job of these groups: the latest serves as long as the plan is the same."""
        job = self._latest
        if job is None or (job.groups, job.time) != (groups, time):
            job = self._latest = PaneJob(groups, time)
        return job

    # --- panes into answers ------------------------------------------------------------------

    def answers(
        self, refresh: RefreshJob, plan: Plan, kept: GroupSynopsis
    ) -> tuple[DriverAnswers | ExecutorAnswers, float]:
        """The answers of a refresh, and the seconds it took to make them."""
        began = time.perf_counter()
        branches = {member: plan.branch(member) for member in refresh.members}
        with kept.lock:
            found = kept.far.answers(refresh, branches) if kept.far is not None else None
            held = found or self._held(refresh, branches, kept.near)
        return held, time.perf_counter() - began

    def _held(
        self, refresh: RefreshJob, branches: Mapping[Member, Branch], synopsis: Synopsis
    ) -> DriverAnswers:
        held = DriverAnswers(self._spark, branches)
        numbers = {member.query: number for number, member in enumerate(branches)}
        questions = _Questions(branches, refresh.pane)
        for scan in refresh.scans:
            wanted = [questions[asking] for asking in scan.queries]
            distinct = {id(question): question for question in wanted}
            tables = synopsis.scan(scan.end, list(distinct.values()))
            found = dict(zip(distinct, tables, strict=True))
            end = scan.end * refresh.pane
            held.add_all([numbers[query] for query, _ in scan.queries],
                         [end - (one.length - one.kept) * refresh.pane for one in wanted],
                         end, [found[id(question)] for question in wanted])
        return held


class _Questions(dict[tuple[str, int], Question]):
    """The question of each query about windows of each length.

    Queries that ask the same of the same window share one question object and so one answer.
    Comparing objects by identity is cheap; comparing aggregates for equality is costly.
    """

    def __init__(self, branches: Mapping[Member, Branch], pane: int) -> None:
        """Begin without questions; each is made when it is first asked for."""
        super().__init__()
        self._sessions = {member.query: session_of(branch, pane)
                          for member, branch in branches.items()}
        self._kept = {member.query: kept_of(branch, pane) for member, branch in branches.items()}
        known: dict[tuple[Aggregate, ...], tuple[Aggregate, ...]] = {}
        self._asks = {member.query: known.setdefault(asks, asks)
                      for member, branch in branches.items() for asks in [asked_of(branch)]}
        self._made: dict[tuple[int, int, int], Question] = {}

    def __missing__(self, asking: tuple[str, int]) -> Question:
        query, length = asking
        asks = self._asks[query]
        session, kept = self._sessions[query], self._kept[query]
        if session is not None:
            return self.setdefault(asking, Question(length, asks, session))
        made = self._made.setdefault((id(asks), length, kept),
                                     Question(length, asks, kept=kept))
        return self.setdefault(asking, made)


def merged(kept: GroupSynopsis, parts: Sequence[tuple[GroupSynopsis, Tables]]) -> Tables:
    """The pane tables of a synopsis, out of those of its parts; cells may occur several times."""
    return {family: pa.concat_tables([_as_of(kept, family, part, tables) for part, tables in parts])
            for family in kept.families}


def _as_of(kept: GroupSynopsis, family: Family, part: GroupSynopsis, tables: Tables) -> pa.Table:
    """A part's table of a family, in terms of the whole: its panes, keys and measures."""
    if part is kept:
        return tables[family]
    own = next(one for one in part.families if one.name == family.name)
    table, ratio = tables[own], kept.group.pane // part.group.pane
    columns = {PANE: pa.array(np.asarray(table[PANE]) // ratio)}
    for number, key in enumerate(kept.group.keys):
        columns[f"k{number}"] = table[f"k{part.group.keys.index(key)}"]
    if family.cell is not None:
        columns[CELL] = table[CELL]
    for number, measure in enumerate(family.measures):
        columns[f"m{number}"] = table[f"m{own.measures.index(measure)}"]
    return pa.table(columns)


def _counted(tables: Tables) -> dict[int, int]:
    """How many rows each pane got."""
    counting = next(table for family, table in tables.items() if family.kind in COUNTING)
    summed = counting.group_by(PANE).aggregate([("m0", "sum")])
    return dict(zip(summed[PANE].to_pylist(), summed["m0_sum"].to_pylist(), strict=True))
