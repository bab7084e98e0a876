"""The package that others install: the `redrive` command, and the CDK construct."""

#: The one place that says it: metadata, templates and the release's files take it from here.
__version__ = "0.1.0"
