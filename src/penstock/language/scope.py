"""Names in a query: which input a column belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import TypeFault, UnknownName
from penstock.language.places import Misfit, suggestion
from penstock.model import STRING, Call, Column, Expression, Field, Literal, name_key


@dataclass(frozen=True, slots=True)
class FromItem:
    """A stream or relation in a FROM clause; ``index`` 0 is the first stream."""

    alias: str
    columns: tuple[Field, ...]
    index: int

    def column(self, name: str) -> Column | None:
        """The column of that name, however it is spelt."""
        field = _by_name(self.columns).get(name_key(name))
        return Column(field.name, field.type, self.index) if field is not None else None


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

    def _unqualified(self, parts: Sequence[str]) -> Column:
        found = [(i, c) for i in self.inputs if (c := i.column(parts[0])) is not None]
        if len(found) > 1:
            owners = " or ".join(f"{i.alias}.{c.name}" for i, c in found)
            raise Misfit(UnknownName, f"'{parts[0]}' is ambiguous", f"write {owners}")
        if found:
            return found[0][1]
        if len(parts) > 1:
            names = [i.alias for i in self.inputs]
            hint = suggestion(parts[0], names) or f"the query reads {', '.join(names)}"
            raise Misfit(UnknownName, f"nothing in this query is called '{parts[0]}'", hint)
        raise _unknown(parts[0], self.inputs)


def _unknown(name: str, inputs: Sequence[FromItem]) -> Misfit:
    names = [field.name for i in inputs for field in i.columns]
    owners = ", ".join(i.alias for i in inputs)
    hint = suggestion(name, names) or f"it has {_some(names)}"
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
