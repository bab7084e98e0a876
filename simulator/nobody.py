"""A policy that does nothing."""

from __future__ import annotations

from datetime import timedelta


class Nobody:
    """Lets time pass without a re-driver."""

    every = timedelta(days=1)

    def tick(self) -> None:
        """Do nothing."""
