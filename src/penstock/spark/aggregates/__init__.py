"""Window aggregates on Spark: pane jobs, synopses in the driver or on the executors."""
