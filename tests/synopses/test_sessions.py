"""Sessions from panes are those of the rows, each once, whatever the panes are."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from penstock.synopses.sessions import SessionRule, due

GAP = 10
STEPS = st.sampled_from([0, 0, 1, 3, 8, 9, 9, 9, 10, 11, 25, 60])


def of_rows(times: Iterable[int], longest: int) -> set[tuple[int, int, int]]:
    """First and last time and number of rows of each session, cut if it lasts for too long."""
    parts: dict[tuple[int, int], list[int]] = {}
    begun = last = cut = 0
    for number, time in enumerate(sorted(times)):
        if not number or time - last >= GAP:
            begun = cut = time
        elif time // longest * longest - begun >= longest:
            cut = time // longest * longest
        parts.setdefault((begun, cut), []).append(time)
        last = time
    return {(part[0], part[-1], len(part)) for part in parts.values()}


@st.composite
def walks(draw: st.DrawFn) -> list[int]:
    time = draw(st.integers(-100, 100))
    return [time := time + draw(STEPS) for _ in range(draw(st.integers(1, 60)))]


@given(st.lists(walks(), min_size=1, max_size=3), st.sampled_from([1, 2, 5, 10]),
       st.sampled_from([20, 40, 60]))
def test_each_session_is_due_once(walks, pane, longest):
    rule = SessionRule(GAP, longest, pane)
    cells: dict[int, dict[int, list[int]]] = {}
    for key, times in enumerate(walks):
        for time in times:
            cells.setdefault(time // pane, {}).setdefault(key, []).append(time)

    def told(number: int) -> list[tuple[int, int, int]]:
        return [(key, min(t), max(t)) for key, t in cells.get(number, {}).items()]

    found: list[tuple[int, int, int, int]] = []
    first = min(cells) * pane // GAP * GAP
    for end in range(first, max(cells) * pane + rule.reach + 2 * GAP, GAP):
        for (bottom, top), keys in due(rule, end // pane, rule.reach // pane, told).items():
            for key in keys:
                times = [t for p in range(bottom, top + 1) for t in cells.get(p, {}).get(key, [])]
                found.append((key, min(times), max(times), len(times)))
    assert len(found) == len(set(found))
    assert set(found) == {(key, *one) for key, times in enumerate(walks)
                          for one in of_rows(times, longest)}
