"""Window aggregates: N standing sums over one stream of packets, beside three other ways."""
