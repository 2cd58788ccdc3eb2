"""Queries of one stream that have Python predicates in common share a path.

The path evaluates each predicate once for all of them, in one trip to Python
(`penstock.spark.compile.shared_conjunction`). It is one job: it is not cut between predicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.model import Branch, Expression, is_expensive
from penstock.plan import Member, Operator, Path, Plan
from penstock.planning.conjunctions import conditions
from penstock.planning.path_operators import lookup_operators
from penstock.rendering import render


def share_predicates(before: Plan) -> Plan:
    """Let queries whose conditions allow it ride one path with those that have one in common.

    A query shares nothing if Python computes columns of its answer, or if it has a condition in
    Python that must stay in its place: its function must not make others wait.
    """
    alike = _alike([path for path in before.paths if _may_share(before, path)], before)
    first = {group[0].id: group for group in alike if len(group) > 1}
    gone = {path.id for group in first.values() for path in group}
    return replace(before, paths=tuple(
        _shared(first[path.id], before) if path.id in first else path
        for path in before.paths if path.id in first or path.id not in gone))


def shared_predicates(branches: Iterable[Branch]) -> tuple[Expression, ...]:
    """The predicates of several branches, each once, in the order in which they first occur."""
    return tuple(dict.fromkeys(
        predicate for branch in branches for predicate in conditions(branch.where).movable))


def may_share(branch: Branch) -> bool:
    """Whether a branch needs nothing of Python but its conjunction."""
    found = conditions(branch.where)
    computed = any(is_expensive(output.expression) for output in branch.select)
    return bool(found.movable) and not found.fixed and not computed and branch.join is None


def _may_share(plan: Plan, path: Path) -> bool:
    return (path.expensive and path.end == "sink" and len(path.members) == 1
            and may_share(plan.branch(path.members[0])))


def _alike(paths: Sequence[Path], plan: Plan) -> list[list[Path]]:
    """Paths in groups: each has a predicate in common with another one of its group."""
    groups: list[tuple[set[object], list[Path]]] = []
    for path in paths:
        branch = plan.branch(path.members[0])
        needs: set[object] = {(path.reads, path.lookups, predicate)
                              for predicate in shared_predicates([branch])}
        meeting = [group for group in groups if not needs.isdisjoint(group[0])]
        joined = [member for group in meeting for member in group[1]]
        for group in meeting:
            needs |= group[0]
        rank = {one.id: number for number, one in enumerate(paths)}
        groups = [group for group in groups if group not in meeting]
        groups.append((needs, sorted([*joined, path], key=lambda one: rank[one.id])))
    return [group for _, group in groups]


def _shared(group: Sequence[Path], plan: Plan) -> Path:
    """The path of a group, named after its first member."""
    members: tuple[Member, ...] = tuple(path.members[0] for path in group)
    id = f"{group[0].id}+"
    predicates = shared_predicates(plan.branch(member) for member in members)
    steps = [Operator(f"{id}:python{number}", "python", render(predicate))
             for number, predicate in enumerate(predicates, start=1)]
    fanout = Operator(f"{id}:fanout", "fanout", f"{len(members)} queries in one trip to Python")
    sink = Operator(f"{id}:sink", "sink", "each query's own")
    return replace(
        group[0], id=id, members=members, movable=len(predicates), shared=True,
        operators=(*lookup_operators(id, group[0].lookups), *steps, fanout, sink))
