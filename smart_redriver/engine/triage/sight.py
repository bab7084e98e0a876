"""Which letters may go whose copies would come back out of sight: so few that what became of each can be told. Pure.

Four times as many at once as were accounted for in one batch; after one that can't be told, one alone. Suspects go by
themselves: they are likely to fail, and all others that went with them had to go again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.permit import REPORTS_EXPECTED
from smart_redriver.engine.model.tally import allowance
from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.decision import Redrive

Due = tuple[Case, Redrive]


def is_out_of_sight(case: Case) -> bool:
    """Whether its copy would come back where nobody sees it.

    What the end of an answer cut off is likely to be seen the next time, unless it has not been for as long as it takes to presume.
    """
    return case.group_view is GroupView.FULL or (
        case.group_view is GroupView.CUT and case.is_presumed
    )


class Sight:
    """The turn that letters out of sight have in one pass. Where the consumer reports, all of them go."""

    def __init__(self, circuit: Circuit, now: datetime) -> None:
        heard_at = circuit.heard_at
        self._is_told = heard_at is not None and now <= heard_at + REPORTS_EXPECTED
        unseen = [one for one in circuit.tallies if one.unseen]
        out = sum(one.unseen for one in unseen if one.is_open(now))
        self._room = allowance(unseen) - out
        self._is_first = not out
        self._was_suspect = bool(unseen and unseen[-1].suspects)

    def let_through(self, due: Sequence[Due]) -> tuple[list[Due], list[Due]]:
        """Those of the letters, in their order, that may go, and those that have to wait."""
        hidden = [one for one in due if is_out_of_sight(one[0])]
        if self._is_told or not hidden:
            return list(due), []
        going = {case.message_id for case, _ in self._chosen(hidden)}
        stays = {case.message_id for case, _ in hidden} - going
        return (
            [one for one in due if one[0].message_id not in stays],
            [one for one in due if one[0].message_id in stays],
        )

    def _chosen(self, hidden: Sequence[Due]) -> Sequence[Due]:
        suspects = [one for one in hidden if not one[1].is_unblemished]
        others = [one for one in hidden if one[1].is_unblemished]
        # By turns, or those that come first would keep the others from ever going.
        if suspects and not (self._was_suspect and others):
            going = suspects if self._is_first else []  # else all wait until nothing is out
            self._room = 0
            return going
        chosen = others[: max(0, self._room)]
        self._room -= len(chosen)
        self._is_first = self._is_first and not chosen
        return chosen
