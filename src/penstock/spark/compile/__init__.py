"""From paths of the plan to Spark frames: expressions, fan-out, Python stages, lookups."""
