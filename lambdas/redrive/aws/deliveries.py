"""Gives letters to a target one by one, where AWS has no call for several or tells of each by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from redrive.core.outgoing import Outgoing, Sent
from redrive.errors import CallFailed, EntryFault
from redrive.fault_codes import CONTENT_FAULTS, TARGET_REFUSALS, TRANSIENT_FAULTS

#: Gives one letter, and says the id of what was accepted. Raises CallFailed, `Bounced`, and ValueError for a letter
#: that does not hold what the target needs.
Give = Callable[[Outgoing], str]

#: No further letter is begun so long after the first: a target that is slow must not eat the pass.
LONGEST_ROUND = timedelta(seconds=10)

#: Code of what was not begun any more.
NOT_TRIED = "NotTried"


class Bounced(Exception):  # noqa: N818 - reads as what happened
    """The target took a letter and answered with a failure, or not at all: at fault may be the one or the other."""


class TooLarge(ValueError):  # noqa: N818
    """What a letter holds is larger than its target takes."""


def check_size(payload: bytes, most: int) -> bytes:
    """The payload. Raises TooLarge."""
    if len(payload) > most:
        raise TooLarge(f"{len(payload)} bytes, of which {most} are taken")
    return payload


def deliver_one_by_one(
    call: str,
    outgoing: Sequence[Outgoing],
    give: Give,
    clock: Callable[[], float] = time.monotonic,
) -> Sent:
    """Give letters one after the other; each is in the answer: accepted, bounced, or with a fault.

    What the target would answer to any letter ends it: the others are not tried. An answer that nobody knows may be the
    letter's fault or the target's: it is a bounce.
    """
    sent = Sent()
    until = clock() + LONGEST_ROUND.total_seconds()
    for place, one in enumerate(outgoing):
        if clock() > until:
            sent.faults += _same_for(outgoing[place:], CallFailed(call, NOT_TRIED))
            break
        key = one.letter.message_id
        try:
            sent.new_ids[key] = give(one)
        except Bounced as answer:
            sent.bounced[key] = str(answer)
        except ValueError as fault:
            code = "LetterTooLarge" if isinstance(fault, TooLarge) else "InvalidLetter"
            sent.faults.append(EntryFault(call=call, key=key, code=code, detail=str(fault)))
        except CallFailed as failed:
            if failed.code in TARGET_REFUSALS or failed.code in TRANSIENT_FAULTS:
                sent.faults += _same_for(outgoing[place:], failed)
                break
            if failed.code in CONTENT_FAULTS:
                sent.faults += _same_for([one], failed)
            else:
                sent.bounced[key] = failed.code
    return sent


def _same_for(outgoing: Sequence[Outgoing], failed: CallFailed) -> list[EntryFault]:
    return [
        EntryFault.of(
            failed,
            one.letter.message_id,
            is_of_target=failed.code not in (NOT_TRIED, *CONTENT_FAULTS),
        )
        for one in outgoing
    ]
