"""From the event to its answer, live: Penstock beside as many native streaming queries."""
