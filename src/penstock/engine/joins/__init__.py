"""Shared window joins: who scans whose window when, and when pairs may leave."""
