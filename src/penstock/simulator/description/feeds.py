"""Arrivals in a description: from a table to the times at which blocks arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.errors import WorkloadError
from penstock.generators.packets import OnOff
from penstock.policies.operators import Route
from penstock.simulator import arrivals
from penstock.simulator.description.toml_tables import KINDS, Table
from penstock.simulator.outcomes import Floats

_MOST = 10_000_000
"""More arrivals than this on one route are a slip of the pen."""
_EVER = 1e12
"""Seconds after which a stream that ends has surely ended."""


@dataclass(frozen=True, slots=True)
class Feed:
    """What arrives at some routes, each of which gets a stream of its own."""

    table: Table
    kind: str
    rows: float
    """Rows that come at once."""
    gather: int
    """So many arrivals make a block."""

    @property
    def block(self) -> float:
        """Rows of a block."""
        return self.rows * self.gather

    def times(self, routes: Sequence[Route], folder: Path, seeds: Sequence[int]) -> list[Floats]:
        """When blocks arrive at each of these routes; chance comes from the seeds."""
        made = _KINDS[self.kind](_TableFeed(self, routes, folder, seeds))
        speed = self.table.number("speed", 1.0, above=0)
        start = self.table.number("start", 0.0, least=0)
        found = [arrivals.blocks(times / speed, self.gather) + start for times in made]
        if not all(map(len, found)):
            self.table.fail(f"gather = {self.gather} is more than all that arrives")
        return found


def feed(place: str, raw: object) -> Feed:
    """Read a table of arrivals.

    >>> feed("web.toml: [arrivals]", {"kind": "even", "gap": 2, "count": 9, "gather": 3}).block
    3.0
    """
    kind = Table(place, raw, ("kind",)).choice("kind", KINDS) if isinstance(raw, dict) else "even"
    table = Table.of(place, raw, "arrivals", kind)
    return Feed(table, kind, table.number("rows", 1.0, above=0), table.whole("gather", 1))


@dataclass(frozen=True, slots=True)
class _TableFeed:
    """What the arrivals of one table are made from."""

    feed: Feed
    routes: Sequence[Route]
    folder: Path
    seeds: Sequence[int]

    @property
    def table(self) -> Table:
        return self.feed.table

    def same(self, times: Floats) -> list[Floats]:
        """The same times for every route."""
        return [times] * len(self.routes)

    def own_seeds(self) -> Sequence[int]:
        """A seed for each route: those that follow from the file's, or from the table's own."""
        if "seed" not in self.table:
            return self.seeds
        first = self.table.whole("seed", least=0, most=2**62)
        return range(first, first + len(self.routes))


def _even(asked: _TableFeed) -> list[Floats]:
    gap = asked.table.number("gap", above=0)
    return asked.same(np.arange(asked.table.whole("count")) * gap)


def _poisson(asked: _TableFeed) -> list[Floats]:
    table, count = asked.table, asked.table.whole("count")
    if table.only_one_of("gap", "utilisation") == "gap":
        gap = table.number("gap", above=0)
    else:
        gap = _gap_for(table.number("utilisation", above=0), asked)
    return [arrivals.poisson(gap, count, np.random.default_rng(seed))
            for seed in asked.own_seeds()]


def _gap_for(utilisation: float, asked: _TableFeed) -> float:
    """The mean gap at which these arrivals keep the processor busy for this part of the time.

    At a utilisation of 1 it is the time to execute once what they arrive at: one arrival on each
    of the routes.
    """
    once: float = sum(route.cost for route in asked.routes) * asked.feed.rows
    if once == 0:
        asked.table.fail("utilisation needs operators that cost something")
    # The gap is multiplied by the speed, by which the times will be divided.
    return once / utilisation * float(asked.table.number("speed", 1.0, above=0))


def _bursts(asked: _TableFeed) -> list[Floats]:
    table = asked.table
    rate, on = table.number("rate", above=0), table.number("on", above=0)
    repeat = table.whole("repeat", 1)
    if not 1 <= round(rate * on) * repeat <= _MOST:
        table.fail(f"gives {rate * on * repeat:,.3g} arrivals: it must be 1 to {_MOST:,}")
    return asked.same(arrivals.bursts(rate, on, table.number("off", 0.0, least=0), repeat))


def _onoff(asked: _TableFeed) -> list[Floats]:
    table = asked.table
    if table.only_one_of("seconds", "count") == "count":
        count, seconds = table.whole("count"), _EVER
    else:
        count, seconds = None, table.number("seconds", above=0)
    given = {key: table.number(key) for key in ("rate", "burst", "length") if key in table}
    try:
        made = [OnOff(**given, rows=count, seed=seed) for seed in asked.own_seeds()]
    except ValueError as error:
        table.fail(str(error))
    if count is None and made[0].rate * seconds > _MOST:
        table.fail(f"gives more than {_MOST:,} arrivals")
    return [arrivals.onoff(traffic, seconds) for traffic in made]


def _times(asked: _TableFeed) -> list[Floats]:
    listed = asked.table.items("times")
    if any(isinstance(at, bool) or not isinstance(at, int | float) for at in listed):
        asked.table.fail("times must be numbers")
    times = np.array(listed, float)
    if not np.isfinite(times).all() or times[0] < 0 or (np.diff(times) < 0).any():
        asked.table.fail("times must begin at 0 or later and ascend")
    return asked.same(times)


def _trace(asked: _TableFeed) -> list[Floats]:
    table = asked.table
    file = asked.folder / table.text("file")
    try:
        times = arrivals.trace(file, table.text("column", "ts"))
    except WorkloadError as error:
        raise WorkloadError(f"{table.place} {error}") from error
    return asked.same(times[: table.whole("count", None)])


_KINDS: dict[str, Callable[[_TableFeed], list[Floats]]] = {
    "even": _even,
    "poisson": _poisson,
    "bursts": _bursts,
    "onoff": _onoff,
    "times": _times,
    "trace": _trace,
}
