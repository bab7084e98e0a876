"""The deployed stack: where it is, how it is asked, how it is now, and who changed it."""
