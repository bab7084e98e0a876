"""The `redrive` command where letters are rows."""
