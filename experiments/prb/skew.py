"""Sections 5.1 and 5.2: skewed costs (Figs 3, 4) and skewed selectivities (Figs 5, 6)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.prb.queries import Flat
from experiments.prb.runs import FIFO, PRB, RB, RR, Load, Size, Sweep, crossing
from experiments.prb.telling import COST_SKEW, GAIN, RESPONSE, Telling
from penstock.report.figures import Drawing
from penstock.simulator.outcomes import Floats

IN_ORDER = (FIFO, "edf", "greedy")
"""Without deadlines, and where every operator but a free one lets everything through, these serve
in the order of arrival."""
LEAST, MOST = 5.0, 20.0
"""Per cent that PRB saves at both ends of Fig. 4, as the paper says."""
PAPER = ((LEAST, "paper, at skew 0.0"), (MOST, "paper, at skew 0.9"))
FIVE_TO_TWENTY = "grows; 5 % and 20 % lie within two standard deviations of a draw"


def costs(size: Size) -> Sweep:
    """Fifty streams whose operators' costs are more and more skewed."""
    loads = tuple(Load(Flat(cost_skew=skew), size.tuples) for skew in size.skews)
    return Sweep("cost skew", size.skews, loads, (RB, PRB), size.flat)


def rivals(size: Size) -> Sweep:
    """The same with the policies that know nothing of costs."""
    return replace(costs(size), policies=(RR, FIFO, RB, PRB), draws=size.slow)


def others(size: Size) -> Sweep:
    """The same with the policies of the chain paper."""
    return replace(costs(size), policies=("chain", *IN_ORDER, RB, PRB), draws=size.slow)


def selectivities(size: Size) -> Sweep:
    """Fifty streams whose operators' selectivities are."""
    loads = tuple(Load(Flat(selectivity_skew=skew), size.tuples) for skew in size.skews)
    return Sweep("selectivity skew", size.skews, loads, (RB, PRB), size.flat)


def sweeps(size: Size) -> list[Sweep]:
    """All that is run here."""
    return [rivals(size), costs(size), selectivities(size), others(size)]


def tell(telling: Telling, size: Size) -> None:
    """Figures and claims."""
    _rivals(telling, rivals(size))
    _costs(telling, costs(size))
    _selectivities(telling, selectivities(size))
    _others(telling, others(size))


def _rivals(telling: Telling, sweep: Sweep) -> None:
    ours = telling.response(sweep, PRB)
    rivals = np.array([telling.response(sweep, name) for name in (RR, FIFO, RB)])
    lead = 100 * (1 - ours / rivals.min(axis=0))
    telling.check(
        "fig3-best", "PRB beats RB, RR and FIFO at every skew of the costs", "ahead at every skew",
        f"ahead by {lead.min():.1f} to {lead.max():.1f} % of the next best", bool((lead > 0).all()))
    falls = all((np.diff(telling.response(sweep, name)) < 0).all() for name in sweep.policies)
    telling.check(
        "fig3-falls", "the response time falls as the skew grows", "falls for all four policies",
        f"PRB from {ours[0]:.0f} to {ours[-1]:.0f}", falls)
    slower = telling.response(sweep, RR) - telling.response(sweep, FIFO)
    met = crossing(sweep.x, slower)
    telling.check(
        "fig3-rr", "RR outperforms FIFO as the skew grows",
        "slower at the least skew, faster at the most",
        f"faster from {met:.2f} on" if met else "never overtakes",
        bool(slower[0] > 0 > slower[-1]))
    telling.responses(
        "fig3", Drawing("Fig. 3: skewed costs", COST_SKEW, RESPONSE, marks=True), sweep,
        "50 streams, costs from 1 to 100, everything is let through; means over the draws.",
        ("fig3-best", "fig3-falls", "fig3-rr"))


def _costs(telling: Telling, sweep: Sweep) -> None:
    measured, holds = from_five_to_twenty(telling.gains(sweep))
    telling.check(
        "fig4", "what PRB saves over RB grows with the skew, from about 5 % to about 20 %",
        FIVE_TO_TWENTY, measured, holds)
    telling.savings(
        "fig4", Drawing("Fig. 4: saved by PRB over RB, skewed costs", COST_SKEW, GAIN, marks=True,
                        lines=PAPER), sweep,
        "± is the standard deviation between draws of the fifty costs.", ("fig4",))
    telling.rows("fig4", sweep)


def _selectivities(telling: Telling, sweep: Sweep) -> None:
    x = "skew of the selectivities (Zipf parameter)"
    gains = telling.gains(sweep).mean(axis=0)
    telling.check(
        "fig5", "PRB beats RB at every skew of the selectivities", "ahead at every skew",
        f"ahead by {gains.min():.1f} to {gains.max():.1f} %", bool((gains > 0).all()))
    telling.responses(
        "fig5", Drawing("Fig. 5: skewed selectivities", x, RESPONSE, marks=True), sweep,
        "50 streams, selectivities from 0.01 to 1, every operator but the root costs 100.",
        ("fig5",))
    telling.check(
        "fig6", "what PRB saves grows with the skew of the selectivities", "grows at every step",
        f"{gains[0]:.1f} % to {gains[-1]:.1f} %", bool((np.diff(gains) > 0).all()))
    telling.savings(
        "fig6", Drawing("Fig. 6: saved by PRB over RB, skewed selectivities", x, GAIN, marks=True),
        sweep, "The paper gives no numbers here.", ("fig6",))


def _others(telling: Telling, sweep: Sweep) -> None:
    curves = {name: telling.response(sweep, name) for name in sweep.policies}
    series = {", ".join(IN_ORDER): (sweep.x, curves[FIFO])} | {
        name: (sweep.x, curves[name]) for name in ("chain", RB, PRB)}
    telling.figure(
        "others", Drawing("Beyond the paper: other policies, skewed costs", COST_SKEW, RESPONSE,
                          marks=True), series,
        "Chain ranks the cheap before the expensive too, and preempts, but does not count what was "
        "already spent on the tuple under way. Nothing is filtered and nothing has a deadline, so "
        "Greedy and EDF serve in the order of arrival, as FIFO does.", ("others",))
    behind = 100 * (curves["chain"] / curves[PRB] - 1)
    telling.check(
        "others", "beyond the paper: no other policy of the catalogue answers sooner than PRB",
        "PRB ahead at every skew", f"Chain is {behind.min():.1f} to {behind.max():.1f} % slower",
        all((curves[PRB] < curve).all() for name, curve in curves.items() if name != PRB))


def from_five_to_twenty(gains: Floats) -> tuple[str, bool]:
    """Whether the paper's two numbers could be those of one of our draws, and what ours are."""
    mean, spread = gains.mean(axis=0), gains.std(axis=0, ddof=1)
    near = abs(mean[0] - LEAST) <= 2 * spread[0] and abs(mean[-1] - MOST) <= 2 * spread[-1]
    measured = f"{mean[0]:.1f} ± {spread[0]:.1f} % to {mean[-1]:.1f} ± {spread[-1]:.1f} %"
    return measured, bool((np.diff(mean) > 0).all() and near)
