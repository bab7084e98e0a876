"""The queue's alarms: how they are named, and which of them ring."""

from __future__ import annotations

from smart_redriver.oncall.stack.session import Session


def alarm_prefix(session: Session) -> str:
    """How the names of the queue's alarms begin.

    CloudFormation names them after the stack, and those of a queue among several after the stack nested for it.
    """
    place = session.place
    nested = f"Adopted{place.prefix}Alarms" if place.prefix else ""
    return f"{place.stack}-{nested}"


def ringing_alarms(session: Session) -> list[str]:
    """The queue's alarms that are in ALARM."""
    answer = session.aws.client("cloudwatch").describe_alarms(
        AlarmNamePrefix=alarm_prefix(session),
        StateValue="ALARM",
        AlarmTypes=["MetricAlarm", "CompositeAlarm"],
    )
    found = [*answer.get("MetricAlarms", ()), *answer.get("CompositeAlarms", ())]
    return [one["AlarmName"] for one in found]
