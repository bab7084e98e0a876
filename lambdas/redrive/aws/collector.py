"""Python's garbage collector, set up for a pass."""

from __future__ import annotations

import gc

#: New objects between two collections; Python's 700 are a handful of letters, each parsed into a hundred objects.
NEW_OBJECTS = 20_000


def set_up_collector() -> None:
    """Look rarely, and never again at what was imported. To be called once, after the imports.

    A pass makes hardly any cycles, so that there is little to find; looking took a tenth of its processor time.
    https://docs.python.org/3/library/gc.html#gc.freeze
    """
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 20)
