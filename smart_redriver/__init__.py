"""The package that others install: the `redrive` command, and the CDK construct."""
