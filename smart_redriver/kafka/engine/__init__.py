"""The part of the backend that passes use."""
