"""Letters in SQS: see `MessageStore`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.counts import letters, several
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import DeadLetters, Ledger, ParkingLot, Source
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.deployment.aws import Aws
from smart_redriver.oncall.deployment.message_store import Operation, Stuck
from smart_redriver.oncall.deployment.metrics import age_of_oldest

if TYPE_CHECKING:
    from smart_redriver.engine.targets.target_source import Reach
    from smart_redriver.engine.wiring import Connection
    from smart_redriver.oncall.deployment.session import Session

#: The beginning of an id of SQS: long enough to mean one letter, but not complete.
_SHORT = re.compile(r"[0-9a-f]{6,8}(-[0-9a-f-]{0,26})?")
_TOO_SHORT = re.compile(r"[0-9a-f]{1,5}")


class Queues:
    """The queues of one DLQ. `reach`: access to its targets."""

    finds_by_id = False
    keeps_rows = False

    def __init__(self, deployment: Deployment, aws: Aws, reach: Callable[[], Reach]) -> None:
        self._deployment = deployment
        self._aws = aws
        self._reach = reach

    @property
    def connection(self) -> Connection:
        """The same queues, with the caller's clients."""
        from smart_redriver.engine.wiring import Queues as Connected

        aws = self._aws
        return Connected(
            self._deployment,
            sqs=aws.sqs,
            cloudwatch=aws.client("cloudwatch"),
            reach=self._reach(),
        )

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """The DLQ."""
        from smart_redriver.engine.wiring import dead_letters_of

        return dead_letters_of(self._deployment, self._aws.sqs)

    @cached_property
    def parking_lot(self) -> ParkingLot:
        """The parking lot."""
        from smart_redriver.engine.wiring import parking_lot_of

        return parking_lot_of(self._deployment, self._aws.sqs)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The source queues that share the DLQ, or its targets."""
        from smart_redriver.engine.wiring import sources_of

        return sources_of(self._deployment, self._aws.sqs, self._reach())

    def letters_in(
        self,
        *,
        dlq: bool,
        ids: Collection[str],  # noqa: ARG002
        whole: bool,  # noqa: ARG002
        contains: str | None,  # noqa: ARG002
    ) -> DeadLetters:
        """Return the queue: SQS can't hand out selected messages or parts of them."""
        return self.dead_letters if dlq else self.parking_lot

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:  # noqa: ARG002
        """Return the ledger: it has all that is known."""
        return ledger

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:  # noqa: ARG002
        """Return SQS's counts, which may be a minute old."""
        return (self.dead_letters if dlq else self.parking_lot).facts()

    def keep(
        self,
        letters: Sequence[Letter],
        *,
        dlq: bool,  # noqa: ARG002
    ) -> tuple[list[Letter], list[EntryFault]]:
        """Keep the messages: there is nothing more to a letter."""
        return list(letters), []

    def read_anew(self) -> None:
        """Do nothing: each receive asks the queue."""

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Delete messages."""
        return (self.dead_letters if dlq else self.parking_lot).delete(letters)

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:  # noqa: ARG002
        """Return none: a delete without an answer may have been carried out."""
        return set()

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:  # noqa: ARG002
        """Return none: a message that no receive returns may be hidden."""
        return set()

    def age_of_oldest(self, now: datetime) -> timedelta | None:
        """Return CloudWatch's age of the oldest message."""
        return age_of_oldest(self._aws, self._deployment.dlq_url, now)

    def stuck(self) -> list[Stuck] | None:
        """Return None: only receiving every message would tell."""
        return None

    def stack_trace(self, letter: Letter) -> str | None:  # noqa: ARG002
        """Return none: the consumer's report or log has it."""
        return None

    def beginning(self, typed: str) -> str | None:
        """Return it if it has at least six characters."""
        return typed if _SHORT.fullmatch(typed) else None

    def called(self, own_id: str) -> Iterator[str]:  # noqa: ARG002
        """Yield none: there are no rows."""
        return iter(())

    def cost(self, receives: int, seen: int) -> str:
        """A look counts as a receive of each letter."""
        cost = f"This look cost {several(receives, 'receive')}"
        if not seen:
            return f"{cost} and met no letter."
        return f"{cost}; the receive count of {letters(seen)} rose by one. All are visible again."

    def unknown(self, message_id: str, looked_at: int) -> str:
        """Say that a complete id or a longer look may find it."""
        if _TOO_SHORT.fullmatch(message_id):
            return (
                f"{message_id} was not found: the beginning of an id needs six characters at least."
            )
        return (
            f"{message_id} was not found: it is not in the ledger, and not among the first {looked_at} letters of the "
            "DLQ. --look 1000 looks further; a letter that was never redriven is not in the ledger."
        )

    def refusal(self, operation: Operation) -> str | None:  # noqa: ARG002
        """Refuse nothing: a message can be sent anew with any content, and to any queue."""
        return None


def queues_of(session: Session) -> Queues:
    """Return the queues of a session."""
    return Queues(session.place.deployment, session.aws, lambda: session.reach)
