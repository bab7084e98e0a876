"""A stack's outputs. The one place that knows how they are written.

Each construct writes one output, such as `OrdersRedriver`: an object in JSON that `read_outputs` takes apart.
The stack of this repository with queues of its own has an output for each value instead, as had the edition before.
Any other output belongs to the app around the construct.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.terminal.exits import Refused

#: How the output of a construct ends; the queue's name is before it.
_OF_A_QUEUE = "Redriver"
#: What each object in such an output has. An app's own JSON has not.
_MARK = "RedriveFunctionName"
#: Names all stacks of an app in this account and Region, separated by spaces; of the first one, where there are
#: several.
_STACKS = "RedriverStacks"
#: Of a DLQ that SQS fills.
SOURCE = "SourceQueueUrl"
#: Of a DLQ that SQS does not fill: what its letters go back to.
TARGETS = "RedriveTargets"
#: Where a queue outside of SQS is, by backend.
LOCATIONS = {one.output: one for one in BACKENDS.values() if one.output}


def find_outputs(cloudformation: Any, stack: str, where: Callable[[], str]) -> dict[str, str]:
    """The outputs of `stack`, each value by itself. Raises Refused, saying `where` there is no such stack,
    and CallFailed.
    """
    try:
        found = cloudformation.describe_stacks(StackName=stack).get("Stacks")
    except CallFailed as failed:
        if failed.code != "ValidationError":
            raise
        found = []
    if found is None:
        raise Refused("The endpoint is not AWS. Check --endpoint-url and AWS_ENDPOINT_URL.")
    if not found:
        raise Refused(
            f"There is no stack {stack!r} in {where()}. Name yours with --stack, and check --region and --profile."
        )
    (described,) = found
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", ())}
    return read_outputs(outputs)


def read_outputs(outputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs, each value by itself: `OrdersSourceQueueUrl` for what `OrdersRedriver` holds as `SourceQueueUrl`.

    Where a construct wrote such an object, an output `LegacySourceQueueUrl` without `LegacyRedriveFunctionName` is the
    app's own and names no queue of ours.
    """
    told = {
        key.removesuffix(_OF_A_QUEUE): own
        for key, value in outputs.items()
        if key.endswith(_OF_A_QUEUE) and (own := _object(value))
    }
    if not told:
        return dict(outputs)
    written = {prefix + _OF_A_QUEUE for prefix in told}
    others = {
        key: value
        for key, value in outputs.items()
        if key not in written and not _is_of_the_app(key, outputs)
    }
    return others | {
        prefix + name: value for prefix, own in told.items() for name, value in own.items()
    }


def _is_of_the_app(key: str, outputs: Mapping[str, str]) -> bool:
    ends = next((one for one in (SOURCE, TARGETS, *LOCATIONS) if key.endswith(one)), None)
    return ends is not None and key.removesuffix(ends) + _MARK not in outputs


def beside(stack: str, outputs: Mapping[str, str]) -> tuple[str, ...]:
    """The other stacks of the app in this account and Region, which the first of them tells of."""
    return tuple(one for one in outputs.get(_STACKS, "").split() if one != stack)


def _object(text: str) -> dict[str, str] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and _MARK in found else None
