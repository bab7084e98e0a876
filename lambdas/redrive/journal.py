"""The log, as a pass sees it: constant event names, and variables in fields."""

from __future__ import annotations

from typing import Any, Protocol


class Journal(Protocol):
    """Writes one structured event. A field never holds a message's body or an attribute's value."""

    def __call__(self, event: str, /, **fields: Any) -> None: ...
