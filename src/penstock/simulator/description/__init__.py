"""Workloads described in TOML: what people write to try policies out.

The smallest description is a query and what arrives:

>>> found = read('''
... [queries.web]
... operators = [{ cost = 1, selectivity = 0.2 }, { cost = 5 }]
... arrivals = { kind = "even", gap = 1, count = 7 }
... ''')
>>> found.workload.network.routes[0].stages[0]
Stage(operator='web.1', cost=1.0, selectivity=0.2, width=1.0)

Every key is told in docs/reference/simulator.md. What is not known is refused with its place:

>>> read('[queries.web]\\noperators = [{ cst = 1 }]\\narrivals = { kind = "even", gap = 1, count = 7 }')
Traceback (most recent call last):
...
penstock.errors.WorkloadError: workload: [queries.web.operators.1] has no key 'cst'; did you mean 'cost'?
"""  # noqa: E501

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np

from penstock.errors import PolicyError, WorkloadError
from penstock.policies.operators import POLICIES, Stage, policy
from penstock.simulator.description.described_queries import DescribedPlan
from penstock.simulator.description.feeds import feed
from penstock.simulator.description.toml_tables import KEYS, KINDS, Table
from penstock.simulator.host import Overhead
from penstock.simulator.outcomes import MODELS, Floats
from penstock.simulator.scenario import Scenario
from penstock.simulator.workload import Workload

_ARRIVALS, _TREES = 1, 2
"""What a part of the seed is for: fates are drawn from the seed itself."""


def load(file: Path, seed: int | None = None) -> Scenario:
    """The scenario that a file describes, with another seed than its own if one is given."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkloadError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{file} is not text in UTF-8: {error.reason}") from error
    return read(text, file.parent, seed, str(file), file.stem)


def read(
    text: str,
    folder: Path = Path("."),
    seed: int | None = None,
    place: str = "workload",
    name: str = "workload",
) -> Scenario:
    """The scenario that a text describes; ``folder`` is where its traces lie."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WorkloadError(f"{place} is not TOML: {error}") from error
    file = Table.of(place, raw, "the file")
    chosen = file.whole("seed", 0, least=0, most=2**62) if seed is None else seed
    plan = _plan(file, chosen)
    return Scenario(
        workload=_workload(file, plan, folder, chosen, name),
        queries=plan.queries,
        overhead=_overhead(file),
        window=file.number("window", None, above=0),
        unit=file.text("unit", "s"),
        policies=_policies(file),
    )


def _plan(file: Table, seed: int) -> DescribedPlan:
    common = feed(file.below("arrivals"), file.value("arrivals")) if "arrivals" in file else None
    plan = DescribedPlan({}, common, np.random.default_rng([seed, _TREES]))
    plan.shared = {name: _shared(plan, name, table)
                   for name, table in _named(file, "operators", "an operator")}
    for name, query in _named(file, "queries", "a query"):
        plan.add(name, query)
    if not plan.queries:
        file.fail("has no query: write a table [queries.NAME]")
    return plan


def _named(file: Table, key: str, kind: str) -> list[tuple[str, Table]]:
    """The tables within a table, by name."""
    tables = file.value(key, {})
    if not isinstance(tables, dict):
        file.wrong(key, "a table of tables")
    for name in tables:
        if "." in name or not name.strip():  # operators are named QUERY.OPERATOR
            file.fail(f"cannot have '{name}' in {key}: a name is not empty and has no dot")
    return [(name, Table.of(file.below(f"{key}.{name}"), raw, kind))
            for name, raw in tables.items()]


def _shared(plan: DescribedPlan, name: str, table: Table) -> Stage:
    if "name" in table:
        table.fail("has its name from its table already")
    return plan.operator(name, table)


def _workload(file: Table, plan: DescribedPlan, folder: Path, seed: int, name: str) -> Workload:
    model = file.choice("model", MODELS, "divisible")
    times = _times(plan, folder, seed)
    rows = {}
    for route, source in zip(plan.routes, plan.feeds, strict=True):
        if model == "tuples" and source.block % 1:
            source.table.fail(f"rows must be whole where rows are tuples, not {source.rows:g}")
        rows[route.id] = np.full(len(times[route.id]), source.block)
    entering = {route: float(each.sum()) for route, each in rows.items()}
    return Workload(
        plan.network(entering), times, rows, model,
        bytes=file.number("bytes", 1.0, above=0), seed=seed, name=file.text("name", name))


def _times(plan: DescribedPlan, folder: Path, seed: int) -> dict[str, Floats]:
    """When blocks arrive at each route; routes that name one table divide its load."""
    state = np.random.SeedSequence([seed, _ARRIVALS]).generate_state(len(plan.routes))
    seeds = [int(word) for word in state]
    found: dict[str, Floats] = {}
    for place in dict.fromkeys(source.table.place for source in plan.feeds):
        numbers = [i for i, source in enumerate(plan.feeds) if source.table.place == place]
        routes = [plan.routes[i] for i in numbers]
        times = plan.feeds[numbers[0]].times(routes, folder, [seeds[i] for i in numbers])
        found |= {route.id: each for route, each in zip(routes, times, strict=True)}
    return found


def _overhead(file: Table) -> Overhead:
    if "overhead" not in file:
        return Overhead()
    if not isinstance(file.value("overhead"), dict):
        return Overhead.each(file.number("overhead", least=0))
    table = file.table("overhead", "overhead")
    return Overhead(*(table.number(key, 0.0, least=0) for key in KEYS["overhead"]))


def _policies(file: Table) -> tuple[str, ...]:
    if "policies" not in file:
        return tuple(POLICIES)
    listed = file.items("policies")
    for text in listed:
        try:
            policy(text if isinstance(text, str) else repr(text))
        except PolicyError as error:
            file.fail(f"policies: {error}")
    return tuple(listed)


__all__ = ["KEYS", "KINDS", "load", "read"]
