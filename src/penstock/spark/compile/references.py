"""What queries name beyond their streams: relations, Python functions, callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.errors import PenstockError
from penstock.functions import PythonFunction
from penstock.language import load_attribute
from penstock.model import Application, Query
from penstock.spark.compile.relation_versions import RelationVersions
from penstock.spark.compile.relations import Relations
from penstock.spark.ingest.sources import plain
from penstock.spark.provided import Provided


@dataclass(slots=True)
class References:
    """Finds the relations, Python functions and callbacks that an application names."""

    application: Application
    relations: Relations
    provided: Provided = field(default_factory=Provided)
    versions: RelationVersions | None = None
    """The versions of the relations that change; without them these are read as they are now."""

    def relation(self, name: str, version: int = 0) -> DataFrame:
        """A stored relation; of one that changes a version, or the latest one."""
        relation = self.application.relations[name]
        if self.versions is not None and relation.refresh is not None:
            return self.versions.frame(relation, version)
        return self.relations.frame(relation)

    def close(self) -> None:
        """Release what is cached of relations."""
        self.relations.close()
        if self.versions is not None:
            self.versions.close()

    def function(self, name: str) -> PythonFunction:
        """A registered function."""
        function = self.application.functions[name]
        return self.provided.function(function.module, function.attribute, function.folder or ".")

    def callback(self, target: str, query: str) -> Callable[..., Any]:
        """The function of a query's callback sink, from the folder that the query was read from.

        Without a ``target`` it is the one that the program has given.
        """
        if not target:
            return self.provided.callback(query)
        module, _, attribute = target.partition(":")
        folders = [s.folder for s in self.application.statements
                   if s.kind == "query" and s.name == query]
        found = load_attribute(module, attribute, folders[-1] if folders else ".")
        if not callable(found):
            raise ValueError(f"{target} is not a function")
        return found  # type: ignore[no-any-return]

    def fault(self, query: Query) -> str:
        """Why the relations of a query cannot be resolved, if they cannot."""
        try:
            for lookup in (lookup for branch in query.branches for lookup in branch.lookups
                           if not lookup.unnests):
                if fault := self._unread(lookup.relation):
                    return fault
        except (PenstockError, ValueError) as error:
            return str(error)
        return ""

    def _unread(self, relation: str) -> str:
        """Why a relation cannot be read, if it cannot."""
        try:
            self.relation(relation)
        except OSError as error:
            return f"relation {relation} cannot be read: {plain(error)}"
        return ""
