"""Shared window joins: who scans which window when, and when pairs may leave."""
