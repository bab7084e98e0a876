"""One letter in hand with its ledger entry: its attempts, strikes, batch and next metadata. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.triage.ledger import Entry, Status

#: The batch number of a person's send. Batches are numbered from 1, so its return is charged to no verdict.
NO_BATCH = 0


class GroupView(Enum):
    """How much of a message group was received together: all of it, or as much as SQS hands out of one group.

    A CUT group may go on after the end of a full answer.
    """

    WHOLE = "WHOLE"
    CUT = "CUT"
    FULL = "FULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A letter and its ledger entry; `entry` is None on a first visit, or if the ledger lost it.

    `group_view`: in a FIFO queue, how much of its group was received with it.
    """

    letter: Letter
    entry: Entry | None = None
    group_view: GroupView = GroupView.CUT

    @property
    def message_id(self) -> str:
        """The id that this copy has."""
        return self.letter.message_id

    @property
    def original_id(self) -> str:
        """The id that the letter had on its first visit to the DLQ."""
        return self.letter.original_id

    @property
    def is_presumed(self) -> bool:
        """Whether its copy may have come back unseen and unreported."""
        entry = self.entry
        return (
            self.is_kept
            and entry is not None
            and entry.status is Status.REDRIVEN
            and not entry.is_settled
        )

    @property
    def is_replaced(self) -> bool:
        """Whether an accepted send has replaced this copy already, so that it may only be deleted.

        The same goes for another group's copy of a message that is in this group's ledger.
        """
        entry = self.entry
        if entry is None:
            return False
        is_own = self.message_id in (entry.current_id, entry.kept_id)
        return entry.has_replaced(self.message_id) or (self.letter.is_anothers and not is_own)

    @property
    def is_kept(self) -> bool:
        """Whether it stays at its place until its copy's outcome is known."""
        return self.entry is not None and self.entry.kept_id == self.message_id

    @property
    def is_strangers_copy(self) -> bool:
        """Whether a consumer copied the metadata to a message of its own, on the same queue.

        The ledger knows the id of the copy that was sent last. If a write was lost, the metadata is ahead of the
        ledger. If the answer to a send was lost, the letter was sent again, with the same redrive count but in another
        batch.
        """
        metadata, entry = self.letter.metadata, self.entry
        if metadata is None or entry is None or self.is_replaced or self._has_its_content:
            return False
        if metadata.redrive_count == entry.redrive_count and metadata.batch != entry.batch:
            return False
        known = {entry.current_id, entry.left_id, entry.kept_id}
        is_known = not known.isdisjoint(self.letter.known_as)
        return not is_known and metadata.redrive_count <= entry.redrive_count

    @property
    def is_last_copy(self) -> bool:
        """Whether metadata and content are those of the copy that was sent last.

        If so, it is that copy, whatever its id: if a DLQ does not say which message failed, a copy comes back with a
        new id.
        """
        metadata, entry = self.letter.metadata, self.entry
        return (
            metadata is not None
            and entry is not None
            and (metadata.redrive_count, metadata.batch)
            == (entry.redrive_count, entry.batch or NO_BATCH)
            and self._has_its_content
        )

    @property
    def _has_its_content(self) -> bool:
        """Whether the content is that of the copy that was sent last, as far as ids show it."""
        entry = self.entry
        return entry is not None and entry.current_id.endswith(self.letter.content_marks)

    @property
    def redrives(self) -> int:
        """How often the letter was redriven; the metadata knows it if the ledger lost a write or its item."""
        carried = self.letter.metadata.redrive_count if self.letter.metadata else 0
        return max(carried, self.entry.redrive_count if self.entry else 0)

    @property
    def last_try(self) -> datetime | None:
        """When the copy that was sent last could be received at the earliest."""
        return self.entry.last_redrive if self.entry is not None else None

    @property
    def batch(self) -> int | None:
        """The batch that the letter returns from; None on its first visit."""
        if self.letter.metadata is not None and not self.is_kept:
            return self.letter.metadata.batch
        return self.entry.batch if self.entry is not None else None

    @property
    def source_arn(self) -> str | None:
        """The queue that the letter belongs to, if SQS or the ledger says so."""
        return self.letter.source_arn or (self.entry.source_arn if self.entry else None)

    @property
    def is_suspect(self) -> bool:
        """Whether the ledger has a strike against the letter, or doubts it."""
        return self.entry is not None and self.entry.is_suspect

    def is_doubtful(self, circuit: Circuit) -> bool:
        """Whether the letter came back with hardly any letters but suspects, so that it may well be one, too.

        No message succeeded, so it has no strike, and its next return says as little about the consumer as a suspect's.
        If a batch of other letters fails with it, the consumer is at fault and the doubt is over.
        """
        judged = circuit.judged_batch(self.batch)
        if judged is not None and judged.verdict is not Verdict.NO_EVIDENCE:
            return False
        return self._was_doubtful or (judged is not None and judged.was_alone)

    def was_alone(self, circuit: Circuit) -> bool:
        """Whether it failed, as expected, with no other message to compare it with."""
        batch_counts = circuit.batch_counts(self.batch)
        if self.is_presumed and batch_counts is not None:
            return batch_counts.is_unexplained and batch_counts.size == batch_counts.suspects
        judged = circuit.judged_batch(self.batch)
        return judged is not None and judged.was_alone

    def was_suspect(self, circuit: Circuit) -> bool:
        """Whether the letter was expected to fail when it was sent in its last batch.

        It had come back before while others succeeded, or it went as the canary of its cause.
        """
        is_canary = any(one.is_canary(self.original_id, self.batch) for one in circuit.causes)
        return is_canary or self._was_doubtful or self._strikes_before(circuit) > 0

    @property
    def _was_doubtful(self) -> bool:
        return self.entry is not None and self.entry.is_doubtful

    def strikes(self, circuit: Circuit) -> int:
        """The strikes against the letter, including the verdict on the batch that it returned from.

        A strike needs others to have succeeded at the same time, which the batch's verdict says. The strike is added
        with the verdict and not when the letter is seen, because either can come first.
        """
        return self._strikes_before(circuit) + self._is_strike(self.batch, circuit)

    def _strikes_before(self, circuit: Circuit) -> int:
        """If the record of its last redrive was lost, the entry does not include the verdict before it yet."""
        if self.entry is None:
            return 0
        lost = self.entry.batch if self.entry.batch != self.batch else None
        return self.entry.strikes + self._is_strike(lost, circuit)

    def _is_strike(self, batch: int | None, circuit: Circuit) -> bool:
        if self.entry is not None and self.entry.counted_batch == batch:
            return False
        judged = circuit.judged_batch(batch)
        if judged is None or (self.is_presumed and circuit.batch_counts(batch) is not None):
            # No pass saw it fail: it goes again because numbers could not tell, and that convicts no letter.
            return False
        return judged.is_strike

    @property
    def contradicts_a_report(self) -> bool:
        """Whether the letter is here although its consumer reported it as succeeded."""
        entry = self.entry
        return (
            entry is not None
            and entry.status is Status.SUCCEEDED
            and entry.current_id == self.message_id
            and not self.is_replaced  # a delivery keeps the letter's id if its target returns none
        )

    def is_unseen_return(self, circuit_version: int) -> bool:
        """Whether this letter is back from a redrive and has not been charged to the circuit yet."""
        if self.is_kept:
            # Its copy was charged when it was seen: charge it again only if that was lost.
            return self._is_back and not self._is_charged(circuit_version)
        if (
            self.letter.metadata is None
            or self.letter.metadata.redrive_count == 0
            or self.is_replaced
        ):
            return (
                False  # a replaced copy was left behind by a crash: the letter itself has gone on
            )
        # If the record of a redrive was lost, the ledger only knows the return before it.
        is_behind = self.entry is not None and self.entry.redrive_count < self.redrives
        return is_behind or not self._is_back or not self._is_charged(circuit_version)

    @property
    def _is_back(self) -> bool:
        return self.entry is not None and self.entry.status is Status.RETURNED

    def _is_charged(self, circuit_version: int) -> bool:
        return self.entry is not None and not self.entry.counts_as_evidence(circuit_version)

    def without_content(self) -> Case:
        """The part that is needed to report and release it: a body may have a megabyte."""
        return replace(self, letter=replace(self.letter, body="", attributes={}))

    def known(self, queue: str) -> Entry:
        """The letter's entry as it should stand; a new one on its first visit, or from its metadata.

        Args:
            queue: the source queue that the letter belongs to; the entry may name one that was removed since.

        """
        if self.entry is not None:
            return replace(
                self.entry,
                queue=queue,
                source_arn=self.source_arn,
                redrive_count=self.redrives,  # repairs a record that was refused after its send
            )
        metadata = self.letter.metadata
        return Entry(
            original_id=self.original_id,
            queue=queue,
            first_seen=metadata.first_seen if metadata else self.letter.sent_at,
            status=Status.RETURNED,
            current_id=self.message_id,
            redrive_count=metadata.redrive_count if metadata else 0,
            batch=metadata.batch if metadata else None,
            generation=metadata.generation if metadata else 0,
            source_arn=self.letter.source_arn,
        )

    def next_metadata(self, queue: str, batch: Batch | None) -> RedriveMetadata:
        """The metadata of the next copy, see `metadata_after`."""
        return metadata_after(self.known(queue), queue, batch)

    def replay_metadata(self, queue: str) -> RedriveMetadata:
        """The metadata of a copy that a person sends: one redrive more, in no batch."""
        metadata = self.next_metadata(queue, None)
        return replace(metadata, redrive_count=metadata.redrive_count + 1, batch=NO_BATCH)


def metadata_after(entry: Entry, queue: str, batch: Batch | None) -> RedriveMetadata:
    """The metadata of the next copy: one redrive more, in `batch`; unchanged if the letter is parked."""
    return RedriveMetadata(
        queue=queue,
        original_id=entry.original_id,
        redrive_count=entry.redrive_count + (batch is not None),
        first_seen=entry.first_seen,
        batch=batch.id if batch else entry.batch or NO_BATCH,
        generation=batch.generation if batch else entry.generation,
    )
