"""What tests read off the lower envelope of a progress chart."""

from __future__ import annotations

from itertools import pairwise

from penstock.policies.operators.model.charts import Chart


def envelope_size(chart: Chart, progress: float) -> float:
    """The size on the lower envelope of a block that has had so much work."""
    for a, b in pairwise(chart.envelope):
        if progress < chart.times[b]:
            return chart.sizes[a] - (progress - chart.times[a]) * chart.derivative(a, b)
    return chart.sizes[-1]
