"""Sees every message come and go, and says afterwards whether the re-driver kept its promises."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from fakes.sqs import Event, Message
from simulator.world import DLQ, PARKING_LOT, TABLE, World
from smart_redriver.engine.aws.items import entry_from_item
from smart_redriver.engine.messages.letter import (
    METADATA_ATTRIBUTE,
    RedriveMetadata,
    without_lineage,
)
from smart_redriver.engine.triage.ledger import Entry, Status


class Witness:
    """Follows letters by their bodies, each of which one producer sends once.

    Every arrival of a letter in the DLQ asks for one send: to its source queue or to the parking lot. What is
    sent less is a loss; a letter that ends up as several copies was repeated.
    """

    def __init__(self, world: World) -> None:
        self.recorded_repeats: list[str] = []
        self.altered: list[str] = []
        self.metadata: dict[str, RedriveMetadata] = {}
        self._world = world
        self._originals: dict[str, Message] = {}
        self._arrivals: Counter[str] = Counter()
        self._sends: Counter[str] = Counter()
        self._in_hand: defaultdict[str, set[str]] = defaultdict(set)
        self._replaced: set[str] = set()
        self._dlq, self._lot = (world.queue_name(queue) for queue in (DLQ, PARKING_LOT))
        world.sqs.inspect.subscribe(self._see)

    def note_what_the_ledger_knows(self) -> None:
        """To be called before each pass: which copies it must not send again."""
        if any(self._in_hand.values()):
            self._replaced = {
                one["S"] for item in self._items() for one in item["ReplacedMessageIds"]["L"]
            }

    def ledger(self) -> dict[str, Entry]:
        """Every letter's entry, by original id."""
        entries = [entry_from_item(item) for item in self._items()]
        return {entry.original_id: entry for entry in entries}

    @property
    def repeats(self) -> int:
        """Copies beyond the one that each letter should have come to: done, or at rest somewhere."""
        copies = Counter(self._world.deliveries.done)
        for queue in (*self._world.source_names, DLQ, PARKING_LOT):
            copies.update(self._world.bodies(queue))
        return sum((copies - Counter(self._world.sent)).values())

    @property
    def unanswered(self) -> Counter[str]:
        """Arrivals in the DLQ that no send has answered: at the end of a story, losses."""
        return self._arrivals - self._sends

    def complaints(
        self, *, doomed: set[str], undecided: set[str], repeats_allowed: int
    ) -> list[str]:
        """What is wrong now that nothing waits in source queue and DLQ any more."""
        told = [
            ("not drained", not self._world.is_drained),
            ("lost", sorted(self._world.lost())),
            ("never sent on", sorted(self.unanswered)),
            ("wrongly parked", sorted(set(self._world.parked()) - doomed - undecided)),
            ("wrongly done", sorted(set(self._world.deliveries.done) & doomed)),
            (f"{self.repeats} letters repeated", self.repeats > repeats_allowed),
            ("repeated although recorded", self.recorded_repeats),
            ("altered", self.altered),
        ]
        return [f"{what}: {seen}" for what, seen in told if seen]

    def ledger_complaints(self) -> list[str]:
        """Where the ledger tells another story than the letters it speaks of."""
        told = [
            ("ledger behind the metadata", self.behind_the_metadata()),
            ("parked and not listed", self._parked_and_not_listed()),
        ]
        return [f"{what}: {seen}" for what, seen in told if seen]

    def behind_the_metadata(self) -> list[str]:
        """Letters whose last copy carries a higher count than the ledger has."""
        behind = []
        for entry in self.ledger().values():
            metadata = self.metadata.get(entry.current_id)
            if metadata is not None and entry.redrive_count < metadata.redrive_count:
                behind.append(
                    f"{entry.original_id}: {entry.redrive_count} < {metadata.redrive_count}"
                )
        return behind

    def _parked_and_not_listed(self) -> list[str]:
        """Bodies in the parking lot that the ledger does not call parked. One parked twice is listed once."""
        listed = {one.current_id for one in self.ledger().values() if one.status is Status.PARKED}
        parked = self._world.sqs.inspect.messages(self._lot)
        bodies_listed = {message.body for message in parked if message.message_id in listed}
        return sorted({message.body for message in parked} - bodies_listed)

    def _items(self) -> list[dict[str, Any]]:
        items = self._world.dynamodb.scan(TableName=TABLE, ConsistentRead=True)["Items"]
        return [item for item in items if "ReplacedMessageIds" in item]

    def _see(self, event: Event) -> None:
        message, body = event.message, event.message.body
        if event.kind == "moved":
            self._arrivals[body] += 1
        if event.queue_name in (self._dlq, self._lot) and event.kind in ("moved", "sent"):
            self._in_hand[body].add(message.message_id)
        if event.queue_name in (self._dlq, self._lot) and event.kind == "deleted":
            self._in_hand[body].discard(message.message_id)
        if event.kind == "sent" and self._originals.setdefault(body, message) is not message:
            self._sees_sent_on(message)

    def _sees_sent_on(self, message: Message) -> None:
        body = message.body
        self._sends[body] += 1
        if self._in_hand[body] - {message.message_id} <= self._replaced:
            self.recorded_repeats.append(body)
        if _what_must_not_change(message) != _what_must_not_change(self._originals[body]):
            self.altered.append(body)
        if carried := message.attributes.get(METADATA_ATTRIBUTE):
            self.metadata[message.message_id] = RedriveMetadata.decode(carried["StringValue"])


def _what_must_not_change(message: Message) -> tuple[Any, ...]:
    own = {name: value for name, value in message.attributes.items() if name != METADATA_ATTRIBUTE}
    return own, message.group_id, without_lineage(message.trace_header)
