"""The moments at which `test_crash` kills the driver are those of functions that exist."""

from __future__ import annotations

import pytest

from tests.spark.test_crash import CHAINS, CHANGES, found

KNOWN = CHAINS | {"changes": CHANGES}
MOMENTS = [(chain, name) for chain, named in KNOWN.items() for name in named]


@pytest.mark.parametrize(("chain", "name"), MOMENTS)
def test_the_function_of_a_moment_is_there(chain, name):
    owner, function = found(KNOWN[chain][name])
    assert callable(getattr(owner, function, None)), KNOWN[chain][name].where
