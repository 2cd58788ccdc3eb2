"""Window aggregates on Spark: rows into panes, and panes into answers.

A *synopsis* holds the panes of a group of queries (see `penstock.synopses`). It lives in the
driver's memory and nowhere else: after a crash, or when a longer window joins, it is made anew from
the blocks of the spool.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.engine.instructions import Refresh, Run
from penstock.model import BIGINT, Aggregate, Branch, Expression
from penstock.plan import Group, Member, Plan
from penstock.spark.compile import Summarised
from penstock.spark.held import Held
from penstock.spark.panes import Group as PaneGroup
from penstock.spark.panes import PaneJob
from penstock.synopses import Family, Question, Synopsis, gathered

ROWS = Aggregate("COUNT", (), BIGINT)
"""How many rows a group of a window has: what tells that it has any."""
_COUNTING = ("scalars", "frequencies")
"""The families whose first measure counts rows."""


def families_of(group: Group) -> tuple[Family, ...]:
    """What is kept of a group's rows; the rows themselves are always counted by one family."""
    needed = gathered(group.aggregates)
    if any(family.kind in _COUNTING for family in needed):
        return needed
    return gathered([ROWS, *group.aggregates])


@dataclass(slots=True)
class _Kept:
    """A group's synopsis."""

    group: Group
    families: tuple[Family, ...]
    synopsis: Synopsis
    had: set[int] = field(default_factory=set)
    """The blocks that are in it."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def covers(self, group: Group) -> bool:
        """Whether it serves the group as it is now."""
        known = {family.name: set(family.measures) for family in self.families}
        return (self.group.pane == group.pane and self.synopsis.span >= group.span
                and all(set(f.measures) <= known.get(f.name, set()) for f in families_of(group)))


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run has put into panes."""

    panes: dict[str, tuple[int, ...]]
    """By group: the panes that got rows."""
    rows: dict[str, int]
    """By query: rows that went into panes."""


class Windows:
    """The synopses of an application's window aggregates."""

    def __init__(self, spark: SparkSession) -> None:
        """There is none yet."""
        self._spark = spark
        self._kept: dict[str, _Kept] = {}
        self._latest: PaneJob | None = None

    def adopt(self, plan: Plan) -> list[Group]:
        """Keep the synopses of this plan's groups; those that begin without panes are returned."""
        known = {group.id: group for group in plan.groups}
        self._kept = {id: kept for id, kept in self._kept.items() if id in known}
        fresh = [group for group in plan.groups
                 if group.id not in self._kept or not self._kept[group.id].covers(group)]
        for group in fresh:
            families = families_of(group)
            types = [key.type for key in group.keys]
            self._kept[group.id] = _Kept(group, families, Synopsis(types, families, group.span))
        return fresh

    # --- rows into panes ---------------------------------------------------------------------

    def take(self, run: Run, plan: Plan, rows: Summarised) -> Taken:
        """Put the rows of a run into the panes of its members' groups, in one Spark job."""
        riding = {member.query for member in run.members}
        groups = [group for group in plan.groups_on(run.path)
                  if not riding.isdisjoint(member.query for member in group.members)]
        blocks = {block.number for block in run.blocks}
        wanted = [kept for group in groups if (kept := self._kept.get(group.id)) is not None
                  and blocks.isdisjoint(kept.had) and rows.has(kept.group)]
        panes: dict[str, tuple[int, ...]] = {group.id: () for group in groups}
        counted: dict[str, int] = {}
        if wanted:
            asked = [rows.group(kept.group, kept.families) for kept in wanted]
            found = self._job(tuple(asked), rows.time).tables(rows.frame)
            for kept, known, tables in zip(wanted, asked, found, strict=True):
                own = {f: tables[at] for f, at in zip(kept.families, known.families, strict=True)}
                with kept.lock:
                    kept.synopsis.add(own)
                    kept.had |= blocks
                panes[kept.group.id] = _filled(own)
                counted |= dict.fromkeys(
                    (m.query for m in kept.group.members if m.query in riding), _counted(own))
        return Taken(panes, counted)

    def _job(self, groups: tuple[PaneGroup, ...], time: Expression) -> PaneJob:
        """The pane job of these groups: the latest serves as long as the plan is the same."""
        job = self._latest
        if job is None or (job.groups, job.time) != (groups, time):
            job = self._latest = PaneJob(groups, time)
        return job

    def trim(self, group: str, before: int) -> None:
        """Drop panes that no answer will look at."""
        kept = self._kept.get(group)
        if kept is not None:
            with kept.lock:
                kept.synopsis.forget(before)

    # --- panes into answers ------------------------------------------------------------------

    def answers(self, refresh: Refresh, plan: Plan) -> tuple[Held, float]:
        """The answers of a refresh, and the seconds it took to make them."""
        began = time.perf_counter()
        branches = {member: plan.branch(member) for member in refresh.members}
        held = Held(self._spark, branches)
        kept = self._kept[refresh.group]
        asks = _asked(branches)
        with kept.lock:
            for scan in refresh.scans:
                # Queries that ask the same of the same window get the same answer.
                wanted = [(length, asks[query]) for query, length in scan.queries]
                questions = {key: Question(key[0], key[1].aggregates) for key in wanted}
                found = dict(zip(questions, kept.synopsis.scan(
                    scan.end, list(questions.values())), strict=True))
                end = scan.end * refresh.pane
                for (query, length), key in zip(scan.queries, wanted, strict=True):
                    held.add(Member(query, 0), end - length * refresh.pane, end, found[key])
        return held, time.perf_counter() - began


@dataclass(frozen=True, eq=False, slots=True)
class _Asked:
    """What some queries ask: one object for all of them, as equal aggregates are dear to find."""

    aggregates: tuple[Aggregate, ...]


def _asked(branches: Mapping[Member, Branch]) -> dict[str, _Asked]:
    """What each query asks."""
    known: dict[tuple[Aggregate, ...], _Asked] = {}
    asked = {}
    for member, branch in branches.items():
        assert branch.grouping is not None
        aggregates = branch.grouping.aggregates or (ROWS,)
        asked[member.query] = known.setdefault(aggregates, _Asked(aggregates))
    return asked


def _filled(tables: dict[Family, pa.Table]) -> tuple[int, ...]:
    """The panes that some rows belong to."""
    counting = next(table for family, table in tables.items() if family.kind in _COUNTING)
    return tuple(sorted(counting["pane"].unique().to_pylist()))


def _counted(tables: dict[Family, pa.Table]) -> int:
    counting = next(table for family, table in tables.items() if family.kind in _COUNTING)
    return int(pc.sum(counting["m0"]).as_py() or 0)
