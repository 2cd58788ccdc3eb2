"""Queries that fared alike in a record, as one: replaying a thousand filters costs as much as two.

A schedule sees paths, not queries. It cannot tell apart queries that joined together with the same
latency goals, stayed to the end and rode in the same groups. Window joins are not folded: how many
queries have a window is what their policies go by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.events import kinds as ev
from penstock.plan import Member
from penstock.sinks import folder_sinks


@dataclass(frozen=True, slots=True)
class Folded:
    """A record in which one query stands for all queries like it."""

    events: tuple[ev.Event, ...]
    twins: Mapping[str, tuple[str, ...]]
    """By query, the queries that it stands for, itself included."""


def folded(events: Sequence[ev.Event]) -> Folded:
    """Keep the first of all queries that fared alike.

    >>> from penstock.testing import FakeHost
    >>> host = FakeHost.of('''
    ...     CREATE STREAM s (a INT) FROM rate;
    ...     CREATE QUERY x AS SELECT a FROM s WHERE a = 1;
    ...     CREATE QUERY y AS SELECT a FROM s WHERE a = 2;
    ...     CREATE QUERY z WITH (latency = '1 second') AS SELECT a FROM s WHERE a = 3;
    ... ''')
    >>> host.arrive("s", at=1.0)
    >>> host.run()
    >>> folded(host.record).twins
    {'x': ('x', 'y'), 'z': ('z',)}
    """
    reading = _QueryReader()
    for event in events:
        reading.take(event)
    alike: dict[object, list[str]] = {}
    for query in reading.added:
        alike.setdefault(reading.fate(query), []).append(query)
    twins = {first: (first, *others) for first, *others in alike.values()}
    stands_for = {query: first for first, all_ in twins.items() for query in all_}
    return Folded(tuple(_kept(events, reading, stands_for)), twins)


@dataclass(slots=True)
class _QueryReader:
    """What is known about each query once the record has been read."""

    added: dict[str, ev.QueryAdded] = field(default_factory=dict)
    joined: dict[str, int] = field(default_factory=dict)
    """By query, the number of other events before it joined: equal for queries that joined
    together."""
    alone: set[str] = field(default_factory=set)
    """Queries with a history of their own."""
    rode: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Group, branch and input, for each ride."""
    members: dict[str, Member] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=dict)
    """By folder, the queries that write there."""
    _others: int = 0

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.QueryAdded(query=query):
                if query in self.added:  # an earlier query of the same name
                    self.alone.add(query)
                if event.join is not None:
                    self.alone.add(query)
                self.added[query] = event
                self.joined[query] = self._others
                for sink in (event.sink, *event.also):
                    self.folders.setdefault(sink, set()).add(query)
                self.members.update((str(member), member) for member, _ in event.members)
                return
            case ev.QueryDropped(query=query) | ev.QueryFailed(query=query):
                self.alone.add(query)
            case ev.RidersFormed(riders=group, members=members):
                for member in self.riders(members).values():
                    rode = self.rode.setdefault(member.query, [])
                    rode.append((group, member.branch, member.input))
            case ev.JobFinished(failed=failed):
                self.alone.update(failed)
        self._others += 1

    def riders(self, members: Sequence[str]) -> dict[str, Member]:
        """The members of a group, by their names."""
        return {name: self.members[name] for name in members if name in self.members}

    def fate(self, query: str) -> object:
        """What a schedule can know about a query; queries that fared alike have the same fate."""
        if query in self.alone:
            return query
        event = self.added[query]
        since = event.joined if event.lifetime is not None else None
        return (self.joined[query], event.inputs, event.latency, event.priority, event.lifetime,
                since, event.backlog, self.has_own_folder(event), tuple(self.rode.get(query, ())))

    def has_own_folder(self, event: ev.QueryAdded) -> bool:
        """Whether no other query writes to its folders: then its blocks may be batched."""
        return all(sink.split(" ")[0] in folder_sinks() and len(self.folders[sink]) == 1
                   for sink in (event.sink, *event.also))


def _kept(
    events: Sequence[ev.Event], reading: _QueryReader, stands_for: Mapping[str, str]
) -> Iterator[ev.Event]:
    for event in events:
        match event:
            case ev.QueryAdded(query=query):
                if stands_for[query] == query:
                    shared = not reading.has_own_folder(event)
                    yield replace(event, sink="memory", also=()) if shared else event
            case ev.RidersFormed(members=members):
                riders = reading.riders(members).items()
                yield replace(event, members=tuple(
                    name for name, rider in riders if stands_for[rider.query] == rider.query))
            case ev.JobFinished(rows_out=rows_out, result=ev.PathResult() as result):
                together = Counter[str]()
                for query, rows in rows_out.items():
                    together[stands_for.get(query, query)] += rows
                yield replace(event, rows_out=dict(together),
                              result=replace(result, rejected={}, added={}))
            case _:
                yield event
