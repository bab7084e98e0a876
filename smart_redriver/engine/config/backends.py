"""The kinds of queues: one record for each names its parts and where they are. Standard library only.

A part is named as `module:attribute` and imported on first use: a function's bundle holds only the parts that its
passes need, and the command needs no library of an unused kind. To add a kind, write its package beside `engine`, and
add a member to `Origin` and a record here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any, Protocol, Self

from smart_redriver.engine.config.targets import SERVED, Origin


class Stopped(Exception):  # noqa: N818 - named after what happened
    """Raised in a pause when the process is asked to end: the pass before it is over, and its lease given back."""


class Location(Protocol):
    """The place of a queue outside of SQS.

    Attributes:
        origin: its kind.
        urls: what people see for its dead letters, its source and its parking lot.
        further_sources: names of other sources that share its dead letters; each has its own circuit.
        names_within: the name within which a source's name is unique, if other re-drivers of the same state table or
            account may have a source with that name; empty if names are unique.
        services: AWS services that its passes call beside DynamoDB, by the last words of the endpoints' names.

    """

    @property
    def origin(self) -> Origin: ...
    @property
    def urls(self) -> tuple[str, str, str]: ...
    @property
    def further_sources(self) -> tuple[str, ...]: ...
    @property
    def names_within(self) -> str: ...
    @property
    def services(self) -> tuple[str, ...]: ...
    def encode(self) -> str: ...


class LocationReader(Protocol):
    """Reads what `Location.encode` writes.

    `variable` holds it in the function's environment; `names` says in words which names the queue can have.
    """

    variable: str
    names: str

    def may_be_called(self, name: str) -> bool:
        """Whether circuit, metadata and reports can use this name for the queue."""
        ...

    def parse(self, text: str) -> Location:
        """The location. Raises SettingsError listing every fault."""
        ...


#: The call that fails if a state can't be opened: its `detail` is a sentence that says what to do.
OPEN_STATE = "OpenState"


class ProcessFile(Protocol):
    """The file that configures passes of a process instead of a function.

    Attributes:
        deployment: where letters and state are.
        settings: the settings of its passes.

    """

    @property
    def deployment(self) -> Any: ...
    @property
    def settings(self) -> Any: ...
    @classmethod
    def read(cls, tables: Mapping[str, Any]) -> Self:
        """Read the tables of a TOML file. Raises SettingsError listing every fault."""
        ...

    def open_state(self, *, is_made: bool = False) -> Any:
        """The calls of a DynamoDB client for a state table in a file, which `is_made` creates if it is missing; None if
        the table is in DynamoDB. Raises CallFailed as OPEN_STATE.
        """
        ...

    def run(
        self,
        journal: Callable[..., None],
        pause: Callable[[float], None],
        is_asked_to_end: Callable[[], bool],
        account: Any,
    ) -> None:
        """Run passes until `pause` raises Stopped. `account` is AWS as the caller is logged in there.

        Raises CallFailed if there is no state.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The parts of a kind of queue.

    Attributes:
        filled_by: what fills its DLQ, in words.
        connection: makes the `Connection` of a function: dead letters, parking lot, sources, queue metrics and reports.
        entry: the class that reads its entry in a list of queues, and so makes its construct.
        letter_store: makes the `MessageStore` of a session, for people's commands on letters.
        checks: the doctor's checks by what they look at.
        preview: what the doctor finds at a location, as `Location.encode` writes it, that need not be deployed: as it
            is, or as a library's.
        process: the `ProcessFile` with which `redrive run --forever` runs passes; empty if only functions run them.
        location: the `LocationReader`; empty if SQS URLs are enough.
        output: the end of the name of the stack's output that holds the location.
        message, hidden: the words for one of the source's messages, and for those that a consumer has in hand.
        letter, held: the same words for the DLQ's letters.

    """

    filled_by: str
    connection: str
    entry: str
    letter_store: str = ""
    checks: str = ""
    preview: str = ""
    process: str = ""
    location: str = ""
    output: str = ""
    message: str = "message"
    hidden: str = "in flight"
    letter: str = "message"
    held: str = "in flight"

    def load(self, part: str) -> Any:
        """The part of this name, which is stored as `module:attribute`. Raises ImportError."""
        return resolve_name(getattr(self, part))


_SQS = Backend(
    filled_by="SQS, with messages that a consumer failed",
    connection="smart_redriver.engine.wiring:connect_queues",
    entry="smart_redriver.cdk.queue_entry:QueueEntry",
    letter_store="smart_redriver.oncall.deployment.queues:queues_of",
    checks="smart_redriver.oncall.doctor.checkup:CHECKS",
)
#: Services that fill a DLQ of SQS whose letters go back to targets.
_SENDERS = {
    Origin.SNS: "SNS, with notifications that a subscriber did not take",
    Origin.LAMBDA: "Lambda, with events whose asynchronous invocation failed",
    Origin.EVENTBRIDGE: "EventBridge, with events that a rule's target did not take",
    Origin.SCHEDULER: "EventBridge Scheduler, with calls that a schedule's target did not take",
}
_POSTGRES = Backend(
    filled_by="workers of a queue in Postgres, with jobs that failed too often",
    connection="smart_redriver.postgres.engine.connection:connect",
    entry="smart_redriver.postgres.cdk.entry:JobsEntry",
    letter_store="smart_redriver.postgres.oncall.tables:tables_of",
    checks="smart_redriver.postgres.doctor.checks:CHECKS",
    preview="smart_redriver.postgres.doctor.checks:preview",
    location="smart_redriver.postgres.engine.place:JobsDatabase",
    output="RedriveDatabase",
    message="job",
    hidden="locked",
    letter="letter",
    held="held until later",
)

_KAFKA = Backend(
    filled_by="consumers of a topic in Kafka, with messages that they failed with",
    connection="smart_redriver.kafka.engine.connection:connect",
    entry="smart_redriver.kafka.cdk.entry:TopicsEntry",
    location="smart_redriver.kafka.engine.place:KafkaTopics",
    output="RedriveKafka",
    letter_store="smart_redriver.kafka.oncall.topics:topics_of",
    checks="smart_redriver.kafka.doctor:CHECKS",
    process="smart_redriver.kafka.process:Configuration",
    message="record",
    letter="letter",
    held="held until later",
)

BACKENDS: Mapping[Origin, Backend] = {
    Origin.SQS: _SQS,
    **{origin: replace(_SQS, filled_by=words) for origin, words in _SENDERS.items()},
    Origin.POSTGRES: _POSTGRES,
    Origin.KAFKA: _KAFKA,
}

#: The origins whose letters are in queues of SQS.
IN_SQS = tuple(one for one in Origin if one is Origin.SQS or SERVED[one])
