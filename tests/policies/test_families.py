"""One suite for every policy of every family, crossed from the registry."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.cli.arguments import parser
from penstock.errors import PolicyError
from penstock.events import EngineStarted, Summary, digest
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.policies import FAMILIES, PolicyFamily, read, texts
from penstock.spark.defaults import DEFAULTS
from penstock.testing import FakeHost


def policies_of(families: Mapping[str, PolicyFamily[object]]) -> list[tuple[str, str]]:
    return [(family, name) for family, known in families.items() for name in known.catalogue]


every_family = pytest.mark.parametrize("family", FAMILIES)
every_policy = pytest.mark.parametrize(("family", "name"), policies_of(FAMILIES))

APPLICATION = """
    CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 1 SECOND;
    CREATE QUERY plain AS SELECT a FROM s WHERE a < 5;
    CREATE QUERY sums AS SELECT COUNT(*) FROM s [WINDOW 4 SECONDS SLIDE 2 SECONDS];
"""


@every_family
def test_a_family_is_a_folder_with_a_catalogue_and_a_default(family: str) -> None:
    known = FAMILIES[family]
    assert known.name == family
    assert known.decides and not known.decides.endswith(".")
    assert isinstance(known.read(known.default), known.contract)
    assert importlib.import_module(f"penstock.policies.{family}").FAMILY is known


@every_family
def test_the_folder_lists_the_policies_and_nothing_else_but_the_contract(family: str) -> None:
    """What policies reason about stands apart, in `model`."""
    folder = Path(inspect.getfile(importlib.import_module(f"penstock.policies.{family}"))).parent
    files = {file.stem for file in folder.glob("*.py")} - {"__init__", "base"}
    modifiers = getattr(importlib.import_module(f"penstock.policies.{family}"), "MODIFIERS", {})
    assert files == {*FAMILIES[family].catalogue, *modifiers}


@every_policy
def test_a_policy_is_one_file_named_after_it_that_teaches(family: str, name: str) -> None:
    kind = FAMILIES[family].catalogue[name]
    assert kind.__module__ == f"penstock.policies.{family}.{name}"
    assert "Reference: " in (kind.__doc__ or "")
    assert ">>>" in (kind.__doc__ or "")


@every_policy
def test_a_policy_is_read_by_its_name_and_can_be_copied_and_saved(family: str, name: str) -> None:
    policy = FAMILIES[family].read(name)
    assert type(policy) is FAMILIES[family].catalogue[name]
    assert isinstance(policy, FAMILIES[family].contract)
    assert policy == copy.deepcopy(policy) == pickle.loads(pickle.dumps(policy))
    assert FAMILIES[family].several(f"{name}, {name}") == {name: policy}


@every_policy
def test_a_name_with_a_slip_is_told_and_the_right_one_suggested(family: str, name: str) -> None:
    with pytest.raises(PolicyError, match="did you mean"):
        FAMILIES[family].read(name + "x")
    with pytest.raises(PolicyError, match="has no parameter 'nonsense'"):
        FAMILIES[family].read(f"{name}(nonsense=1)")


@every_policy
def test_set_chooses_a_policy(family: str, name: str) -> None:
    settings = bind(f"SET {family} = '{name}'").settings
    assert texts(settings)[family] == name
    assert read(settings)[family] == FAMILIES[family].read(name)


@every_family
def test_what_is_not_set_has_the_default_everywhere(family: str) -> None:
    assert texts({})[family] == DEFAULTS[family] == FAMILIES[family].default
    assert list(read({})) == list(FAMILIES)


@every_family
def test_the_command_line_takes_a_policy_of_each_family(family: str) -> None:
    known = FAMILIES[family]
    arguments = parser().parse_args(["run", "app.sql", f"--{family}", known.default])
    assert getattr(arguments, family) == known.default


@every_policy
def test_a_policy_can_start_and_take_over_in_the_middle_of_a_run(family: str, name: str) -> None:
    """The core asks it from then on, the record tells it, and the summary shows it."""
    host = FakeHost.of(APPLICATION)
    for number in range(6):
        host.arrive("s", at=float(number), times=[number * 2.0, number * 2.0 + 1])
    host.end("s", at=9.0)
    host.run(until=3.5)
    host.core.use(family, FAMILIES[family].read(name), 3.5, name)
    host.run()
    changed = [event for event in host.record if isinstance(event, ev.PolicyChanged)]
    assert [event.policies for event in changed] == [{family: name}]
    summary = Summary.of(host.record)
    started = next(event for event in host.record if isinstance(event, EngineStarted))
    assert summary.run.policies == {**started.policies, family: name}
    assert digest(summary)["run"]["policies"][family] == name
    assert summary.accounting() == []
    assert summary.queries["sums"].rows_out and summary.queries["plain"].rows_out


@every_policy
def test_a_policy_of_another_family_is_refused(family: str, name: str) -> None:
    host = FakeHost.of(APPLICATION)
    other = next(other for other in FAMILIES if other != family)
    with pytest.raises(AssertionError, match=f"is no policy for {other}"):
        host.core.use(other, FAMILIES[family].read(name), 0.0, name)
