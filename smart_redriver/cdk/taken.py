"""What an app may have once: a DLQ, or a table, has one re-driver, and a target one circuit in an account and Region.

A list of queues is looked at as a whole, see `queue_clashes`; constructs in an app of somebody else's meet here.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from redrive.databases import JobsDatabase
from redrive.errors import Fault
from smart_redriver.cdk.filling import Filling

#: By app: the path of the construct that has each.
_TAKEN: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()


def take(scope: Construct, dead_letter_queue: sqs.IQueue, filling: Filling) -> Iterator[Fault]:
    """Take the DLQ and the targets for ``scope``; a fault for each that another construct of the app has.

    What only a deployment knows to be the same can't be compared.
    """
    taken = _TAKEN.setdefault(scope.node.root, {})
    path = scope.node.path
    queue = _called(dead_letter_queue)
    if (other := taken.setdefault(("queue", queue), path)) != path:
        accepted = f"a DLQ that {other} does not have (sources and targets that share a DLQ are of one re-driver)"
        yield Fault(setting="dead_letter_queue", seen=queue, accepted=accepted)
    for target in filling.targets:
        if (other := taken.setdefault(("target", target.name, *_home(scope)), path)) != path:
            accepted = f"a target that {other} does not have (let what fails to it share a DLQ)"
            yield Fault(setting="targets", seen=str(target), accepted=accepted)


def take_tables(scope: Construct, database: JobsDatabase) -> Iterator[Fault]:
    """Take the tables of a worker queue for ``scope``; a fault for each that another construct of the app has."""
    taken = _TAKEN.setdefault(scope.node.root, {})
    path = scope.node.path
    for table in database.places:
        if (other := taken.setdefault(("table", table), path)) != path:
            accepted = f"tables that {other} does not have"
            yield Fault(setting="database", seen=table, accepted=accepted)


def _called(queue: sqs.IQueue) -> str:
    """Its ARN, or its place in the app."""
    arn = queue.queue_arn
    return queue.node.path if cdk.Token.is_unresolved(arn) else arn


def _home(scope: Construct) -> tuple[str, str]:
    """Region and account; a stack that does not know them is a home of its own."""
    stack = cdk.Stack.of(scope)
    home = stack.region, stack.account
    return (stack.node.path, "") if any(map(cdk.Token.is_unresolved, home)) else home
