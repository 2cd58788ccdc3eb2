"""Which answers are written together: few jobs, whatever the number of queries and folders.

A *dataset* is a folder that one or more queries deliver to. Answers whose files look alike are
written by one job even when they go to many folders. Each sink chooses one of the ways below.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from penstock.errors import PlanError
from penstock.model import Field, Query, name_key
from penstock.plan import Member, Plan
from penstock.planning.outputs import dataset

QUERY = "query"
"""The column that names a row's query, if several queries share a dataset."""
Key = TypeVar("Key")
Split = Callable[[Plan, Sequence[Member]], Iterable["WriteJob"]]
"""How a sink divides its members into write jobs."""


@dataclass(frozen=True, slots=True)
class WriteJob:
    """Answers that one sink takes in one piece."""

    kind: str
    """The kind of the sink."""
    members: tuple[Member, ...]
    format: str = ""
    """The format of files: parquet, csv or json."""
    folders: tuple[str, ...] = ()
    """Where the files go; one folder for all members, or one per query."""
    homes: tuple[int, ...] = ()
    """By member, the number of the folder that its rows go to."""
    shared: bool = False
    """Whether the rows carry the name of their query."""
    columns: tuple[Field, ...] = ()
    """The columns of every file in a shared folder, whichever of its queries a job is for."""
    target: str = ""
    """What the query names after the kind, if the job is for one query."""
    place: int = 0
    """Of a query's sinks of this kind, the number of the one that it delivers to."""

    def without(self, queries: Collection[str]) -> WriteJob | None:
        """The same without the members of some queries; None if no member is left."""
        if not queries:
            return self
        left = [number for number, member in enumerate(self.members)
                if member.query not in queries]
        return replace(self, members=tuple(self.members[number] for number in left),
                       homes=tuple(self.homes[number] for number in left if self.homes)
                       ) if left else None


def write_jobs(
    plan: Plan, members: Sequence[Member], splits: Mapping[str, Split]
) -> tuple[WriteJob, ...]:
    """The write jobs of some members; ``splits`` says how each kind of sink divides them.

    They come in the order of their first members. A query with several sinks is divided once for
    each. The split of a kind is told of the query as if it had that sink alone, so that no sink
    knows of the others.
    """
    sinks: dict[tuple[str, int], list[Member]] = {}
    for member in members:
        seen = Counter[str]()
        for sink in plan.query(member.query).sinks:
            sinks.setdefault((sink.kind, seen[sink.kind]), []).append(member)
            seen[sink.kind] += 1
    found = [replace(job, place=place) for (kind, place), some in sinks.items()
             for job in splits[kind](_with_one_sink(plan, some, kind, place), some)]
    order = {member: number for number, member in enumerate(members)}
    return tuple(sorted(found, key=lambda job: order[job.members[0]]))


def _with_one_sink(plan: Plan, members: Sequence[Member], kind: str, place: int) -> Plan:
    """The plan in which the queries of these members have but this one of their sinks."""
    mine = {member.query for member in members}
    if not any(plan.query(name).also for name in mine):
        return plan
    return replace(plan, queries=tuple(
        [one for one in query.by_sink if one.sink.kind == kind][place]
        if query.name in mine else query for query in plan.queries))


# --- ways to divide ------------------------------------------------------------------------------


def all_together(plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
    """One write job for all."""
    return [WriteJob(_sink_kind(plan, members), tuple(members))]


def query_by_query(plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
    """One write job for each query."""
    kind = _sink_kind(plan, members)
    for query, some in _groups(members, lambda member: member.query).items():
        yield WriteJob(kind, some, target=plan.query(query).sink.target or "")


def folder_by_folder(
    plan: Plan, members: Sequence[Member], shared: Mapping[str, tuple[Field, ...]],
    alone: Mapping[str, bool],
) -> Iterable[WriteJob]:
    """A job for each shared folder, and one for all other queries with the same columns.

    ``shared`` has the folders that queries share, with the columns of every file in them. ``alone``
    says whether a folder lies on another device than the staging folder. Then its files wait in the
    folder itself, and it needs a job of its own.
    """
    kind = _sink_kind(plan, members)

    def looks(member: Member) -> tuple[object, ...]:
        query = plan.query(member.query)
        folder = query.sink.folder
        if folder in shared:
            return (folder,)
        return query.branches[0].outputs, folder if alone.get(folder) else ""

    for some in _groups(members, looks).values():
        folders = [plan.query(member.query).sink.folder for member in some]
        numbers = {folder: number for number, folder in enumerate(dict.fromkeys(folders))}
        homes = tuple(numbers[folder] for folder in folders)
        columns = shared.get(folders[0])
        yield WriteJob(kind, some, kind, tuple(numbers), homes, columns is not None, columns or ())


def columns_by_columns(
    plan: Plan, members: Sequence[Member], results: str
) -> Iterable[WriteJob]:
    """Few jobs for queries that name no folder: one for all whose columns do not conflict.

    Each such set of columns has a folder of Parquet files below ``results``.
    """
    kind = _sink_kind(plan, members)
    datasets: list[dict[str, str]] = []
    groups = _groups(members, lambda member: _dataset_of(datasets, plan.query(member.query)))
    for number, some in groups.items():
        folder = f"{results}/{_digest(datasets[number])}"
        yield WriteJob(kind, some, "parquet", (folder,), (0,) * len(some), shared=True)


def _sink_kind(plan: Plan, members: Sequence[Member]) -> str:
    return plan.query(members[0].query).sink.kind


def _groups(
    members: Sequence[Member], key: Callable[[Member], Key]
) -> dict[Key, tuple[Member, ...]]:
    groups: dict[Key, list[Member]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return {key: tuple(group) for key, group in groups.items()}


def _dataset_of(datasets: list[dict[str, str]], query: Query) -> int:
    """The number of the first dataset whose columns do not conflict with the query's."""
    mine = {name_key(o.name): str(o.expression.type) for o in query.branches[0].select}
    for number, columns in enumerate(datasets):
        if all(columns.get(name, kind) == kind for name, kind in mine.items()):
            columns.update(mine)
            return number
    datasets.append(mine)
    return len(datasets) - 1


def _digest(columns: dict[str, str]) -> str:
    text = repr(sorted(columns.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- queries that share a folder -----------------------------------------------------------------


def shared_folders(queries: Sequence[Query]) -> set[str]:
    """The folders that more than one query delivers to."""
    seen: set[str] = set()
    shared: set[str] = set()
    for folder in (query.sink.folder for query in queries if query.sink.folder):
        (shared if folder in seen else seen).add(folder)
    return shared


def check_shared(queries: Sequence[Query]) -> dict[str, str]:
    """Queries that cannot share the folder they name, and why.

    One with several sinks comes once for each, with this sink alone.
    """
    shared = shared_folders(queries)
    faults: dict[str, str] = {}
    others: dict[str, dict[object, Query]] = {}
    named: set[tuple[str, str]] = set()
    for query in queries:
        if query.sink.folder and (query.name, query.sink.folder) in named:
            faults[query.name] = f"two of its sinks are one folder, {query.sink.folder}"
            continue
        named.add((query.name, query.sink.folder))
        if query.sink.target in shared:
            # Of the queries that look alike, one stands for all: there may be a thousand.
            there = others.setdefault(query.sink.target or "", {})
            looks = query.sink.kind, tuple(b.outputs for b in query.branches)
            fault = "" if looks in there else _clash(query, list(there.values()))
            if fault:
                faults[query.name] = fault
            else:
                there.setdefault(looks, query)
    return faults


def _clash(query: Query, others: Sequence[Query]) -> str:
    """Why a query does not fit in with those that already write to its folder."""
    if any(name_key(output.name) == QUERY for output in query.branches[0].select):
        return (f"a folder that queries share has a column '{QUERY}' of its own; give yours "
                "another name with AS")
    for other in others[:1]:
        if other.sink.kind != query.sink.kind:
            return (f"{query.sink.target} is written as {other.sink.kind} by query {other.name} "
                    f"and cannot be {query.sink.kind} too")
    try:
        dataset(branch for one in (*others, query) for branch in one.branches)
    except PlanError as error:
        return f"it cannot share {query.sink.target}: {error}"
    return ""
