"""How many answers a second a scan gives, on one core: in CPU seconds, whoever else is running."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from penstock.model import BIGINT, DOUBLE, INT, Aggregate, Column
from penstock.synopses import Question, Synopsis, gathered

KEYS, PANES, QUERIES = 1_000, 100, 240
X = Column("x", INT)
SUM, AVG = Aggregate("SUM", (X,), BIGINT), Aggregate("AVG", (X,), DOUBLE)


def filled(aggregate: Aggregate) -> Synopsis:
    (family,) = gathered([aggregate])
    synopsis = Synopsis([INT], [family], PANES)
    panes, keys = np.divmod(np.arange(PANES * KEYS), KEYS)
    measures = {f"m{n}": keys % 97 + 1 for n in range(len(family.measures))}
    synopsis.add({family: pa.table({
        "pane": panes, "k0": pa.array(keys.astype(np.int32)), **measures})})
    return synopsis


@pytest.mark.parametrize("aggregate", [SUM, AVG], ids=["sum", "avg"])
def test_ten_thousand_answers_a_second_over_a_thousand_keys_and_a_hundred_panes(
    aggregate: Aggregate,
) -> None:
    synopsis = filled(aggregate)
    lengths = np.random.default_rng(1).integers(20, PANES + 1, QUERIES).tolist()
    questions = [Question(length, (aggregate,)) for length in lengths]
    spent = []
    for _ in range(7):
        start = time.process_time()
        answers = synopsis.scan(PANES, questions)
        spent.append(time.process_time() - start)
        assert [table.num_rows for table in answers] == [KEYS] * QUERIES
    assert QUERIES / min(spent) >= 10_000
