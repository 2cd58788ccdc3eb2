"""How long blocks may wait for others to ride with: few large jobs cost less than many small."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.engine.settings import Settings
from penstock.plan import Path, Plan


@dataclass(slots=True)
class Gathering:
    """The paths whose blocks gather, because folders of their own are costly to write often."""

    _hold: dict[str, float] = field(default_factory=dict)
    """By path: seconds that its strictest query can wait, where all write folders of their own."""

    def adopt(self, plan: Plan) -> None:
        """Look at who writes where."""
        self._hold = {path.id: min(plan.query(m.query).latency or 0.0 for m in path.members)
                      for path in plan.paths
                      if path.end == "sink" and all(m.query in plan.alone for m in path.members)}

    def seconds(self, path: Path, settings: Settings) -> float:
        """Seconds a path's blocks may gather.

        What makes panes begins at once, and takes in the next run what has come meanwhile.
        """
        if path.end == "panes":
            return 0.0
        return max(settings.hold * self._hold.get(path.id, 0.0), settings.gather)
