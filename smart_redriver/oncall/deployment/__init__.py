"""The deployment, and access to it for the command."""
