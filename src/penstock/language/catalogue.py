"""What has been declared, while more text is bound: an Application that can still change."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model import (
    Application,
    Function,
    Query,
    Relation,
    SqlView,
    Statement,
    StatementKind,
    Stream,
)


@dataclass(slots=True)
class Catalogue:
    """Every mapping is keyed by lower-case names: SQL does not tell `Packets` from `packets`."""

    streams: dict[str, Stream] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    views: dict[str, SqlView] = field(default_factory=dict)
    statements: dict[tuple[str, str], Statement] = field(default_factory=dict)
    """By kind and lower-case name, in the order in which they came into force."""
    later: set[str] = field(default_factory=set)
    """The lower-case names of what the text at hand declares further down."""

    @classmethod
    def of(cls, application: Application) -> Catalogue:
        """A catalogue that begins with all that an application declares."""
        return cls(
            {s.name.lower(): s for s in application.streams.values()},
            {r.name.lower(): r for r in application.relations.values()},
            {f.name.lower(): f for f in application.functions.values()},
            {q.name.lower(): q for q in application.queries.values()},
            dict(application.settings),
            {v.name.lower(): v for v in application.views.values()},
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
            {v.name: v for v in self.views.values()},
            tuple(self.statements.values()),
        )

    def table(self, name: str) -> Stream | Relation | SqlView | None:
        """The stream, relation or view of that name."""
        key = name.lower()
        return self.streams.get(key) or self.relations.get(key) or self.views.get(key)

    def table_names(self) -> list[str]:
        """The names of all streams, relations and views, as declared."""
        streams, relations = self.streams.values(), self.relations.values()
        names = [*(s.name for s in streams), *(r.name for r in relations)]
        return [*names, *(view.name for view in self.views.values())]

    def readers(self, view: str) -> list[str]:
        """What reads a view, in words."""
        views, queries = self.views.values(), self.queries.values()
        return [*(f"view '{v.name}'" for v in views if view in v.views),
                *(f"query '{q.name}'" for q in queries if view in q.views)]

    def record(self, statement: Statement) -> None:
        """Keep a statement's text; an earlier one of the same kind and name goes."""
        key = (statement.kind, statement.name.lower())
        self.statements.pop(key, None)
        self.statements[key] = statement

    def drop(self, kind: StatementKind, name: str) -> None:
        """Forget a query or a view, and its text."""
        del (self.queries if kind == "query" else self.views)[name.lower()]
        del self.statements[kind, name.lower()]
