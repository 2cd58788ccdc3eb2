"""Chain-Flush: Chain until a deadline is tight, then what the deadline needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from penstock.errors import PolicyError
from penstock.policies.operators.base import Queue, Run, View
from penstock.policies.operators.chain import Chain
from penstock.policies.operators.routes import Route, Segment

_TIGHT = 1e-9
"""Slack below this many seconds, relative to the time, is none: sums of costs are rounded."""


@dataclass(frozen=True, slots=True)
class ChainFlush(Chain):
    """Saves memory as Chain does, and keeps the latency that queries were promised.

    ``latency`` is the promise to queries that state none. There are two forms.

    The efficient one (the default) looks at the heads of the queues. A head is *due* when the work
    from there to the output would end at its deadline or later; while any is due, the one with
    the earliest deadline runs. Otherwise Chain's choice runs until the first is due, at most
    ``tuples`` blocks of it. It does not count the work of the blocks ahead, so a deadline may be
    missed by a little.

    The exact one (``exact=true``) looks at every block. In order of deadlines, block i has the
    slack r_i - (t_1 + ... + t_i), what remains until its deadline less the work for itself and for
    all before it. The first block without slack confines Chain to itself and those before it; and
    Chain's choice runs only as long as the slack of those it passes over lasts. It meets every
    deadline that can be met, at a cost per decision that grows with what waits.

    >>> from penstock.policies.operators.charts import Chart
    >>> route = Route("p", Chart.of_points([(0, 1), (1, 0.2), (5, 0)]).stages("ab"), latency=9.0)
    >>> policy = ChainFlush()
    >>> first, second = policy.prepare([route])
    >>> queues = Queue(first, 1, oldest=4.0), Queue(second, 1, oldest=0.0, head=0.2)
    >>> [policy.choose(View(now, queues)).segment for now in (4.0, 5.0)]
    ['p', 'p@1']

    Reference: sections 5.1 and 5.2 of the chain paper. Among blocks that are due we take the
    earliest deadline at every step, which carries the head and all ahead of it to the output as
    the paper's virtual segment does, and lets Chain go on as soon as nothing is due.
    """

    latency: float = inf
    exact: bool = False
    tuples: float = 1

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing."""
        if not self.latency > 0:
            raise PolicyError("chain_flush: latency must be positive")
        if not self.tuples >= 1:
            raise PolicyError("chain_flush: tuples must be at least 1")

    @property
    def looks_at_blocks(self) -> bool:  # type: ignore[override]
        """The exact form does."""
        return self.exact

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """Chain's segments, with the promise of this policy where a query has none."""
        return tuple(replace(segment, latency=min(segment.latency, self.latency))
                     for segment in Chain.prepare(self, routes))

    def choose(self, view: View) -> Run | None:
        """What is due, or else Chain's choice."""
        if not view.queues:
            return None
        return self._exact(view) if self.exact else self._efficient(view)

    # --- section 5.2: queue heads ------------------------------------------------------------

    def _efficient(self, view: View) -> Run:
        due = [q for q in view.queues if _latest_start(q) <= view.now + _TIGHT * abs(view.now)]
        if due:
            urgent = min(due, key=_deadline)
            late = f"its deadline is at {_deadline(urgent):.3f} s, {urgent.left:.3g} s of work away"
            return Run(urgent.segment.id, late)
        first_due = min(map(_latest_start, view.queues))
        return replace(self._steepest(view.queues), limit=self.tuples, quantum=first_due - view.now)

    def _steepest(self, queues: Sequence[Queue]) -> Run:
        first = min(queues, key=lambda q: (q.segment.rank, q.oldest))
        return self.turn(first.segment)

    # --- section 5.1: every block ------------------------------------------------------------

    def _exact(self, view: View) -> Run:
        blocks = sorted((arrival + queue.segment.latency, left)
                        for queue in view.queues for arrival, left in queue.blocks)
        slack, work = [], 0.0
        for deadline, left in blocks:
            work += left
            slack.append(deadline - view.now - work)
        tolerance = _TIGHT * max(1.0, abs(view.now))
        confined = next((blocks[i][0] for i, s in enumerate(slack) if s <= tolerance), inf)
        # A tight block may stand behind others, where paths meet: its queue must be served then.
        allowed = [queue for queue in view.queues if _earliest(queue) <= confined]
        run = self._steepest(allowed)
        chosen = next(queue for queue in allowed if queue.segment.id == run.segment)
        passed = [s for (deadline, _), s in zip(blocks, slack, strict=True)
                  if deadline < _deadline(chosen) and s > tolerance]
        reason = run.reason if confined == inf else f"{run.reason}, and a deadline is tight"
        return replace(run, reason=reason, quantum=min(passed, default=inf))


def _deadline(queue: Queue) -> float:
    return queue.oldest + queue.segment.latency


def _earliest(queue: Queue) -> float:
    return min(arrival for arrival, _ in queue.blocks) + queue.segment.latency


def _latest_start(queue: Queue) -> float:
    return _deadline(queue) - queue.left
