"""Names in a query: which input a column belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import TypeFault, UnknownName
from penstock.language.places import Misfit, suggestion
from penstock.model import STRING, Call, Column, Expression, Field, Literal, name_key, walk


@dataclass(frozen=True, slots=True)
class FromItem:
    """A stream or relation in a FROM clause, or a query that is inlined."""

    alias: str
    columns: tuple[Field, ...]
    source: int
    """The source of the columns, 0 for the first stream."""
    made: tuple[Expression, ...] = ()
    """What each column of an inlined query stands for; empty for a stream or relation."""

    def column(self, name: str) -> Expression | None:
        """What the column of that name stands for, however it is spelt."""
        field = self.field(name)
        if field is None:
            return None
        if self.made:
            return self.made[self.columns.index(field)]
        return Column(field.name, field.type, self.source)

    def field(self, name: str) -> Field | None:
        """The column of that name as it is declared."""
        return _by_name(self.columns).get(name_key(name))


def _by_name(fields: tuple[Field, ...]) -> Mapping[str, Field]:
    """Fields by their names in lower case; the first of two wins.

    Remembered for the last few tuples: a query may name each of thousands of columns.
    """
    known = _KNOWN.get(id(fields))
    if known is None or known[0] is not fields:
        if len(_KNOWN) >= 64:
            _KNOWN.clear()
        known = (fields, {name_key(field.name): field for field in reversed(fields)})
        _KNOWN[id(fields)] = known
    return known[1]


_KNOWN: dict[int, tuple[tuple[Field, ...], Mapping[str, Field]]] = {}


class Scope:
    """The inputs a query may name, in the order of its FROM clause."""

    def __init__(self, inputs: Sequence[FromItem]) -> None:
        """A later input sees the earlier ones."""
        self.inputs = tuple(inputs)

    def resolve(self, parts: Sequence[str]) -> Expression:
        """What ``alias.column.field`` means; a leading alias goes before a column of that name."""
        qualified = self.input(parts[0]) if len(parts) > 1 else None
        if qualified is not None:
            column = qualified.column(parts[1])
            if column is None:
                raise _unknown(parts[1], (qualified,))
            return fields(column, parts[2:])
        return fields(self._unqualified(parts), parts[1:])

    def input(self, alias: str) -> FromItem | None:
        """The input of that name."""
        found = [i for i in self.inputs if i.alias.lower() == alias.lower()]
        return found[0] if found else None

    def column(self, parts: Sequence[str]) -> tuple[FromItem, Field] | None:
        """The column that ``column`` or ``alias.column`` names; None if it names something else."""
        qualified = self.input(parts[0]) if len(parts) == 2 else None
        among = (qualified,) if qualified is not None else self.inputs if len(parts) == 1 else ()
        found = [(i, field) for i in among if (field := i.field(parts[-1])) is not None]
        return found[0] if len(found) == 1 else None

    def spelling(self, column: Column) -> str:
        """How a query names a column, or one that is made of it."""
        for item in self.inputs:
            for field in item.columns:
                made = item.column(field.name)
                if made is not None and column in walk(made):
                    return f"{item.alias}.{field.name}"
        return column.name

    def _unqualified(self, parts: Sequence[str]) -> Expression:
        found = [(i, f) for i in self.inputs if (f := i.field(parts[0])) is not None]
        if len(found) > 1:
            owners = " or ".join(f"{i.alias}.{f.name}" for i, f in found)
            raise Misfit(UnknownName, f"'{parts[0]}' is ambiguous", f"write {owners}")
        for item, field in found:
            made = item.column(field.name)
            assert made is not None
            return made
        if len(parts) > 1:
            names = [i.alias for i in self.inputs]
            hint = suggestion(parts[0], names) or f"the query reads {', '.join(names)}"
            raise Misfit(UnknownName, f"nothing in this query is called '{parts[0]}'", hint)
        raise _unknown(parts[0], self.inputs)


def _unknown(name: str, inputs: Sequence[FromItem]) -> Misfit:
    names = list(dict.fromkeys(field.name for i in inputs for field in i.columns))
    owners = ", ".join(i.alias for i in inputs)
    have = "they have" if len(inputs) > 1 else "it has"
    hint = suggestion(name, names) or f"{have} {_some(names)}"
    return Misfit(UnknownName, f"no column '{name}' in {owners}", hint)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def fields(base: Expression, names: Sequence[str]) -> Expression:
    """``base.name.name``: fields of structs, values of maps."""
    for name in names:
        base = member(base, name)
    return base


def member(base: Expression, name: str) -> Expression:
    """``base.name``: a field of a struct or the value of a map's key."""
    if base.type.name == "MAP" and base.type.key == STRING and base.type.element is not None:
        return Call("element", (base, Literal(name, STRING)), base.type.element)
    if base.type.name != "STRUCT":
        raise Misfit(TypeFault, f"a value of type {base.type} has no field '{name}'")
    field = _by_name(base.type.fields).get(name_key(name))
    if field is not None:
        return Call("field", (base,), field.type, detail=field.name)
    known = [field.name for field in base.type.fields]
    hint = suggestion(name, known) or f"it has {_some(known)}"
    raise Misfit(UnknownName, f"no field '{name}' in the struct", hint)
