"""Copies that came back to a FIFO queue, where what they are copies of is kept: they are noted, and discarded."""

from __future__ import annotations

from collections.abc import Sequence

from smart_redriver.engine.passes.hands import Hands
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Discard
from smart_redriver.engine.triage.ordered import copies_among, without_copies


def discard_copies(state: PassState, hands: Hands, marked: Sequence[Case]) -> list[Case]:
    """Discard copies in hand that have been marked as returned, and answer with the letters that are left.

    Marked first: a copy that is gone and was noted nowhere would look like one that succeeded.
    """
    copies = copies_among(marked)
    if copies:
        state.did(hands.discard([(case, Discard(reason="RETURNED_COPY")) for case in copies]))
    if copies and state.is_dry:
        state.did(
            hands.release(copies)
        )  # nobody receives them again: what is before them in their group is hidden
    return without_copies(marked, copies)
