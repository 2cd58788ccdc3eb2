"""Window joins: N windows over the same two streams, against as many joins of Spark's own."""
