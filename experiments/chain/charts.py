"""Figs 1 to 3: progress charts with their lower envelopes."""

from __future__ import annotations

from experiments.chain.book import Book
from experiments.chain.queries import ABOVE_ONE, FOUR, MICROSECOND, Points, join_routes
from penstock.policies.operators.model.charts import Chart, chart
from penstock.report.figures import draw_chart


def tell(book: Book) -> None:
    """Charts of the queries that follow; the paper's own first three figures are sketches."""
    _draw(book, "fig01", "Fig. 1: progress chart, four operators", FOUR,
          "The three first operators are one segment: two that free little hide one that frees "
          "much.")
    _draw(book, "fig02", "Fig. 2: progress chart, one selectivity above 1", ABOVE_ONE,
          "The join doubles a page before a strong selection shrinks it.")
    for route in join_routes():
        known = chart(route)
        points = tuple(zip((t / MICROSECOND for t in known.times), known.sizes, strict=True))
        _draw(book, f"fig03-{route.id}", f"Fig. 3: window join, path of stream {route.id}", points,
              "Costs are ours: those of the chart with a selectivity above 1.")


def _draw(book: Book, id: str, title: str, points: Points, caption: str) -> None:
    known = Chart.of_points(points)
    file = book.out / "figures" / f"chain-{id}.png"
    draw_chart(file, f"{title} (µs per page)", points, known.envelope)
    book.report.figure(id, title, file, caption)
