"""The origin of a DLQ that SQS does not fill, and the targets of its letters.

They come from the texts in a list of queues, or from the constructs and texts in an app. Every fault is reported at
synth. The function reads accepted values again with the same `smart_redriver.engine.config.targets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import cycle
from typing import cast
from urllib.parse import urlsplit

import aws_cdk as cdk
import jsii
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from smart_redriver.cdk.props import Targets
from smart_redriver.cdk.queue_clashes import KEY_ARN, partition_faults
from smart_redriver.engine.config.backends import IN_SQS
from smart_redriver.engine.config.targets import (
    Address,
    Origin,
    Target,
    TargetKind,
    hands_out_credentials,
    is_fifo,
    is_public,
    read_targets,
)
from smart_redriver.engine.errors import Fault

#: Kinds of targets that can have a key. Senders must be allowed to use it.
WITH_KEYS = (TargetKind.QUEUE, TargetKind.TOPIC)

#: Each target has a circuit and two alarms.
MAX_TARGETS = 10
#: The most characters of targets and private hosts. The function's environment has 4 KB, and settings and queues take
#: half of it.
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
_MOST_TEXT = 2_000
#: In characters. An alarm's name, which begins with a target's, has at most 255.
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
_LONGEST_NAME = 200

#: Targets that can't allow another account: a stream is called by its bare name, and a state machine has no policy.
#: https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecord.html
#: https://docs.aws.amazon.com/step-functions/latest/dg/security_iam_service-with-iam.html
_OF_ONE_ACCOUNT = (TargetKind.DELIVERY_STREAM, TargetKind.STATE_MACHINE)
#: https://docs.aws.amazon.com/sns/latest/dg/sns-cross-region-delivery.html
_ACROSS_REGIONS = ((Origin.SNS, TargetKind.QUEUE), (Origin.SNS, TargetKind.FUNCTION))


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginConfig:
    """The origin of a DLQ, and its targets. With origin SQS there are none: letters go back to the source queues."""

    origin: Origin = Origin.SQS
    targets: tuple[Target, ...] = ()
    private_hosts: tuple[str, ...] = ()


def read_origin_config(
    origin: Origin, targets: Sequence[str | Target], private_hosts: Sequence[str]
) -> tuple[OriginConfig, list[Fault]]:
    """Read targets and hosts, and return them with the faults that they have by themselves."""
    in_order = [str(one) for one in targets if is_fifo(str(one))]
    read, faults = read_targets(origin, [one for one in targets if str(one) not in in_order])
    if in_order:
        accepted = "a standard queue: only letters of SQS itself go back to FIFO queues"
        faults = [one for one in faults if one.seen is not None]
        faults += [Fault(setting="targets", seen=text, accepted=accepted) for text in in_order]
    faults += _too_much(targets, private_hosts)
    faults += _unfit_names(read)
    faults += _unfit_hosts(read, private_hosts)
    return OriginConfig(origin=origin, targets=read, private_hosts=tuple(private_hosts)), faults


def misplaced(
    origin_config: OriginConfig, queues: Mapping[str, str], *, in_order: bool
) -> Iterator[Fault]:
    """Yield faults of targets that can't be called from the queues' account and Region, or are one of the queues.

    `queues` has ARNs by role, the DLQ first. Values that only a deployment knows can't be compared, and are accepted.
    `in_order`: the DLQ is FIFO.
    """
    role, dead_letters = next(iter(queues.items()))
    if in_order:
        accepted = f"a standard queue: origin {origin_config.origin.value} is served without order"
        yield Fault(setting=role, seen=dead_letters, accepted=accepted)
    known = {arn: one for one, arn in queues.items() if not cdk.Token.is_unresolved(arn)}
    for target in origin_config.targets:
        if other := known.get(target.place):
            yield Fault(setting="targets", seen=str(target), accepted=f"another queue than {other}")
        if dead_letters in known and target.kind is not TargetKind.WEB:
            yield from _elsewhere(origin_config.origin, target, dead_letters)


def _elsewhere(origin: Origin, target: Target, dead_letter_arn: str) -> Iterator[Fault]:
    """Yield faults of targets elsewhere. Only SNS reaches another Region, with the DLQ in the subscription's Region.

    Nothing reaches another partition.
    """
    _, partition, _, region, account, _ = dead_letter_arn.split(":", 5)
    bound = [target.place] if (origin, target.kind) not in _ACROSS_REGIONS else []
    for arn in filter(None, (target.place, target.subscription)):
        if not _is_in(partition, arn, _PARTITION):
            accepted = f"what is in the partition {partition}, as the DLQ is"
            yield Fault(setting="targets", seen=arn, accepted=accepted)
    for arn in filter(None, (*bound, target.subscription)):
        if not _is_in(region, arn, _REGION):
            accepted = f"what is in {region}, where the DLQ is"
            yield Fault(setting="targets", seen=arn, accepted=accepted)
    owner = target.place.split(":")[4]
    if target.kind in _OF_ONE_ACCOUNT and owner != account and not cdk.Token.is_unresolved(owner):
        accepted = f"one of the account {account}: AWS lets no other account call it"
        yield Fault(setting="targets", seen=target.place, accepted=accepted)


#: The parts of an ARN.
_PARTITION, _REGION = 1, 3


def _is_in(place: str, arn: str, part: int) -> bool:
    """Return whether an ARN is in this partition or Region. An ARN that only a deployment knows is accepted."""
    parts = arn.split(":")
    return len(parts) < 4 or parts[part] == place or cdk.Token.is_unresolved(parts[part])


def _too_much(targets: Sequence[str | Target], private_hosts: Sequence[str]) -> Iterator[Fault]:
    if len(targets) > MAX_TARGETS:
        seen = f"{len(targets)} of them"
        yield Fault(setting="targets", seen=seen, accepted=f"at most {MAX_TARGETS}")
    length = sum(len(str(one)) + 1 for one in (*targets, *private_hosts))
    if length > _MOST_TEXT:
        accepted = f"at most {_MOST_TEXT} characters, as the function's environment has 4 KB"
        yield Fault(setting="targets", seen=f"{length} characters", accepted=accepted)


def _unfit_names(targets: Sequence[Target]) -> Iterator[Fault]:
    for target in targets:
        if len(target.name) > _LONGEST_NAME or not target.place.isascii():
            accepted = f"at most {_LONGEST_NAME} ASCII characters before a question mark, for the names of its alarms"
            yield Fault(setting="targets", seen=target.place, accepted=accepted)


def _unfit_hosts(targets: Sequence[Target], private_hosts: Sequence[str]) -> Iterator[Fault]:
    """Yield faults: hosts that no target has, and targets with an address that is visibly not public."""
    web = [one for one in targets if one.kind is TargetKind.WEB]
    named = {host.lower() for host in private_hosts}
    hosts = {host_of(one) for one in web}
    accepted = "the host of one of its web targets" if web else "nothing without a web target"
    for host in private_hosts:
        if host.lower() not in hosts:
            yield Fault(setting="private_hosts", seen=host, accepted=accepted)
    yield from _at_unfit_addresses(web, named)


def _at_unfit_addresses(web: Sequence[Target], named: Set[str]) -> Iterator[Fault]:
    for target in web:
        address = _address(host_of(target))
        if address and hands_out_credentials(address):
            accepted = "a URL at an address that is not link-local: what answers there hands out credentials"
            yield Fault(setting="targets", seen=target.place, accepted=accepted)
        elif _is_private(host_of(target)) and host_of(target) not in named:
            accepted = "a URL at a public address, or with its host in private_hosts"
            yield Fault(setting="targets", seen=target.place, accepted=accepted)


def unfit_keys(origin_config: OriginConfig, key_arns: Sequence[str]) -> Iterator[Fault]:
    """Yield faults of target keys that nothing uses, or that are known to be in another Region than their target."""
    targets = [one.place for one in origin_config.targets if one.kind in WITH_KEYS]
    if not key_arns:
        return
    if not targets or len(key_arns) not in (1, len(targets)):
        accepted = f"one, or one for each of the {len(targets)} queues and topics among the targets"
        if not targets:
            accepted = "nothing without a queue or a topic among the targets"
        yield Fault(setting="target_keys", seen=" ".join(key_arns), accepted=accepted)
        return
    for key in key_arns:
        yield from partition_faults("target_keys", key)
    for target, key in zip(targets, cycle(key_arns), strict=False):
        region = target.split(":")[3]
        if (match := KEY_ARN.fullmatch(key)) and not _is_in(match["region"], target, _REGION):
            accepted = f"a key of {region}, where its target is"
            yield Fault(setting="target_keys", seen=key, accepted=accepted)


def host_of(target: Target) -> str:
    """The host of a web target, in lower case."""
    return urlsplit(target.place).hostname or ""


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_private(host: str) -> bool:
    """Return whether the name alone shows a private address. The function resolves the name before each call."""
    if address := _address(host):
        return not is_public(address)
    return host.removesuffix(".").rpartition(".")[2] == "localhost"


#: Origins that have targets. A queue outside SQS has a construct of its own.
_ORIGINS = tuple(one for one in IN_SQS if one is not Origin.SQS)
_TO = "targets.to"
_ACCEPTED = (
    "a queue, function, topic, state machine or delivery stream of the CDK's, or an ARN or a URL that is known at "
    "synth"
)
#: For each kind of construct: the attributes for its ARN and name, what precedes the name in an ARN, and its key.
_CONSTRUCTS = {
    TargetKind.QUEUE: ("queue_arn", "queue_name", "", "encryption_master_key"),
    TargetKind.FUNCTION: ("function_arn", "function_name", "function:", ""),
    TargetKind.TOPIC: ("topic_arn", "topic_name", "", "master_key"),
    TargetKind.STATE_MACHINE: ("state_machine_arn", "state_machine_name", "stateMachine:", ""),
    TargetKind.DELIVERY_STREAM: ("delivery_stream_arn", "delivery_stream_name", "deliverystream/", ""),
}  # fmt: skip

#: The key of each queue and topic among the targets.
_Keys = tuple[kms.IKey | None, ...]


def origin_config_of(
    given: Targets | None, sources: Mapping[str, sqs.IQueue], others: Mapping[str, sqs.IQueue]
) -> tuple[OriginConfig, _Keys, list[Fault]]:
    """Return the origin of the DLQ, the keys of its targets, and all faults.

    Queues are given by their roles. The DLQ is the first of the `others`.
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
    faults = _with_refused(
        faults, [one for one, (target, _) in zip(given.to, read, strict=True) if not target]
    )
    arns = {role: queue.queue_arn for role, queue in others.items()}
    in_order = next(iter(others.values())).fifo
    faults += misplaced(origin_config, arns, in_order=in_order)
    faults += unfit_keys(origin_config, [one.key_arn for one in given.keys])
    faults += _no_sources(sources, origin)
    own = {str(target): key for target, key in read if key}
    return origin_config, _each_with_its_key(origin_config, given.keys, own), faults


def _with_refused(faults: list[Fault], refused: Sequence[object]) -> list[Fault]:
    """Add a fault for each unreadable target. A missing target is then no fault."""
    if not refused:
        return faults
    return [*(one for one in faults if one.seen is not None), *map(_refused, refused)]


def _no_sources(sources: Mapping[str, sqs.IQueue], origin: Origin) -> Iterator[Fault]:
    accepted = f"nothing with origin {origin.value}, whose letters go back to targets"
    for role, queue in sources.items():
        yield Fault(setting=role, seen=queue.node.path, accepted=accepted)


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
    """A target or its text, and a construct's own key; None for anything else."""
    subscription, one = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if isinstance(one, str):
        text = f"{subscription}={one}" if subscription else one
        return (None if cdk.Token.is_unresolved(one) else text), None
    for kind, (arn_of, *_) in _CONSTRUCTS.items():
        if isinstance(getattr(one, arn_of, None), str):
            return _read_construct(one, kind, subscription)
    return None, None


def _read_construct(
    one: object, kind: TargetKind, subscription: str | None
) -> tuple[Target | str | None, kms.IKey | None]:
    arn_of, name_of, before, key_of = _CONSTRUCTS[kind]
    arn, name = getattr(one, arn_of), getattr(one, name_of, None)
    key = getattr(one, key_of, None) if key_of else None
    if not cdk.Token.is_unresolved(arn):
        return f"{subscription}={arn}" if subscription else arn, key
    if not isinstance(name, str) or getattr(one, "fifo", None):
        return None, None
    # Make the ARN from the name, so that it contains the name for circuits and alarms.
    home = cdk.Stack.of(cast("cdk.IResource", one))
    place = f"arn:{home.partition}:{kind.value}:{home.region}:{home.account}:{before}{name}"
    return Target(kind=kind, place=place, subscription=subscription), key


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
    """Assign keys. Given keys are in the order of queues and topics, and the last one is for all that are left."""
    locked = [str(one) for one in origin_config.targets if one.kind in WITH_KEYS]
    usual = [keys[min(index, len(keys) - 1)] if keys else None for index in range(len(locked))]
    return tuple(own.get(one, key) for one, key in zip(locked, usual, strict=True))


def warn_of_functions(targets: Targets | None, dead_letter_queue: sqs.IQueue) -> None:
    """Make synth warn about functions that the app makes, and whose failed invocations go nowhere.

    Lambda takes a dead-letter queue from the function, and a destination from what is invoked: an alias or a version
    has its own.
    """
    if targets and targets.origin == Origin.LAMBDA:
        for one in targets.to:
            if not isinstance(one, (lambda_.Function, lambda_.Alias, lambda_.Version)):
                continue
            function = one if isinstance(one, lambda_.Function) else one.lambda_
            if isinstance(function, lambda_.Function):
                expected = _DestinationExpected(one, function, dead_letter_queue.node.path)
                cdk.Aspects.of(one).add(expected)


@jsii.implements(cdk.IAspect)
class _DestinationExpected:
    """Makes synth warn about a function without a destination. Only then is it known whether the app gives it one."""

    def __init__(
        self, invoked: lambda_.IFunction, function: lambda_.Function, dead_letter_queue: str
    ) -> None:
        self._invoked = invoked
        self._function = function
        self._dead_letter_queue = dead_letter_queue

    def visit(self, node: IConstruct) -> None:
        if node.node.path == self._invoked.node.path and not self._has_destination():
            text = (
                "Nothing in the app says where failed invocations of this function go, so none becomes a letter in "
                f"{self._dead_letter_queue}. Set its on_failure or its dead_letter_queue."
            )
            cdk.Annotations.of(node).add_warning_v2("smart-redriver:destination", text)

    def _has_destination(self) -> bool:
        resource = cast("lambda_.CfnFunction", self._function.node.default_child)
        return resource.dead_letter_config is not None or any(
            one.destination_config is not None
            for one in self._function.node.root.node.find_all()
            if isinstance(one, lambda_.CfnEventInvokeConfig)
            and one.function_name in (self._function.function_name, self._function.function_arn)
            and self._is_of_invoked(one)
        )

    def _is_of_invoked(self, config: lambda_.CfnEventInvokeConfig) -> bool:
        match self._invoked:
            case lambda_.Alias():  # the CDK reads the qualifier of an alias's own configuration from its ARN
                is_own = config.node.path.startswith(f"{self._invoked.node.path}/")
                return is_own or config.qualifier == self._invoked.alias_name
            case lambda_.Version():
                return config.qualifier == self._invoked.version
        return config.qualifier in (None, "$LATEST")


def _without_targets(sources: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    if "source_queue" not in sources:
        accepted = "the queue that SQS moves letters from, or targets"
        yield Fault(setting="source_queue", seen=None, accepted=accepted)
