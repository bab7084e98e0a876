"""The state of a queue: read at once, told as facts in words."""
