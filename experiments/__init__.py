"""The figures of the papers behind Penstock, made again, with a verdict on every claim."""
