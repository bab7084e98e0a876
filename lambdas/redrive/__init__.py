"""The smart re-driver: one pass over one dead-letter queue, from lease to report."""
