"""Somebody says that a consumer is well again: what an event says, what a circuit makes of it, and who is told."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.aws import items
from smart_redriver.engine.aws.clients import RecoveryEvents
from smart_redriver.engine.config.recovery import Recovery, elsewhere
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed, SettingsError
from smart_redriver.engine.model.breaker import failed, register_batch
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.permit import HINT_LASTS, Hint, allow, cools_until
from smart_redriver.engine.report import Report
from tests.unit.circuits import SETTINGS
from tests.unit.examples import NOW, QUEUE, a_circuit, ago, ahead

ALARM = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:orders errors, 5xx"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def event(detail: object, source: str = "smart-redriver", kind: str = "Recovery") -> dict[str, Any]:
    return {"version": "0", "source": source, "detail-type": kind, "detail": detail}


def alarm_event(**detail: object) -> dict[str, Any]:
    usual = {"alarmName": "orders-errors", "state": {"value": "OK"}}
    return event(usual | detail, "aws.cloudwatch", "CloudWatch Alarm State Change")


# What an event says.


@pytest.mark.parametrize(
    ("detail", "names", "by"),
    [
        ({"recovered": ["orders"]}, {"orders"}, "an event"),
        ({"recovered": "orders"}, {"orders"}, "an event"),
        ({"recovered": ["orders", "payments"], "by": "release 7"}, {"orders", "payments"}, "release 7"),
        ({"recovered": [1, None, "orders"], "by": 7}, {"orders"}, "an event"),
        ({"recovered": ["orders"], "by": "a\nline\x00" + 500 * "x"}, {"orders"}, "a line " + 248 * "x"),
        ({}, set(), "an event"),
    ],
)  # fmt: skip
def test_an_event_names_queues_or_what_they_share(
    detail: dict[str, Any], names: set[str], by: str
) -> None:
    assert Recovery.read(event(detail)) == Recovery(of=frozenset(names), by=by)


def test_an_alarm_that_is_ok_again_speaks_of_every_queue_of_the_function() -> None:
    recovery = Recovery.read(alarm_event())

    assert recovery == Recovery(of=None, by="alarm orders-errors")
    assert recovery.is_of("anything")


@pytest.mark.parametrize(
    "other",
    [
        None, [], "Recovery", {}, {"scheduled": True}, event(None), event(["orders"]),
        event({"recovered": ["orders"]}, source="aws.s3"), event({"recovered": ["orders"]}, kind="Other"),
        alarm_event(state={"value": "ALARM"}), alarm_event(state={"value": "INSUFFICIENT_DATA"}),
        alarm_event(state="OK"), alarm_event(state=None),
    ],
    ids=repr,
)  # fmt: skip
def test_any_other_event_says_nothing_of_a_recovery(other: object) -> None:
    assert Recovery.read(other) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_no_detail_that_anybody_may_write_stops_the_function(detail: object) -> None:
    for one in (event(detail), event(detail, "aws.cloudwatch", "CloudWatch Alarm State Change")):
        recovery = Recovery.read(one)
        assert recovery is None or recovery.by.isprintable()


def test_a_queue_without_a_downstream_is_not_meant_by_an_empty_name() -> None:
    recovery = Recovery(of=frozenset({"", "payments"}), by="")

    assert not recovery.is_of("orders", "")
    assert recovery.is_of("orders", "payments")


# The settings.


def test_alarms_are_a_list_or_one_text_and_their_names_may_hold_commas() -> None:
    other = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:payments-errors"

    for given_as in (f"{ALARM}, {other},{ALARM}", [ALARM, other], (ALARM, other)):
        parsed = Settings.parse({"recovery_alarms": given_as})  # type: ignore[dict-item]  # as cdk.json has it
        assert parsed.recovery_alarms == (ALARM, other)
    of_this_app = "${Token[TOKEN.42]}"
    assert Settings.parse({"recovery_alarms": of_this_app}).recovery_alarms == (of_this_app,)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("recovery_alarms", "orders-errors"),
        ("recovery_alarms", "arn:aws:sns:eu-west-1:111122223333:orders-errors"),
        ("recovery_alarms", "arn:aws:cloudwatch:eu-west-1:1:alarm:orders"),
        ("recovery_alarms", [7]),
        ("recovery_alarms", [f"{ALARM}{n}" for n in range(11)]),
        ("downstream", "the payments"),
        ("downstream", "-payments"),
        ("downstream", 81 * "x"),
        ("downstream", 7),
    ],
)
def test_what_is_no_alarm_and_no_name_is_refused_with_a_sentence(setting: str, value: Any) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.parse({setting: value})

    [fault] = refused.value.faults
    assert (fault.setting, fault.seen) == (setting, value)


def test_an_alarm_of_another_home_is_not_heard() -> None:
    def found(region: str | None, account: str | None) -> list[str]:
        return [one.accepted for one in elsewhere([ALARM, "${Token[TOKEN.1]}"], region, account)]

    assert found(None, None) == found("eu-west-1", None) == found("eu-west-1", "111122223333") == []
    [in_another] = found("eu-west-2", "111122223333")
    assert "of eu-west-2 and account 111122223333" in in_another
    assert len(found("eu-west-1", "999922223333")) == 1


# The circuit.


def an_open(**changes: Any) -> Circuit:
    """A circuit that opened ten minutes ago, after its fourth canary in a row, and cools down for as long."""
    usual = {
        "state": State.OPEN,
        "changed_at": ago(minutes=10),
        "last_attempt_at": ago(minutes=12),
        "consecutive_opens": 4,
        "cools_until": ahead(minutes=10),
    }
    return a_circuit(**usual | changes)


def hinted(at: datetime = NOW) -> Hint:
    return Hint(at=at, by="alarm orders-errors")


def test_a_hint_sends_one_canary_at_once_while_the_circuit_is_open() -> None:
    assert allow(an_open(), SETTINGS, NOW).limit == 0

    permit = allow(an_open(), SETTINGS, NOW, hint=hinted())

    assert (permit.limit, permit.is_canary) == (SETTINGS.canary_size, True)
    assert permit.reason == "a canary, as alarm orders-errors says that the consumer is well"


def test_it_is_newer_than_what_the_metrics_show_of_live_traffic() -> None:
    circuit = an_open(cools_until=ago(minutes=1))

    assert allow(circuit, SETTINGS, NOW, LiveOutcome.FAILS).limit == 0
    assert allow(circuit, SETTINGS, NOW, LiveOutcome.FAILS, hinted()).limit == 1


@pytest.mark.parametrize(
    ("last_attempt", "heard", "limit"),
    [
        (ago(minutes=12), ago(minutes=11), 1),
        (ago(minutes=12), ago(minutes=12), 0),
        (ago(minutes=12), ago(minutes=13), 0),
        (ago(seconds=59), ago(seconds=10), 0),
        (ago(seconds=60), ago(seconds=10), 1),
        (None, ago(minutes=1), 1),
        (ago(hours=2), NOW - HINT_LASTS, 1),
        (ago(hours=2), NOW - HINT_LASTS - SECOND, 0),
    ],
)
def test_one_canary_answers_all_hints_before_it_and_the_next_goes_a_minute_later(
    last_attempt: datetime | None, heard: datetime, limit: int
) -> None:
    circuit = an_open(last_attempt_at=last_attempt)

    assert allow(circuit, SETTINGS, NOW, hint=hinted(heard)).limit == limit


@pytest.mark.parametrize("state", [State.CLOSED, State.HALF_OPEN])
def test_a_hint_changes_nothing_in_another_state(state: State) -> None:
    circuit = an_open(state=state)

    assert allow(circuit, SETTINGS, NOW, hint=hinted()) == allow(circuit, SETTINGS, NOW)


def tried(circuit: Circuit, now: datetime, hint: Hint | None) -> Circuit:
    """The circuit after one canary that fails within two seconds, as with reports and one receive."""
    permit = allow(circuit, SETTINGS, now, hint=hint)
    if not permit.limit:
        return circuit
    half_open, batch = register_batch(circuit, permit, now, due_at=now)
    return failed(half_open.without_batch(batch.id), "it fails", SETTINGS, now + 2 * SECOND, 0.5)


def test_a_flood_of_false_hints_costs_a_canary_a_minute_and_makes_no_cool_down_longer() -> None:
    circuit, canaries = an_open(), 0
    cool_down = timedelta(seconds=0)
    for second in range(3600):
        now = NOW + second * SECOND
        after = tried(circuit, now, hinted(now))
        canaries += after is not circuit
        circuit = after
        if second == 0:
            cool_down = cools_until(circuit, SETTINGS) - now

    assert canaries == 60
    assert circuit.consecutive_opens == 4
    assert cools_until(circuit, SETTINGS) - (NOW + 3540 * SECOND) == cool_down


def test_a_canary_whose_time_had_come_doubles_the_cool_down_as_ever() -> None:
    circuit = tried(an_open(cools_until=NOW), NOW, hinted())

    assert circuit.consecutive_opens == 5


# The item and the event.


def test_a_hint_is_kept_in_an_item_of_its_own_for_a_while() -> None:
    item = items.hint_to_item(QUEUE, hinted())

    assert item["PK"] == {"S": "HINT#orders"}
    assert int(item["TTL"]["N"]) > (NOW + HINT_LASTS).timestamp()
    assert items.hint_from_item(item) == hinted()


def test_a_hint_of_a_time_that_a_pass_cannot_count_with_is_no_hint() -> None:
    item = items.hint_to_item(QUEUE, hinted()) | {"HintedTimestamp": {"S": "9999-12-31T23:59:59Z"}}

    with pytest.raises(ValueError, match="too early or too late"):
        items.hint_from_item(item)


class Bus:
    """EventBridge, which may take an event or not."""

    def __init__(self, **answer: Any) -> None:
        self.entries: list[dict[str, Any]] = []
        self._answer = {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]} | answer

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
        self.entries += Entries
        return self._answer


def test_what_a_queue_tells_its_neighbours_is_what_they_hear() -> None:
    bus = Bus()

    RecoveryEvents(bus).tell("payments", by="orders")

    [entry] = bus.entries
    told = event(json.loads(entry["Detail"]), entry["Source"], entry["DetailType"])
    assert Recovery.read(told) == Recovery(of=frozenset({"payments"}), by="orders")


def test_an_event_that_the_bus_refuses_is_a_call_that_failed() -> None:
    refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}

    with pytest.raises(CallFailed, match="ThrottlingException"):
        RecoveryEvents(Bus(**refused)).tell("payments", by="orders")


@pytest.mark.parametrize(
    ("before", "after", "mode", "closed"),
    [
        ("HALF_OPEN", "CLOSED", "automatic", ["orders"]),
        ("OPEN", "CLOSED", "automatic", ["orders"]),
        ("CLOSED", "CLOSED", "automatic", []),
        ("OPEN", "HALF_OPEN", "automatic", []),
        ("HALF_OPEN", "CLOSED", "dry_run", []),
    ],
)
def test_a_pass_tells_of_the_circuits_that_it_closed(
    before: str, after: str, mode: str, closed: list[str]
) -> None:
    report = Report(queue=QUEUE, mode=mode)
    report.circuits = [{"queue": QUEUE, "before": before, "after": after}]

    assert report.closed_queues == closed
    assert replace(report, circuits=[]).closed_queues == []
