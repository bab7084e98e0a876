"""Hints that a consumer is well again: an event of the re-driver's own, or an alarm that returns to OK.

    source "smart-redriver", detail-type "Recovery", detail {"recovered": ["orders", "payments"]}

``recovered`` names source queues, or a ``downstream`` that several of them share. Standard library only, as
``settings``: synth and the function import this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from smart_redriver.engine.config.kinds import Kind
from smart_redriver.engine.errors import Fault

SOURCE = "smart-redriver"
DETAIL_TYPE = "Recovery"
RECOVERED = "recovered"
#: The key for who says so: any words, for people.
BY = "by"

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
ALARM_SOURCE = "aws.cloudwatch"
ALARM_DETAIL_TYPE = "CloudWatch Alarm State Change"
OK = "OK"

#: An alarm's name may have 255 characters.
_LONGEST_BY = 255

ALARM_ARN = re.compile(
    r"arn:aws[a-z-]*:cloudwatch:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):alarm:.{1,255}"
)
#: An ARN that another construct of the app makes and that is known only at deployment.
_TOKEN = re.compile(r"\$\{Token\[.+\]\}")
#: The pattern of a rule may have 4,096 characters.
#: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
MOST_ALARMS = 10

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,78}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A recovery that an event announces. It may not be true.

    ``of``: the queues and downstreams that are well again; None for every queue of the function that hears it.
    """

    of: frozenset[str] | None
    by: str

    @classmethod
    def read(cls, event: object) -> Self | None:
        """The recovery that the event announces; None for any other event."""
        if not isinstance(event, Mapping) or not isinstance(event.get("detail"), Mapping):
            return None
        kind, detail = (event.get("source"), event.get("detail-type")), event["detail"]
        if kind == (SOURCE, DETAIL_TYPE):
            return cls(of=_names(detail.get(RECOVERED)), by=_words(detail.get(BY)) or "an event")
        if kind == (ALARM_SOURCE, ALARM_DETAIL_TYPE) and _state(detail) == OK:
            return cls(of=None, by=f"alarm {_words(detail.get('alarmName'))}")
        return None

    def is_of(self, *names: str) -> bool:
        """Whether it is about one of these."""
        return self.of is None or not self.of.isdisjoint(filter(None, names))


def _state(detail: Mapping[str, Any]) -> object:
    state = detail.get("state")
    return state.get("value") if isinstance(state, Mapping) else None


def _names(value: object) -> frozenset[str]:
    """The texts in a list, or a single one."""
    listed = value if isinstance(value, list) else [value]
    return frozenset(one for one in listed if isinstance(one, str))


def _words(value: object) -> str:
    """A text from an untrusted writer, made fit for a log line."""
    text = value if isinstance(value, str) else ""
    return "".join(one if one.isprintable() else " " for one in text[:_LONGEST_BY]).strip()


def alarm_arns() -> Kind[tuple[str, ...]]:
    """ARNs of alarms; those of alarms that the app makes are known when it is deployed."""

    def parse(value: Any) -> tuple[str, ...]:
        # A list from cdk.json or code, but one text from `-c`.
        listed = value if isinstance(value, list | tuple) else re.split(r",(?=\s*arn:)", str(value))
        arns = [one.strip() if isinstance(one, str) else one for one in listed]
        if not all(one == "" or _is_alarm(one) for one in arns):
            raise ValueError
        arns = list(dict.fromkeys(filter(None, arns)))
        if len(arns) > MOST_ALARMS:
            raise ValueError
        return tuple(arns)

    return Kind(parse, f"ARNs of CloudWatch alarms, separated by commas, at most {MOST_ALARMS}")


def _is_alarm(value: object) -> bool:
    return isinstance(value, str) and bool(ALARM_ARN.fullmatch(value) or _TOKEN.fullmatch(value))


def elsewhere(arns: Any, region: str | None, account: str | None) -> Iterator[Fault]:
    """A fault for each alarm in another Region or account; ARNs that are known only at deployment are not compared.

    Values that `alarm_arns` does not read have faults of their own.
    """
    try:
        read = alarm_arns().parse(arns)
    except ValueError:
        return
    for arn in read:
        home = ALARM_ARN.fullmatch(arn)
        if home and (region or home["region"], account or home["account"]) != home.groups():
            here = " and ".join(filter(None, (region, account and f"account {account}")))
            accepted = f"alarms of {here}: EventBridge tells of an alarm's state only at its home"
            yield Fault(setting="recovery_alarms", seen=arn, accepted=accepted)


def downstream_name() -> Kind[str]:
    """The name of a downstream that queues share."""

    def parse(value: Any) -> str:
        if value != "" and not (isinstance(value, str) and _NAME.fullmatch(value)):
            raise ValueError
        return str(value)

    return Kind(parse, "a name of letters, digits, hyphens and underscores")
