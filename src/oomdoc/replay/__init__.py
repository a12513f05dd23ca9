"""The recorded traffic run again through the scheduler, against the pool that other flags would give."""
