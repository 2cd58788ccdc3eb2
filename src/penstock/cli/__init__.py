"""The command line: thin, so that everything it does can be done through the API too."""

from __future__ import annotations

from penstock.cli.entry import main

__all__ = ["main"]
