"""The state of the consumer, and what it allows. Pure."""
