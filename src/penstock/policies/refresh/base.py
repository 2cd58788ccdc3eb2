"""What a refresh policy sees, what it answers, and the contract between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.policies.refresh.model.tasks import Due, QueryGroup, Task, cost_per_pane, subgroups


@dataclass(frozen=True, slots=True)
class View:
    """The tasks that may be refreshed now, in plan order."""

    due: tuple[Due, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Refresh these tasks of one group in one scan, for this reason."""

    tasks: tuple[str, ...]
    reason: str


class Policy:
    """Decides which answers are refreshed next, and which of them together.

    `prepare` makes tasks from the queries. `choose` refreshes the task whose deadline is nearest or
    furthest past. Among equals the highest priority decides, then plan order. Tasks of the same
    group whose windows end at the same pane may ride along: `joins` says which.
    """

    shares: ClassVar[bool] = True
    """Whether tasks of a group that are due together are refreshed in one scan."""

    def prepare(self, groups: Sequence[QueryGroup]) -> tuple[Task, ...]:
        """Make tasks from the queries; called again whenever queries or costs change."""
        return tuple(task for group in groups for task in self.divide(group))

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """The tasks of one group: one for each period, unless a policy decides otherwise."""
        return subgroups(group)

    def choose(self, view: View) -> Decision | None:
        """The tasks to refresh next, or None to wait."""
        if not view.due:
            return None
        first = min(view.due, key=lambda due: (due.slack, -due.task.priority))
        riders = [due for due in view.due if due is not first and self._rides(first, due)]
        together = sorted([first, *riders], key=view.due.index)
        return Decision(tuple(due.task.id for due in together), _reason(first, len(riders)))

    def joins(self, first: Due, other: Due) -> bool:
        """Whether a task of the same group and end rides with the first."""
        return self.shares and other.left == first.left

    def cost(self, group: QueryGroup, tasks: Sequence[Task]) -> float:
        """The cost per pane of a group's tasks if none is late."""
        return cost_per_pane(group, tasks, self.shares)

    def _rides(self, first: Due, other: Due) -> bool:
        same = other.task.group == first.task.group and other.end == first.end
        return same and self.joins(first, other)


def _reason(first: Due, riders: int) -> str:
    """The reason in words.

    >>> _reason(Due(Task("g every 2", "g", (), 2), end=7, left=-1), riders=2)
    'g every 2 is 1 pane late; 2 more ride along'
    """
    panes = f"{abs(first.left)} pane{'s' * (abs(first.left) != 1)}"
    when = f"{panes} late" if first.left < 0 else f"due in {panes}" if first.left else "due now"
    return f"{first.task.id} is {when}" + (f"; {riders} more ride along" if riders else "")
