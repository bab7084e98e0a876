"""Checks of a database that passes work with."""
