"""What fills a DLQ, as somebody's own app says it: queues and keys are constructs there, and targets texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from redrive.errors import Fault
from redrive.targets import Origin
from smart_redriver.cdk.filling import ORIGINS, Filling, misplaced, read_filling, unfit_keys


def filling_of(
    origin: Origin | str,
    targets: Sequence[str],
    private_hosts: Sequence[str],
    sources: Mapping[str, sqs.IQueue],
    others: Mapping[str, sqs.IQueue],
    target_keys: Sequence[kms.IKey] = (),
) -> tuple[Filling, list[Fault]]:
    """What fills the DLQ, and all that is wrong with it; queues are given by their roles, the DLQ the first of the `others`."""
    lists = {"targets": targets, "private_hosts": private_hosts}
    if faults := [*_no_origin(origin), *_no_texts(lists)]:
        return Filling(), faults
    origin = Origin(origin)
    if origin is Origin.SQS:
        return Filling(), list(_without_targets({**lists, "target_keys": target_keys}, sources))
    filling, faults = read_filling(origin, targets, private_hosts)
    arns = {role: queue.queue_arn for role, queue in others.items()}
    in_order = next(iter(others.values())).fifo
    faults += misplaced(filling, arns, in_order=in_order)
    faults += unfit_keys(filling, [one.key_arn for one in target_keys])
    accepted = f"nothing with origin {origin.value}, whose letters go back to targets"
    for role, queue in sources.items():
        faults.append(Fault(setting=role, seen=queue.node.path, accepted=accepted))
    return filling, faults


def _no_origin(given: object) -> Iterator[Fault]:
    if given not in [one for one in Origin if one is not Origin.POSTGRES]:
        yield Fault(setting="origin", seen=given, accepted=ORIGINS)


def _no_texts(lists: Mapping[str, object]) -> Iterator[Fault]:
    """What is no list of texts; a name that only a deployment gives is none of a circuit's, which go by it."""
    for setting, given in lists.items():
        if isinstance(given, str) or not isinstance(given, Sequence):
            yield Fault(setting=setting, seen=given, accepted="a list of texts")
            continue
        for one in given:
            if not isinstance(one, str) or cdk.Token.is_unresolved(one):
                seen = one.node.path if isinstance(one, Construct) else one
                accepted = "a text that is known at synth: an ARN, a URL or a host"
                yield Fault(setting=setting, seen=seen, accepted=accepted)


def _without_targets(
    lists: Mapping[str, Sequence[object]], sources: Mapping[str, sqs.IQueue]
) -> Iterator[Fault]:
    if "source_queue" not in sources:
        accepted = "the queue that SQS moves letters from, or an origin and its targets"
        yield Fault(setting="source_queue", seen=None, accepted=accepted)
    accepted = "nothing with origin sqs, whose letters go back to source_queue"
    for role, given in lists.items():
        if given:
            yield Fault(setting=role, seen=f"{len(given)} of them", accepted=accepted)
