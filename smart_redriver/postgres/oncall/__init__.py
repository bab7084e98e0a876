"""The `redrive` command for letters that are rows."""
