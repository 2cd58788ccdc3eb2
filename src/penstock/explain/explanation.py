"""The plan of an application in words, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.explain.plans import Renewals, Segments, explain, explain_query
from penstock.explain.refresh_preview import renewals
from penstock.explain.segment_preview import segments
from penstock.html_tables import html_text
from penstock.model import Application
from penstock.plan import Plan
from penstock.planning import plan
from penstock.policies import texts


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The shared plan, and what the chosen policies will make of it."""

    plan: Plan
    segments: Segments
    renewals: Renewals

    @staticmethod
    def of(application: Application) -> Foreseen:
        """Before anything is measured."""
        made, chosen = plan(application), texts(application.settings)
        return Foreseen(made, segments(made, chosen["operators"]),
                        renewals(made, chosen["refresh"]))


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A plan in words, and what a run would lack."""

    plan: str
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(application: Application, query: str = "", notes: tuple[str, ...] = ()) -> Explanation:
        """The plan of an application, or as one of its queries sees it."""
        seen = Foreseen.of(application)
        if query:
            return Explanation(explain_query(application, seen.plan, query, seen.segments,
                                             seen.renewals), notes)
        return Explanation(explain(application, seen.plan, seen.segments, seen.renewals), notes)

    def __str__(self) -> str:
        """What `penstock explain` prints."""
        return "\n".join(part for part in (self.plan, noted(self.notes)) if part)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_text(str(self))


def noted(notes: Sequence[str]) -> str:
    """Notes under a heading; empty if there are none."""
    return "".join(["notes\n", *(f"  {note}\n" for note in notes)]) if notes else ""
