"""Finds queues and table through the stack's outputs. The one place that knows how outputs are named.

A stack of several queues prefixes the outputs of each; what the queues share, like the table, has no prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oncall.exits import Refused
from redrive.faults import CallFailed
from redrive.settings import Deployment

DEFAULT_STACK = "SmartRedriver"

_SOURCE = "SourceQueueUrl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One queue's re-driver: its queues and table, and what else the stack says of it."""

    stack: str
    deployment: Deployment
    function: str | None = None
    warning_topic: str | None = None
    paging_topic: str | None = None

    @property
    def queue(self) -> str:
        """The source queue's name, by which circuit and ledger know it."""
        return self.deployment.queue_name


def find_place(cloudformation: Any, stack: str, queue: str | None) -> Place:
    """The re-driver of `queue` in `stack`; of its only queue where none is named. Raises Refused and CallFailed."""
    try:
        (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except CallFailed as failed:
        if failed.code == "ValidationError":
            raise Refused(
                f"There is no stack {stack!r} here. Name yours with --stack, and check --region and --profile."
            ) from failed
        raise
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", ())}
    return choose_place(stack, outputs, queue)


def choose_place(stack: str, outputs: Mapping[str, str], queue: str | None) -> Place:
    """The place that `outputs` describe. Raises Refused when none or several could be meant."""
    places = {
        key.removesuffix(_SOURCE): _place(stack, outputs, key.removesuffix(_SOURCE))
        for key in outputs
        if key.endswith(_SOURCE)
    }
    if not places:
        raise Refused(
            f"Stack {stack!r} has no output {_SOURCE}: it is no smart re-driver. Name yours with --stack."
        )
    meant = [
        place
        for prefix, place in places.items()
        if queue is None or queue.lower() in (prefix.lower(), place.queue.lower())
    ]
    if len(meant) == 1:
        return meant[0]
    known = ", ".join(sorted(prefix or place.queue for prefix, place in places.items()))
    if queue is None:
        raise Refused(f"Stack {stack!r} serves several queues. Choose one with --queue: {known}.")
    raise Refused(f"Stack {stack!r} serves no queue {queue!r}. It serves: {known}.")


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
        ),
        function=output("RedriveFunctionName"),
        warning_topic=output("WarningTopicArn"),
        paging_topic=output("PagingTopicArn"),
    )
