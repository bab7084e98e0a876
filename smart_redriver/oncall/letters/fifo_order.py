"""The letters of a FIFO queue that a person can take, and their order. Pure.

A letter that a pass has sent on keeps its place in the DLQ, see `smart_redriver.engine.triage.ordered`. If it were
taken while the fate of its copy is unknown, it would exist twice. On a standard queue no letter stays, so all can be
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.ordered import Fate, copies_among, known_fate

T = TypeVar("T")

OUT = "its copy is out, and its outcome is not known yet"
DONE = "its consumer has finished its copy; the next pass removes it"
BEHIND = "it would overtake an earlier letter of its message group, which stays"
COPY = "it is a returned copy of a letter that is still in its place"


def out_of_reach(cases: Sequence[Case], *, is_sent: bool = False) -> dict[str, str]:
    """Return the reasons why letters that were received together can't be taken, by message id.

    `is_sent`: whether they will go to their source queue, where no letter may overtake one whose copy is out.
    """
    here = {case.message_id for case in cases}
    copies = {case.message_id for case in copies_among(cases)}
    why: dict[str, str] = {}
    waiting: set[str | None] = set()
    for case in cases:
        if case.message_id in copies:
            why[case.message_id] = COPY
        elif case.is_kept and (fate := _fate(case, here)) is not Fate.BACK:
            why[case.message_id] = DONE if fate is Fate.DONE else OUT
            if fate is not Fate.DONE:
                waiting.add(case.letter.group_id)
        elif is_sent and case.letter.group_id in waiting:
            why[case.message_id] = BEHIND
    return why


def _fate(case: Case, here: set[str]) -> Fate | None:
    """The fate of the copy, as far as the ledger knows it; a copy that is in hand, too, has come back."""
    entry = case.entry
    assert entry is not None, "a kept letter is known by its entry"  # noqa: S101
    return Fate.BACK if entry.current_id in here else known_fate(entry)


def is_cut(case: Case) -> bool:
    """Whether more letters of its group may follow in a FIFO queue; they can't be received before this one is gone."""
    return case.group_view is not GroupView.WHOLE


def in_ranks(items: Sequence[T], group_of: Callable[[T], str | None]) -> Iterator[list[T]]:
    """Yield the first of each group, then the second of each, and so on: none sent together can overtake another.

    Items without a group go with the first.
    """
    ranks: list[list[T]] = []
    had: dict[str, int] = {}
    for one in items:
        group = group_of(one)
        rank = 0 if group is None else had.get(group, 0)
        if group is not None:
            had[group] = rank + 1
        if rank == len(ranks):
            ranks.append([])
        ranks[rank].append(one)
    yield from ranks


class Overtaking:
    """Counts selected letters behind an unselected letter of their group, in the order in which they are seen.

    In a standard queue, a group is a tenant, and nothing `keeps_order`.
    """

    def __init__(self, *, keeps_order: bool) -> None:
        self.count = 0
        self._keeps_order = keeps_order
        self._staying: set[str] = set()

    def saw(self, case: Case, *, is_selected: bool) -> None:
        """Take in the next letter of its group."""
        group = case.letter.group_id
        if group is None or not self._keeps_order:
            return
        if not is_selected:
            self._staying.add(group)
        elif group in self._staying:
            self.count += 1
