"""Reads an app's own description of a DLQ's origin: queues and keys are constructs there,
and targets constructs or texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs

from smart_redriver.cdk.given import Targets
from smart_redriver.cdk.origin_config import (
    WITH_KEYS,
    OriginConfig,
    misplaced,
    read_origin_config,
    unfit_keys,
)
from smart_redriver.engine.config.backends import IN_SQS
from smart_redriver.engine.config.targets import Origin, Target, TargetKind
from smart_redriver.engine.errors import Fault

#: What has targets; a queue outside of SQS has a construct of its own.
_ORIGINS = tuple(one for one in IN_SQS if one is not Origin.SQS)
_TO = "targets.to"
_ACCEPTED = (
    "a queue, function, topic, state machine or delivery stream of the CDK's, or an ARN or a URL that is known at "
    "synth"
)
#: How a construct of each kind tells its ARN and its name, what an ARN has before the name, and its key.
_CONSTRUCTS = {
    TargetKind.QUEUE: ("queue_arn", "queue_name", "", "encryption_master_key"),
    TargetKind.FUNCTION: ("function_arn", "function_name", "function:", ""),
    TargetKind.TOPIC: ("topic_arn", "topic_name", "", "master_key"),
    TargetKind.STATE_MACHINE: ("state_machine_arn", "state_machine_name", "stateMachine:", ""),
    TargetKind.DELIVERY_STREAM: ("delivery_stream_arn", "delivery_stream_name", "deliverystream/", ""),
}  # fmt: skip

#: For each queue and topic among the targets the key that encrypts it.
_Keys = tuple[kms.IKey | None, ...]


def origin_config_of(
    given: Targets | None, sources: Mapping[str, sqs.IQueue], others: Mapping[str, sqs.IQueue]
) -> tuple[OriginConfig, _Keys, list[Fault]]:
    """What fills the DLQ, the keys of its targets, and all that is wrong; queues are given by their roles,
    the DLQ the first of the `others`.
    """
    if given is None:
        return OriginConfig(), (), list(_without_targets(sources))
    lists = {
        _TO: given.to,
        "targets.keys": given.keys,
        "targets.private_hosts": given.private_hosts,
    }
    if faults := [*_no_origin(given.origin), *_no_lists(lists), *_no_hosts(given)]:
        return OriginConfig(), (), faults
    read = [_read(one) for one in given.to]
    origin = Origin(given.origin)
    origin_config, faults = read_origin_config(
        origin, [one for one, _ in read if one], given.private_hosts
    )
    if refused := [one for one, (target, _) in zip(given.to, read, strict=True) if not target]:
        faults = [*(one for one in faults if one.seen is not None), *map(_refused, refused)]
    arns = {role: queue.queue_arn for role, queue in others.items()}
    in_order = next(iter(others.values())).fifo
    faults += misplaced(origin_config, arns, in_order=in_order)
    faults += unfit_keys(origin_config, [one.key_arn for one in given.keys])
    accepted = f"nothing with origin {origin.value}, whose letters go back to targets"
    for role, queue in sources.items():
        faults.append(Fault(setting=role, seen=queue.node.path, accepted=accepted))
    own = {str(target): key for target, key in read if key}
    return origin_config, _each_with_its_key(origin_config, given.keys, own), faults


def _no_origin(given: object) -> Iterator[Fault]:
    if given not in _ORIGINS:
        accepted = " or ".join(f'"{one.value}"' for one in _ORIGINS)
        yield Fault(setting="targets.origin", seen=given, accepted=accepted)


def _no_lists(lists: Mapping[str, object]) -> Iterator[Fault]:
    for setting, given in lists.items():
        if isinstance(given, str) or not isinstance(given, Sequence):
            yield Fault(setting=setting, seen=given, accepted="a list")


def _no_hosts(given: Targets) -> Iterator[Fault]:
    for host in given.private_hosts if isinstance(given.private_hosts, Sequence) else ():
        if not isinstance(host, str) or cdk.Token.is_unresolved(host):
            accepted = "a host's name that is known at synth"
            yield Fault(setting="targets.private_hosts", seen=host, accepted=accepted)


def _read(given: object) -> tuple[Target | str | None, kms.IKey | None]:
    """A target, or the text of one, and the key that a construct brings; nothing for what is none."""
    subscription, one = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if isinstance(one, str):
        text = f"{subscription}={one}" if subscription else one
        return (None if cdk.Token.is_unresolved(one) else text), None
    for kind, (arn_of, name_of, before, key_of) in _CONSTRUCTS.items():
        arn, name = getattr(one, arn_of, None), getattr(one, name_of, None)
        if isinstance(arn, str):
            key = getattr(one, key_of, None) if key_of else None
            if not cdk.Token.is_unresolved(arn):
                return f"{subscription}={arn}" if subscription else arn, key
            if not isinstance(name, str) or getattr(one, "fifo", None):
                return None, None
            # Its ARN is made of its name, so that what circuits and alarms are called by can be told from it.
            home = cdk.Stack.of(cast("cdk.IResource", one))
            place = f"arn:{home.partition}:{kind.value}:{home.region}:{home.account}:{before}{name}"
            return Target(kind=kind, place=place, subscription=subscription), key
    return None, None


def _refused(given: object) -> Fault:
    node = getattr(given, "node", None)
    is_fifo = getattr(given, "fifo", None)
    accepted = "a standard queue: only letters of SQS itself go back to FIFO queues"
    return Fault(
        setting=_TO, seen=node.path if node else given, accepted=accepted if is_fifo else _ACCEPTED
    )


def _each_with_its_key(
    origin_config: OriginConfig, keys: Sequence[kms.IKey], own: Mapping[str, kms.IKey]
) -> _Keys:
    """Keys that are given are in the order of queues and topics, and the last one is of all that are left."""
    locked = [str(one) for one in origin_config.targets if one.kind in WITH_KEYS]
    usual = [keys[min(index, len(keys) - 1)] if keys else None for index in range(len(locked))]
    return tuple(own.get(one, key) for one, key in zip(locked, usual, strict=True))


def _without_targets(sources: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    if "source_queue" not in sources:
        accepted = "the queue that SQS moves letters from, or targets"
        yield Fault(setting="source_queue", seen=None, accepted=accepted)
