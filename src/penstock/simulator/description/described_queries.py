"""Queries in a description: from tables to routes, shared operators, joins and beliefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.charts import Chart, window_join
from penstock.policies.operators.model.routes import gain
from penstock.simulator import trees
from penstock.simulator.description.feeds import Feed, feed
from penstock.simulator.description.toml_tables import LARGEST, Table
from penstock.simulator.network import Network

_MOST_OPERATORS = 10_000
"""Operators of a tree, at most."""
_MANY = 1_000_000
"""Rows that an operator makes of one, at most."""


@dataclass(frozen=True, slots=True)
class Join:
    """A window join of two routes: the figures of section 4.3.1 of the chain paper."""

    operators: tuple[str, str]
    routes: tuple[Route, Route]
    rates: tuple[float, float] | None
    matches: tuple[float, float]
    costs: tuple[float, float]

    def believed(self, entering: Mapping[str, float]) -> tuple[float, float]:
        """Cost and selectivity per row of either side.

        Rates that were not given follow from all that enters the routes and what their operators
        let through to the join; only the proportion of the two matters.
        """
        reach = tuple(
            entering[route.id] * gain(route.stages[: _place(route, operator)])
            for route, operator in zip(self.routes, self.operators, strict=True))
        rates = self.rates or (reach if sum(reach) else (1.0, 1.0))
        return window_join((rates[0], rates[1]), self.matches, self.costs)


@dataclass(slots=True)
class DescribedPlan:
    """What the queries of a file amount to; each of them adds its part."""

    shared: Mapping[str, Stage]
    """Operators that several queries may name."""
    common: Feed | None
    """The arrivals of queries that have none of their own."""
    random: np.random.Generator
    believed: dict[str, Stage] = field(default_factory=dict)
    queries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    """For each route what arrives there."""
    joins: list[Join] = field(default_factory=list)

    def network(self, entering: Mapping[str, float]) -> Network:
        """The routes, where they meet, and what a policy is told about them."""
        told = dict(self.believed)
        for join in self.joins:
            cost, kept = join.believed(entering)
            told |= {name: Stage(name, cost, kept) for name in join.operators}
        true = Network(tuple(self.routes), tuple(join.operators for join in self.joins))
        return replace(true, believed=true.told(told)) if told else true

    def add(self, name: str, query: Table) -> None:
        """Add a query."""
        before = len(self.routes)
        if "join" in query:
            self._add_join(name, query)
        elif query.only_one_of("operators", "chart", "join", "tree") == "tree":
            self._add_tree(name, query)
        else:
            source = self._feed(query)
            self._add_route(name, self._way(name, query, source), query, source)
        self.queries[name] = tuple(route.id for route in self.routes[before:])

    # --- one stream --------------------------------------------------------------------------

    def _add_route(self, id: str, stages: Sequence[Stage], query: Table, source: Feed) -> Route:
        names = [stage.operator for stage in stages]
        for name in names:
            if names.count(name) > 1:
                query.fail(f"has the operator '{name}' twice on one path")
        latency = query.number("latency", inf, above=0)
        route = Route(id, tuple(stages), latency, query.number("priority", 1.0, above=0))
        self.routes.append(route)
        self.feeds.append(source)
        return route

    def _way(self, name: str, query: Table, source: Feed) -> list[Stage]:
        if "chart" in query:
            return _charted(name, query, source.block)
        return self._listed(name, query)

    def _listed(self, name: str, query: Table) -> list[Stage]:
        """The operators of a list: tables of their own, or names of shared ones."""
        made = []
        for number, item in enumerate(query.items("operators"), 1):
            if isinstance(item, str):
                made.append(self._shared(query, item))
            else:
                table = Table.of(query.below(f"operators.{number}"), item, "an operator")
                made.append(self.operator(f"{name}.{table.text('name', str(number))}", table))
        return made

    def _shared(self, query: Table, name: str) -> Stage:
        if name not in self.shared:
            query.fail(f"names the operator '{name}', but there is no [operators.{name}]")
        return self.shared[name]

    def operator(self, name: str, table: Table) -> Stage:
        """Read an operator, and what is believed about it."""
        cost = table.number("cost", least=0)
        kept = table.number("selectivity", 1.0, least=0, most=_MANY)
        if "believed_cost" in table or "believed_selectivity" in table:
            self.believed[name] = Stage(
                name, table.number("believed_cost", cost, least=0),
                table.number("believed_selectivity", kept, least=0, most=_MANY))
        return Stage(name, cost, kept)

    def _feed(self, *tables: Table) -> Feed:
        """The arrivals of the first table that has some, or those for all."""
        for table in tables:
            if "arrivals" in table:
                return feed(table.below("arrivals"), table.value("arrivals"))
        if self.common is None:
            tables[0].fail("has no arrivals, and the file has no [arrivals] for all")
        return self.common

    # --- several streams ---------------------------------------------------------------------

    def _add_join(self, name: str, query: Table) -> None:
        for key in ("chart", "tree"):
            if key in query:
                query.fail(f"takes only one of join and {key}; operators follow a join")
        after = self._listed(name, query) if "operators" in query else []
        table = query.table("join", "a join")
        sides = [table.table(side, "a side") for side in ("left", "right")]
        costs = tuple(side.number("cost", least=0) for side in sides)
        matches = tuple(side.number("matches", least=0, most=_MANY) for side in sides)
        made = []
        for k, (word, side) in enumerate(zip(("left", "right"), sides, strict=True)):
            ahead = self._listed(f"{name}.{word}", side) if "operators" in side else []
            # A row meets the rows in the window of the other side.
            stage = Stage(f"{name}.join.{word}", costs[k], matches[1 - k])
            made.append(self._add_route(
                f"{name}.{word}", [*ahead, stage, *after], query, self._feed(side, query)))
        self.joins.append(Join(
            (f"{name}.join.left", f"{name}.join.right"), (made[0], made[1]),
            _rates(table, sides), (matches[0], matches[1]), (costs[0], costs[1])))

    def _add_tree(self, name: str, query: Table) -> None:
        table = query.table("tree", "a tree")
        depth = table.whole("depth", most=20)
        fan_out = table.whole("fan_out", most=1000)
        if sum(fan_out**level for level in range(depth + 1)) > _MOST_OPERATORS:
            table.fail(f"has more than {_MOST_OPERATORS:,} operators")
        names = trees.names(depth, fan_out)
        cost = dict(zip(names, self._spread(table, "cost", len(names), LARGEST), strict=True))
        kept = {}
        if "selectivity" in table:
            spread = self._spread(table, "selectivity", len(names), _MANY)
            kept = dict(zip(names, spread, strict=True))
        if "expensive" in table:
            cost |= _expensive(table.table("expensive", "expensive"), depth, fan_out)
        source = self._feed(query)
        for route in trees.tree(depth, fan_out, cost, kept).routes:
            stages = [replace(s, operator=f"{name}.{s.operator}") for s in route.stages]
            self._add_route(f"{name}.{route.id}", stages, query, source)

    def _spread(self, table: Table, key: str, count: int, most: float) -> list[float]:
        """The same number for all, or numbers drawn by Zipf's law."""
        if not isinstance(table.value(key), dict):
            return [table.number(key, least=0, most=most)] * count
        spread = table.table(key, "a spread")
        low = spread.number("low", least=0, most=most)
        high = spread.number("high", least=low, most=most)
        skew = spread.number("skew", 0.0, least=0, most=10)
        return [float(value) for value in trees.zipf(low, high, skew, count, self.random)]


def _charted(name: str, query: Table, rows: float) -> list[Stage]:
    """The operators of a progress chart, whose times are those of a whole block."""
    points = query.items("chart")
    for point in points:
        if not isinstance(point, list) or len(point) != 2 or not all(map(_is_number, point)):
            query.fail(f"chart must be points [time, size], not {point!r}")
    chart = Chart.of_points([(time, size) for time, size in points])
    if (chart.times[0], chart.sizes[0]) != (0.0, 1.0) or len(points) < 2:
        query.fail("chart must begin with [0, 1] and have at least one point more")
    if chart.sizes[-1] != 0 or min(chart.sizes[:-1]) <= 0:
        query.fail("chart must have sizes above 0, and 0 at its last point")
    if any(later < time for time, later in zip(chart.times, chart.times[1:], strict=False)):
        query.fail("chart must have ascending times")
    names = [f"{name}.{number}" for number in range(1, len(points))]
    return [replace(stage, cost=stage.cost / rows) for stage in chart.stages(names)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < inf


def _rates(join: Table, sides: Sequence[Table]) -> tuple[float, float] | None:
    given = ["rate" in side for side in sides]
    if any(given) and not all(given):
        join.fail("needs a rate for both sides, or for neither")
    if not any(given):
        return None
    left, right = (side.number("rate", above=0) for side in sides)
    return left, right


def _expensive(table: Table, depth: int, fan_out: int) -> dict[str, float]:
    """The first operators from the left at some depth cost more."""
    level = table.whole("depth", least=0, most=depth)
    count = table.whole("count", 1, most=fan_out**level)
    cost = table.number("cost", least=0)
    return {f"d{level}.{i}": cost for i in range(count)}


def _place(route: Route, operator: str) -> int:
    return [stage.operator for stage in route.stages].index(operator)
