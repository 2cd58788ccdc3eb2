"""Window aggregates in the core: panes, deadlines, refreshes, back-fill."""
