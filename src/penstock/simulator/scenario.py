"""A scenario: a workload, and how it is to be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from penstock.policies.operators import POLICIES
from penstock.simulator.host import Overhead
from penstock.simulator.workload import Workload


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a comparison of policies needs to know."""

    workload: Workload
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per query its routes; empty: every route is a query."""
    overhead: Overhead = Overhead()
    window: float | None = None
    """Measured costs and selectivities are used after so much time; None: the believed ones."""
    unit: str = "s"
    """What people call a unit of time."""
    policies: tuple[str, ...] = tuple(POLICIES)
    """Bytes per row, to show memory in bytes."""

    @property
    def routes_of(self) -> Mapping[str, tuple[str, ...]]:
        """Per query its routes.

        >>> from penstock.simulator.network import Network, path
        >>> network = Network((path("a", [(1.0, 1.0)]), path("b", [(2.0, 1.0)])))
        >>> Scenario(Workload(network, {})).routes_of
        {'a': ('a',), 'b': ('b',)}
        """
        return self.queries or {route.id: (route.id,) for route in self.workload.network.routes}

    def promised(self, query: str) -> float:
        """The latency goal of a query; infinite if it has none."""
        routes = set(self.routes_of[query])
        return min((r.latency for r in self.workload.network.routes if r.id in routes), default=inf)
