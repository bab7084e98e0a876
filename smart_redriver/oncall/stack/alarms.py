"""The queue's alarms: how they are named, which of them ring, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.stack.session import Session

#: CloudFormation's name of an alarm has its name in the template, with a hash of eight digits behind it.
_NAME = re.compile(r"Monitoring([A-Za-z]\w*?)[0-9A-F]{8}-")
#: A description says what the alarm means, then what to do.
_THEN = " First: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One alarm: CloudFormation's name, a short one, what it means and what to do first."""

    name: str
    short: str
    meaning: str = ""
    first: str = ""

    def to_json(self) -> dict[str, str]:
        return {
            "name": self.name,
            "short": self.short,
            "meaning": self.meaning,
            "first": self.first,
        }


def alarm_prefix(session: Session) -> str:
    """How the names of the queue's alarms begin.

    CloudFormation names them after the stack, and those of a queue among several after the stack nested for it.
    """
    place = session.place
    nested = f"Adopted{place.prefix}Alarms" if place.prefix else ""
    return f"{place.stack}-{nested}"


def ringing_alarms(session: Session) -> list[Alarm]:
    """The queue's alarms that are in ALARM. Raises CallFailed."""
    answer = session.aws.client("cloudwatch").describe_alarms(
        AlarmNamePrefix=alarm_prefix(session),
        StateValue="ALARM",
        AlarmTypes=["MetricAlarm", "CompositeAlarm"],
    )
    found = [*answer.get("MetricAlarms", ()), *answer.get("CompositeAlarms", ())]
    return [read_alarm(one) for one in found]


def read_alarm(described: dict[str, Any]) -> Alarm:
    """An alarm as CloudWatch describes it."""
    name = described["AlarmName"]
    in_template = _NAME.search(name)
    meaning, _, rest = (described.get("AlarmDescription") or "").partition(_THEN)
    return Alarm(
        name=name,
        short=in_template[1] if in_template else name,
        meaning=meaning,
        first=rest.partition(" Queue: ")[0],
    )
