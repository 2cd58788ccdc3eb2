"""FIFO: run what arrived first, through its whole path."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.operators.base import Policy, Run, View


@dataclass(frozen=True, slots=True)
class Fifo(Policy):
    """Serves blocks in the order of their arrival, whatever they cost and however much they keep.

    The latency is the best that one processor can give; a burst fills the queues, because a slow
    path holds up the cheap and selective ones behind it.

    >>> from penstock.policies.operators.base import Queue
    >>> early, late = Queue("a", length=9, oldest=3.0), Queue("b", length=1, oldest=1.0)
    >>> Fifo().choose(View(now=5.0, queues=(early, late)))
    Run(segment='b', reason='its oldest block came first, 4.00 s ago')
    """

    def choose(self, view: View) -> Run | None:
        """The queue whose head is the oldest block of all."""
        if not view.queues:
            return None
        head = min(view.queues, key=lambda queue: queue.oldest)  # min keeps the first of equals
        waited = view.now - head.oldest
        return Run(head.segment, f"its oldest block came first, {waited:.2f} s ago")
