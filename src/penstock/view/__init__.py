"""Showing runs to people: live while they go on, and as an account when they have ended."""

from __future__ import annotations

from penstock.view.tables import Picture, RunTotals
from penstock.view.watching import LiveWatch, PlainWatch, Watch, progress_line, show_account, watch

__all__ = [
    "LiveWatch",
    "Picture",
    "PlainWatch",
    "RunTotals",
    "Watch",
    "progress_line",
    "show_account",
    "watch",
]
