"""Penstock: many continuous queries over bursty streams, answered by one Spark application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.functions import predicate, scalar

if TYPE_CHECKING:
    from penstock.api import Engine

__version__ = "0.1.0"

__all__ = ["Engine", "PenstockError", "__version__", "predicate", "scalar"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # The engine brings Spark with it, half a second of imports: a module of predicates, `penstock
    # explain` and the executors' Python workers do without.
    if name == "Engine":
        from penstock.api import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
