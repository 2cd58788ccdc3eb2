"""Files that outlive the driver: the checkpoint, the spool, guarded logs."""
