"""What the panes of a synopsis can answer, and which synopses must be rebuilt for a new plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.model import BIGINT, Aggregate
from penstock.plan import EARLIEST, Group, Plan
from penstock.synopses import Family, gathered

EVERYTHING = EARLIEST - 1
"""A pane before all that any synopsis keeps: a query that needs it needs a rebuilt synopsis."""
ROWS = Aggregate("COUNT", (), BIGINT)
"""Counts the rows of each group in a window, so that groups without rows are recognised."""
COUNTING = ("scalars", "frequencies")
"""The families whose first measure counts rows."""


def families_of(group: Group) -> tuple[Family, ...]:
    """What a synopsis keeps of a group's rows; one family always counts the rows themselves."""
    needed = gathered(group.aggregates)
    if any(family.kind in COUNTING for family in needed):
        return needed
    return gathered([ROWS, *group.aggregates])


@dataclass(slots=True)
class Coverage:
    """What a group's synopsis keeps, and from which pane on."""

    group: Group
    families: tuple[Family, ...]
    first: int = field(default=EARLIEST, kw_only=True)
    """The first pane that has not been dropped; over pairs, the first end that can be answered."""

    def keeps(self, families: Iterable[Family]) -> bool:
        """Whether it keeps everything that these families measure."""
        known = {family.name: set(family.measures) for family in self.families}
        return all(set(f.measures) <= known.get(f.name, set()) for f in families)

    def covers(self, group: Group) -> bool:
        """Whether it serves the group as the group is now."""
        return (self.group.pane == group.pane and self.group.span >= group.span
                and self.keeps(families_of(group)))


def to_rebuild(
    plan: Plan, kept: Mapping[str, Coverage], needs: Callable[[Group], int | None]
) -> list[Group]:
    """The groups of a plan whose synopsis begins empty: new groups, and those that must keep more.

    ``needs(group)`` is the oldest pane that newly joined queries read. A synopsis that has already
    dropped that pane is rebuilt.
    """
    return [group for group in plan.groups
            if not _serves(kept.get(group.id), plan, group, needs(group))]


def _serves(kept: Coverage | None, plan: Plan, group: Group, needs: int | None) -> bool:
    if kept is None or not kept.covers(group) or (needs is not None and needs < kept.first):
        return False
    # What goes through Python is computed for the present members only.
    return not plan.path(group.path).expensive or kept.families == families_of(group)
