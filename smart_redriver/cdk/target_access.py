"""What letters go back to where SQS does not fill the DLQ: the calls that are granted on each target, and on no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_kms as kms

from redrive.targets import Origin, Target, TargetKind
from smart_redriver.cdk.filling import Filling
from smart_redriver.cdk.key_use import ENCRYPT, KeyUse

#: The one call by which each is given a letter; of a queue the URL is asked for before. A URL is called by anybody.
_DELIVER: Mapping[TargetKind, tuple[str, ...]] = {
    TargetKind.QUEUE: ("sqs:GetQueueUrl", "sqs:SendMessage"),
    TargetKind.FUNCTION: ("lambda:InvokeFunction",),
    TargetKind.DELIVERY_STREAM: ("firehose:PutRecord",),
    TargetKind.STATE_MACHINE: ("states:StartExecution",),
    TargetKind.TOPIC: ("sns:Publish",),
    TargetKind.WEB: (),
}
#: How long a function takes to fail, which verdicts on it wait for: its timeout, and how often Lambda tries.
_TIMING = ("lambda:GetFunctionConfiguration", "lambda:GetFunctionEventInvokeConfig")

#: Whether a queue's own failed messages come to the DLQ that its letters are in.
_ASK_QUEUE = ("sqs:GetQueueAttributes",)

#: What has a key that a sender has to use, and the service that uses it for them.
_KEY_SERVICES = {TargetKind.QUEUE: "sqs", TargetKind.TOPIC: "sns"}

#: Who fails to a DLQ is asked of a subscription, or of a rule by its target. AWS can't restrict these to a resource.
_ASK_ORIGIN = {
    Origin.SNS: ("sns:GetSubscriptionAttributes",),
    Origin.EVENTBRIDGE: ("events:ListRuleNamesByTarget", "events:ListTargetsByRule"),
}
#: What tells of a target to people. A function's configuration holds its environment, and is not among it.
_ASK_TARGET = {
    TargetKind.QUEUE: _ASK_QUEUE,
    TargetKind.FUNCTION: ("lambda:GetFunctionEventInvokeConfig",),
}

#: Actions, and the ARNs that they are done on.
_Calls = tuple[Sequence[str], list[str]]


def target_calls(
    filling: Filling, region: str, account: str
) -> Iterator[tuple[Target, tuple[str, ...]]]:
    """Each target with what the function may do with it; none for those that no permission is needed for.

    Region and account are the DLQ's; SQS moves messages to a DLQ only within them.
    """
    for target in filling.targets:
        calls = _DELIVER[target.kind]
        if filling.origin is Origin.LAMBDA:
            calls += _TIMING
        if target.kind is TargetKind.QUEUE and _may_be_in(target, region, account):
            calls += _ASK_QUEUE
        if calls:
            yield target, calls


def _may_be_in(target: Target, region: str, account: str) -> bool:
    """What is known only when the stack is deployed can't be compared."""
    pairs = zip(target.place.split(":")[3:5], (region, account), strict=True)
    return all(cdk.Token.is_unresolved(home) or one == home for one, home in pairs)


def target_key_uses(filling: Filling, keys: Sequence[kms.IKey], home: str) -> Iterator[KeyUse]:
    """What is done with the keys of target queues and topics, in their order; the last key is of all that are left.

    `home` is the Region of the stack.
    """
    locked = [one for one in filling.targets if one.kind in _KEY_SERVICES]
    for index, target in enumerate(locked if keys else ()):
        key = keys[min(index, len(keys) - 1)]
        region = target.place.split(":")[3]
        yield KeyUse(
            key=key,
            service=_KEY_SERVICES[target.kind],
            actions=ENCRYPT,
            region=None if region == home else region,
        )


def delivered_to_targets(fillings: Iterable[Filling]) -> Iterator[_Calls]:
    """The calls that give letters to targets, for whoever sends them back by hand."""
    targets = [target for filling in fillings for target in filling.targets]
    for kind, calls in _DELIVER.items():
        if calls and (places := [one.place for one in targets if one.kind is kind]):
            yield calls, _once(places)


def asked_of_targets(fillings: Iterable[Filling]) -> Iterator[_Calls]:
    """What `redrive doctor` asks of those that letters go back to, and of what failed them."""
    fillings = list(fillings)
    origins = {one.origin for one in fillings}
    anywhere = [
        call for origin, calls in _ASK_ORIGIN.items() if origin in origins for call in calls
    ]
    if anywhere:
        yield anywhere, ["*"]
    for kind, calls in _ASK_TARGET.items():
        targets = (target for one in fillings for target in one.targets)
        if places := [one.place for one in targets if one.kind is kind]:
            yield calls, _once(places)


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
