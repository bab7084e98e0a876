"""The `redrive` command where letters are records."""
