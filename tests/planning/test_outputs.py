"""Many answers as one table."""

from __future__ import annotations

import pytest

from penstock.errors import PlanError
from penstock.model import BIGINT, DOUBLE, INT, STRING, VOID, Field, Type
from penstock.planning.outputs import merged


def decimal(precision, scale):
    return Type("DECIMAL", precision=precision, scale=scale)


@pytest.mark.parametrize(("one", "other", "both"), [
    (INT, INT, INT),
    (INT, BIGINT, BIGINT),
    (INT, DOUBLE, DOUBLE),
    (VOID, STRING, STRING),
    (decimal(5, 2), decimal(6, 1), decimal(7, 2)),
    (decimal(5, 2), INT, decimal(12, 2)),
    (decimal(5, 2), DOUBLE, DOUBLE),
])  # fmt: skip
def test_a_shared_column_is_wide_enough_for_all(one, other, both):
    assert merged([Field("a", one), Field("A", other)]) == (Field("a", both),)
    assert merged([Field("a", other), Field("A", one)]) == (Field("a", both),)


def test_types_that_do_not_fit_are_told():
    with pytest.raises(PlanError, match="column 'a' both as INT and as STRING"):
        merged([Field("a", INT), Field("a", STRING)])
