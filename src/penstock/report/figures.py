"""Figures from plain numbers: lines over time, curves over a parameter, progress charts.

matplotlib is optional (the extra ``figures``); drawing without it raises an error that says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import SetupError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = tuple[Sequence[float], Sequence[float]]

COLOURS = {
    "chain": "#1b7837", "fifo": "#b2182b", "greedy": "#e08214", "round_robin": "#762a83",
    "mixed": "#2166ac", "chain_flush": "#d01c8b", "edf": "#8c510a", "rate_based": "#4d4d4d",
    "preemptive_rate_based": "#35a5c5", "bound": "#999999",
    "no_sharing": "#b2182b", "aggressive": "#e08214", "conservative": "#762a83",
    "hybrid": "#1b7837",
    "isolated": "#999999", "lwo": "#b2182b", "swf": "#e08214", "mqt": "#1b7837",
    "a_greedy": "#1b7837", "sweep": "#2166ac", "independent": "#b2182b", "local_swaps": "#e08214",
    "static_greedy": "#762a83", "optimal": "#4d4d4d",
}
"""A policy has the same colour in every figure."""

REMEDY = "pip install 'penstock-spark[figures]'"
"""What to do when matplotlib is missing."""

_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), "-.")
"""Several lines of one policy differ in these."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a figure is drawn: what is on the axes, and on which scale."""

    title: str
    x: str
    y: str
    steps: bool = False
    """Whether a value holds until the next point."""
    marks: bool = False
    """Whether each point is marked."""
    log_x: bool = False
    log_y: bool = False
    lines: tuple[tuple[float, str], ...] = ()
    """Horizontal lines, with their labels."""
    posts: tuple[tuple[float, str], ...] = ()
    """Vertical lines, with their labels."""


def available() -> bool:
    """Whether figures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw(file: Path, drawing: Drawing, series: Mapping[str, Points]) -> Path:
    """Draw named series into a PNG file."""
    figure, axes = _axes()
    drawn: Counter[str] = Counter()
    for number, (name, (x, y)) in enumerate(series.items()):
        # Each is narrower than the one before, so that a line under another still shows.
        width = 1.1 + 1.1 * (1 - (number + 1) / len(series))
        style: dict[str, Any] = {"linewidth": width, "label": name}
        if colour := _colour(name):
            style["color"] = colour
            style["linestyle"] = _DASHES[drawn[colour] % len(_DASHES)]
            drawn[colour] += 1
        if drawing.marks:
            style["marker"] = "o"
            style["markersize"] = 3.5
        if bound := name.startswith("bound"):
            style["linestyle"] = "--"
        steps = drawing.steps and not bound  # what a bound says falls steadily
        axes.plot(x, y, drawstyle="steps-post" if steps else "default", **style)
    _furnish(axes, drawing, legend=len(series) > 1)
    return _save(figure, file)


def draw_panels(
    file: Path, drawing: Drawing, behind: tuple[str, Points], series: Mapping[str, Points]
) -> Path:
    """Draw each series in a panel of its own, in front of the same grey area, as steps."""
    figure = _figure(7.2, 1.0 + 1.5 * len(series))
    axes = figure.subplots(len(series), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    label, (x, y) = behind
    for panel, (name, (times, levels)) in zip(axes, series.items(), strict=True):
        panel.fill_between(x, y, step="post", color="#d9d9d9", linewidth=0, label=label)
        panel.plot(times, levels, drawstyle="steps-post", linewidth=1.2,
                   color=_colour(name) or "#333333")
    for panel, name in zip(axes, series, strict=True):  # all share the axes, so all are drawn first
        _furnish(panel, replace(drawing, title=name, x=""), legend=panel is axes[0])
    axes[-1].set_xlabel(drawing.x)
    figure.suptitle(drawing.title, x=0.01, ha="left", fontsize=11)
    return _save(figure, file)


def draw_chart(
    file: Path, title: str, points: Sequence[tuple[float, float]], envelope: Sequence[int]
) -> Path:
    """Draw a progress chart as steps, with its lower envelope dashed."""
    figure, axes = _axes()
    times, sizes = [t for t, _ in points], [s for _, s in points]
    axes.plot(times, sizes, drawstyle="steps-post", color="#b2182b", label="progress chart")
    axes.plot([times[i] for i in envelope], [sizes[i] for i in envelope], "o--",
              color="#1b7837", label="lower envelope")
    _furnish(axes, Drawing(title, "time", "size of a block"), legend=True)
    return _save(figure, file)


def _colour(name: str) -> str | None:
    """The colour of the policy that a label begins with.

    >>> _colour("mixed(gamma=0.01)"), _colour("chain, greedy") == COLOURS["chain"], _colour("x")
    ('#2166ac', True, None)
    """
    return COLOURS.get(re.split(r"\W", name)[0])


def _axes() -> tuple[Any, Axes]:
    figure = _figure(6.4, 3.8)
    return figure, figure.subplots()


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SetupError(f"figures need matplotlib: {REMEDY}") from error
    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def _furnish(axes: Axes, drawing: Drawing, legend: bool) -> None:
    _rule(axes, drawing)
    axes.set_title(drawing.title, loc="left", fontsize=10)
    axes.set_xlabel(drawing.x)
    axes.set_ylabel(drawing.y)
    if drawing.log_x:
        axes.set_xscale("log")
        _plain(axes.xaxis)
    if drawing.log_y:
        axes.set_yscale("log")
        _plain(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(fontsize=8, framealpha=0.8, edgecolor="none")


def _rule(axes: Axes, drawing: Drawing) -> None:
    """Straight lines across, with their labels on them."""
    grey: dict[str, Any] = {"color": "#555555", "linewidth": 0.9}
    small: dict[str, Any] = {"color": "#333333", "fontsize": 7, "zorder": 10}  # above the legend
    for level, label in drawing.lines:
        axes.axhline(level, linestyle=":", **grey)
        axes.text(0.995, level, label, transform=axes.get_yaxis_transform(), ha="right",
                  va="bottom", **small)
    for place, label in drawing.posts:
        axes.axvline(place, linestyle="-.", **grey)
        axes.text(place, 0.02, f" {label}", transform=axes.get_xaxis_transform(), rotation=90,
                  ha="right", va="bottom", **small)


def _plain(axis: Any) -> None:
    """On a logarithmic axis 2, 5 and 20 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _save(figure: Any, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    return file
