"""Chain-Flush: Chain until a deadline is tight, then what the deadline needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from penstock.errors import PolicyError
from penstock.policies.operators.base import Decision, Flushing, View
from penstock.policies.operators.chain import Chain
from penstock.policies.operators.model.routes import Route, Segment


@dataclass(frozen=True, slots=True)
class ChainFlush(Chain, Flushing):
    """Saves memory as Chain does, and keeps the latency goals of queries.

    ``latency`` is the goal of queries that state none. There are two forms.

    The efficient one (the default) looks at the heads of the queues. A head is *due* when the work
    from there to the output would end at its deadline or later. While any head is due, the one with
    the earliest deadline runs. Otherwise Chain's choice runs until the first is due, at most
    ``tuples`` blocks of it. Without ``tuples`` that is one block, or as many as ride in one job.
    This form does not count the work of what waits before a block or behind the heads, so after a
    burst it misses deadlines.

    The exact one (``exact=true``) looks at every block. In order of deadlines, block i has the
    slack r_i - (t_1 + ... + t_i), what remains until its deadline less the work for itself and for
    all before it. The first block without slack confines Chain to itself and those before it.
    Chain's choice runs only as long as the slack of those it passes over lasts. The more waits, the
    more a decision costs. This form misses no deadline that EDF would meet, as long as blocks that
    arrive later are due later, which is so with one goal for all. For a block of a stricter query
    the slack that EDF would have left may be spent: nobody knew that the block would come.

    >>> from penstock.policies.operators.base import Queue
    >>> from penstock.policies.operators.model.charts import Chart
    >>> route = Route("p", Chart.of_points([(0, 1), (1, 0.2), (5, 0)]).stages("ab"), latency=9.0)
    >>> policy = ChainFlush()
    >>> first, second = policy.prepare([route])
    >>> queues = Queue(first, 1, oldest=4.0), Queue(second, 1, oldest=0.0, head=0.2)
    >>> [policy.choose(View(now, queues)).segment for now in (4.0, 5.0)]
    ['p', 'p@1']

    Reference: sections 5.1 and 5.2 of the chain paper. What is due is carried to the output at one
    go where leaving it in between would cost time, as the paper's virtual segment is. Elsewhere we
    decide again at every step: Chain goes on as soon as nothing is due.
    """

    latency: float = inf
    exact: bool = False
    tuples: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that make no sense."""
        if not self.latency > 0:
            raise PolicyError("chain_flush: latency must be positive")
        if self.tuples is not None and not (
                self.tuples == inf or (self.tuples >= 1 and self.tuples % 1 == 0)):
            raise PolicyError("chain_flush: tuples must be a whole number of at least 1")

    @property
    def looks_at_blocks(self) -> bool:
        """Only the exact form does."""
        return self.exact

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """Chain's segments, with the latency goal of this policy where a query has none."""
        return Chain.prepare(self, [route.promised(self.latency) for route in routes])

    @property
    def sees_all(self) -> bool:
        """Only the exact form must."""
        return self.exact

    def choose(self, view: View) -> Decision | None:
        """The queue that is due, or else Chain's choice."""
        return self._exact(view) if self.exact and view.queues else Flushing.choose(self, view)

    # --- section 5.2: queue heads ------------------------------------------------------------

    def turn(self, segment: Segment) -> Decision:
        """Chain's choice, for at most ``tuples`` blocks."""
        if self.tuples is None:
            return Decision(segment.id, segment.reason)
        return Decision(segment.id, segment.reason, limit=self.tuples, most_blocks=self.tuples)

    def flush(self, segment: Segment, deadline: float, left: float) -> Decision:
        """The head with the earliest deadline of those that are due."""
        late = f"its deadline is at {deadline:.3f} s, {left:.3g} s of work away"
        return Decision(segment.id, late, whole=True)

    # --- section 5.1: every block ------------------------------------------------------------

    def _exact(self, view: View) -> Decision:
        instant = view.instant
        blocks = sorted(
            (arrival + queue.segment.latency, left, i, k) for i, queue in enumerate(view.queues)
            for k, (arrival, left) in enumerate(queue.blocks))
        work = accumulate(left for _, left, _, _ in blocks)
        slacks = [block[0] - view.now - done for block, done in zip(blocks, work, strict=True)]
        tight = next((i for i, slack in enumerate(slacks) if slack <= instant), None)
        if tight is None:
            chosen = self.foremost(view.queues)
        else:  # where paths meet it may stand behind others: then its queue must be served
            allowed = sorted({block[2] for block in blocks[: tight + 1]})
            chosen = self.foremost([view.queues[i] for i in allowed])
        # Blocks before the chosen one are passed over, as long as their slack lasts.
        head = bisect_left(blocks, (chosen.deadline, *chosen.blocks[0][1:], -1))
        passed = (slack for slack in slacks[:head] if slack > instant)
        reason = chosen.segment.reason + (", and a deadline is tight" if tight is not None else "")
        return Decision(chosen.segment.id, reason, quantum=min(passed, default=inf),
                        whole=tight is not None)
