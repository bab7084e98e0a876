"""The origins of a DLQ's letters, their targets if these are not source queues, and the names of queues.

Standard library only, like all that synth imports.

A queue's DLQ says by itself where a letter came from. Other origins say it only in part or not at all, so the
configuration lists the targets, and nothing that is not listed is ever called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Self
from urllib.parse import SplitResult, urlsplit

from smart_redriver.engine.errors import Fault


class Origin(str, Enum):
    """The service or queue that sends letters to a DLQ."""

    SQS = "sqs"
    SNS = "sns"
    LAMBDA = "lambda"
    EVENTBRIDGE = "eventbridge"
    SCHEDULER = "scheduler"
    POSTGRES = "postgres"
    KAFKA = "kafka"


class TargetKind(str, Enum):
    """The kind of a target, which decides the call that delivers a letter."""

    QUEUE = "sqs"
    FUNCTION = "lambda"
    DELIVERY_STREAM = "firehose"
    STATE_MACHINE = "states"
    TOPIC = "sns"
    WEB = "https"


#: The targets that letters of each origin are given back to. A queue's letters go back to the queue.
SERVED: dict[Origin, frozenset[TargetKind]] = {
    Origin.SQS: frozenset(),
    Origin.POSTGRES: frozenset(),
    Origin.KAFKA: frozenset(),
    Origin.SNS: frozenset(
        {TargetKind.QUEUE, TargetKind.FUNCTION, TargetKind.DELIVERY_STREAM, TargetKind.WEB}
    ),
    Origin.LAMBDA: frozenset({TargetKind.FUNCTION}),
    Origin.EVENTBRIDGE: frozenset(
        {TargetKind.QUEUE, TargetKind.FUNCTION, TargetKind.STATE_MACHINE, TargetKind.TOPIC}
    ),
    Origin.SCHEDULER: frozenset(
        {TargetKind.QUEUE, TargetKind.FUNCTION, TargetKind.STATE_MACHINE, TargetKind.TOPIC}
    ),
}

_SERVED_ELSEWHERE = {
    Origin.POSTGRES: "another: a worker queue in Postgres has a construct of its own, PostgresRedriver",
    Origin.KAFKA: "another: a DLQ topic of Kafka has a construct of its own, KafkaRedriver, or a process",
}

_ARNS = {
    TargetKind.QUEUE: r"sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}",
    TargetKind.FUNCTION: r"lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_-]{1,128})?",
    TargetKind.DELIVERY_STREAM: r"firehose:[a-z0-9-]+:[0-9]{12}:deliverystream/[A-Za-z0-9_.-]{1,64}",
    TargetKind.STATE_MACHINE: r"states:[a-z0-9-]+:[0-9]{12}:stateMachine:[A-Za-z0-9_.-]{1,80}(:[A-Za-z0-9_.-]{1,80})?",
    TargetKind.TOPIC: r"sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}",
}
_SUBSCRIPTION = re.compile(
    r"(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+:[0-9a-f-]{36})="
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing that letters go back to.

    Attributes:
        place: its ARN, or its URL.
        subscription: the SNS subscription whose deliveries failed; None if the DLQ belongs to a single one.

    """

    kind: TargetKind
    place: str
    subscription: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an ARN or URL, after `SUBSCRIPTION_ARN=` if the DLQ serves several. Raises ValueError, saying why."""
        named = _SUBSCRIPTION.match(text)
        subscription, place = (named[1], text[named.end() :]) if named else (None, text)
        return cls(kind=_kind_of(place), place=place, subscription=subscription)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.subscription}={self.place}" if self.subscription else self.place

    @property
    def name(self) -> str:
        """The target's name for circuit, ledger and people: `lambda:orders`, `https://example.com/orders`."""
        if self.kind is TargetKind.WEB:
            parts = urlsplit(self.place)
            return f"{parts.scheme}://{parts.netloc}{parts.path}"
        resource = self.place.split(":", 5)[5]
        return f"{self.kind.value}:{re.sub(r'^(function:|stateMachine:|deliverystream/)', '', resource)}"


def _kind_of(place: str) -> TargetKind:
    """Raises ValueError, saying what is accepted. No target may have a name like a FIFO queue's."""
    if place.endswith(".fifo"):
        raise ValueError("a name that does not end in .fifo: order is kept of SQS's letters alone")
    for kind, pattern in _ARNS.items():
        if re.fullmatch(rf"arn:aws[a-z-]*:{pattern}", place):
            return kind
    if not re.match(r"https?:", place, re.IGNORECASE):
        raise ValueError(
            "the ARN of a queue, function, delivery stream, state machine or topic, or a URL"
        )
    check_url(place)
    return TargetKind.WEB


def _clash(origin: Origin, target: Target, others: Sequence[Target]) -> str | None:
    """The accepted values, if a target is valid by itself but wrong here."""
    if target.subscription and (clash := _subscription_clash(origin, target.subscription, others)):
        return clash
    for one in others:
        if one.place == target.place:
            return "each target once"
        if one.name == target.name:
            return f"one that is not called {one.name}, as {one.place} is: circuits and alarms go by that"
    return None


def _subscription_clash(origin: Origin, subscription: str, others: Sequence[Target]) -> str | None:
    """The accepted values, if a target's subscription is wrong here."""
    if origin is not Origin.SNS:
        return f"with origin {origin.value} the target alone: subscriptions are of SNS"
    topic, _, _ = subscription.rpartition(":")
    if topic.endswith(".fifo"):
        return "a subscription of a standard topic: order is kept of SQS's letters alone"
    if any(one.subscription == subscription for one in others):
        return "each subscription once: it delivers to one endpoint"
    return None


def _read_target(origin: Origin, given: str | Target, others: Sequence[Target]) -> Target:
    """One target beside others. Raises ValueError, saying what is accepted."""
    target = given if isinstance(given, Target) else Target.parse(given)
    if target.kind not in SERVED[origin]:
        served = ", ".join(sorted(kind.value for kind in SERVED[origin])) or "none"
        raise ValueError(f"with origin {origin.value}: {served}")
    if clash := _clash(origin, target, others):
        raise ValueError(clash)
    return target


def read_targets(
    origin: Origin, given: Sequence[str | Target]
) -> tuple[tuple[Target, ...], list[Fault]]:
    """The targets of a DLQ that `origin` fills, and their faults."""
    targets: list[Target] = []
    faults: list[Fault] = []
    if accepted := _SERVED_ELSEWHERE.get(origin):
        return (), [Fault(setting="origin", seen=origin.value, accepted=accepted)]
    for one in given:
        text = str(one)
        try:
            targets.append(_read_target(origin, one, targets))
        except ValueError as fault:
            # A URL refused for its password must not print it, least of all in build logs.
            seen = re.sub(r"(?s)^([^:]*:/*)?.*@", r"\1...@", text)
            faults.append(Fault(setting="targets", seen=seen, accepted=str(fault)))
    if not given and SERVED[origin]:
        faults.append(
            Fault(
                setting="targets", seen=None, accepted="what the letters go back to, one at least"
            )
        )
    if len(targets) > 1 and origin is Origin.SNS and not all(one.subscription for one in targets):
        accepted = "the subscription of each, where a DLQ is of several: SUBSCRIPTION_ARN=TARGET"
        faults.append(Fault(setting="targets", seen=" ".join(map(str, targets)), accepted=accepted))
    return tuple(targets), faults


_URL = "a URL with a host and maybe a port, without user name, fragment or blanks"
_HOST = (
    "a URL whose host is a name of at most 253 letters, digits and hyphens, 63 of them between two dots, or an address "
    "in full: four numbers, or IPv6 in brackets"
)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
#: Numbers that resolvers read as an IPv4 address, however few there are, in any base.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def check_url(text: str) -> None:
    """Raises ValueError, saying what is accepted."""
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError(_URL) from None
    if (
        not (parts.hostname and has_port)
        or "@" in parts.netloc
        or parts.fragment
        or re.search(r"[\s\x00-\x1f\x7f\\]", text)
    ):
        raise ValueError(_URL)
    if not _is_good_host(parts):
        raise ValueError(_HOST)


def _is_good_host(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if "[" in parts.netloc:
        return _is_address(host, IPv6Address)
    try:
        # In the form that is looked up: there, digits of another script are digits.
        name = host.encode("idna").decode().lower().removesuffix(".")
    except UnicodeError:
        return False
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_address(host, IPv4Address)
    return len(name) <= 253 and all(_LABEL.fullmatch(one) for one in labels)


def _is_address(host: str, kind: type[IPv4Address | IPv6Address]) -> bool:
    try:
        kind(host)
    except ValueError:
        return False
    return "%" not in host


Address = IPv4Address | IPv6Address

#: The assigned part of IPv6, and its parts that belong to no machine: protocols and tunnels, whose end could be
#: anywhere.
#: https://www.iana.org/assignments/ipv6-address-space
#: https://www.iana.org/assignments/iana-ipv6-special-registry
_UNICAST = IPv6Network("2000::/3")
_NOBODYS = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
#: Relays into such tunnels. https://www.rfc-editor.org/rfc/rfc7526
_RELAYS = IPv4Network("192.88.99.0/24")

#: IPv4 behind a translator, which anyone may run. https://www.rfc-editor.org/rfc/rfc6052
_NAT64 = IPv6Network("64:ff9b::/96")
#: The same within a network, at the end or after its prefix. https://www.rfc-editor.org/rfc/rfc8215
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
#: Addresses that end in an IPv4 address: compatible, translated, and the two above.
_WITH_IPV4 = (*map(IPv6Network, ("::/96", "::ffff:0:0:0/96")), _NAT64, _LOCAL_NAT64)

#: Addresses at which AWS gives instances and containers metadata and credentials, beside those that are link-local.
#: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
_OF_INSTANCES = IPv6Network("fd00:ec2::/32")


def is_public(address: Address) -> bool:
    """Whether it is public and belongs to one machine: IPv4 within IPv6 counts as that IPv4 address."""
    address = _unwrapped(address)
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _RELAYS
    is_somebodys = address in _UNICAST and not any(address in one for one in _NOBODYS)
    return is_somebodys and address.is_global


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, or else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    return _last_of(address) if address in _NAT64 else address.ipv4_mapped or address


def hands_out_credentials(address: Address) -> bool:
    """Whether machines get their credentials there, whatever IPv6 address wraps it."""
    return any(
        one.is_link_local or (isinstance(one, IPv6Address) and one in _OF_INSTANCES)
        for one in (address, *_within(address))
    )


def _within(address: Address) -> Iterator[IPv4Address]:
    """Every IPv4 address into which a router on the way may translate this one."""
    if isinstance(address, IPv4Address):
        return
    yield from filter(None, (address.ipv4_mapped, address.sixtofour))
    yield from address.teredo or ()
    if any(address in one for one in _WITH_IPV4):
        yield _last_of(address)
    if address in _LOCAL_NAT64:
        number = int(address)
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)


def _last_of(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


#: Names that a queue outside SQS may have.
PLAIN = "1 to 80 letters, digits, hyphens and underscores"
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,80}")


def is_plain(name: str) -> bool:
    """Whether circuit, metadata and reports can use this name for a queue outside SQS."""
    return _PLAIN.fullmatch(name) is not None


def within(name: str, queue: str) -> str:
    """A queue's name within another name; only the queue's name if that is empty."""
    return f"{name}/{queue}" if name else queue


def is_fifo(name: str) -> bool:
    """Whether this is the name, ARN or URL of a FIFO queue.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/creating-sqs-queues-fifo.html
    """
    return name.endswith(".fifo")


def queue_name(arn: str) -> str:
    """The name of the queue with this ARN."""
    return arn.rpartition(":")[2]
