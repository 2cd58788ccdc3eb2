"""The moments at which `test_crash` kills the driver are those of functions that exist."""

from __future__ import annotations

import pytest

from tests.spark.test_crash import CHAINS, found

MOMENTS = [(chain, name) for chain, named in CHAINS.items() for name in named]


@pytest.mark.parametrize(("chain", "name"), MOMENTS)
def test_the_function_of_a_moment_is_there(chain, name):
    owner, function = found(CHAINS[chain][name])
    assert callable(getattr(owner, function, None)), CHAINS[chain][name].where
