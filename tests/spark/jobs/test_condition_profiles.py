"""SQL conditions are profiled as predicates in Python are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.instructions import Evaluation
from penstock.spark.compile import conjunction_worker
from penstock.spark.compile.conjunction_worker import Predicate, Sampling
from penstock.spark.jobs.condition_profiles import _patterns


@st.composite
def asked(draw: st.DrawFn) -> tuple[Any, Evaluation]:
    count = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(st.booleans(), min_size=count, max_size=count), min_size=1,
                         max_size=20))
    order = tuple(draw(st.permutations(range(count))))
    unasked = tuple(tuple(sorted(draw(st.sets(st.integers(place + 1, count - 1)))))
                    if place + 1 < count else () for place in range(count))
    return np.array(rows), Evaluation(order=order, rate=0.5, unasked=unasked)


@given(asked())
def test_no_pattern_says_more_than_the_policy_has_asked_for(given: tuple[Any, Evaluation]) -> None:
    dropped, evaluation = given
    predicates: Any = tuple(Predicate(number, number) for number in evaluation.order)
    sampling = Sampling(0.5, predicates, evaluation.unasked, len(predicates))
    placed, _ = conjunction_worker.profiled(
        len(dropped), sampling, lambda number, rows: (~dropped[rows, number], None, None))
    patterns = Counter(
        "".join("1" if row[evaluation.order.index(number)] else "0"
                for number in range(len(predicates))) for row in placed)
    assert _patterns(dropped, evaluation) == patterns
