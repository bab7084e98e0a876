"""A batch of letters in one statement, and what becomes of it where the statement is refused for one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redrive.core.outgoing import Outgoing, Sent
from redrive.errors import CallFailed, EntryFault
from redrive.fault_codes import CONTENT_FAULTS
from redrive.postgres.letters import Handle

#: A letter that is not there, or that somebody else has in hand: the next look tells.
NOT_THERE = "LetterNotThere"

#: What can be the fault of one letter, or of there being too many large ones.
_SPLIT = CONTENT_FAULTS | {"QueryCanceled"}

#: Moves letters in one statement; the new id of each by its row. Raises CallFailed.
Move = Callable[[Sequence[Outgoing]], dict[int, str]]


def sent_in_batches(call: str, outgoing: Sequence[Outgoing], move: Move) -> Sent:
    """Move letters; each is in the answer under its own id, with its new one or with a fault. Nothing is raised.

    What is refused for its content is tried by halves until the letter at fault is alone.
    """
    sent = Sent()
    for is_parked in (False, True):
        some = [one for one in outgoing if Handle.of(one.letter).is_parked is is_parked]
        if some:
            _move(call, some, move, sent)
    return sent


def _move(call: str, some: Sequence[Outgoing], move: Move, sent: Sent) -> None:
    try:
        moved = move(some)
    except CallFailed as failed:
        faults = [_fault(call, one, failed.code, failed.detail) for one in some]
        if failed.code in _SPLIT and len(some) > 1:
            sent.healed.append(faults[0])
            half = len(some) // 2
            _move(call, some[:half], move, sent)
            _move(call, some[half:], move, sent)
        else:
            sent.faults += faults
        return
    for one in some:
        if new_id := moved.get(Handle.of(one.letter).row):
            sent.new_ids[one.letter.message_id] = new_id
        else:
            sent.faults.append(_fault(call, one, NOT_THERE, "it is locked, or gone"))


def _fault(call: str, one: Outgoing, code: str, detail: str) -> EntryFault:
    return EntryFault(call=call, key=one.letter.message_id, code=code, detail=detail)
