"""Bursts on real Spark: what waits under every policy, and what came of it."""
