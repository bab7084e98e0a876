"""The story's events: orders that are hopeless, an outage of two hours and the way back, payments that are down.

Nothing here acts for the re-driver. Orders come, dependencies go down and up, and virtual time
passes; the deployed schedule fires the deployed function, which does the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from .event_log import Event
from .orders import Order
from .stack import CircuitNow, DeployedStack, Depths

_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How long and how much. Minutes are virtual."""

    calm_minutes: int = 5
    poison_pills: int = 3
    permanent_failures: int = 2
    hopeless_minutes: int = 8
    outage_minutes: int = 120
    #: Everything is down for a moment, and payments for longer: letters of both kinds wait side by side.
    stumble_orders: int = 30
    payments: int = 10
    stumble_minutes: int = 2
    #: Payments come back when their letters are held together, or at last after this.
    payments_minutes: int = 60
    #: After an outage that outlasts the longest cool-down, everything is over by then.
    patience_minutes: int = 480
    orders_a_minute: int = 2

    @property
    def hopeless(self) -> int:
        return self.poison_pills + self.permanent_failures


#: The deployment's context: as by default, but for the last chance of poison, after two hours instead of six.
LAST_CHANCE_SECONDS = 7_200
DEPLOYED_WITH = {
    "with_sample_consumer": "true",
    "last_chance_seconds": str(LAST_CHANCE_SECONDS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The deployed stack at the end of one virtual minute, and what the re-driver said in it."""

    chapter: str
    at: datetime
    minutes: int
    is_down: bool
    sent: int
    depths: Depths
    circuit: CircuitNow
    events: tuple[Event, ...]


@dataclass(slots=True)
class Played:
    """The story as played: every order by its MessageId, the outage, and a snapshot of each minute."""

    sent: dict[str, Order] = field(default_factory=dict)
    payments_fell: datetime | None = None
    payments_rose: datetime | None = None
    outage_began: datetime | None = None
    outage_ended: datetime | None = None
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def poison(self) -> set[str]:
        """Original ids of the poison pills."""
        return {message_id for message_id, order in self.sent.items() if order.is_poison}

    @property
    def permanent(self) -> set[str]:
        """Ids of the orders that the consumer knows to be hopeless: they have no letters, unless it can't park them."""
        return {message_id for message_id, order in self.sent.items() if order.is_permanent}

    @property
    def hopeless(self) -> set[str]:
        """Original ids of the orders that can never be processed."""
        return self.poison | self.permanent

    @property
    def payments(self) -> set[str]:
        """Original ids of the orders with a payment."""
        return {message_id for message_id, order in self.sent.items() if order.has_payment}

    def redrives_of(self, original_ids: set[str]) -> list[datetime]:
        """When letters of these were sent back, in order."""
        redriven = self.events("letter.redriven")
        return [one.at for one in redriven if one.fields["original_id"] in original_ids]

    def events(self, *names: str) -> list[Event]:
        """Return the events that the re-driver logged under these names, in order."""
        return [event for one in self.snapshots for event in one.events if event.name in names]

    def during_outage(self, *names: str) -> list[Event]:
        """As `events`, of the outage alone."""
        began, ended = self.outage_began, self.outage_ended
        if began is None or ended is None:
            return []
        return [event for event in self.events(*names) if began <= event.at < ended]


class Stage:
    """One deployed stack on which orders are sent and virtual minutes pass; each is shown to `watch`."""

    def __init__(
        self,
        stack: DeployedStack,
        watch: Callable[[Snapshot], None],
        pass_minute: Callable[[], None] | None = None,
    ) -> None:
        self.stack = stack
        self.played = Played()
        self.chapter = ""
        self.is_down = False
        self.watch = watch
        self.pass_minute = pass_minute or (lambda: stack.aws.pass_time(_MINUTE))
        self._numbers = count(1)

    def minutes(self, at_most: int, orders: int) -> Iterator[Snapshot]:
        """Minute by minute, with so many orders in each."""
        for _ in range(at_most):
            self.send(orders)
            self.pass_minute()
            seen = self._look()
            self.played.snapshots.append(seen)
            self.watch(seen)
            yield seen

    def send(self, orders: int, **marks: bool) -> None:
        """Send orders, marked as `Order` has it."""
        new = [Order(number=next(self._numbers), **marks) for _ in range(orders)]
        self.played.sent |= self.stack.send(new)

    def _look(self) -> Snapshot:
        return Snapshot(
            chapter=self.chapter,
            at=self.stack.now(),
            minutes=len(self.played.snapshots) + 1,
            is_down=self.is_down,
            sent=len(self.played.sent),
            depths=self.stack.depths(),
            circuit=self.stack.circuit(),
            events=tuple(self.stack.redriver_log.fresh()),
        )


class Story:
    """Plays the script on one deployed stack, and shows each virtual minute to `watch`."""

    def __init__(
        self, stack: DeployedStack, watch: Callable[[Snapshot], None], script: Script | None = None
    ) -> None:
        self._stack = stack
        self._script = script or Script()
        self._stage = Stage(stack, watch)
        self._played = self._stage.played

    def play(self) -> Played:
        """From the first order until all is drained, or until patience ends."""
        script = self._script
        self._stage.chapter = "All is well"
        self._pass(script.calm_minutes)

        self._stage.chapter = (
            f"{script.poison_pills} poison pills, and {script.permanent_failures} orders "
            "that the consumer knows to be hopeless"
        )
        self._stage.send(script.poison_pills, is_poison=True)
        self._stage.send(script.permanent_failures, is_permanent=True)
        self._pass(script.hopeless_minutes)

        self._stage.chapter = "The consumer's dependency is down"
        self._fall()
        self._pass(script.outage_minutes)

        self._stage.chapter = "The dependency is back"
        self._recover()
        self._pass_until(lambda seen: seen.circuit.state == "CLOSED")

        self._stage.chapter = "The backlog drains"
        self._pass_until(lambda seen: seen.depths.dead_letters <= script.poison_pills)

        self._stage.chapter = "The consumer stumbles, and payments are down"
        self._stumble()
        self._pass(script.stumble_minutes)

        self._stage.chapter = "Payments are still down, all else is up"
        self._stack.set_dependency(is_down=False, payments_down=True)
        self._pass_until(holds_payments, at_most=script.payments_minutes)

        self._stage.chapter = "Payments are back, poison has its last chance"
        self._stack.set_dependency(is_down=False)
        self._played.payments_rose = self._stack.now()
        self._pass_until(lambda seen: self._is_drained(seen) and not holds_payments(seen))

        self._stage.chapter = "No more orders"
        self._pass_until(lambda seen: not seen.depths.source, orders=0)
        return self._played

    def _stumble(self) -> None:
        self._stack.set_dependency(is_down=True, payments_down=True)
        self._played.payments_fell = self._stack.now()
        for _ in range(self._script.payments):
            self._stage.send(self._script.stumble_orders // self._script.payments)
            self._stage.send(1, has_payment=True)

    def _fall(self) -> None:
        self._stage.is_down = True
        self._stack.set_dependency(is_down=True)
        self._played.outage_began = self._stack.now()

    def _recover(self) -> None:
        self._stage.is_down = False
        self._stack.set_dependency(is_down=False)
        self._played.outage_ended = self._stack.now()

    def _is_drained(self, seen: Snapshot) -> bool:
        return not seen.depths.dead_letters and seen.depths.parked == self._script.hopeless

    def _pass(self, minutes: int) -> None:
        for _ in self._stage.minutes(minutes, self._script.orders_a_minute):
            pass

    def _pass_until(
        self,
        is_reached: Callable[[Snapshot], bool],
        orders: int | None = None,
        at_most: int | None = None,
    ) -> None:
        """At least a minute; the bound is the script's patience, and the summary tells if it ended there."""
        each = self._script.orders_a_minute if orders is None else orders
        for seen in self._stage.minutes(at_most or self._script.patience_minutes, each):
            if is_reached(seen):
                return


def holds_payments(seen: Snapshot) -> bool:
    """Whether letters with a payment wait for a canary of theirs."""
    return any("Payments" in cause for cause in seen.circuit.held_causes)
