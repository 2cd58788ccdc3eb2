"""How the time of the machine is shared between departments."""

from __future__ import annotations

from collections.abc import Sequence


class TimeShares:
    """Departments that have work get equal shares of time.

    The department that has had the least time goes first. It cannot save up time that it did not
    use: when a job of another ends, it is behind by at most that job.

    >>> shares = TimeShares(2)
    >>> shares.order()
    [0, 1]
    >>> shares.record(0, seconds=5.0)
    >>> shares.record(0, seconds=1.0)
    >>> shares.order()
    [1, 0]
    >>> shares.record(1, seconds=1.0)
    >>> shares.order()
    [0, 1]
    """

    __slots__ = ("_had",)

    def __init__(self, departments: int) -> None:
        """Begin with equal shares."""
        self._had = [0.0] * departments

    def record(self, department: int, seconds: float) -> None:
        """A job of a department has taken this many seconds."""
        before = self._had[department]
        self._had = [max(had, before) for had in self._had]
        self._had[department] = before + seconds

    def order(self, first: Sequence[int] = ()) -> list[int]:
        """The departments, those that go ``first`` before all others; ties go by their number."""
        return sorted(range(len(self._had)),
                      key=lambda department: (department not in first, self._had[department]))
