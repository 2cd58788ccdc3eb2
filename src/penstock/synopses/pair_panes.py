"""Panes of pairs: one number for the pane of the earlier row and that of the later one.

An answer for a window covers the pairs whose rows both lie in it. The later row says when a pair
counts, the earlier one until when. So pairs with their earlier rows in one pane are kept apart by
the panes of their later rows, until no coming window ends between those.
"""

from __future__ import annotations

from penstock.model import MOST_PAIR_PANES
from penstock.plan import EARLIEST

BITS = (MOST_PAIR_PANES - 1).bit_length()
"""The lowest bits of the number say by how many panes the later row is behind the earlier one."""


def first_of(pane: int) -> int:
    """The first number of all pairs whose earlier row is in a pane.

    >>> first_of(3) == pair_pane(3, 3) < pair_pane(3, 5) < first_of(4)
    True
    """
    return pane << BITS if pane > EARLIEST else EARLIEST


def pair_pane(earlier: int, later: int) -> int:
    """The number of two panes.

    >>> earlier_of(pair_pane(-3, 5)), later_of(pair_pane(-3, 5))
    (-3, 5)
    """
    return (earlier << BITS) + later - earlier


def earlier_of(number: int) -> int:
    """The pane of the earlier row."""
    return number >> BITS


def later_of(number: int) -> int:
    """The pane of the later row."""
    return (number >> BITS) + (number & (MOST_PAIR_PANES - 1))
