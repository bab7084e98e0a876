"""Other ways to redrive, in the same world: what the benchmark compares ours with.

Each does what its source describes, with that source's defaults, over the same fakes. They were written from the
description; none of their code is in these files. Where a source leaves something open, the choice that favours it was
made, and is stated.
"""

from simulator.rivals.event_source import EventSource
from simulator.rivals.native_move import NativeMove
from simulator.rivals.no_breaker import NoBreaker
from simulator.rivals.published_pattern import PublishedPattern

__all__ = ["EventSource", "NativeMove", "NoBreaker", "PublishedPattern"]
