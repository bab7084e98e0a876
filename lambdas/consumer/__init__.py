"""The example consumer: a model for one that may see the same message again. See `handler`."""
