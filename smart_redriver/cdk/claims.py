"""What an app may use once: a queue or table has one re-driver, a target one circuit in an account and Region.

`queue_clashes` checks a list of queues as a whole. This module checks constructs in other people's apps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from smart_redriver.cdk.origin_config import OriginConfig
from smart_redriver.engine.errors import Fault

#: By app: the path of the construct that has each resource.
_CLAIMS: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()


def claim_queues(
    scope: Construct, queues: Mapping[str, sqs.IQueue], origin_config: OriginConfig
) -> Iterator[Fault]:
    """Claim queues and targets for ``scope``. Yields a fault for each that another construct of the app has.

    If two re-drivers had one parking lot, a replay would send the letters of both to one consumer. Values that only a
    deployment knows can't be compared.

    Args:
        scope: the construct that claims them.
        queues: its sources, DLQ and parking lot, by the names of their arguments.
        origin_config: its targets.

    """
    for setting, queue in queues.items():
        if other := _other_with(scope, "queue", *_place(queue)):
            accepted = f"a queue that {other} does not have (sources and targets that share a DLQ are of one re-driver)"
            yield Fault(setting=setting, seen=_called(queue), accepted=accepted)
    for target in origin_config.targets:
        if other := _other_with(scope, "target", target.name, *_home(scope)):
            accepted = f"a target that {other} does not have (let what fails to it share a DLQ)"
            yield Fault(setting="targets", seen=str(target), accepted=accepted)


def claim_resources(
    scope: Construct, setting: str, called: str, resources: Iterable[str]
) -> Iterator[Fault]:
    """Claim the resources of a queue outside SQS for ``scope``. Yields a fault for each that another construct has."""
    for one in resources:
        if other := _other_with(scope, setting, one):
            accepted = f"{called} that {other} does not have"
            yield Fault(setting=setting, seen=one, accepted=accepted)


def claim_name(
    scope: Construct, known_as: str | None, setting: str = "naming.known_as"
) -> Iterator[Fault]:
    """Claim the name that the alarms of ``scope`` begin with.

    Yields a fault if another construct in the same account and Region has it.
    """
    if known_as and (other := _other_with(scope, "name", known_as, *_home(scope))):
        accepted = f"a name that {other} does not have: people know alarms by it"
        yield Fault(setting=setting, seen=known_as, accepted=accepted)


def claim_output(scope: Construct, stack: cdk.Stack, name: str) -> Iterator[Fault]:
    """Claim the name of an output of ``stack``. Yields a fault if another construct has it."""
    if other := _other_with(scope, "output", stack.node.path, name):
        accepted = f"an id that differs from that of {other} in letters or digits: the command knows both as {name}"
        yield Fault(setting="construct_id", seen=scope.node.id, accepted=accepted)


def _other_with(scope: Construct, *resource: str) -> str | None:
    """Return the path of another construct that has the resource; None if there is none, and ``scope`` claims it."""
    path = scope.node.path
    owner = _CLAIMS.setdefault(scope.node.root, {}).setdefault(resource, path)
    return owner if owner != path else None


def _called(queue: sqs.IQueue) -> str:
    """Return a queue's ARN, or its place in the app."""
    arn = queue.queue_arn
    return queue.node.path if cdk.Token.is_unresolved(arn) else arn


def _place(queue: sqs.IQueue) -> tuple[str, ...]:
    """Region, account and name of a queue as far as the app knows them, or else its place in the app.

    The ARN of a queue that the app makes is a reference, even if the app names the queue.
    """
    place = queue.queue_arn.split(":")[3:]
    if cdk.Resource.is_owned_resource(queue):
        stack, resource = cdk.Stack.of(queue), cast("sqs.CfnQueue", queue.node.default_child)
        place = [stack.region, stack.account, resource.queue_name or ""]
    is_known = place and all(one and not cdk.Token.is_unresolved(one) for one in place)
    return tuple(place) if is_known else (queue.node.path,)


def _home(scope: Construct) -> tuple[str, str]:
    """Region and account. A stack that does not know them counts as a home of its own."""
    stack = cdk.Stack.of(scope)
    home = stack.region, stack.account
    return (stack.node.path, "") if any(map(cdk.Token.is_unresolved, home)) else home
