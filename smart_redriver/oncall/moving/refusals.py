"""What was refused of a command's letters: counted by kind, and each kind explained once, in the words of who refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from redrive.errors import EntryFault
from smart_redriver.oncall.terminal.terminal import Terminal


def tell_refused(terminal: Terminal, failed: Counter[str], faults: Iterable[EntryFault]) -> None:
    """Count faults in `failed`, and say once of each kind what the first answer said."""
    for fault in faults:
        kind = f"{fault.call}: {fault.code}"
        if kind not in failed and fault.detail:
            terminal.warn(f"{kind}: {fault.detail}.")
        failed[kind] += 1
