"""Python functions for SQL: `predicate` declares a vectorised condition, `scalar` a column.

A function takes whole columns (Arrow arrays, or pandas Series) and returns one value per row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

_FORMS = ("arrow", "pandas")


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A declared function: what SQL needs to know about it, and the function itself."""

    call: Callable[..., Any]
    returns: str
    """The SQL type of its values, such as ``BOOLEAN`` or ``DECIMAL(10,2)``."""
    columns: str
    """The form in which it takes its columns: ``arrow`` or ``pandas``."""
    deterministic: bool = True
    """Whether its answer for a row depends on nothing but the row."""

    def __call__(self, *args: Any) -> Any:
        """Call the plain function, so that it can be tested by hand."""
        return self.call(*args)

    @property
    def arity(self) -> int | None:
        """The number of columns it takes; None if it takes any number."""
        parameters = inspect.signature(self.call).parameters.values()
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return None
        return len([p for p in parameters if p.default is p.empty])


@overload
def predicate(call: Callable[..., Any], /) -> PythonFunction: ...
@overload
def predicate(
    *, columns: str = "arrow", deterministic: bool = True
) -> Callable[[Callable[..., Any]], PythonFunction]: ...
def predicate(
    call: Callable[..., Any] | None = None, /, *, columns: str = "arrow",
    deterministic: bool = True,
) -> PythonFunction | Callable[[Callable[..., Any]], PythonFunction]:
    """Declare a vectorised Python condition for SQL.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> @predicate
    ... def is_long(length):
    ...     return pc.greater(length, 1000)
    >>> is_long(pa.array([10, 2000])).to_pylist()
    [False, True]

    A null answer counts as false. If the function raises an error for a row, the other conditions
    decide: if one of them is false the row is dropped. If none is, the row goes to the query's
    rejects together with the error. The query goes on.

    Penstock chooses in which order the conditions of a query are evaluated, and evaluates them on a
    few rows more to learn which order is best. A condition with a memory, which answers differently
    depending on the rows that it saw before, declares ``deterministic=False``: then it is evaluated
    where it is written, on each row once.
    """
    declare = scalar("BOOLEAN", columns=columns, deterministic=deterministic)
    return declare if call is None else declare(call)


def scalar(
    returns: str, *, columns: str = "arrow", deterministic: bool = True
) -> Callable[[Callable[..., Any]], PythonFunction]:
    """Declare a vectorised Python function whose values have the SQL type ``returns``.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> @scalar("BIGINT")
    ... def bits(length):
    ...     return pc.multiply(length, 8)
    >>> bits(pa.array([2], pa.int64())).to_pylist()
    [16]
    """
    if columns not in _FORMS:
        raise ValueError(f"columns is 'arrow' or 'pandas', not {columns!r}")
    return lambda call: PythonFunction(call, returns, columns, deterministic)
