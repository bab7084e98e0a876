"""Letters, where they come from, and what is sent."""
