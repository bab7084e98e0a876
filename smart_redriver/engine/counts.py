"""Counts in plain words, for headline and command. Standard library only."""

from __future__ import annotations


def several(count: int, what: str) -> str:
    """A count of things, by the name of one."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def letters(count: int) -> str:
    """A count of letters."""
    return several(count, "letter")
