"""Checks that a DLQ's origin really sends failures to it, what its letters look like, and that targets still exist.

The checks ask SNS about subscriptions, Lambda about functions, and EventBridge about rules by their target. EventBridge
Scheduler can't find schedules by DLQ or target.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from smart_redriver.engine.config.targets import (
    Origin,
    Target,
    TargetKind,
    hands_out_credentials,
    is_public,
)
from smart_redriver.engine.errors import GONE, CallFailed
from smart_redriver.engine.targets.target_source import arn_beside
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.access import check_key
from smart_redriver.oncall.doctor.alarms import lets_publish
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown, wrong
from smart_redriver.oncall.doctor.queues import attributes_of


def check_targets(session: Session) -> Iterator[Finding]:
    """Look at each target, as far as AWS can be asked about it. Sends nothing to any target."""
    deployment = session.place.deployment
    for target in deployment.targets:
        if _is_abroad(session, target):
            yield unknown(
                f"{target.name} is in another Region, and is not looked at from here.",
                "See there whether it is still there.",
            )
        elif target.kind is TargetKind.QUEUE:
            yield from _check_queue(session, target)
        elif target.kind is TargetKind.FUNCTION:
            yield _check_target_function(session, target)
        elif target.kind is TargetKind.WEB:
            yield judge_web(target, deployment.private_hosts, *_addresses(target))


def _is_abroad(session: Session, target: Target) -> bool:
    """Whether a target is known to be in a different Region from the command's. SNS delivers across Regions."""
    here = session.aws.region
    return (
        here is not None
        and target.kind is not TargetKind.WEB
        and target.place.split(":")[3] != here
    )


def judge_web(
    target: Target, private_hosts: Collection[str], addresses: Sequence[str], fault: str
) -> Finding:
    """Whether letters are posted to a URL: always to public addresses, to others only if its host is named."""
    host = urlsplit(target.place).hostname or ""
    linked = [one for one in addresses if hands_out_credentials(ip_address(one))]
    hidden = [one for one in addresses if not is_public(ip_address(one))]
    if linked:
        return wrong(
            f"{target.name} is at {linked[0]}, a link-local address or another where machines get their credentials: "
            "nothing is ever posted there.",
            f"Find out who gave {host} this address.",
        )
    if host in {one.lower() for one in private_hosts}:
        return good(
            f"{target.name} may be at an address that is not public: private_hosts names it."
        )
    if fault:
        return unknown(
            f"The host {host} is not known here: {fault}.",
            "See whether it is where the function runs; an unknown name holds its letters back.",
        )
    return check(
        not hidden,
        f"{target.name} is at a public address.",
        f"{target.name} is at {', '.join(hidden)}, which is not public: nothing is posted there.",
        f"Name {host} in private_hosts, if that is where letters are to go.",
    )


def _addresses(target: Target) -> tuple[list[str], str]:
    """The addresses that the host resolves to from here, or why it does not."""
    parts = urlsplit(target.place)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as fault:
        return [], type(fault).__name__
    return sorted({str(one[4][0]).partition("%")[0] for one in found}), ""


def _check_queue(session: Session, target: Target) -> Iterator[Finding]:
    *_, account, name = target.place.split(":")
    url = "/".join([session.place.deployment.dlq_url.rsplit("/", 2)[0], account, name])
    try:
        attributes = attributes_of(session, url)
    except CallFailed as failed:
        yield _not_there(target, failed)
        return
    yield good(f"{target.name} is there.")
    fails_to = json.loads(attributes.get("RedrivePolicy") or "{}").get("deadLetterTargetArn")
    if fails_to and fails_to == arn_beside(target.place, session.place.deployment.dlq_url):
        yield good(
            f"{target.name} fails to this DLQ, too, so it is judged by what comes back, like a source queue."
        )
    if key := attributes.get("KmsMasterKeyId"):
        yield check_key(session, key)


def _check_target_function(session: Session, target: Target) -> Finding:
    try:
        session.aws.client("lambda").get_function_configuration(FunctionName=target.place)
    except CallFailed as failed:
        return _not_there(target, failed)
    return good(f"{target.name} is there.")


def _not_there(target: Target, failed: CallFailed) -> Finding:
    if failed.code in GONE:
        return wrong(
            f"{target.name} is gone: its letters are held back.",
            "Make it again, or name what takes its place in the list of queues.",
        )
    return unknown(
        f"{target.name} could not be looked at: {failed.code}.",
        "Ask its owner whether it is there, and lets the function's role in.",
    )


#: The services that send to a DLQ in their own name, so that its policy has to allow them. Lambda and Scheduler use a
#: role.
_SENDERS = {Origin.SNS: "sns.amazonaws.com", Origin.EVENTBRIDGE: "events.amazonaws.com"}
#: The AWS managed key of SQS. Its policy allows no other service.
_KEY_OF_SQS = "alias/aws/sqs"
_PROTOCOLS = {
    TargetKind.QUEUE: ("sqs",),
    TargetKind.FUNCTION: ("lambda",),
    TargetKind.DELIVERY_STREAM: ("firehose",),
    TargetKind.WEB: ("http", "https"),
}


def check_origin(session: Session) -> Iterator[Finding]:
    """Check for each target that its failures go to the DLQ. Checks nothing if the origin is SQS.

    Raises CallFailed if the DLQ can't be looked at.
    """
    deployment = session.place.deployment
    if deployment.origin is Origin.SQS:
        return
    dlq = attributes_of(session, deployment.dlq_url)
    yield from judge_senders(dlq, deployment.origin)
    for target in deployment.targets:
        yield from _CHECKS[deployment.origin](session, target, dlq["QueueArn"])


def judge_senders(dlq: Mapping[str, Any], origin: Origin) -> Iterator[Finding]:
    """Whether the DLQ accepts letters from SNS or EventBridge. They drop a letter that it does not accept."""
    if (service := _SENDERS.get(origin)) is None:
        return
    name = dlq["QueueArn"].rpartition(":")[2]
    yield check(
        lets_publish(dlq.get("Policy"), "sqs:sendmessage", service),
        f"{service} may send to {name}.",
        f"{service} may not send to {name}: what fails is lost.",
        f"Allow {service} sqs:SendMessage in the policy of {name}.",
    )
    if dlq.get("KmsMasterKeyId") == _KEY_OF_SQS:
        yield wrong(
            f"{name} is encrypted by {_KEY_OF_SQS}, which {service} may not use: what fails is lost.",
            f"Encrypt {name} by a key of your own whose policy lets {service} in, or by SQS itself (SSE-SQS).",
        )


def judge_subscription(
    attributes: Mapping[str, str], target: Target, dlq_arn: str, *, is_only_one: bool
) -> Iterator[Finding]:
    """Whether a subscription is confirmed, belongs to this target, and sends failures to this DLQ."""
    name = f"The subscription of {target.name}"
    yield check(
        attributes.get("PendingConfirmation", "false") == "false",
        f"{name} is confirmed.",
        f"{name} is not confirmed: nothing is delivered.",
        "Let its endpoint confirm it.",
    )
    fails_to = json.loads(attributes.get("RedrivePolicy") or "{}").get("deadLetterTargetArn")
    yield check(
        fails_to == dlq_arn,
        f"{name} fails to this DLQ.",
        f"{name} fails to {fails_to or 'no DLQ'}, and not to this one.",
        f"Set its RedrivePolicy to deadLetterTargetArn {dlq_arn}.",
    )
    protocol, endpoint = attributes.get("Protocol"), attributes.get("Endpoint")
    yield check(
        protocol in _PROTOCOLS[target.kind] and endpoint == target.place,
        f"{name} delivers to it.",
        f"{name} delivers to {endpoint} by {protocol}, and not to {target.place}.",
        "Name the subscription's own endpoint as its target in the list of queues.",
    )
    if attributes.get("RawMessageDelivery") != "true":
        yield good(f"{name} delivers in SNS's envelope, by which its letters are known.")
        return
    yield check(
        is_only_one,
        f"{name} delivers raw messages: a letter is the message itself.",
        f"{name} delivers raw messages, which do not tell whose they are: their letters are parked.",
        "Give it a DLQ of its own, or switch raw delivery off.",
    )


def judge_function(target: Target, dlq_arn: str, destinations: Mapping[str, str]) -> Finding:
    """Whether a function's failed invocations go to the DLQ. `destinations` has where they go, by the setting."""
    ways = [way for way, arn in destinations.items() if arn == dlq_arn]
    elsewhere = ", ".join(f"{way} {arn}" for way, arn in destinations.items()) or "nothing"
    return check(
        bool(ways),
        f"The failed invocations of {target.name} go to this DLQ, as its {' and '.join(ways)} says.",
        f"The failed invocations of {target.name} do not go to this DLQ: it names {elsewhere}.",
        f"Set its DeadLetterConfig or its on-failure destination to {dlq_arn}.",
    )


def _check_subscription(session: Session, target: Target, dlq_arn: str) -> Iterator[Finding]:
    if target.subscription is None:
        yield unknown(
            f"Which subscription of {target.name} fails to this DLQ is not in the list.",
            "Name it before the target, SUBSCRIPTION_ARN=TARGET, and it can be looked at.",
        )
        return
    try:
        answer = session.aws.client("sns").get_subscription_attributes(
            SubscriptionArn=target.subscription
        )
    except CallFailed as failed:
        yield _not_asked(f"The subscription of {target.name}", failed)
        return
    is_only_one = len(session.place.deployment.targets) == 1
    yield from judge_subscription(answer["Attributes"], target, dlq_arn, is_only_one=is_only_one)


def _check_function(session: Session, target: Target, dlq_arn: str) -> Iterator[Finding]:
    """Check a function.

    Its configuration is read only if its destination is not this DLQ, because people may not be allowed to read it.
    """
    client = session.aws.client("lambda")
    try:
        destinations = _on_failure(client, target)
        if dlq_arn not in destinations.values():
            configuration = client.get_function_configuration(FunctionName=target.place)
            if arn := configuration.get("DeadLetterConfig", {}).get("TargetArn"):
                destinations["DeadLetterConfig"] = arn
    except CallFailed as failed:
        yield _not_asked(f"Where the failed invocations of {target.name} go", failed)
        return
    yield judge_function(target, dlq_arn, destinations)


def _on_failure(client: Any, target: Target) -> dict[str, str]:
    """Return a function's on-failure destination; none if it has no settings for asynchronous invocation.

    Raises CallFailed.
    """
    try:
        answer = client.get_function_event_invoke_config(FunctionName=target.place)
    except CallFailed as failed:
        if failed.code in GONE:
            return {}
        raise
    arn = answer.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    return {"on-failure destination": arn} if arn else {}


def _check_rules(session: Session, target: Target, dlq_arn: str) -> Iterator[Finding]:
    client = session.aws.client("events")
    try:
        names = _pages(client.list_rule_names_by_target, "RuleNames", TargetArn=target.place)
        rules = [name for name in names if _fails_to(client, name, target, dlq_arn)]
    except CallFailed as failed:
        yield _not_asked(f"The rules that call {target.name}", failed)
        return
    if rules:
        yield good(f"{target.name} is called by {', '.join(rules)}, with this DLQ.")
        return
    yield unknown(
        f"No rule of the default event bus calls {target.name} with this DLQ.",
        "A rule of another bus can't be found by its target: look at its DeadLetterConfig there.",
    )


def _fails_to(client: Any, rule: str, target: Target, dlq_arn: str) -> bool:
    return any(
        one["Arn"] == target.place and one.get("DeadLetterConfig", {}).get("Arn") == dlq_arn
        for one in _pages(client.list_targets_by_rule, "Targets", Rule=rule)
    )


def _pages(ask: Callable[..., Any], what: str, **request: str) -> Iterator[Any]:
    """Yield the items of all pages of a list. Raises CallFailed."""
    while True:
        page = ask(**request)
        yield from page.get(what, ())
        if not page.get("NextToken"):
            return
        request["NextToken"] = page["NextToken"]


def _check_schedule(session: Session, target: Target, dlq_arn: str) -> Iterator[Finding]:  # noqa: ARG001 - one of four
    yield unknown(
        f"Which schedules call {target.name}, and whether they fail to this DLQ, can't be asked.",
        f"`aws scheduler get-schedule --name NAME` has it in Target.DeadLetterConfig: {dlq_arn}.",
    )


_CHECKS: Mapping[Origin, Callable[[Session, Target, str], Iterator[Finding]]] = {
    Origin.SNS: _check_subscription,
    Origin.LAMBDA: _check_function,
    Origin.EVENTBRIDGE: _check_rules,
    Origin.SCHEDULER: _check_schedule,
}


def _not_asked(what: str, failed: CallFailed) -> Finding:
    if failed.code in GONE:
        return wrong(f"{what} can't be found: it is gone.", "Name what takes its place.")
    return unknown(
        f"{what} could not be looked at: {failed.code}.",
        "Looking needs the managed policy RedriveViewer; then run it again.",
    )
