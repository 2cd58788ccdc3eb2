"""From answers to sinks: staging, the commit in the delivery log, recovery."""
