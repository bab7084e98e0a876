"""The example consumer: a model for consumers that may see the same message again. See `handler`."""
