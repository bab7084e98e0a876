"""Properties are tried with the same examples on every run: a red test is red again tomorrow."""

from hypothesis import settings

settings.register_profile("same_examples", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("same_examples")
