"""The state of a queue: read all at once, and shown as facts in words."""
