"""How jobs are carried out: segments, panes and refreshes, and checks of what they read."""
