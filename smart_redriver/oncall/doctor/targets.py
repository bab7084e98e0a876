"""Checks that targets still exist, and have addresses that letters may be posted to."""

from __future__ import annotations

import json
import socket
from collections.abc import Collection, Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from smart_redriver.engine.config.addresses import hands_out_credentials, is_public
from smart_redriver.engine.config.targets import Target, TargetKind
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.targets.target_source import arn_beside
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.access import check_key
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown, wrong
from smart_redriver.oncall.doctor.queues import attributes_of

#: How AWS says that something is not there, by whichever protocol.
GONE = (
    "AWS.SimpleQueueService.NonExistentQueue",
    "NonExistentQueue",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
    "NotFound",
    "NotFoundException",
)


def check_targets(session: Session) -> Iterator[Finding]:
    """Look at each target, as far as it can be asked; nothing is sent to any."""
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
            yield _check_function(session, target)
        elif target.kind is TargetKind.WEB:
            yield judge_web(target, deployment.private_hosts, *_addresses(target))


def _is_abroad(session: Session, target: Target) -> bool:
    """Whether a target is in another Region than the command asks, as SNS delivers to; as far as that is known."""
    here = session.aws.region
    return (
        here is not None
        and target.kind is not TargetKind.WEB
        and target.place.split(":")[3] != here
    )


def judge_web(
    target: Target, private_hosts: Collection[str], addresses: Sequence[str], fault: str
) -> Finding:
    """Whether letters are posted to a URL: to public addresses, and to others where its host is named."""
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
    """What the host resolves to from here, or why it does not."""
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


def _check_function(session: Session, target: Target) -> Finding:
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
