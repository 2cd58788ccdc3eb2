"""How long blocks may wait for others to ride with: few large jobs cost less than many small."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock.engine.settings import Settings
from penstock.model import FILE_SINKS
from penstock.plan import Path, Plan


@dataclass(slots=True)
class Gathering:
    """The paths whose blocks gather, because folders of their own are costly to write often."""

    _hold: dict[str, float] = field(default_factory=dict)
    """By path: seconds that its strictest query can wait, where all write folders of their own."""

    def adopt(self, plan: Plan) -> None:
        """Look at who writes where."""
        folders = Counter(query.sink.target for query in plan.queries)
        alone = {query.name: query.latency or 0.0 for query in plan.queries
                 if query.sink.kind in FILE_SINKS and folders[query.sink.target] == 1}
        self._hold = {path.id: min(alone[member.query] for member in path.members)
                      for path in plan.paths
                      if not path.panes and all(m.query in alone for m in path.members)}

    def seconds(self, path: Path, settings: Settings) -> float:
        """Seconds a path's blocks may gather."""
        return max(settings.hold * self._hold.get(path.id, 0.0), settings.gather)
