"""Decides each letter. Pure."""
