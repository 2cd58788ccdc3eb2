"""What refresh policies reason about: groups and tasks, and how often periods coincide."""
