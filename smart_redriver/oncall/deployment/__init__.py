"""The deployment, and how the command reaches it."""
