"""The topics of a DLQ for the command: a `MessageStore` over a cluster, with the file's own credentials."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from smart_redriver.engine.counts import letters as letters_in_words
from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import DeadLetters, Ledger, NotedMemory, Source
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.kafka.engine.letters import Dead, name_in_id
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.oncall.deployment.message_store import Operation, Stuck
from smart_redriver.oncall.terminal.exits import Refused

if TYPE_CHECKING:
    from smart_redriver.engine.wiring import Connection
    from smart_redriver.kafka.engine.credentials import Account
    from smart_redriver.kafka.engine.records import Log
    from smart_redriver.kafka.oncall.people import PeoplesLetters, PeoplesLot, Topics
    from smart_redriver.oncall.deployment.session import Session

#: An id without its digest, or with a part of it: `orders-0-1` is not the beginning of `orders-0-17-...`.
_SHORT = re.compile(
    r"(?P<topic>.+)-(?P<offset>[0-9]+-[0-9]+)(-(?P<digest>(x[0-9a-f]{0,7}-?)?[0-9a-f]{0,15}))?…?"
)


#: Seconds to wait for a broker before a person gets an error.
PATIENCE = 10.0


class Clusters:
    """Logs by their place, for all sessions of one command. None is opened before its first use."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._accounts: dict[str, Account] = {}
        self._silent: dict[str, tuple[float, Refused]] = {}
        self._lock = Lock()

    def of(self, place: KafkaTopics, account: Account) -> Log:
        """The log, with credentials of the latest `account`. Raises Refused if no client is there or no broker answers.

        Other calls at the same time, or soon after, do not wait for the brokers again.
        """
        key = place.encode()
        with self._lock:
            self._accounts[key] = account
            since, refused = self._silent.get(key, (0.0, None))
            if refused is not None and time.monotonic() < since + PATIENCE:
                raise refused
            if key not in self._known:
                try:
                    self._known[key] = _open(place, _Latest(self._accounts, key))
                except Refused as refused:
                    self._silent[key] = (time.monotonic(), refused)
                    raise
            log: Log = self._known[key]
            return log

    def close(self) -> None:
        """Close all clusters."""
        with self._lock:
            while self._known:
                self._known.popitem()[1].close()


@dataclass(frozen=True, slots=True)
class _Latest:
    """The account of the latest session with a place: a person whose login had expired may have logged in since."""

    accounts: Mapping[str, Account]
    key: str

    def client(self, service: str) -> Any:
        return self.accounts[self.key].client(service)

    def credentials(self) -> Any:
        return self.accounts[self.key].credentials()


def _open(place: KafkaTopics, account: Account) -> Any:
    try:
        from smart_redriver.kafka.engine.client import KafkaLog
    except ImportError as missing:
        raise Refused(
            f"This queue is a topic of Kafka, and confluent-kafka can't be used here ({missing}): install "
            "smart-redriver[oncall,kafka], the package with these extras."
        ) from missing
    log = KafkaLog(place, account)
    try:
        log.reach(PATIENCE)
    except CallFailed as failed:
        log.close()
        why = failed.detail.partition(" (after ")[0]
        raise Refused(
            f"No broker of {place.servers} has answered within {PATIENCE:.0f} s: {why}. Check the servers, "
            "the credentials under [kafka.client], and the way from this machine to the brokers. Nothing was changed "
            "by that."
        ) from failed
    return log


def topics_of(session: Session) -> TopicStore:
    """Return the topics of a session."""
    place = session.place.deployment.location
    assert isinstance(place, KafkaTopics), "read by this backend"  # noqa: S101 - a mistake of ours
    clusters = session.connections.of(Clusters)
    return TopicStore(
        place, lambda: clusters.of(place, session.aws), session.clock, lambda: session.store
    )


class TopicStore:
    """See `MessageStore`. `open_log` raises Refused if that is not possible."""

    finds_by_id = True
    keeps_rows = False

    def __init__(
        self,
        place: KafkaTopics,
        open_log: Callable[[], Log],
        clock: Callable[[], datetime],
        open_memory: Callable[[], NotedMemory],
    ) -> None:
        self._place = place
        self._open_log = open_log
        self._clock = clock
        self._open_memory = open_memory
        self._lock = Lock()

    @cached_property
    def topics(self) -> Topics:
        """Both topics, before anything is read."""
        from smart_redriver.kafka.oncall.people import Topics

        return Topics(self._open_log(), self._place, self._clock, self._open_memory())

    @property
    def connection(self) -> Connection:
        """The same topics, read anew."""
        from smart_redriver.kafka.engine.connection import DeadLetterTopic

        return DeadLetterTopic(self._open_log(), self._place, self._clock)

    @cached_property
    def dead_letters(self) -> PeoplesLetters:
        """The DLQ topic, with its retry topic."""
        from smart_redriver.kafka.oncall.people import PeoplesLetters

        return PeoplesLetters(self.topics, is_dlq=True)

    @cached_property
    def parking_lot(self) -> PeoplesLot:
        """The parking topic."""
        from smart_redriver.kafka.oncall.people import PeoplesLot

        return PeoplesLot(self.topics)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The topics that letters go back to."""
        from smart_redriver.kafka.oncall.people import PeoplesSource

        return tuple(PeoplesSource(self.topics, one) for one in self._place.topics)

    def letters_in(
        self,
        *,
        dlq: bool,
        ids: Collection[str],
        whole: bool,  # noqa: ARG002
        contains: str | None,
    ) -> DeadLetters:
        """A separate reading of letters with these ids, or with this text in them."""
        from smart_redriver.kafka.oncall.people import PeoplesLetters

        named = set(ids)

        def is_selected(letter: Letter) -> bool:
            is_named = not named or not named.isdisjoint((letter.message_id, letter.original_id))
            return is_named and (contains is None or contains in letter.body)

        return PeoplesLetters(self.topics, is_dlq=dlq, selected=is_selected)

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:  # noqa: ARG002
        """Return the ledger: each record describes its own death."""
        return ledger

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:  # noqa: ARG002
        """Count all letters. If there is no room for some, their records are counted."""
        return self._of(dlq=dlq).facts()

    def read_anew(self) -> None:
        """Read on at the next look, however recent the last one is."""
        self.topics.look_again()

    def keep(
        self, letters: Sequence[Letter], *, dlq: bool
    ) -> tuple[list[Letter], list[EntryFault]]:
        """Return letters with their records."""
        return self._of(dlq=dlq).keep(letters), []

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Move the position past letters, or note in the parking topic that they were taken out."""
        return self._of(dlq=dlq).delete(letters)

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:
        """Return the letters that would be handed out again."""
        return self._of(dlq=dlq).still_there(letters)

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:  # noqa: ARG002
        """Return no letter: one that was not read may be behind the letters that memory has room for."""
        return set()

    def age_of_oldest(self, now: datetime) -> timedelta | None:
        """Return the time since the first letter came to the DLQ topic."""
        oldest = min((one.letter.sent_at for one in self.topics.dead()), default=None)
        return None if oldest is None else max(now - oldest, timedelta())

    def stuck(self) -> list[Stuck] | None:
        """Return the stuck letters, by their records."""
        groups: dict[str | None, tuple[list[Dead], list[Dead]]] = defaultdict(lambda: ([], []))
        for number, some in enumerate((self.topics.dead(), self.topics.parked())):
            for one in some:
                groups[one.message.death.error_class][number].append(one)
        return [_stuck(cause, *some) for cause, some in groups.items()]

    def stack_trace(self, letter: Letter) -> str | None:
        """Return the stack trace that the consumer wrote into a header."""
        found = self.topics.find(letter.message_id)
        return found.message.death.stack_trace if found else None

    def beginning(self, typed: str) -> str | None:
        """Accept topic, partition and offset, because a table on a terminal cuts the longest ids."""
        found = _SHORT.fullmatch(typed)
        return found and f"{name_in_id(found['topic'])}-{found['offset']}-{found['digest'] or ''}"

    def called(self, own_id: str) -> Iterator[str]:  # noqa: ARG002
        """Yield none: there are no rows."""
        return iter(())

    def cost(self, receives: int, seen: int) -> str:  # noqa: ARG002
        """Say that a look is only a read."""
        return f"This look read {letters_in_words(seen)} and changed nothing."

    def unknown(self, message_id: str, looked_at: int) -> str:  # noqa: ARG002
        """Say that it is not in the topics."""
        return (
            f"{message_id} was not found: it is in none of the topics, nor in the ledger. An id is a topic, partition, "
            "offset and digest, as `redrive letters` has it; the digest may be left out."
        )

    def refusal(self, operation: Operation) -> str | None:  # noqa: ARG002
        """Refuse nothing: a record can be written anew with any content, and to any of the topics."""
        return None

    def _of(self, *, dlq: bool) -> PeoplesLetters:
        return self.dead_letters if dlq else self.parking_lot


def _stuck(cause: str | None, dead: Sequence[Dead], parked: Sequence[Dead]) -> Stuck:
    moments = [one.letter.sent_at for one in (*dead, *parked)]
    return Stuck(
        cause=cause,
        in_dlq=len(dead),
        parked=len(parked),
        since=min(moments, default=None),
        parked_since=min((one.record.at for one in parked), default=None),
    )
