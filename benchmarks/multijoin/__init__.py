"""A join of four streams, beside a tree of Spark's own stream-stream joins."""
