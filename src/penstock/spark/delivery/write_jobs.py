"""Which answers are written together: few jobs, whatever the number of queries and folders.

A *dataset* is a folder that one or more queries deliver to. Answers whose files look alike are
written by one job even when they go to many folders: a *unit*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import PlanError
from penstock.model import FILE_SINKS, Field, Query, name_key
from penstock.plan import Member, Plan
from penstock.planning.outputs import dataset

QUERY = "query"
"""The column that tells whose a row is, where several queries share a dataset."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Answers that one job writes."""

    kind: str
    """parquet csv json, noop, console or callback."""
    members: tuple[Member, ...]
    folders: tuple[str, ...] = ()
    """Where the files go; one for all members, or one per query."""
    homes: tuple[int, ...] = ()
    """Per member the number of the folder that its rows go to."""
    shared: bool = False
    """Whether the rows carry the name of their query."""
    columns: tuple[Field, ...] = ()
    """What every file of a shared folder has, whichever of its queries a run is for."""
    target: str = ""
    """The function to call."""


def shared_folders(queries: Sequence[Query]) -> set[str]:
    """The folders that more than one query delivers to."""
    seen: dict[str, str] = {}
    shared = set()
    for query in queries:
        if query.sink.kind in FILE_SINKS and query.sink.target:
            if query.sink.target in seen:
                shared.add(query.sink.target)
            seen[query.sink.target] = query.name
    return shared


def units(
    plan: Plan, members: Sequence[Member], shared: Mapping[str, tuple[Field, ...]], results: str,
    alone: Mapping[str, bool],
) -> tuple[Unit, ...]:
    """The units of a run.

    ``shared`` has the folders that queries share, with the columns of every file in them;
    ``results`` is the folder of the memory sink; ``alone`` says of each folder whether it lies on
    another device than the staging folder and so needs a job of its own.
    """
    groups: dict[tuple[object, ...], list[Member]] = {}
    kept: list[dict[str, str]] = []
    for member in members:
        query = plan.query(member.query)
        key = (("memory", _place_in(kept, query)) if query.sink.kind == "memory"
               else _key(query, shared, alone))
        groups.setdefault(key, []).append(member)
    return tuple(_unit(plan, key, tuple(group), kept, shared, results)
                 for key, group in groups.items())


def _key(query: Query, shared: Collection[str], alone: Mapping[str, bool]) -> tuple[object, ...]:
    """What the members of a unit have in common."""
    kind, target = query.sink.kind, query.sink.target or ""
    if kind == "noop":
        return (kind,)
    if kind in ("console", "callback"):
        return (kind, query.name)
    if target in shared:
        return (kind, "shared", target)
    return (kind, "own", query.branches[0].outputs, target if alone.get(target) else "")


def _place_in(kept: list[dict[str, str]], query: Query) -> int:
    """The first dataset of the memory sink whose columns do not contradict the query's."""
    mine = {name_key(o.name): str(o.expression.type) for o in query.branches[0].select}
    for number, columns in enumerate(kept):
        if all(columns.get(name, kind) == kind for name, kind in mine.items()):
            columns.update(mine)
            return number
    kept.append(mine)
    return len(kept) - 1


def _unit(
    plan: Plan, key: tuple[object, ...], members: tuple[Member, ...], kept: list[dict[str, str]],
    shared: Mapping[str, tuple[Field, ...]], results: str,
) -> Unit:
    together = (0,) * len(members)
    targets = [plan.query(member.query).sink.target or "" for member in members]
    match key:
        case ("memory", int(number)):
            folder = f"{results}/{_digest(kept[number])}"
            return Unit("parquet", members, (folder,), together, shared=True)
        case (str(kind), "shared", str(target)):
            return Unit(kind, members, (target,), together, shared=True, columns=shared[target])
        case (str(kind), "own", *_):
            folders = {target: number for number, target in enumerate(dict.fromkeys(targets))}
            homes = tuple(folders[target] for target in targets)
            return Unit(kind, members, tuple(folders), homes)
    return Unit(str(key[0]), members, target=targets[0])


def _digest(columns: dict[str, str]) -> str:
    text = repr(sorted(columns.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_shared(queries: Sequence[Query]) -> dict[str, str]:
    """Queries that cannot share the folder they name, and why."""
    shared = shared_folders(queries)
    faults: dict[str, str] = {}
    others: dict[str, dict[object, Query]] = {}
    for query in queries:
        if query.sink.target in shared:
            # Of the queries that look alike one stands for all: there may be a thousand.
            there = others.setdefault(query.sink.target or "", {})
            looks = query.sink.kind, tuple(b.outputs for b in query.branches)
            fault = "" if looks in there else _clash(query, list(there.values()))
            if fault:
                faults[query.name] = fault
            else:
                there.setdefault(looks, query)
    return faults


def _clash(query: Query, others: Sequence[Query]) -> str:
    """Why a query does not fit in with those that write to its folder already."""
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
