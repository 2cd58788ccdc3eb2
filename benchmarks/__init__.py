"""Seconds and bytes, against native Spark on the same data in the same run."""
