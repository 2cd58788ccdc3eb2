"""The libraries in whose tables answers are handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import SetupError

if TYPE_CHECKING:
    import pyarrow as pa

Form: TypeAlias = Literal["arrow", "pandas", "polars", "spark"]
FORMS: tuple[str, ...] = get_args(Form)


def check_form(to: str) -> None:
    """Refuse a form that there is not.

    >>> check_form("numpy")
    Traceback (most recent call last):
    ValueError: to is 'arrow', 'pandas', 'polars' or 'spark', not 'numpy'
    """
    if to not in FORMS:
        listed = ", ".join(map(repr, FORMS[:-1]))
        raise ValueError(f"to is {listed} or {FORMS[-1]!r}, not {to!r}")


def formed(table: pa.Table, to: Form, session: Callable[[], SparkSession]) -> Any:
    """A table in the form asked for; ``session`` is the one to which a DataFrame belongs."""
    if to == "pandas":
        return table.to_pandas()
    if to == "polars":
        return _polars(table)
    return _frame(table, session()) if to == "spark" else table


def _polars(table: pa.Table) -> Any:
    try:
        import polars
    except ImportError:
        raise SetupError("to='polars' needs Polars: pip install polars") from None
    return polars.from_arrow(table)


def _frame(table: pa.Table, session: SparkSession) -> DataFrame:
    return session.createDataFrame(table)
