"""Checks that an alarm would reach somebody: alarm -> topic -> topic policy -> key policy -> subscription."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.findings import Finding, absent, check, good, unknown, wrong
from smart_redriver.oncall.status.alarms import alarms_of, pages_of

_CLOUDWATCH = "cloudwatch.amazonaws.com"


def check_alarms(session: Session) -> Iterator[Finding]:
    """Look at the queue's alarms and at the topics that they publish to. Raises CallFailed."""
    alarms = alarms_of(session)
    if not alarms and not session.place.paging_topic:
        yield good("The stack asks for no alarms for this queue: nobody is told of anything.")
        return
    if not alarms:
        yield wrong("There is no alarm for this queue.", "Deploy the stack anew.")
        return
    of_queue = {one["AlarmName"] for one in alarms}
    alarms += [one for one in pages_of(session, alarms) if one["AlarmName"] not in of_queue]
    yield _check_actions(alarms)
    topics = {arn for one in alarms for arn in one.get("AlarmActions", ()) if ":sns:" in arn}
    if not topics:
        yield wrong("No alarm tells anybody.", "Deploy the stack anew.")
    for topic in sorted(topics):
        yield from _check_topic(session, topic)


def _check_actions(alarms: Sequence[Mapping[str, Any]]) -> Finding:
    silenced = [one["AlarmName"] for one in alarms if not one.get("ActionsEnabled", True)]
    return check(
        not silenced,
        f"All {len(alarms)} alarms may act.",
        f"Somebody switched off the actions of {', '.join(silenced)}.",
        "`aws cloudwatch enable-alarm-actions --alarm-names ...` switches them on.",
    )


def judge_topic(
    name: str, attributes: dict[str, Any], key_policy: str | None, *, setting: str = "paging_emails"
) -> Iterator[Finding]:
    """Whether CloudWatch may publish to a topic, and somebody subscribes to it. `setting` names the subscribers."""
    yield check(
        lets_publish(attributes.get("Policy"), "sns:publish"),
        f"Alarms may publish to {name}.",
        f"Alarms may not publish to {name}: its policy does not let CloudWatch.",
        f"Allow {_CLOUDWATCH} sns:Publish in the topic's policy.",
    )
    if attributes.get("KmsMasterKeyId"):
        yield check(
            lets_publish(key_policy, "kms:generatedatakey"),
            f"Alarms may use the key of {name}.",
            f"Alarms may not use the key of {name}, so that nothing arrives.",
            f"Allow {_CLOUDWATCH} kms:Decrypt and kms:GenerateDataKey* in the key's policy.",
        )
    yield check(
        int(attributes.get("SubscriptionsConfirmed", 0)) > 0,
        f"Somebody is subscribed to {name}.",
        f"Nobody is subscribed to {name}.",
        f"Deploy with -c {setting}=..., or subscribe to it, and confirm the message that comes.",
    )


def lets_publish(policy: str | None, action: str, service: str = _CLOUDWATCH) -> bool:
    """Whether a resource policy allows CloudWatch, or another service, an action (in lower case)."""
    statements = json.loads(policy or "{}").get("Statement", ())
    return any(
        one.get("Effect") == "Allow"
        and _names(one.get("Principal"), service)
        and any(_covers(pattern.lower(), action) for pattern in _listed(one.get("Action")))
        for one in statements
    )


def _names(principal: Any, service: str) -> bool:
    if principal == "*":
        return True
    services = _listed((principal or {}).get("Service"))
    return service in services or "*" in _listed((principal or {}).get("AWS"))


def _covers(pattern: str, action: str) -> bool:
    return pattern == action or (pattern.endswith("*") and action.startswith(pattern[:-1]))


def _listed(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) else value or ()


def _check_topic(session: Session, topic: str) -> Iterator[Finding]:
    name = topic.rpartition(":")[2]
    try:
        attributes = session.aws.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]
    except CallFailed as failed:
        if failed.absent:
            yield absent(failed.absent, "what alarms publish to it reaches nobody")
            return
        yield unknown(
            f"The topic {name} could not be looked at: {failed.code}.",
            "Ask its owner whether CloudWatch may publish to it, and who is subscribed.",
        )
        return
    key, key_policy = attributes.get("KmsMasterKeyId"), None
    if key:
        try:
            answer = session.aws.client("kms").get_key_policy(KeyId=key, PolicyName="default")
            key_policy = answer["Policy"]
        except CallFailed as failed:
            yield unknown(
                f"The policy of {name}'s key could not be read: {failed.code}.",
                f"Ask its owner whether {_CLOUDWATCH} may use it.",
            )
            attributes = {**attributes, "KmsMasterKeyId": None}
    setting = "warning_emails" if topic == session.place.warning_topic else "paging_emails"
    yield from judge_topic(name, attributes, key_policy, setting=setting)
