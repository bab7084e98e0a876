"""What becomes of each letter. Pure."""
