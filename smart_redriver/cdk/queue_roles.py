"""The requirements of a re-driver's queues, together and each by itself.

`redrive doctor` checks what an app can't know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs

from smart_redriver.engine.errors import Fault

#: Seconds that SQS keeps a message where nothing is said.
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
_RETENTION = 345_600


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueue:
    """`retention` is in seconds, and None where only a deployment knows it."""

    retention: int | None
    has_redrive_policy: bool
    dead_letter_arn: str | None


def known(queue: sqs.IQueue) -> KnownQueue | None:
    """None for a queue that the app does not make."""
    if not cdk.Resource.is_owned_resource(queue):
        return None
    resource = cast("sqs.CfnQueue", queue.node.default_child)
    fails_to = queue.dead_letter_queue if isinstance(queue, sqs.Queue) else None
    return KnownQueue(
        retention=_seconds(resource.message_retention_period),
        has_redrive_policy=resource.redrive_policy is not None,
        dead_letter_arn=fails_to.queue.queue_arn if fails_to else None,
    )


def _seconds(given: float | None) -> int | None:
    if given is None:
        return _RETENTION
    return None if cdk.Token.is_unresolved(given) else int(given)


#: Account and Region.
_Home = tuple[str, str]


def place_faults(stack: cdk.Stack, queues: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    """Queues that are not where the stack is: what SQS measures of them would be in no alarm's sight,
    nor in a verdict's.
    """
    home = stack.account, stack.region
    for role, queue in queues.items():
        here = _home(queue.queue_arn) or home
        pairs = zip(home, here, strict=True)
        if any(one != other for one, other in pairs if not cdk.Token.is_unresolved(one)):
            accepted = f"a queue where the stack is, in {home[1]}/{home[0]}"
            if any(map(cdk.Token.is_unresolved, home)):
                accepted = "a queue where the stack is"
            yield Fault(setting=role, seen=queue.queue_arn, accepted=accepted)


def role_faults(queues: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    """Queues given in two roles, of two kinds, and of different places; by the name of each queue's role.

    What is known only when the stack is deployed can't be compared, and is let through.
    """
    first: dict[str, str] = {}
    sample_role, sample = next(iter(queues.items()))
    home: _Home | None = None
    for role, queue in queues.items():
        arn = queue.queue_arn
        seen = queue.node.path if cdk.Token.is_unresolved(arn) else arn
        if (other := first.setdefault(arn, role)) != role:
            yield Fault(setting=role, seen=seen, accepted=f"another queue than {other}")
        if queue.fifo != sample.fifo:
            kind = "a FIFO queue" if sample.fifo else "a standard queue"
            accepted = f"{kind}, as {sample_role} is (order is kept from end to end)"
            yield Fault(setting=role, seen=seen, accepted=accepted)
        here = _home(arn)
        home = home or here
        if home and here and here != home:
            account, region = home
            yield Fault(setting=role, seen=seen, accepted=f"a queue in {region}/{account}")


def fit_faults(
    sources: Mapping[str, sqs.IQueue],
    dead_letter_queue: sqs.IQueue,
    parking_lot: sqs.IQueue | None,
) -> Iterator[Fault]:
    """Queues that are right by themselves, and with which letters would be lost or never come;
    as far as the app knows them.
    """
    dead = known(dead_letter_queue)
    for role, source in sources.items():
        facts = known(source)
        if facts and (
            not facts.has_redrive_policy
            or facts.dead_letter_arn not in (None, dead_letter_queue.queue_arn)
        ):
            yield Fault(
                setting=role,
                seen=source.node.path,
                accepted="a queue whose failed messages go to dead_letter_queue",
            )
        yield from _too_short("dead_letter_queue", dead, role, facts)
    if dead and dead.has_redrive_policy:
        yield _on_its_own("dead_letter_queue", dead_letter_queue)
    if parking_lot:
        lot = known(parking_lot)
        yield from _too_short("parking_lot", lot, "dead_letter_queue", dead)
        if lot and lot.has_redrive_policy:
            yield _on_its_own("parking_lot", parking_lot)


def _too_short(
    role: str, queue: KnownQueue | None, other: str, before: KnownQueue | None
) -> Iterator[Fault]:
    """A letter keeps the clock of its first send, and would expire as it arrives."""
    kept, kept_before = (one.retention if one else None for one in (queue, before))
    if kept is not None and kept_before is not None and kept < kept_before:
        accepted = f"at least the {kept_before} s for which {other} keeps messages"
        yield Fault(setting=f"{role}.retention_period", seen=kept, accepted=accepted)


def _on_its_own(role: str, queue: sqs.IQueue) -> Fault:
    accepted = "a queue without a dead-letter queue of its own, which would take letters away"
    return Fault(setting=role, seen=queue.node.path, accepted=accepted)


def _home(arn: str) -> _Home | None:
    if cdk.Token.is_unresolved(arn):
        return None
    _, _, _, region, account, _ = arn.split(":", 5)
    return None if cdk.Token.is_unresolved(region + account) else (account, region)
