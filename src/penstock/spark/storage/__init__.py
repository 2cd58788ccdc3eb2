"""What outlives the driver: the checkpoint, the spool and guarded logs, kept through a store."""
