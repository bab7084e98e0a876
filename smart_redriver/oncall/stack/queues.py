"""Letters in SQS: see `Lodging`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from redrive.core.ledger import Entry
from redrive.core.letter import Letter
from redrive.core.queue_facts import QueueFacts
from redrive.deployment import Deployment
from redrive.errors import EntryFault
from redrive.passes.ports import DeadLetters, Ledger, ParkingLot, Source
from smart_redriver.oncall.stack.aws import Aws
from smart_redriver.oncall.stack.lodging import Deed, Stuck
from smart_redriver.oncall.stack.metrics import age_of_oldest
from smart_redriver.oncall.terminal.words import letters

if TYPE_CHECKING:
    from redrive.aws.targets import Reach


class Queues:
    """The queues of one DLQ. `reach`: how its targets are reached."""

    database = None
    finds_by_id = False

    def __init__(self, deployment: Deployment, aws: Aws, reach: Callable[[], Reach]) -> None:
        self._deployment = deployment
        self._aws = aws
        self._reach = reach

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """The DLQ."""
        from redrive.wiring import dead_letters_of

        return dead_letters_of(self._deployment, self._aws.sqs)

    @cached_property
    def parking_lot(self) -> ParkingLot:
        """The parking lot."""
        from redrive.wiring import parking_lot_of

        return parking_lot_of(self._deployment, self._aws.sqs)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The source queues that share the DLQ, or its targets."""
        from redrive.wiring import sources_of

        return sources_of(self._deployment, self._aws.sqs, self._reach())

    def letters_in(self, *, dlq: bool, ids: Collection[str], whole: bool) -> DeadLetters:  # noqa: ARG002
        """The queue: SQS hands out what it likes, and all of it."""
        return self.dead_letters if dlq else self.parking_lot

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:  # noqa: ARG002
        """The ledger knows all that is known."""
        return ledger

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:  # noqa: ARG002
        """As SQS counts, which may be a minute old."""
        return (self.dead_letters if dlq else self.parking_lot).facts()

    def keep(
        self,
        letters: Sequence[Letter],
        *,
        dlq: bool,  # noqa: ARG002
    ) -> tuple[list[Letter], list[EntryFault]]:
        """A message is all there is of a letter."""
        return list(letters), []

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Delete messages."""
        return (self.dead_letters if dlq else self.parking_lot).delete(letters)

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:  # noqa: ARG002
        """A delete without an answer may have been carried out."""
        return set()

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:  # noqa: ARG002
        """A message that nobody is handed may be hidden."""
        return set()

    def age_of_oldest(self, now: datetime) -> timedelta | None:
        """As CloudWatch has it."""
        return age_of_oldest(self._aws, self._deployment.dlq_url, now)

    def stuck(self) -> list[Stuck] | None:
        """Only receiving every message would tell."""
        return None

    def stack_trace(self, letter: Letter) -> str | None:  # noqa: ARG002
        """It is in the consumer's report, or its log."""
        return None

    def cost(self, receives: int, seen: int) -> str:
        """A look counts as a receive of each letter."""
        cost = f"This look cost {receives} receive{'' if receives == 1 else 's'}"
        if not seen:
            return f"{cost} and met no letter."
        return f"{cost}; the receive count of {letters(seen)} rose by one. All are visible again."

    def refusal(self, deed: Deed) -> str | None:  # noqa: ARG002
        """A message can be sent anew with any content, and to any queue."""
        return None
