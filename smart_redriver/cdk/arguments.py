"""Checks the arguments of a construct before it makes anything: each by itself, and queues against each other.

`redrive doctor` checks what an app can't know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_clashes import (
    KEY_ARN,
    MAX_SOURCES,
    QUEUE_ARN,
    partition_faults,
)
from smart_redriver.cdk.queues import LONGEST_RETENTION
from smart_redriver.cdk.safeguards import ANY_KEY, Safeguards, is_alias
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault, SettingsError

S = TypeVar("S", Settings, Safeguards, MonitoringSettings)


def check_lists(**given: object) -> None:
    """Raise SettingsError for arguments that are not lists, such as a single queue."""
    faults = [
        Fault(setting=name, seen=value, accepted="a list")
        for name, value in given.items()
        if isinstance(value, str) or not isinstance(value, Sequence)
    ]
    if faults:
        raise SettingsError(faults)


def check_kinds(**given: tuple[object, type]) -> None:
    """Raise SettingsError for arguments that are neither None nor of the given type."""
    if faults := list(_of_another_kind(given)):
        raise SettingsError(faults)


def check_resources(
    queues: Mapping[str, sqs.IQueue],
    keys: Mapping[str, kms.IKey | None],
    listed_keys: Mapping[str, kms.IKey],
) -> None:
    """Raise SettingsError for an argument that is not a CDK queue or key, an alias, or a queue with an invalid ARN.

    An ARN in another partition than its Region is invalid.
    """
    all_keys = {**_given(keys), **listed_keys}
    faults = [
        *_without("queue_arn", queues, "a queue: `sqs.Queue.from_queue_arn` makes one of an ARN"),
        *_without("key_arn", all_keys, ANY_KEY),
    ]
    faults += (
        Fault(setting=name, seen=key, accepted=ANY_KEY)
        for name, key in all_keys.items()
        if hasattr(key, "key_arn") and is_alias(cast("kms.IKey", key))
    )
    for role, queue in queues.items():
        arn = getattr(queue, "queue_arn", None)
        if not arn or cdk.Token.is_unresolved(arn):
            continue
        if not QUEUE_ARN.fullmatch(arn):
            faults.append(Fault(setting=role, seen=arn, accepted="the ARN of one SQS queue"))
        faults += partition_faults(role, arn)
    if faults:
        raise SettingsError(faults)


def check_topics(topics: Mapping[str, sns.ITopic | None]) -> None:
    """Raise SettingsError for an argument that is not a CDK topic."""
    accepted = "a topic: `sns.Topic.from_topic_arn` makes one of an ARN"
    if faults := list(_without("topic_arn", _given(topics), accepted)):
        raise SettingsError(faults)


def unread_settings(settings: Settings | None) -> Iterator[Fault]:
    """Yield a fault for a setting that only the stack of this repository uses."""
    if isinstance(settings, Settings) and settings.with_sample_consumer:
        accepted = "false: the example consumer is none of the construct's"
        yield Fault(setting="with_sample_consumer", seen=True, accepted=accepted)


def _given(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if value is not None}


def _without(arn: str, given: Mapping[str, object], accepted: str) -> Iterator[Fault]:
    """Yield a fault for a resource without this ARN. `isinstance` doesn't work on the CDK's interfaces."""
    for name, value in given.items():
        if not hasattr(value, arn):
            yield Fault(setting=name, seen=value, accepted=accepted)


def checked(
    settings: Settings | None,
    safeguards: Safeguards | None,
    monitoring: MonitoringSettings | None,
    others: Iterable[Fault],
    **further: tuple[object, type],
) -> tuple[Settings, Safeguards, MonitoringSettings]:
    """The settings as they will be read. Raises SettingsError listing all their faults, and the `others`.

    `further` arguments must be None or of the given type.
    """
    kinds = {
        "settings": (settings, Settings),
        "safeguards": (safeguards, Safeguards),
        "monitoring": (monitoring, MonitoringSettings),
        **further,
    }
    faults = [*_of_another_kind(kinds), *others]
    watched = _read(MonitoringSettings, monitoring, faults)
    read = _read(Settings, settings, faults), _read(Safeguards, safeguards, faults), watched
    if faults := faults or [*watched.faults()]:
        raise SettingsError(faults)
    return read


def checked_monitoring(monitoring: MonitoringSettings) -> MonitoringSettings:
    """The settings as they will be read. Raises SettingsError listing every fault."""
    faults = list(_of_another_kind({"monitoring": (monitoring, MonitoringSettings)}))
    read = _read(MonitoringSettings, monitoring, faults)
    if faults:
        raise SettingsError(faults)
    return read


def _read(kind: type[S], given: S | None, faults: list[Fault]) -> S:
    """Parse `given`. Returns the defaults if it is of another type."""
    if not isinstance(given, kind):
        return kind()
    try:
        read = kind.parse({name: getattr(given, name) for name in kind.names()})
        return replace(given, **{name: getattr(read, name) for name in kind.names()})
    except SettingsError as error:
        faults += map(_unknown_at_synth, error.faults)
        return given


def _unknown_at_synth(fault: Fault) -> Fault:
    """The fault, in other words for a value that only a deployment knows: the CDK gives it as an absurd number."""
    seen = fault.seen
    if not isinstance(seen, str | float) or not cdk.Token.is_unresolved(seen):
        return fault
    accepted = f"a value that is known at synth: {fault.accepted}"
    return replace(fault, seen=cdk.Token.as_string(seen), accepted=accepted)


def _of_another_kind(given: Mapping[str, tuple[object, type]]) -> Iterator[Fault]:
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            yield Fault(setting=name, seen=value, accepted=f"a {kind.__name__}")


#: How long SQS keeps a message by default, in seconds.
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
_RETENTION = 345_600
#: How long a received message is invisible by default, in seconds.
_VISIBILITY_TIMEOUT = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueue:
    """Values in seconds are None if only a deployment knows them. `time_to_fail` is of all tries of a message."""

    retention: int | None
    time_to_fail: int | None
    has_redrive_policy: bool
    dead_letter_arn: str | None

    @property
    def forgets_first(self) -> bool:
        """Whether it is known to delete a message before the message has failed."""
        if self.retention is None or self.time_to_fail is None:
            return False
        return self.retention <= self.time_to_fail


def known(queue: sqs.IQueue) -> KnownQueue | None:
    """Return the facts of a queue; None if the app does not make it."""
    if not cdk.Resource.is_owned_resource(queue):
        return None
    resource = cast("sqs.CfnQueue", queue.node.default_child)
    fails_to = queue.dead_letter_queue if isinstance(queue, sqs.Queue) else None
    timeout = _number(resource.visibility_timeout, _VISIBILITY_TIMEOUT)
    receives = _number(fails_to.max_receive_count, 0) if fails_to else None
    return KnownQueue(
        retention=_number(resource.message_retention_period, _RETENTION),
        time_to_fail=timeout * receives if timeout and receives else None,
        has_redrive_policy=resource.redrive_policy is not None,
        dead_letter_arn=fails_to.queue.queue_arn if fails_to else None,
    )


def _number(given: float | None, by_default: int) -> int | None:
    if given is None:
        return by_default
    return None if cdk.Token.is_unresolved(given) else int(given)


#: Account and Region.
_Home = tuple[str, str]


def place_faults(stack: cdk.Stack, queues: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    """Yield faults of queues outside the stack's account and Region: alarms and verdicts would miss their metrics."""
    home = stack.account, stack.region
    for role, queue in queues.items():
        here = _home(queue.queue_arn) or (queue.stack.account, queue.stack.region)
        if is_away(stack, *here):
            accepted = f"a queue where the stack is, in {home[1]}/{home[0]}"
            if any(map(cdk.Token.is_unresolved, home)):
                accepted = "a queue where the stack is"
            yield Fault(setting=role, seen=queue.queue_arn, accepted=accepted)


def key_faults(
    stack: cdk.Stack, queues: Mapping[str, sqs.IQueue], parking_lot_key: kms.IKey | None
) -> Iterator[Fault]:
    """Yield faults of keys that can't be granted by their ARN: an alias, or a key outside the stack's Region."""
    for role, queue in queues.items():
        key = queue.encryption_master_key
        if key is None:
            continue
        if is_alias(key):
            accepted = "a queue with its key, and not with an alias of it"
            yield Fault(setting=role, seen=key.node.path, accepted=accepted)
        elif is_elsewhere(key.key_arn, stack):
            accepted = f"a queue with a key of {stack.region}, where the stack is"
            yield Fault(setting=role, seen=key.key_arn, accepted=accepted)
        else:
            yield from partition_faults(role, key.key_arn)
    if parking_lot_key is None:
        return
    if is_elsewhere(parking_lot_key.key_arn, stack):
        accepted = f"a key of {stack.region}, where the stack is"
        yield Fault(setting="parking_lot_key", seen=parking_lot_key.key_arn, accepted=accepted)
    yield from partition_faults("parking_lot_key", parking_lot_key.key_arn)


def is_away(stack: cdk.Stack, account: str, region: str) -> bool:
    """Whether an account or a Region is known to be another than the stack's."""
    pairs = (stack.account, account), (stack.region, region)
    return any(
        one != other for one, other in pairs if not any(map(cdk.Token.is_unresolved, (one, other)))
    )


def is_elsewhere(key_arn: str, stack: cdk.Stack) -> bool:
    """Whether a key is known to be in another Region than the stack."""
    key = KEY_ARN.fullmatch(key_arn)
    return key is not None and is_away(stack, stack.account, key["region"])


def too_many(sources: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    """Yield a fault of more source queues than a DLQ can have."""
    if len(sources) > MAX_SOURCES:
        accepted = f"at most {MAX_SOURCES} source queues of a DLQ, source_queue among them"
        yield Fault(setting="further_sources", seen=f"{len(sources)} of them", accepted=accepted)


def role_faults(queues: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    """Yield faults of queues that have two roles, or differ in kind or place. The keys of ``queues`` are their roles.

    Values that only a deployment knows can't be compared, and are accepted.
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
    """Yield faults of valid queues that together would lose letters or never get any, as far as the app knows them."""
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
    """Yield a fault if a queue keeps messages for less time than the one before it.

    A letter's age counts from its first send, so it could expire on arrival.
    """
    kept, kept_before = (one.retention if one else None for one in (queue, before))
    if kept is not None and kept_before is not None and kept < kept_before:
        accepted = f"at least the {kept_before} s for which {other} keeps messages"
        yield Fault(setting=f"{role}.retention_period", seen=kept, accepted=accepted)


def warn_of_retention(
    scope: Construct, sources: Mapping[str, sqs.IQueue], others: Mapping[str, sqs.IQueue]
) -> None:
    """Make synth warn about queues that the app makes, and that forget too early.

    A source queue may delete a message before it has failed. Other queues should keep letters for as long as SQS can.
    """
    for role, queue in sources.items():
        facts = known(queue)
        if facts and facts.forgets_first:
            text = (
                f"{role} ({queue.node.path}) keeps a message for {facts.retention} s, and one that fails takes "
                f"{facts.time_to_fail} s to go to the dead_letter_queue: SQS deletes it before. Set its "
                "retention_period well above that."
            )
            cdk.Annotations.of(scope).add_warning_v2("smart-redriver:source-retention", text)
    longest = LONGEST_RETENTION.to_seconds()
    for role, queue in others.items():
        facts = known(queue)
        if facts and facts.retention is not None and facts.retention < longest:
            text = (
                f"{role} ({queue.node.path}) keeps letters for {facts.retention} s, then SQS deletes them for good. "
                f"Set its retention_period to {LONGEST_RETENTION.to_days():g} days, the most there is."
            )
            cdk.Annotations.of(scope).add_warning_v2("smart-redriver:retention", text)


def _on_its_own(role: str, queue: sqs.IQueue) -> Fault:
    accepted = "a queue without a dead-letter queue of its own, which would take letters away"
    return Fault(setting=role, seen=queue.node.path, accepted=accepted)


def _home(arn: str) -> _Home | None:
    if cdk.Token.is_unresolved(arn):
        return None
    _, _, _, region, account, _ = arn.split(":", 5)
    return None if cdk.Token.is_unresolved(region + account) else (account, region)
