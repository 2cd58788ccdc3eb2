"""The Spark host and everything that imports pyspark."""
