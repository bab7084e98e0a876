"""Monitoring settings that only the CDK app needs: thresholds, topics and subscribers.

They are declared like the function's settings, and read from the same flat context keys.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Self

import aws_cdk as cdk

from smart_redriver.engine.config.kinds import (
    YES_OR_NO,
    Kind,
    choice,
    number,
    read_fields,
    setting,
    whole,
)
from smart_redriver.engine.errors import Fault, SettingsError

_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")
_TOPIC_ARN = re.compile(r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+")


class Alarms(str, Enum):
    """The extent of monitoring: everything, or only the alarms that page."""

    ALL = "all"
    PAGING = "paging"


def _emails() -> Kind[tuple[str, ...]]:
    def parse(value: Any) -> tuple[str, ...]:
        # It is a list if it comes from cdk.json or from code, and one text if it comes from `-c`.
        listed = value if isinstance(value, list | tuple) else str(value).split(",")
        addresses = [one.strip() if isinstance(one, str) else one for one in listed]
        if not all(one == "" or _is_email(one) for one in addresses):
            raise ValueError
        # SNS has one subscription for an address, and the CDK refuses a second.
        return tuple(dict.fromkeys(filter(None, addresses)))

    return Kind(parse, "e-mail addresses, separated by commas")


def _is_email(value: object) -> bool:
    return isinstance(value, str) and bool(_EMAIL.fullmatch(value) or _is_token(value))


def _is_token(value: object) -> bool:
    """Whether the value comes from another construct, so that only a deployment knows it."""
    return isinstance(value, str) and cdk.Token.is_unresolved(value)


def _topic_arn() -> Kind[str]:
    def parse(value: Any) -> str:
        if value != "" and not _is_token(value) and not _TOPIC_ARN.fullmatch(str(value)):
            raise ValueError
        return str(value)

    return Kind(parse, "the ARN of a standard SNS topic")


def _place() -> Kind[str]:
    def parse(value: Any) -> str:
        # It is in each alarm's description, which has 1,024 characters.
        if not isinstance(value, str) or not re.fullmatch(r"[^\s#]{1,500}", value):
            raise ValueError
        return value

    return Kind(parse, "a path or URL of up to 500 characters without #")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringSettings:
    """Every setting of the alarms with its default, range and unit."""

    alarms: Alarms = setting(Alarms.PAGING, choice(Alarms), "which alarms there are")
    alarm_dead_letters_warning: int = setting(
        10, whole(0, 1_000_000), "visible dead letters above which an alarm warns"
    )
    alarm_dead_letters_paging: int = setting(
        100, whole(0, 1_000_000), "visible dead letters above which an alarm pages"
    )
    alarm_dead_letters_growth: int = setting(
        50, whole(1, 1_000_000), "dead letters that came within 5 minutes"
    )
    alarm_dead_letters_age_seconds: int = setting(
        3600, whole(60, 1_209_600), "seconds that a dead letter waits without a known next try"
    )
    alarm_suspects: int = setting(
        0, whole(0, 1_000_000), "letters waiting for their last chance above which an alarm warns"
    )
    alarm_parked_letters: int = setting(
        0, whole(0, 1_000_000), "letters in the parking lot above which an alarm warns"
    )
    alarm_open_cool_downs: int = setting(
        3, whole(1, 10), "cool-downs in a row after which an open circuit pages"
    )
    alarm_success_percent: float = setting(
        80.0, number(1, 100), "percent of verdicts that are successes, at least"
    )
    alarm_success_verdicts: int = setting(
        10, whole(1, 1000), "verdicts an hour below which the success rate says nothing"
    )
    alarm_failures_percent: float = setting(
        5.0, number(0, 100), "percent of the source queue's receives that end in the DLQ"
    )
    alarm_failures_received: int = setting(
        20, whole(1, 1_000_000), "receives below which the share of failures says nothing"
    )
    alarm_source_age_seconds: int = setting(
        300, whole(1, 1_209_600), "seconds, age of the source queue's oldest message"
    )
    alarm_unread_reports_seconds: int = setting(
        3600, whole(300, 345_600), "seconds, age of the oldest unread report"
    )
    alarm_silent_minutes: int = setting(10, whole(3, 60), "minutes without an invocation that page")
    alarm_expiry_percent: float = setting(
        14.0,
        number(1, 100),
        "percent of the DLQ's retention left before the first expiry, below which an alarm pages",
    )
    warning_emails: tuple[str, ...] = setting((), _emails(), "told what can wait")
    paging_emails: tuple[str, ...] = setting((), _emails(), "told what can't wait")
    warning_topic_arn: str = setting("", _topic_arn(), "instead of a topic of the stack's own")
    paging_topic_arn: str = setting("", _topic_arn(), "instead of a topic of the stack's own")
    dashboard_widget: bool = setting(
        False, YES_OR_NO, "whether the dashboard has a widget that shows the status in words"
    )
    runbook_url: str = setting("docs/runbook.md", _place(), "where alarms say the runbook is")

    @property
    def has_widget(self) -> bool:
        """Whether there is a widget. With `alarms=paging`, there is no dashboard for it."""
        return self.dashboard_widget and self.alarms is Alarms.ALL

    def faults(self) -> Iterator[Fault]:
        """Name settings that can't be had together."""
        if self.dashboard_widget and not self.has_widget:
            accepted = "false with alarms=paging, which makes no dashboard"
            yield Fault(setting="dashboard_widget", seen=True, accepted=accepted)

    @property
    def people(self) -> tuple[tuple[str, ...], ...]:
        """The recipients: addresses and topics, warning and paging."""
        topics = self.warning_topic_arn, self.paging_topic_arn
        return self.warning_emails, self.paging_emails, topics

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The settings' names, in the order of the table."""
        return tuple(one.name for one in fields(cls))

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Read ``values`` by setting name. A setting that is left out has its default.

        Other names are ignored. Raises SettingsError listing every fault.
        """
        read, faults = read_fields(cls, values)
        if faults:
            raise SettingsError(faults)
        return cls(**read)
