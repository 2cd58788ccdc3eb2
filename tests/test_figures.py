"""Figures keep on their axes what is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.report import figures


def test_every_panel_shows_the_highest_curve_whichever_panel_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    save = figures._save
    monkeypatch.setattr(figures, "_save",
                        lambda figure, file: save(drawn.append(figure) or figure, file))
    times = [0.0, 1.0, 2.0]
    series = {"chain": (times, [0.0, 1.0, 0.0]), "fifo": (times, [0.0, 50.0, 2.0]),
              "greedy": (times, [0.0, 3.0, 0.0])}
    drawing = figures.Drawing("waiting", "seconds", "KB", steps=True)
    figures.draw_panels(tmp_path / "x.png", drawing, ("recorded", (times, [0, 9, 0])), series)
    (figure,) = drawn
    assert len(figure.axes) == 3
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == 0 and high >= 50
