"""How many bytes of letters a pass may have in hand: what bounds its memory."""

from __future__ import annotations

MIB = 1_048_576
#: What the function needs without large letters in hand, in bytes: Python, boto3 and 24 connections. A pass over
#: 20,000 letters of 1 KiB peaks at 70 to 90 MiB in docs/benchmarks/memory.md, where TLS is left out.
AT_REST = 130 * MIB
#: A letter in hand is there several times: as it came, as text, and as it is sent. Measured there for letters of
#: 256 KiB to 1 MiB, less than 3 on average; the rest is for the moment when all of them are at their worst.
COPIES = 5
#: Bytes of letters that one round may have in hand before it stops receiving. So a round of large letters is that
#: and one more receive, of ten at most.
ROUND_BYTES = 2 * MIB


def bytes_in_hand(memory_mib: int) -> int:
    """Bytes of letters that a pass may have in hand at once, in a function of this memory."""
    return max(MIB, (memory_mib * MIB - AT_REST) // COPIES)
