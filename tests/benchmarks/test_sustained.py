"""The benchmark of sustained rates: what is asked, and how the highest rate is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sustained import EVEN, MANY, Traffic, highest
from penstock.language import bind


@pytest.mark.parametrize("queries", MANY)
def test_as_many_queries_as_wanted_share_a_folder(queries: int, tmp_path: Path) -> None:
    bound = bind(Traffic(1000, EVEN, 5, queries).application(tmp_path))
    assert len(bound.queries) == queries
    assert len({query.sink for query in bound.queries.values()}) == 1


@given(limit=st.integers(1, 10**8), lowest=st.integers(100, 10**6), steps=st.integers(0, 6))
def test_the_highest_rate_lies_between_what_is_kept_up_and_what_is_not(
    limit: int, lowest: int, steps: int
) -> None:
    kept, grows = highest(lambda rate: rate <= limit, lowest, steps)
    if limit < lowest:
        assert (kept, grows) == (0, lowest)
    else:
        assert kept <= limit < grows
        assert grows / kept <= 2 ** (1 / 2**steps) * 1.03
