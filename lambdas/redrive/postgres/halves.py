"""One statement for several letters: where it is refused, by halves, so that one of them keeps nobody else waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redrive.core.letter import Letter
from redrive.errors import CallFailed, EntryFault
from redrive.postgres.refusals import StatementRefused


def by_halves(
    letters: Sequence[Letter], run: Callable[[Sequence[Letter]], list[Letter]]
) -> tuple[list[Letter], list[EntryFault]]:
    """The letters that `run` answers with, and those that it was refused for. Nothing is raised."""
    try:
        return run(letters), []
    except CallFailed as failed:
        if isinstance(failed, StatementRefused) and failed.may_be_one and len(letters) > 1:
            half = len(letters) // 2
            first, second = by_halves(letters[:half], run), by_halves(letters[half:], run)
            return first[0] + second[0], first[1] + second[1]
        return [], [EntryFault.of(failed, one.message_id) for one in letters]
