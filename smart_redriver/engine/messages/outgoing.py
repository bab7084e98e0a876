"""Letters on their way to a queue: the entries of a SendMessageBatch, split into calls, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import (
    MAX_MESSAGE_ATTRIBUTES,
    METADATA_ATTRIBUTE,
    Attribute,
    Letter,
    RedriveMetadata,
    attribute_size,
    metadata_attribute,
    without_lineage,
)

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
ENTRIES_PER_CALL = 10
BYTES_PER_CALL = 1_048_576

#: The most that SendMessage's `DelaySeconds` allows; a letter with a longer delay is held in the DLQ until this much
#: remains.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
MAX_SQS_DELAY = timedelta(seconds=900)

#: A message can be hidden for at most 12 h from its receive.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
MAX_VISIBILITY = timedelta(hours=12)


@dataclass(slots=True, kw_only=True)
class Outgoing:
    """One letter on its way to a queue that takes messages of `size_limit` bytes, and its metadata;
    for `salt` see `Entry`.

    Attributes:
        before: the letter as it is in the queue, if a person has edited it.
        metadata_attribute: the metadata as the message carries it.
        may_carry_metadata: false for destinations whose messages must not get additions.
        may_return: it can come back from its destination, and must be recognised then.
        carries_metadata: whether the message has room for its metadata; if not, it stays unchanged.
        leaves_metadata: whether the ledger has to keep the metadata.
        size: bytes of the message, with its metadata if it carries it.

    """

    letter: Letter
    metadata: RedriveMetadata
    size_limit: int
    delay: timedelta = timedelta()
    salt: int = 0
    may_carry_metadata: bool = True
    may_return: bool = True
    before: Letter | None = None
    metadata_attribute: Attribute = field(init=False)
    carries_metadata: bool = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute once what is asked for several times."""
        self.metadata_attribute = metadata_attribute(self.metadata)
        without = self.letter.size
        with_metadata = without + attribute_size(METADATA_ATTRIBUTE, self.metadata_attribute)
        has_place = len(self.letter.attributes) < MAX_MESSAGE_ATTRIBUTES
        self.carries_metadata = (
            self.may_carry_metadata and has_place and with_metadata <= self.size_limit
        )
        self.size = with_metadata if self.carries_metadata else without

    @property
    def leaves_metadata(self) -> bool:
        """Whether the ledger has to keep the metadata, by the id of the copy."""
        return self.may_return and not self.carries_metadata

    @property
    def deduplication_id(self) -> str:
        """The same for every send of this copy with the same redrive count, content and ledger entry.

        So a FIFO queue drops the sends that a crash between send and record repeats within five minutes, and no others.
        It is a digest because a message id from a file may be too long for it.
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
        """
        digest = sha256()
        for part in self._told_apart_by():
            digest.update(b"%d:" % len(part))  # or "ab", "c" would be the same as "a", "bc"
            digest.update(part)
        return digest.hexdigest()

    def _told_apart_by(self) -> Iterator[bytes]:
        letter = self.letter
        for one in (letter.message_id, self.metadata.redrive_count, self.salt, letter.body):
            yield str(one).encode()
        for name, attribute in sorted(letter.attributes.items()):
            yield name.encode()
            for value in _sendable(attribute).values():
                yield value if isinstance(value, bytes) else str(value).encode()


@dataclass(slots=True)
class Sent:
    """The result of a send.

    Attributes:
        new_ids: for accepted letters, the new MessageId by the letter's own.
        faults: what was not accepted.
        bounced: letters that their target took and answered with a failure, with the answer: either may be at fault.
        healed: faults that another try repaired; they are logged but don't count: the transient faults of entries that
            were then accepted, and one fault for each call that was refused as a whole and split.

    """

    new_ids: dict[str, str] = field(default_factory=dict)
    bounced: dict[str, str] = field(default_factory=dict)
    faults: list[EntryFault] = field(default_factory=list)
    healed: list[EntryFault] = field(default_factory=list)

    @property
    def refused(self) -> EntryFault | None:
        """The first fault that lies with the destination: access, its key, or the queue is gone.

        None if all letters were accepted, or if the others failed through their content (`is_of_content`) or a
        temporary AWS problem (`is_transient`): neither says anything about the consumer.
        """
        return next((fault for fault in self.faults if fault.is_refusal), None)

    def add(self, part: Sent) -> None:
        """Add the results of another part of the same send."""
        self.new_ids |= part.new_ids
        self.bounced |= part.bounced
        self.faults += part.faults
        self.healed += part.healed

    def make_good(self, second: Sent) -> None:
        """Replace the first try's faults with the results of a second try."""
        still_failed = {fault.key for fault in second.faults}
        self.healed += [fault for fault in self.faults if fault.key in second.new_ids]
        self.faults = [
            fault for fault in self.faults if fault.key not in second.new_ids.keys() | still_failed
        ]
        self.add(second)


def in_calls(
    outgoing: Sequence[Outgoing], entries: int = ENTRIES_PER_CALL
) -> Iterator[list[Outgoing]]:
    """Split into calls of at most `entries` entries and 1 MiB together."""
    few: list[Outgoing] = []
    size = 0
    for one in outgoing:
        if few and (len(few) == entries or size + one.size > BYTES_PER_CALL):
            yield few
            few, size = [], 0
        few.append(one)
        size += one.size
    if few:
        yield few


def send_entry(one: Outgoing, *, is_fifo: bool) -> dict[str, Any]:
    """The entry of a SendMessageBatch for one letter, without its Id; `is_fifo` says what it is sent to."""
    letter = one.letter
    attributes = {name: _sendable(value) for name, value in letter.attributes.items()}
    if one.carries_metadata:
        attributes[METADATA_ATTRIBUTE] = dict(one.metadata_attribute)
    entry: dict[str, Any] = {"MessageBody": letter.body}
    if attributes:
        entry["MessageAttributes"] = attributes
    if letter.group_id is not None:
        entry["MessageGroupId"] = letter.group_id
    if is_fifo:
        # No delay per message: SQS refuses one. A letter without a group is a group by itself.
        entry.setdefault("MessageGroupId", letter.original_id)
        entry["MessageDeduplicationId"] = one.deduplication_id
    else:
        # Set even if it is zero: the queue may have a delay of its own, and a canary must go at once.
        entry["DelaySeconds"] = whole_seconds(one.delay)
    # Set for every entry: without it each message would take the re-driver's own trace, Lineage included.
    if trace_header := without_lineage(letter.trace_header):
        entry["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}
        }
    return entry


def _sendable(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """The attribute with its DataType verbatim; receive answers also hold empty list values, which send refuses."""
    return {
        name: attribute[name]
        for name in ("DataType", "StringValue", "BinaryValue")
        if name in attribute
    }


def whole_seconds(duration: timedelta) -> int:
    """A duration in SQS's form: whole seconds, 0 if it is over."""
    return max(0, round(duration.total_seconds()))
