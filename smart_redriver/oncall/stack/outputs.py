"""A stack's outputs. The one place that knows how they are written.

A stack of adopted queues has one for each queue, `OrdersRedriver`, an object in JSON: `read_outputs` takes it apart. The edition before had an
output for each value of it, and is read, too. What the queues share, like the table, is by itself, and so is all of a stack with queues
of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from redrive.errors import CallFailed
from smart_redriver.oncall.terminal.exits import Refused

#: How the output of an adopted queue ends; its name is before it.
_OF_A_QUEUE = "Redriver"
#: Names all stacks of an app in this account and Region, separated by spaces; of the first one, where there are several.
_STACKS = "RedriverStacks"
#: Of a DLQ that SQS does not fill: what its letters go back to.
TARGETS = "RedriveTargets"
#: Of a worker queue in Postgres: where it is, as `JobsDatabase.encode` writes it.
DATABASE = "RedriveDatabase"


def find_outputs(cloudformation: Any, stack: str, where: Callable[[], str]) -> dict[str, str]:
    """The outputs of `stack`, each value by itself. Raises Refused, saying `where` there is no such stack, and CallFailed."""
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
    return read_outputs(outputs)


def read_outputs(outputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs as they were before they shared one: `OrdersSourceQueueUrl` for what `OrdersRedriver` holds as `SourceQueueUrl`."""
    apart: dict[str, str] = {}
    for key, value in outputs.items():
        own = _object(value) if key.endswith(_OF_A_QUEUE) else None
        prefix = key.removesuffix(_OF_A_QUEUE)
        apart |= {key: value} if own is None else {prefix + name: own[name] for name in own}
    return apart


def beside(stack: str, outputs: Mapping[str, str]) -> tuple[str, ...]:
    """The other stacks of the app in this account and Region, which the first of them tells of."""
    return tuple(one for one in outputs.get(_STACKS, "").split() if one != stack)


def _object(text: str) -> dict[str, str] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
