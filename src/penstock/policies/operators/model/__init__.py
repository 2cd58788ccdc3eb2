"""What operator policies reason about: routes and segments, progress charts, and oracles."""
