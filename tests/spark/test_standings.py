"""Where queries begin that join late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.language import bind
from penstock.model import Block
from penstock.spark.standings import Standings

SECOND = 1_000_000
APPLICATION = """
    CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 2 SECONDS;
    CREATE QUERY q AS SELECT a, COUNT(*) FROM s [WINDOW 10 SECONDS SLIDE 5 SECONDS] GROUP BY a;
"""


def block(number: int) -> Block:
    """Ten seconds of rows."""
    newest = (number + 1) * 10 * SECOND
    cutoff = newest - 12 * SECOND if number else None
    return Block("s", number, 1, 1, 0.0, cutoff, newest - 2 * SECOND, newest)


def since(held: range, start: int, last: int = 9, answered: int | None = None) -> int | None:
    """For a query that begins with a block, while the spool holds some."""
    spool = SimpleNamespace(
        stream=bind(APPLICATION).streams["s"], last=SimpleNamespace(number=last), block=block,
        held=lambda: [block(n) for n in held])
    standing = {"q": SimpleNamespace(answered=answered, start={"s": start})}
    found: Any = Standings(SimpleNamespace(standing=standing), {"s": spool}, lambda _: last)
    return found.since(bind(APPLICATION).queries["q"])


@pytest.mark.parametrize(("held", "start", "expected"), [
    (range(10), 10, 98 * SECOND),  # all is there: from the watermark on
    (range(10), 0, None),  # and from the first row on
    (range(7, 10), 10, 98 * SECOND),  # enough is
    (range(9, 10), 10, 100 * SECOND),  # what came up to 90 s is gone
    (range(9, 10), 9, 100 * SECOND),
    (range(10, 10), 10, 110 * SECOND),  # nothing is there any more
])
def test_a_new_query_begins_with_the_first_window_of_which_every_row_is_there(
    held: range, start: int, expected: int | None
) -> None:
    assert since(held, start) == expected


def test_a_query_that_has_answered_goes_on_from_there() -> None:
    assert since(range(9, 10), 0, answered=55 * SECOND) == 55 * SECOND
