"""Streams that come in bursts, and what live window aggregates owe over them, reckoned plainly.

Times are whole seconds. A *block* is what comes at once; it may be a burst after a silence, or one
of a backlog.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

Block = tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """The window of a query."""

    name: str
    window: int
    slide: int
    exactly: bool = False

    @property
    def sql(self) -> str:
        how = "EXACTLY " * self.exactly
        return f"[WINDOW {self.window} SECONDS SLIDE {how}{self.slide} SECONDS]"


WINDOWS = ((2, 2), (10, 2), (10, 3), (10, 4), (6, 9), (60, 60), (30, 10), (5, 1), (7, 7))


def asked(chance: random.Random, count: int) -> list[Asked]:
    """Queries with and without EXACTLY."""
    return [Asked(f"q{n}", *chance.choice(WINDOWS), exactly=chance.random() < 0.3)
            for n in range(count)]


def streamed(chance: random.Random, count: int) -> list[Block]:
    """Bursts, silences and backlogs; some rows are out of order, some of these too late."""
    clock, blocks = chance.randrange(1000), []
    for _ in range(count):
        clock += chance.choice([0, 1, 3, 10, 10, 47, 660, 90_000])
        lasts = chance.choice([1, 1, 5, 40])
        times = [clock + chance.randrange(lasts) for _ in range(chance.randrange(1, 12))]
        blocks.append(tuple(time - chance.choice([0, 0, 0, 1, 30]) for time in times))
        clock += lasts
    return blocks


def in_time(blocks: Sequence[Block], lateness: int) -> list[int]:
    """The rows that are not late, in order of their times."""
    kept: list[int] = []
    for block in blocks:
        cutoff = max(kept) - lateness if kept else min(block)
        kept += [time for time in block if time >= cutoff]
    return sorted(kept)


def held(rows: Sequence[int], end: int, window: int) -> int:
    """How many rows a window holds."""
    return bisect_left(rows, end) - bisect_left(rows, end - window)


def missing(rows: Sequence[int], of: Asked, pane: int, after: int, before: int) -> int:
    """Answers that are missing between two: at the least, for ends to be a slide apart.

    Windows without a row are left out, so an end may lie wherever there is none.
    """
    count = 0
    while before - after > of.slide:
        empty = [end for end in range(after + of.slide, after, -pane)
                 if not held(rows, end, of.window)]
        count += not empty
        after = empty[0] if empty else after + of.slide
        following = bisect_left(rows, after)
        if empty and (following == len(rows) or rows[following] >= before):
            return count
        if empty and rows[following] > after + of.slide:  # a long silence is passed at once
            after += (rows[following] - after) // of.slide * of.slide
    return count


def exact_ends(rows: Sequence[int], of: Asked, closed: int) -> list[int]:
    """The multiples of the slide whose windows hold a row and are closed."""
    return sorted({end for time in rows
                   for end in range((time // of.slide + 1) * of.slide, time + of.window + 1,
                                    of.slide) if end <= closed})


def check_ends(
    rows: Sequence[int], of: Asked, pane: int, closed: int, ends: Sequence[int]
) -> None:
    """A machine that is not late has answered all that it owes: ``closed`` is where time stands."""
    assert list(ends) == sorted(set(ends)), f"{of}: {ends}"
    assert all(held(rows, end, of.window) for end in ends), f"{of}: an answer without a row"
    if of.exactly:
        assert list(ends) == exact_ends(rows, of, closed), of
        return
    stops = [rows[0] // pane * pane, *ends, closed + pane]
    gaps = [(a, b) for a, b in zip(stops, stops[1:], strict=False)
            if missing(rows, of, pane, a, b)]
    assert not gaps, f"{of}: no answer between {gaps[:5]}"


def pane_of(queries: Sequence[Asked]) -> int:
    """The pane of queries that share a synopsis."""
    return gcd(*(gcd(of.window, of.slide) for of in queries))
