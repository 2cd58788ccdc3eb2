"""What has been declared, while more text is bound: an Application that can still change."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model import Application, Function, Query, Relation, Statement, Stream


@dataclass(slots=True)
class Catalogue:
    """Every mapping is keyed by lower-case names: SQL does not tell `Packets` from `packets`."""

    streams: dict[str, Stream] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    statements: dict[tuple[str, str], Statement] = field(default_factory=dict)
    """By kind and lower-case name, in the order in which they came into force."""

    @classmethod
    def of(cls, application: Application) -> Catalogue:
        """A catalogue that begins with all that an application declares."""
        return cls(
            {s.name.lower(): s for s in application.streams.values()},
            {r.name.lower(): r for r in application.relations.values()},
            {f.name.lower(): f for f in application.functions.values()},
            {q.name.lower(): q for q in application.queries.values()},
            dict(application.settings),
            {(s.kind, s.name.lower()): s for s in application.statements},
        )

    def application(self) -> Application:
        """All that is declared now, under the names as declared."""
        return Application(
            {s.name: s for s in self.streams.values()},
            {r.name: r for r in self.relations.values()},
            {f.name: f for f in self.functions.values()},
            {q.name: q for q in self.queries.values()},
            dict(self.settings),
            tuple(self.statements.values()),
        )

    def table(self, name: str) -> Stream | Relation | None:
        """The stream or relation of that name."""
        return self.streams.get(name.lower()) or self.relations.get(name.lower())

    def table_names(self) -> list[str]:
        """The names of all streams and relations, as declared."""
        streams, relations = self.streams.values(), self.relations.values()
        return [*(s.name for s in streams), *(r.name for r in relations)]

    def record(self, statement: Statement) -> None:
        """Keep a statement's text; an earlier one of the same kind and name goes."""
        key = (statement.kind, statement.name.lower())
        self.statements.pop(key, None)
        self.statements[key] = statement

    def drop_query(self, name: str) -> None:
        """Forget a query and its text."""
        del self.queries[name.lower()]
        del self.statements["query", name.lower()]
