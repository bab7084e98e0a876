"""Consumers' reports."""
