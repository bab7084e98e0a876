"""Finds queues and table through the stack's outputs. The one place that knows how outputs are named.

A stack of several queues prefixes the outputs of each; what the queues share, like the table, has no prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redrive.errors import CallFailed
from redrive.settings import Deployment
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.names import shortened

_SOURCE = "SourceQueueUrl"
#: Other sources of the same DLQ, separated by spaces; most DLQs have none.
_FURTHER_SOURCES = "FurtherSourceQueueUrls"
#: Where consumers report; a stack of the first edition has none.
_OUTCOMES = "OutcomeQueueUrl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One queue's re-driver: its queues and table, and what else the stack says of it.

    `prefix` is what the stack puts before the names of this queue's own outputs and resources; a stack of one
    queue has none.
    """

    stack: str
    deployment: Deployment
    prefix: str = ""
    function: str | None = None
    warning_topic: str | None = None
    paging_topic: str | None = None

    @property
    def queue(self) -> str:
        """The name of its first source queue, by which lease and audit trail know it."""
        return self.deployment.queue_name

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all source queues that share its DLQ, the first one first: each has a circuit."""
        return self.deployment.source_names

    @property
    def alarms_known_as(self) -> tuple[str, ...]:
        """What the names of its alarms begin with. A stack of one queue made that queue, and gave them its own name."""
        first, *further = self.sources
        return (first if self.prefix else self.stack, *further)


def find_places(cloudformation: Any, stack: str, where: Callable[[], str]) -> tuple[Place, ...]:
    """The re-driver of each queue of `stack`, by name. Raises Refused, saying `where` there is none, and CallFailed."""
    try:
        found = cloudformation.describe_stacks(StackName=stack).get("Stacks")
    except CallFailed as failed:
        if failed.code != "ValidationError":
            raise
        found = []
    if found is None:
        raise Refused("What answers there is no AWS. Check --endpoint-url and AWS_ENDPOINT_URL.")
    if not found:
        raise Refused(
            f"There is no stack {stack!r} in {where()}. Name yours with --stack, and check --region and --profile."
        )
    (described,) = found
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", ())}
    return read_places(stack, outputs)


def read_places(stack: str, outputs: Mapping[str, str]) -> tuple[Place, ...]:
    """The places that `outputs` describe, at least one, by name. Raises Refused."""
    prefixes = sorted(key.removesuffix(_SOURCE) for key in outputs if key.endswith(_SOURCE))
    if not prefixes:
        raise Refused(
            f"Stack {stack!r} has no output {_SOURCE}: it is no smart re-driver. Name yours with --stack."
        )
    return tuple(_place(stack, outputs, prefix) for prefix in prefixes)


def choose_places(places: Sequence[Place], queue: str | None) -> tuple[Place, ...]:
    """Those that `queue` names: by the name in the list of queues or by a source queue's; all for None.

    Raises Refused when it names none.
    """
    if queue is None:
        return tuple(places)
    wanted = _plain(queue)
    meant = tuple(
        one for one in places if wanted in {_plain(name) for name in (one.prefix, *_spoken(one))}
    )
    if not meant:
        raise Refused(
            f"Stack {places[0].stack!r} serves no queue {queue!r}. It serves: {_names(places)}."
        )
    return meant


def choose_place(places: Sequence[Place], queue: str | None) -> Place:
    """The one that `queue` names; the only one for None. Raises Refused when none or several could be meant."""
    meant = choose_places(places, queue)
    if len(meant) > 1:
        raise Refused(
            f"Stack {places[0].stack!r} serves several queues. Choose one with --queue: {_names(places)}."
        )
    return meant[0]


def choose_source(place: Place, queue: str | None) -> str:
    """The source queue of `place` that `queue` names; the only one, if it has one. Raises Refused otherwise."""
    wanted = _plain(queue or "")
    meant = [
        name
        for name in place.sources
        if wanted in {_plain(name), _plain(shortened(name, place.stack))} or len(place.sources) == 1
    ]
    if not meant:
        raise Refused(
            "Several queues share this DLQ, each with a circuit of its own. Choose one with --queue: "
            f"{', '.join(place.sources)}."
        )
    return meant[0]


def _spoken(place: Place) -> list[str]:
    """The names of its source queues, in full and as people are shown them."""
    return [*place.sources, *(shortened(name, place.stack) for name in place.sources)]


def _plain(name: str) -> str:
    """The stack writes `my-orders` as MyOrders."""
    return name.replace("-", "").lower()


def _names(places: Sequence[Place]) -> str:
    return ", ".join(place.prefix or place.queue for place in places)


def _place(stack: str, outputs: Mapping[str, str], prefix: str) -> Place:
    def output(name: str) -> str | None:
        return outputs.get(prefix + name, outputs.get(name))

    def needed(name: str) -> str:
        if value := output(name):
            return value
        raise Refused(f"Stack {stack!r} has no output {prefix}{name}. Deploy it anew.")

    source = needed(_SOURCE)
    return Place(
        stack=stack,
        deployment=Deployment(
            queue_name=source.rpartition("/")[2],
            table_name=needed("StateTableName"),
            dlq_url=needed("DeadLetterQueueUrl"),
            source_queue_url=source,
            parking_lot_url=needed("ParkingLotQueueUrl"),
            further_source_urls=tuple(outputs.get(prefix + _FURTHER_SOURCES, "").split()),
            outcome_queue_url=outputs.get(prefix + _OUTCOMES, ""),
        ),
        prefix=prefix,
        function=output("RedriveFunctionName"),
        warning_topic=output("WarningTopicArn"),
        paging_topic=output("PagingTopicArn"),
    )
