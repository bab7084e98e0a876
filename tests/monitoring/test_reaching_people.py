"""From alarm to action to topic to policy to key to subscription: what fires must arrive."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from bench import synthesized
from smart_redriver.engine.errors import SettingsError
from tests.monitoring import reach
from tests.monitoring.reach import ADOPTED, synthesize

TOPIC = "arn:aws:sns:eu-west-1:111122223333:on-call"


@pytest.fixture(scope="module", params=[{}, {"alarms": "paging"}, {"queues": ADOPTED}], ids=str)
def resources(request) -> dict[str, Any]:
    """With queues of its own, trimmed, and with adopted queues whose alarms are in nested stacks."""
    return synthesize(**request.param)


def test_every_alarm_that_acts_reaches_its_topic(resources) -> None:
    assert list(reach.faults(resources)) == []


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("AWS::SNS::TopicPolicy", "does not let CloudWatch publish"),
        ("AWS::KMS::Key", "does not let CloudWatch use kms:GenerateDataKey"),
    ],
)
def test_the_walk_finds_a_policy_that_would_silence_an_alarm(resources, kind, fault) -> None:
    silenced = reach.without_statements_for_cloudwatch(resources, kind)

    assert any(fault in found for found in reach.faults(silenced))


def test_every_alarm_tells_somebody_or_is_part_of_one_that_does(resources) -> None:
    alarms = reach.alarms(resources)
    telling = {name for name, alarm in alarms.items() if alarm.get("AlarmActions")}
    rules = " ".join(alarm.get("AlarmRule", "") for alarm in alarms.values())

    for name in alarms.keys() - telling:
        assert f'ALARM("{alarms[name]["AlarmName"]}")' in rules


def test_who_is_told_of_a_fault_is_told_of_its_end(resources) -> None:
    for alarm in reach.alarms(resources).values():
        assert alarm.get("AlarmActions") == alarm.get("OKActions")


def test_an_alarm_has_a_name_for_people_that_it_shares_with_no_other(resources) -> None:
    names = [one["AlarmName"] for one in reach.alarms(resources).values()]
    known_as = {queue["source_arn"].rpartition(":")[2] for queue in ADOPTED}

    assert len(set(names)) == len(names)
    begin = {name.partition(" ")[0] for name in names}
    assert begin in ({"SmartRedriver"}, {"SmartRedriver", *known_as})
    for one in begin - {"SmartRedriver"}:
        assert [name for name in names if name.startswith(f"{one} CircuitOpen SmartRedriver-")]
    assert [name for name in names if name.startswith("SmartRedriver LettersPileUp SmartRedriver-")]


def test_what_pages_and_what_warns_is_as_the_table_says() -> None:
    resources = synthesize(alarms="all")
    rows: dict[str, set[str]] = {"Paging": set(), "Warning": set()}
    for name, alarm in reach.alarms(resources).items():
        for topic in alarm.get("AlarmActions", ()):
            rows["Paging" if "Paging" in topic else "Warning"].add(_construct_id(name))

    assert rows["Paging"] == {"LettersPileUp", "RedriverUnwell", "LettersNearExpiry"}
    assert rows["Warning"] == {
        "DeadLettersPresent",
        "SuspectsWaiting",
        "PoisonParked",
        "RedriveNotWorking",
        "TooManyFailures",
        "SourceQueueOld",
        "ReportsUnread",
    }


@pytest.mark.parametrize(
    ("composite", "children"),
    [
        (
            "LettersPileUp",
            {"DeadLettersMany", "DeadLettersGrowing", "DeadLettersOld", "CircuitOpen"},
        ),
        (
            "RedriverUnwell",
            {"RedriverErrors", "RedriverThrottled", "PassesFailed", "RedriverSilent"},
        ),
    ],
)
def test_alarms_of_one_incident_page_together(composite, children) -> None:
    alarms = reach.alarms(synthesize(alarms="all"))
    [rule] = [a["AlarmRule"] for name, a in alarms.items() if _construct_id(name) == composite]

    ringing = {name for name, one in alarms.items() if f'"{one["AlarmName"]}"' in rule}
    assert {_construct_id(name) for name in ringing} == children


def test_an_outage_that_all_queues_of_a_stack_share_pages_once() -> None:
    queues = [
        {
            "name": f"queue-{n}",
            "source_arn": f"arn:aws:sqs:{reach.REGION}:{reach.ACCOUNT}:queue-{n}",
            "dead_letter_arn": f"arn:aws:sqs:{reach.REGION}:{reach.ACCOUNT}:queue-{n}-dead",
        }
        for n in range(30)
    ]
    alarms = reach.alarms(synthesize(queues=queues))

    rules = [one["AlarmRule"] for one in alarms.values() if "AlarmRule" in one]
    ringing = [name for rule in rules for name in re.findall(r'ALARM\("([^"]+)"\)', rule)]

    assert len(rules) == 4  # two pages, each in two parts: a composite takes a hundred alarms
    assert len(ringing) == len(set(ringing)) == 30 * 8
    assert all(len(rule) <= 10_240 and rule.count("ALARM(") <= 100 for rule in rules)
    assert set(ringing) <= {one["AlarmName"] for one in alarms.values()}


def test_a_queue_with_thresholds_and_people_of_its_own_pages_them_apart() -> None:
    theirs = {
        **ADOPTED[0],
        "alarm_dead_letters_paging": 7,
        "paging_emails": ["team@example.com"],
    }
    resources = synthesize(queues=[theirs, ADOPTED[1]], paging_emails="ops@example.com")
    alarms = reach.alarms(resources)

    many = {
        one["AlarmName"].partition(" ")[0]: one["Threshold"]
        for one in alarms.values()
        if " DeadLettersMany " in one["AlarmName"]
    }
    pages = {
        queue: one["AlarmActions"]
        for one in alarms.values()
        for queue in ("orders", "refunds")
        if f'"{queue} DeadLettersMany' in one.get("AlarmRule", "")
    }
    told = dict(_subscriptions(resources, "email"))

    assert many == {"orders": 7, "refunds": 100}
    assert {queue: told[topic] for queue, [topic] in pages.items()} == {
        "orders": "team@example.com",
        "refunds": "ops@example.com",
    }
    assert list(reach.faults(resources)) == []


def test_every_alarm_says_what_missing_data_means(resources) -> None:
    for name, alarm in reach.alarms(resources).items():
        if "AlarmRule" not in alarm:
            assert alarm["TreatMissingData"] in ("breaching", "notBreaching", "ignore"), name


# -- subscriptions -------------------------------------------------------------------------------


def _construct_id(logical_id: str) -> str:
    return logical_id.rpartition("Monitoring")[2][:-8]


def _subscriptions(resources: dict[str, Any], protocol: str) -> list[tuple[str, str]]:
    return sorted(
        (one["Properties"]["TopicArn"], one["Properties"]["Endpoint"])
        for one in resources.values()
        if one["Type"] == "AWS::SNS::Subscription" and one["Properties"]["Protocol"] == protocol
    )


def test_addresses_are_subscribed_to_their_topic() -> None:
    resources = synthesize(
        paging_emails="ann@example.com, bob@example.com", warning_emails=["team@example.com"]
    )

    found = _subscriptions(resources, "email")

    paging, warning = "MonitoringPaging", "MonitoringWarning"
    assert [(topic[: len(paging)], address) for topic, address in found[:2]] == [
        (paging, "ann@example.com"),
        (paging, "bob@example.com"),
    ]
    assert [(topic[: len(warning)], address) for topic, address in found[2:]] == [
        (warning, "team@example.com")
    ]


def test_an_https_address_is_a_parameter_that_is_never_shown() -> None:
    template = synthesized.synthesize()
    resources = template["Resources"]

    for name in ("Paging", "Warning"):
        parameter = template["Parameters"][f"{name}HttpsEndpoint"]
        assert (parameter["NoEcho"], parameter["Default"]) == (True, "")
        [subscription] = [
            one
            for one in resources.values()
            if one["Type"] == "AWS::SNS::Subscription"
            and one["Properties"]["Endpoint"] == {"Ref": f"{name}HttpsEndpoint"}
        ]
        # Without an address there is no subscription; a plain http one is refused.
        condition = template["Conditions"][subscription["Condition"]]
        assert condition == {"Fn::Not": [{"Fn::Equals": [{"Ref": f"{name}HttpsEndpoint"}, ""]}]}
        assert parameter["AllowedPattern"] == "^(https://.+)?$"
    # Nothing but the subscriptions and their conditions can see the address.
    assert json.dumps(template).count('HttpsEndpoint"}') == 4


def test_topics_of_others_are_used_as_they_are() -> None:
    resources = synthesize(paging_topic_arn=TOPIC, warning_topic_arn=TOPIC)

    kinds = {one["Type"] for one in resources.values()}
    assert not kinds & {"AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::KMS::Key"}
    acting = [a for a in reach.alarms(resources).values() if a.get("AlarmActions")]
    assert acting
    assert all(alarm["AlarmActions"] == [TOPIC] for alarm in acting)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("paging_emails", "ann"),
        ("paging_topic_arn", "arn:aws:sqs:eu-west-1:111122223333:queue"),
        ("alarms", "some"),
        ("alarm_dead_letters_paging", "-1"),
        ("alarm_success_percent", "101"),
        ("alarm_success_percent", "0"),  # an alarm that could never go off
        ("alarm_expiry_percent", "0"),
        ("runbook_url", "docs/runbook.md#top"),
        ("alarm_dead_letter_paging", "7"),  # misspelt
    ],
)
def test_a_wrong_setting_is_refused_at_synth(
    synth: Callable[..., dict[str, Any]], setting: str, value: str
) -> None:
    with pytest.raises(SettingsError, match=setting):
        synth(**{setting: value})
