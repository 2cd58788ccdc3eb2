"""Replays of recorded runs under other policies, and advice from them."""
