"""Streams made by the project itself: bursty packets."""
