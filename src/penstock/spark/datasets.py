"""Which answers are written together: few jobs, whatever the number of queries and folders.

A *dataset* is a folder that one or more queries deliver to. Answers whose files look alike are
written by one job even when they go to many folders: a *unit*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.model import FILE_SINKS, Query
from penstock.plan import Member, Plan

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
    plan: Plan, members: Sequence[Member], shared: set[str], results: str,
    alone: Mapping[str, bool],
) -> tuple[Unit, ...]:
    """The units of a run.

    ``results`` is the folder of the memory sink; ``alone`` says of each folder whether it lies on
    another device than the staging folder and so needs a job of its own.
    """
    groups: dict[tuple[object, ...], list[Member]] = {}
    columns: dict[tuple[object, ...], dict[str, str]] = {}
    for member in members:
        query = plan.query(member.query)
        for key in _candidates(query, shared, alone):
            types = columns.setdefault(key, {})
            mine = _columns(query)
            if all(types.get(name, kind) == kind for name, kind in mine.items()):
                types.update(mine)
                groups.setdefault(key, []).append(member)
                break
    return tuple(_unit(plan, key, tuple(group), columns[key], results)
                 for key, group in groups.items())


def _candidates(
    query: Query, shared: set[str], alone: Mapping[str, bool]
) -> Iterator[tuple[object, ...]]:
    """The units that a query could be part of, in order of preference."""
    kind, target = query.sink.kind, query.sink.target or ""
    if kind == "noop":
        yield ("noop",)
    elif kind in ("console", "callback"):
        yield (kind, query.name)
    elif kind == "memory":
        for number in range(10**6):  # the first whose columns do not contradict the query's
            yield ("memory", number)
    elif target in shared:
        yield (kind, "shared", target)
    else:
        schema = tuple(_columns(query, exact=True).items())
        yield (kind, "own", schema, target if alone.get(target) else "")


def _unit(
    plan: Plan, key: tuple[object, ...], members: tuple[Member, ...], columns: dict[str, str],
    results: str,
) -> Unit:
    kind = str(key[0])
    together = (0,) * len(members)
    if kind == "memory":
        folder = f"{results}/{_digest(columns)}"
        return Unit("parquet", members, (folder,), together, shared=True)
    targets = [plan.query(member.query).sink.target or "" for member in members]
    if kind not in FILE_SINKS:
        return Unit(kind, members, target=targets[0])
    if key[1] == "shared":
        return Unit(kind, members, (str(key[2]),), together, shared=True)
    folders = {target: number for number, target in enumerate(dict.fromkeys(targets))}
    return Unit(kind, members, tuple(folders), tuple(folders[target] for target in targets))


def _columns(query: Query, exact: bool = False) -> dict[str, str]:
    """A query's output columns and their types; names differ only by more than case."""
    outputs = query.branches[0].select
    return {o.name if exact else o.name.casefold(): str(o.expression.type) for o in outputs}


def _digest(columns: dict[str, str]) -> str:
    text = repr(sorted(columns.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_shared(queries: Sequence[Query]) -> dict[str, str]:
    """Queries that cannot share the folder they name, and why."""
    shared = shared_folders(queries)
    faults: dict[str, str] = {}
    first: dict[str, tuple[str, Query]] = {}
    for query in queries:
        target = query.sink.target
        if target not in shared or target is None:
            continue
        kind, other = first.setdefault(target, (query.sink.kind, query))
        if kind != query.sink.kind:
            faults[query.name] = (f"{target} is written as {kind} by query {other.name} and cannot "
                                  f"be {query.sink.kind} too")
            continue
        theirs, mine = _columns(other), _columns(query)
        clash = [n for n, t in mine.items() if theirs.get(n, t) != t]
        if clash:
            faults[query.name] = (f"its column '{clash[0]}' is {mine[clash[0]]} and that of query "
                                  f"{other.name} in the same folder {theirs[clash[0]]}")
        elif QUERY in mine:
            faults[query.name] = (f"a folder that queries share has a column '{QUERY}' of its own; "
                                  "give yours another name with AS")
    return faults

