"""The `redrive` command for letters that are records."""
