"""In which order letters of a FIFO group leave, and what stops those behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.passes.apply import LiveExecutor
from smart_redriver.engine.passes.executor import Decided, Destination
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision, Discard, Park, ParkReason, Redrive
from tests.unit.examples import NOW, QUEUE, SOURCE_ARN, a_batch, a_letter

PARK = Park(reason=ParkReason.MAX_ATTEMPTS, strikes=5)
REDRIVE = Redrive(destination=SOURCE_ARN, delay=NOW - NOW, strikes=0)


class Queues:
    """DLQ, parking lot, source and ledger of one FIFO queue; `refuses` are the letters that stay where they are."""

    is_fifo = True
    name = QUEUE
    carries_metadata, settles_at_once = True, False

    def __init__(self, refuses: str = "") -> None:
        self.calls: list[str] = []
        self._refuses = refuses

    def delete(self, letters: Sequence[Any]) -> list[EntryFault]:
        self.calls += [f"delete {one.message_id}" for one in letters]
        return [self._fault(one.message_id) for one in letters if one.message_id == self._refuses]

    def hide(self, letters: object) -> list[EntryFault]:
        return []

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        return self._taken("park", outgoing)

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        return self._taken("redrive", outgoing)

    def write_ledger(self, *_: object) -> None: ...

    def _taken(self, what: str, outgoing: Sequence[Outgoing]) -> Sent:
        ids = [one.letter.message_id for one in outgoing]
        self.calls += [f"{what} {one}" for one in ids]
        return Sent(
            new_ids={one: f"new {one}" for one in ids if one != self._refuses},
            faults=[self._fault(one) for one in ids if one == self._refuses],
        )

    @staticmethod
    def _fault(message_id: str) -> EntryFault:
        return EntryFault.of(CallFailed("Call", "AccessDenied", "no"), message_id)


def carried_out(queues: Queues, *decided: tuple[str, str, Decision]) -> list[str]:
    """The calls for letters, each with its group."""
    executor = LiveExecutor(
        queues,  # type: ignore[arg-type]
        queues,  # type: ignore[arg-type]
        queues,  # type: ignore[arg-type]
        letter_limit=1_048_576,
        parking_lot_limit=1_048_576,
        name_of=lambda _: QUEUE,
        is_over=lambda: False,
        room_to_hide=100,
    )
    letters: Decided = [
        (Case(letter=replace(a_letter(message_id=one), group_id=group)), what)
        for one, group, what in decided
    ]
    facts: Any = type("Facts", (), {"max_message_size": 1_048_576})
    destination = Destination(source=queues, facts=facts, batch=a_batch())  # type: ignore[arg-type]
    executor.carry_out(letters, {SOURCE_ARN: destination}, NOW, version_to_mark=None)
    return queues.calls


def test_the_next_of_a_group_goes_once_the_one_ahead_is_parked() -> None:
    calls = carried_out(Queues(), ("pill", "a", PARK), ("next", "a", REDRIVE))

    assert calls == ["park pill", "delete pill", "redrive next"]


def test_nothing_goes_behind_a_letter_that_the_parking_lot_refused() -> None:
    """Before, the next one went first; the refused one could follow it and be late by one place."""
    queues = Queues(refuses="pill")

    calls = carried_out(
        queues, ("pill", "a", PARK), ("next", "a", REDRIVE), ("other", "b", REDRIVE)
    )

    assert calls == ["park pill", "redrive other"]


def test_nothing_goes_behind_a_done_letter_that_could_not_be_deleted() -> None:
    queues = Queues(refuses="done")

    calls = carried_out(queues, ("done", "a", Discard()), ("next", "a", REDRIVE))

    assert calls == ["delete done"]
