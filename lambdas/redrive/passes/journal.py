"""The log, as a pass sees it: constant event names, and variables in fields."""

from __future__ import annotations

from typing import Any, Protocol


class Journal(Protocol):
    """Writes one structured event. A field never holds a message's body or an attribute's value."""

    def __call__(self, event: str, /, **fields: Any) -> None: ...


class Notes:
    """A journal that is kept, to be told later by one thread: many that log at once wait for each other."""

    def __init__(self) -> None:
        self._events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, /, **fields: Any) -> None:
        """Keep one event."""
        self._events.append((event, fields))

    def tell(self, journal: Journal) -> None:
        """Write all events to `journal`, in their order."""
        for event, fields in self._events:
            journal(event, **fields)
