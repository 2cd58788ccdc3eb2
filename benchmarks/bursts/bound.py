"""What no schedule could have been below, by the figures that a run measured."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bursts.measuring import Series
from penstock.events import kinds as ev
from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.oracles import clairvoyant
from penstock.whatif.recorded import Recording


def bound(recording: Recording, events: Sequence[ev.Event], began: float) -> Series:
    """The clairvoyant level over time, in seconds since the burst began and megabytes.

    Stages are reckoned without what a job costs beside them, so this is below what jobs can reach.
    """
    routes, arrivals, sizes = [], {}, {}
    for path, stream in _streams(events).items():
        model = recording.paths[path]
        own = [e.block for e in events
               if isinstance(e, ev.BlockArrived) and e.at >= began and e.block.stream == stream]
        rows_per_byte = sum(block.rows for block in own) / sum(block.bytes for block in own)
        routes.append(Route(path, tuple(
            Stage(stage.name, stage.work * model.cost.per_row * rows_per_byte, stage.selectivity,
                  stage.width) for stage in model.stages)))
        arrivals[path] = [block.arrived - began for block in own]
        sizes[path] = [float(block.bytes) for block in own]
    at, level = clairvoyant(routes, arrivals, sizes).corners()
    return at, [amount / 1e6 for amount in level]


def _streams(events: Sequence[ev.Event]) -> dict[str, str]:
    """By path the stream that it reads; without those that end in panes, where nothing waits."""
    homes = {e.riders: e.path for e in events if isinstance(e, ev.RidersFormed)}
    return {homes[e.work.riders]: e.work.stream for e in events
            if isinstance(e, ev.JobDecided) and e.kind == "segment"}
