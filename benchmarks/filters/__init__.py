"""What an adaptive order of Python conditions saves, beside Spark's own filters."""
