"""The back-fill of panes: which blocks may still bring rows to a group, and which it re-reads.

A rebuilt synopsis merges every block that it needs exactly once. A block that still waits will come
to it like any other. An active job was begun for the previous synopsis, so its blocks are read
again when it has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.queue_entries import AGAIN, QueueEntry
from penstock.engine.paths.stage_queues import StageQueues
from penstock.model import Block
from penstock.plan import Group, Member, Plan


@dataclass(frozen=True, slots=True)
class PaneBackfill:
    """Knows the queues and the active jobs."""

    waiting: StageQueues
    running: dict[int, ActiveJob]

    def unfinished(self, group: Group) -> list[Block]:
        """The blocks that may still bring rows for a group's panes.

        A job may bring them although all its riders have left. The blocks of a job that began for
        an earlier synopsis are read again.
        """
        members = set(group.members)
        entries = [entry for entry in self.waiting.before(group.path)
                   if not members.isdisjoint(entry.members)]
        for running in self._under_way(group):
            owed = group.id in running.orphaned or group.id in running.stale
            entries += [entry for entry in running.entries
                        if owed or not members.isdisjoint(entry.members)]
        return [block for entry in entries for block in entry.blocks]

    def begin(self, group: Group, numbers: Iterable[int]) -> None:
        """A group's synopsis is empty, and needs these blocks beside new ones."""
        for running in self._under_way(group):
            running.stale[group.id] = None
        self.waiting.begin_anew(group.path)  # intermediate rows may lack a new column
        blocks = (self.waiting.blocks.find(group.reads, number) for number in numbers)
        self._again(group, (block for block in blocks if block is not None))

    def finish(self, plan: Plan, running: ActiveJob, failed: bool = False) -> None:
        """A job has ended: groups that it did not serve read its blocks again."""
        lost = {**running.stale, **(running.orphaned if failed else {})}
        for group in plan.groups:
            if group.id in lost:
                self._again(group, (b for entry in running.entries for b in entry.blocks))

    def leave(self, group: Group, query: str, staying: Iterable[Member]) -> None:
        """A query leaves: blocks that only it had still to see also go to the others' panes."""
        others = [member for member in staying if member in group.members]
        if not others:
            return
        for running in self._under_way(group):
            if all(_is_alone(entry, query, others) for entry in running.entries):
                running.orphaned[group.id] = None
        for entry in list(self.waiting.before(group.path)):
            if _is_alone(entry, query, others):
                for block in entry.blocks:
                    self.waiting.add(block, others, lane=AGAIN)

    def _under_way(self, group: Group) -> Iterator[ActiveJob]:
        """The active jobs that make panes for a group.

        A group that computes more since a query joined has another path, and a job may have begun
        on the previous one.
        """
        members = set(group.members)
        for running in self.running.values():
            known = group.id in running.stale or group.id in running.orphaned
            if running.path.id == group.path or known or (running.path.end == "panes" and any(
                    not members.isdisjoint(entry.members) for entry in running.entries)):
                yield running

    def _again(self, group: Group, blocks: Iterable[Block]) -> None:
        coming = {block.number for block in self.unfinished(group)}
        for block in blocks:
            if block.rows and block.number not in coming:
                self.waiting.add(block, group.members, lane=AGAIN)


def _is_alone(entry: QueueEntry, query: str, others: Iterable[Member]) -> bool:
    """Whether no other query of a group waits for an entry."""
    return (any(member.query == query for member in entry.members)
            and not any(member in entry.members for member in others))
