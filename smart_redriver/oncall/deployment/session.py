"""The session of a command: clients, deployment, terminal and clock. Nothing is opened before use."""

from __future__ import annotations

import getpass
import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from smart_redriver.oncall.deployment.aws import Aws
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.terminal import Terminal

if TYPE_CHECKING:
    from smart_redriver.engine.aws.state_table import StateStore
    from smart_redriver.engine.config.settings import Settings
    from smart_redriver.engine.passes.ports import DeadLetters, ParkingLot, Source
    from smart_redriver.engine.targets.target_source import Reach
    from smart_redriver.engine.triage.case import Case
    from smart_redriver.oncall.deployment.message_store import MessageStore
    from smart_redriver.oncall.deployment.places import Place


class _Closing(Protocol):
    def close(self) -> None: ...


_Kept = TypeVar("_Kept", bound=_Closing)


class Connections:
    """The connections of all sessions of one command: one of each kind, opened at its first use."""

    def __init__(self, *known: _Closing) -> None:
        self._known: dict[type[_Closing], _Closing] = {type(one): one for one in known}
        self._lock = Lock()

    def of(self, kind: type[_Kept]) -> _Kept:
        """The connection of this kind, or of a subclass of it."""
        with self._lock:
            known = next((one for one in self._known.values() if isinstance(one, kind)), None)
            return cast("_Kept", known or self._known.setdefault(kind, kind()))

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            for one in self._known.values():
                one.close()


def wall_clock() -> datetime:
    """Now, aware, in UTC."""
    return datetime.fromtimestamp(time.time(), UTC)


@dataclass(kw_only=True)
class Session:
    """One run of one command. Everything that can fail does so at first use.

    `known_place` is the queue, if it was chosen already.
    """

    aws: Aws
    terminal: Terminal
    stack: str
    queue: str | None = None
    clock: Callable[[], datetime] = wall_clock
    sleep: Callable[[float], None] = time.sleep
    known_place: Place | None = None
    connections: Connections = field(default_factory=Connections)

    @cached_property
    def place(self) -> Place:
        """The queue's deployment. Raises Refused if the stack has several and none is named, and CallFailed."""
        from smart_redriver.oncall.deployment.places import choose_place

        return self.known_place or choose_place(self._places, self.queue)

    @cached_property
    def source(self) -> str:
        """The name of the selected source queue. Raises as `place` does, and Refused if several match."""
        from smart_redriver.oncall.deployment.places import choose_source

        return choose_source(self.place, self.queue)

    def sources_called(self, name: str) -> frozenset[str]:
        """The source queues of the stack that `name` means, maybe none. Raises Refused and CallFailed."""
        from smart_redriver.oncall.deployment.places import sources_called

        return sources_called(self._places, name)

    def each_queue(self) -> list[Session]:
        """A session for each selected queue: the named one, else all. Raises Refused and CallFailed."""
        from smart_redriver.oncall.deployment.places import choose_places

        if self.known_place is not None:
            return [self]
        places = choose_places(self._places, self.queue)
        return [replace(self, known_place=place) for place in places]

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        from smart_redriver.oncall.deployment.deployment_file import is_file, read_file
        from smart_redriver.oncall.deployment.places import find_places, place_beside

        if is_file(self.stack):
            return (place_beside(self.stack, read_file(Path(self.stack))),)
        cloudformation = self.aws.client("cloudformation")
        return find_places(cloudformation, self.stack, self._where, self.terminal.warn)

    def new_file(self, what: str) -> Path:
        """A file for letters, named by what was done to them and when, as no other. The terminal notes it."""
        file = Path(f"{what}-{self.clock():%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}.jsonl")
        self.terminal.keep(file)
        return file

    def signed(self, done: str, reason: str) -> str:
        """A note with a change, its author and its reason, for a letter's history."""
        return f"{done} by {self.who}" + (f": {reason}" if reason else "")

    @cached_property
    def letter_store(self) -> MessageStore:
        """The store of the letters, for any backend. Raises as `place` does."""
        from smart_redriver.engine.config.backends import BACKENDS

        made: MessageStore = BACKENDS[self.place.origin].load("letter_store")(self)
        return made

    @property
    def dead_letters(self) -> DeadLetters:
        """The DLQ. Raises as `place` does, and Refused if it can't be reached."""
        return self.letter_store.dead_letters

    @property
    def parking_lot(self) -> ParkingLot:
        """The parking lot. Raises as `dead_letters` does."""
        return self.letter_store.parking_lot

    def letters_in(
        self,
        *,
        dlq: bool,
        ids: Collection[str] = (),
        whole: bool = True,
        contains: str | None = None,
    ) -> DeadLetters:
        """The queue that a command takes letters from: the DLQ, or the parking lot; see `MessageStore`."""
        return self.letter_store.letters_in(dlq=dlq, ids=ids, whole=whole, contains=contains)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The source queues that share the DLQ, in their order. Raises as `dead_letters` does."""
        return self.letter_store.sources

    @property
    def reach(self) -> Reach:
        """Access to targets, with the caller's own clients, in any Region."""
        from smart_redriver.engine.targets.target_source import Reach

        def client(service: str, region: str) -> Any:
            aws = self.aws if region == self.aws.region else self.aws.elsewhere(f"/{region}")
            return aws.client(service)

        return Reach(clients=client)

    def name_of(self, case: Case) -> str:
        """The name of the source queue that a letter belongs to; the first one for a letter that belongs to none."""
        from smart_redriver.engine.aws.queues import owner_of

        owner = owner_of(self.sources, source_arn=case.source_arn, metadata=case.letter.metadata)
        return owner.name if owner else self.place.queue

    @cached_property
    def store(self) -> StateStore:
        """Lease and ledger of the DLQ, and the circuit of its first source queue. `of` gives another's."""
        from smart_redriver.engine.aws.state_table import StateStore

        deployment = self.place.deployment
        return StateStore(
            self.aws.dynamodb,
            deployment.table_name,
            self.place.queue,
            names_within=deployment.names_within,
            letters_within=deployment.letters_within,
        )

    @cached_property
    def function_configuration(self) -> Mapping[str, Any]:
        """Lambda's configuration of the function. Raises Refused and CallFailed."""
        function = function_of(self.place)
        configuration: Mapping[str, Any] = self.aws.client("lambda").get_function_configuration(
            FunctionName=function
        )
        return configuration

    @cached_property
    def log_group(self) -> str:
        """The log group that the function writes to. Raises as `function_configuration` does.

        Stacks of today name the log group, so that the function's configuration is not asked for.
        """
        if self.place.log_group is not None:
            return self.place.log_group
        logging = self.function_configuration.get("LoggingConfig", {})
        return str(logging.get("LogGroup") or f"/aws/lambda/{self.place.function}")

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """The function's variables. Raises as `function_configuration` does, and if they can't be decrypted."""
        environment = self.function_configuration.get("Environment", {})
        if refused := environment.get("Error"):
            raise Refused(
                f"The function's environment can't be decrypted: {refused.get('ErrorCode', refused)}. "
                "Looking needs kms:Decrypt on its key, which the managed policy RedriveViewer has."
            )
        variables: Mapping[str, str] = environment.get("Variables", {})
        return variables

    @cached_property
    def settings(self) -> Settings:
        """The settings of passes, from the file or the function's environment. Raises as `environment` does."""
        from smart_redriver.engine.config.settings import Settings

        if self.place.process is not None:
            told: Settings = self.place.process.settings
            return told
        return Settings.from_env(self.environment)

    def _where(self) -> str:
        """Region and account, as far as they are known."""
        account = self.who.split(":")[4] if self.who.startswith("arn:") else "that nobody can tell"
        return f"{self.aws.region or 'this Region'} of account {account}"

    @cached_property
    def who(self) -> str:
        """The person who gives the order: the caller's ARN, else the user of this machine."""
        from smart_redriver.engine.errors import CallFailed

        try:
            return str(self.aws.client("sts").get_caller_identity()["Arn"])
        except CallFailed:
            return getpass.getuser()


def function_of(place: Place) -> str:
    """The function that makes the passes. Raises Refused if a process makes them, and says what to do instead."""
    if place.process is not None:
        raise Refused(
            f"No function runs these passes, but the process of `redrive run --forever {place.stack}`: it looks for "
            "letters by itself, and logs on its own standard output. `redrive run --dry-run` shows what it would do."
        )
    if place.function is None:
        raise Refused(f"Stack {place.stack!r} names no function. Deploy it anew.")
    return place.function


def invoke(session: Session) -> dict[str, Any]:
    """Make the function run one pass, and return its report. Raises CallFailed and Refused."""
    function = function_of(session.place)
    answer = session.aws.client("lambda").invoke(FunctionName=function, Payload=b"{}")
    payload = answer["Payload"].read()
    try:
        report = json.loads(payload)
    except ValueError:
        report = None
    if answer.get("FunctionError") or not isinstance(report, dict):
        raise Refused(
            f"The function failed: {printable(payload.decode(errors='replace'))[:300]}. `redrive logs` tells more; "
            "the letters are safe in the DLQ."
        )
    return report
