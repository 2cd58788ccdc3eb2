"""Query forms 4 to 6, which are read but not yet run: told apart and refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from penstock.errors import NotYet
from penstock.language.dialect import place_of_node
from penstock.language.functions import AGGREGATES
from penstock.language.places import Place, Source
from penstock.language.windows import Window

_JOINS = {2: "a window join (form 5)"}


def refuse_later_forms(
    tree: exp.Expr, windows: Sequence[Window], registered: Iterable[str], source: Source
) -> None:
    """Complain about windows, groups and aggregates, at the first that is found."""
    tables = max((_inputs(select) for select in tree.find_all(exp.Select)), default=1)
    place = windows[0].place if windows else _grouping(tree, frozenset(registered))
    if place is not None:
        raise not_yet(tables, place, source)


def not_yet(tables: int, place: Place, source: Source) -> Exception:
    """The refusal of a windowed query over so many inputs."""
    form = (
        "a window aggregate (form 4)"
        if tables < 2
        else _JOINS.get(tables, "a multiway join (form 6)")
    )
    message = f"{form} is not yet run by this version"
    hint = "it runs filters, joins with relations and UNION ALL"
    return source.fault(NotYet, message, place, hint)


def _inputs(select: exp.Select) -> int:
    return 1 + len(select.args.get("joins") or [])


def _grouping(tree: exp.Expr, registered: frozenset[str]) -> Place | None:
    """Where the tree groups or aggregates, or None."""
    for node in tree.walk():
        if isinstance(node, exp.Group | exp.Having):
            return place_of_node(node) or Place(0, 1)
        if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
            if node.name.lower() not in registered and not isinstance(node.parent, exp.Window):
                return place_of_node(node) or Place(0, 1)
    return None
