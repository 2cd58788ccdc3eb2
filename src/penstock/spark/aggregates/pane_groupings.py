"""What a pane job groups by: the groups that ask, and groupings that serve several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.model import BIGINT, Expression, Type
from penstock.synopses import Family

PANE, CELL = "pane", "cell"
_BYTES = {"STRING": 64, "BINARY": 256, "STRUCT": 48}
"""Bytes of a value in a pane table, by its type; every other type takes 16, twice eight."""
MOST_COLUMNS = 90
"""The most columns of one grouping: from a hundred on, Spark no longer generates code for it."""
DIRECT = ("scalars", "frequencies", "hll", "fm")
"""The families whose cell follows from the row; the others are made from frequencies."""


@dataclass(frozen=True, slots=True)
class PaneGroup:
    """The keys, families and conditions by which one synopsis sums up a stream's rows."""

    keys: tuple[Expression, ...]
    families: tuple[Family, ...]
    pane: int
    """The length of a pane in microseconds."""
    where: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class PaneGrouping:
    """One grouping, and the groups that read a family from it."""

    pane: int
    keys: tuple[Expression, ...]
    readers: tuple[tuple[int, Family], ...]
    """The groups by number, each with its family; the families differ only in measures."""

    @property
    def family(self) -> Family:
        """The first reader's family: the cell is the same for all of them."""
        return self.readers[0][1]

    @property
    def shared(self) -> bool:
        """Whether several groups read it. Then each counts its own rows in a column of its own."""
        return len(self.readers) > 1

    @property
    def columns(self) -> dict[str, Type]:
        """Its columns: the cell's, then per reader the count and the measures."""
        found = {PANE: BIGINT, **{f"k{n}": key.type for n, key in enumerate(self.keys)}}
        if self.family.cell is not None:
            found[CELL] = self.family.cell
        for reader, (_, family) in enumerate(self.readers):
            if self.shared:
                found[f"r{reader}"] = BIGINT
            found |= {f"r{reader}m{n}": m.stored for n, m in enumerate(family.measures)}
        return found

    @property
    def width(self) -> int:
        """About how many bytes a cell takes in the driver, in Arrow and in a synopsis."""
        return sum(_BYTES.get(type_.name, 16) for type_ in self.columns.values())

    def read_by(self, reader: int) -> dict[str, str]:
        """A reader's pane table: its columns, by the names they have in the grouping."""
        measures = len(self.readers[reader][1].measures)
        own = [name for name in self.columns if not name.startswith("r")]
        return {name: name for name in own} | {
            f"m{n}": f"r{reader}m{n}" for n in range(measures)}


def groupings_of(groups: Sequence[PaneGroup]) -> tuple[PaneGrouping, ...]:
    """The groupings: those of direct families serve all groups with the same panes and keys."""
    found: list[PaneGrouping] = []
    latest: dict[object, int] = {}
    for number, group in enumerate(groups):
        for family in group.families:
            alone = None if family.kind in DIRECT else number
            place = group.pane, group.keys, family.name, alone
            reader = (number, family)
            unit = found[latest[place]] if place in latest else None
            if unit is not None and len(unit.columns) + len(family.measures) < MOST_COLUMNS:
                found[latest[place]] = replace(unit, readers=(*unit.readers, reader))
            else:
                latest[place] = len(found)
                found.append(PaneGrouping(group.pane, group.keys, (reader,)))
    return tuple(found)
