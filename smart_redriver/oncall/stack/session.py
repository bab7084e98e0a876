"""What every command works with: clients, the deployment, the terminal and the clock. Nothing is opened before use."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from smart_redriver.oncall.stack.aws import Aws
from smart_redriver.oncall.stack.databases import Databases
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Terminal

if TYPE_CHECKING:
    from redrive.aws.state_table import StateStore
    from redrive.aws.targets import Reach
    from redrive.core.case import Case
    from redrive.passes.ports import DeadLetters, ParkingLot, Source
    from redrive.settings import Settings
    from smart_redriver.oncall.stack.audit import AuditTrail
    from smart_redriver.oncall.stack.deployment import Place
    from smart_redriver.oncall.stack.lodging import Lodging


def wall_clock() -> datetime:
    """Now, aware, in UTC."""
    return datetime.fromtimestamp(time.time(), UTC)


@dataclass(kw_only=True)
class Session:
    """One run of one command. Everything that can fail does so when it is first asked for.

    `known_place` is the queue that was chosen already.
    """

    aws: Aws
    terminal: Terminal
    stack: str
    queue: str | None = None
    clock: Callable[[], datetime] = wall_clock
    sleep: Callable[[float], None] = time.sleep
    known_place: Place | None = None
    databases: Databases = field(default_factory=Databases)

    @cached_property
    def place(self) -> Place:
        """The one queue's deployment. Raises Refused, where the stack has several and none is named, and CallFailed."""
        from smart_redriver.oncall.stack.deployment import choose_place

        return self.known_place or choose_place(self._places, self.queue)

    @cached_property
    def source(self) -> str:
        """The name of the one source queue whose circuit is meant. Raises as `place`, and where several could be."""
        from smart_redriver.oncall.stack.deployment import choose_source

        return choose_source(self.place, self.queue)

    def each_queue(self) -> list[Session]:
        """A session for each queue that is meant: the one that is named, else all. Raises Refused and CallFailed."""
        from smart_redriver.oncall.stack.deployment import choose_places

        if self.known_place is not None:
            return [self]
        places = choose_places(self._places, self.queue)
        return [replace(self, known_place=place) for place in places]

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        from smart_redriver.oncall.stack.deployment import find_places

        cloudformation = self.aws.client("cloudformation")
        return find_places(cloudformation, self.stack, self._where, self.terminal.warn)

    def signed(self, done: str, reason: str) -> str:
        """What was done, by whom and why: a note in a letter's history, or a circuit's reason."""
        return f"{done} by {self.who}" + (f": {reason}" if reason else "")

    @cached_property
    def lodging(self) -> Lodging:
        """Where the letters are: queues, or tables. Raises as `place` does."""
        deployment = self.place.deployment
        if deployment.database is not None:
            from smart_redriver.oncall.stack.tables import Tables

            opened = partial(self.databases.of, deployment.database, self.aws.client)
            return Tables(deployment, opened, self.clock, lambda: self.store)
        from smart_redriver.oncall.stack.queues import Queues

        return Queues(deployment, self.aws, lambda: self.reach)

    @property
    def dead_letters(self) -> DeadLetters:
        """The DLQ. Raises as `place` does, and Refused where it can't be reached."""
        return self.lodging.dead_letters

    @property
    def parking_lot(self) -> ParkingLot:
        """The parking lot. Raises as `dead_letters` does."""
        return self.lodging.parking_lot

    def letters_in(
        self, *, dlq: bool, ids: Collection[str] = (), whole: bool = True
    ) -> DeadLetters:
        """What a command takes letters out of: the DLQ, or the parking lot; see `Lodging`."""
        return self.lodging.letters_in(dlq=dlq, ids=ids, whole=whole)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The source queues that share the DLQ, the first one first. Raises as `dead_letters` does."""
        return self.lodging.sources

    @property
    def reach(self) -> Reach:
        """How targets are reached: with the caller's own clients, in whichever Region a target is."""
        from redrive.aws.targets import Reach

        def client(service: str, region: str) -> Any:
            aws = self.aws if region == self.aws.region else self.aws.elsewhere(f"/{region}")
            return aws.client(service)

        return Reach(clients=client)

    def name_of(self, case: Case) -> str:
        """The name of the source queue that a letter belongs to; the first one's for a letter of nobody's."""
        from redrive.aws.sources import owner_of

        owner = owner_of(self.sources, source_arn=case.source_arn, trail=case.letter.trail)
        return owner.name if owner else self.place.queue

    @cached_property
    def store(self) -> StateStore:
        """Lease and ledger of the DLQ, and the circuit of its first source; `of` has that of another."""
        from redrive.aws.state_table import StateStore

        return StateStore(self.aws.dynamodb, self.place.deployment.table_name, self.place.queue)

    @cached_property
    def audit(self) -> AuditTrail:
        """Who changed what."""
        from smart_redriver.oncall.stack.audit import AuditTrail

        deployment = self.place.deployment
        return AuditTrail(self.aws.dynamodb, deployment.table_name, self.place.queue)

    @cached_property
    def function_configuration(self) -> Mapping[str, Any]:
        """What Lambda says of the function. Raises Refused and CallFailed."""
        if self.place.function is None:
            raise Refused(f"Stack {self.place.stack!r} names no function. Deploy it anew.")
        configuration: Mapping[str, Any] = self.aws.client("lambda").get_function_configuration(
            FunctionName=self.place.function
        )
        return configuration

    @cached_property
    def log_group(self) -> str:
        """The log group that the function writes to. Raises as `function_configuration` does, which a stack of today is not asked."""
        if self.place.log_group is not None:
            return self.place.log_group
        logging = self.function_configuration.get("LoggingConfig", {})
        return str(logging.get("LogGroup") or f"/aws/lambda/{self.place.function}")

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """The function's variables. Raises as `function_configuration` does, and where they can't be decrypted."""
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
        """The function's settings, as its environment has them. Raises as `environment` does."""
        from redrive.settings import Settings

        return Settings.from_env(self.environment)

    def _where(self) -> str:
        """Region and account, as far as they can be told."""
        account = self.who.split(":")[4] if self.who.startswith("arn:") else "that nobody can tell"
        return f"{self.aws.region or 'this Region'} of account {account}"

    @cached_property
    def who(self) -> str:
        """Who gives this order: the caller's ARN, else the user of this machine."""
        from redrive.errors import CallFailed

        try:
            return str(self.aws.client("sts").get_caller_identity()["Arn"])
        except CallFailed:
            return getpass.getuser()
