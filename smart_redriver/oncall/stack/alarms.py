"""The queue's alarms: how they are named, which of them ring, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.stack.session import Session

#: A description says what the alarm means, then what to do.
_THEN = " First: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One alarm: its name, a short one, what it means and what to do first."""

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


def alarms_of(session: Session, **wanted: str) -> list[dict[str, Any]]:
    """The queue's alarms as CloudWatch describes them: their names begin with a source queue's. Raises CallFailed."""
    found: list[dict[str, Any]] = []
    for name in session.place.alarms_known_as:
        request: dict[str, Any] = {
            "AlarmNamePrefix": f"{name} ",
            "AlarmTypes": ["MetricAlarm", "CompositeAlarm"],
            **wanted,
        }
        while True:
            page = session.aws.client("cloudwatch").describe_alarms(**request)
            found += [*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())]
            if not page.get("NextToken"):
                break
            request["NextToken"] = page["NextToken"]
    return found


def ringing_alarms(session: Session) -> list[Alarm]:
    """The queue's alarms that are in ALARM. Raises CallFailed."""
    first, *_ = session.place.alarms_known_as
    return [read_alarm(one, first) for one in alarms_of(session, StateValue="ALARM")]


def read_alarm(described: dict[str, Any], known_as: str) -> Alarm:
    """An alarm as CloudWatch describes it. Its short name is the whole one where it is not that of ``known_as``."""
    name = described["AlarmName"]
    meaning, _, rest = (described.get("AlarmDescription") or "").partition(_THEN)
    return Alarm(
        name=name,
        short=name.removeprefix(f"{known_as} "),
        meaning=meaning,
        first=rest.partition(" Queue: ")[0],
    )
