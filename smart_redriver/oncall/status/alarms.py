"""The queue's alarms: their names, which of them ring, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.deployment.session import Session

#: A description says what the alarm means; what to do follows these words.
_THEN = " First: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One alarm: its name, its short name, what it means and what to do first."""

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
    return [one for name in session.place.alarms_known_as for one in _named(session, name, wanted)]


def pages_of(session: Session, alarms: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pages that ring for one of these alarms: their names begin with the stack's. Raises CallFailed."""
    named = [f'"{one["AlarmName"]}"' for one in alarms]
    pages = _named(session, session.place.stack, {})
    return [one for one in pages if any(name in one.get("AlarmRule", "") for name in named)]


def _named(session: Session, name: str, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {
        "AlarmNamePrefix": f"{name} ",
        "AlarmTypes": ["MetricAlarm", "CompositeAlarm"],
        **wanted,
    }
    while True:
        page = session.aws.client("cloudwatch").describe_alarms(**request)
        found += [*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())]
        if not page.get("NextToken"):
            return found
        request["NextToken"] = page["NextToken"]


def ringing_alarms(session: Session) -> list[Alarm]:
    """The queue's alarms that are in ALARM. Raises CallFailed."""
    first, *_ = session.place.alarms_known_as
    return [read_alarm(one, first) for one in alarms_of(session, StateValue="ALARM")]


def split_name(name: str) -> tuple[str, str]:
    """Split an alarm's name into the queue's name for people and the alarm's kind.

    The stack and construct that follow mean nothing to people.
    """
    known_as, _, rest = name.partition(" ")
    return known_as, rest.partition(" ")[0]


def read_alarm(described: dict[str, Any], known_as: str) -> Alarm:
    """An alarm as CloudWatch describes it. Its short name begins with the queue, unless that is ``known_as``."""
    name = described["AlarmName"]
    whose, kind = split_name(name)
    meaning, _, rest = (described.get("AlarmDescription") or "").partition(_THEN)
    return Alarm(
        name=name,
        short=kind if whose == known_as else f"{whose} {kind}",
        meaning=meaning,
        first=rest.partition(" Queue: ")[0],
    )
