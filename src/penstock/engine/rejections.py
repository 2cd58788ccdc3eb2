"""Finds queries whose Python function rejects every row, so that a person learns it at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.events import kinds as ev
from penstock.plan import Operator

BLOCKS, ROWS = 3, 100
"""A function that rejects this many blocks in a row, or this many rows, is broken."""


@dataclass(slots=True)
class _Streak:
    """What a query's function has rejected since it last let a row pass."""

    error: str
    """The error of the first row."""
    blocks: int = 0
    rows: int = 0
    told: bool = False

    @property
    def text(self) -> str:
        blocks = f"{self.blocks} block" + "s" * (self.blocks > 1)
        return (f"its function rejected every row of {blocks} ({self.rows} rows), beginning with: "
                f"{self.error}")


@dataclass(slots=True)
class Rejections:
    """Counts, per query, the blocks and rows since a function last let a row pass."""

    _streaks: dict[str, _Streak] = field(default_factory=dict)

    def take(
        self, event: ev.JobFinished, result: ev.PathResult | ev.ProbeResult,
        operators: Sequence[Operator], blocks: int, rows: int = 0,
    ) -> Iterator[tuple[str, str]]:
        """A job has finished; the queries to report now, each with a text.

        ``rows`` came to the first of its ``operators``; 0 while only they can tell, as of pairs.
        """
        raising = result.raising if isinstance(result, ev.PathResult) else {}
        for query, rejected in result.rejected.items():
            reached = raising.get(query) or _reached(operators, rows, result, rejected)
            if reached is None:
                self._streaks.pop(query, None)
                continue
            streak = self._streaks.setdefault(query, _Streak(result.errors.get(query, "")))
            streak.blocks += blocks
            streak.rows += reached
            if not streak.told and (streak.blocks >= BLOCKS or streak.rows >= ROWS):
                streak.told = True
                yield query, streak.text
        for query in event.rows_out:
            if query not in result.rejected:
                self._streaks.pop(query, None)

    def rest(self) -> Iterator[tuple[str, str]]:
        """At the end: the queries that read few rows, and got nothing but rejects."""
        for query, streak in self._streaks.items():
            if not streak.told:
                streak.told = True
                yield query, streak.text

    def leave(self, query: str) -> None:
        """A query has gone."""
        self._streaks.pop(query, None)


def _reached(
    operators: Sequence[Operator], rows: int, result: ev.PathResult | ev.ProbeResult, rejected: int
) -> int | None:
    """The rows that reached a Python operator and were all rejected; None if some passed.

    Rows for which a condition is false are dropped, so if fewer were rejected than came, the
    function does answer for some.
    """
    before = rows
    for operator in operators:
        after = result.operators.get(operator.id)
        if after is None:
            continue
        if operator.kind == "python" and 0 < before <= rejected and after == 0:
            return before
        before = after
    # The intermediate rows of an earlier job may be rejects alone.
    return rows if 0 < rows <= rejected else None
