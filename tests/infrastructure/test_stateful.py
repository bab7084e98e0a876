"""Queues and table: what keeps letters and their history from being lost."""

import pytest
from aws_cdk.assertions import Match, Template

from tests.infrastructure.conftest import ROOT

SOURCE = "QueuesSource074CB5B2"
DEAD_LETTER = "QueuesDeadLetterA4947A69"
PARKING_LOT = "QueuesParkingLotF16E5B7E"
OUTCOMES = "RedriverOutcomes79C9044D"
TABLE = "StateTable962DE04C"
FOURTEEN_DAYS = 14 * 24 * 3600


def resource(template: Template, logical_id: str) -> dict:
    return template.to_json()["Resources"][logical_id]


def properties(template: Template, logical_id: str) -> dict:
    return resource(template, logical_id)["Properties"]


def test_stateful_resources_keep_their_logical_ids(template):
    # Another id is another resource: the letters would stay behind in the old one.
    queues = {SOURCE, DEAD_LETTER, PARKING_LOT, OUTCOMES}
    assert set(template.find_resources("AWS::SQS::Queue")) == queues
    assert set(template.find_resources("AWS::DynamoDB::GlobalTable")) == {TABLE}


@pytest.mark.parametrize("logical_id", [SOURCE, DEAD_LETTER, PARKING_LOT, OUTCOMES, TABLE])
def test_stateful_resources_outlive_the_stack_and_their_own_replacement(template, logical_id):
    """Not so what a first deployment made that failed. A protected table nobody can delete, so it stays even then."""
    found = resource(template, logical_id)

    kept = "Retain" if logical_id == TABLE else "RetainExceptOnCreate"
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == (kept, "Retain")


def test_nothing_but_the_protected_table_outlives_a_first_deployment_that_failed(synth):
    kept = {
        protection: [
            one["Type"]
            for one in synth(deletion_protection=protection).to_json()["Resources"].values()
            if one.get("DeletionPolicy") == "Retain"
        ]
        for protection in ("true", "false")
    }

    assert kept == {"true": ["AWS::DynamoDB::GlobalTable"], "false": []}


def test_retain_false_destroys_all(synth):
    template = synth(retain="false")

    resources = template.to_json()["Resources"].values()
    assert {r.get("DeletionPolicy", "Delete") for r in resources} == {"Delete"}
    [replica] = properties(template, TABLE)["Replicas"]
    assert replica["DeletionProtectionEnabled"] is False


@pytest.mark.parametrize(
    ("retain", "deletion_protection", "protected"),
    [("false", "true", True), ("true", "false", False), ("false", "false", False)],
)
def test_the_table_is_protected_from_deletion_as_the_setting_says(
    synth, retain, deletion_protection, protected
):
    template = synth(retain=retain, deletion_protection=deletion_protection)

    [replica] = properties(template, TABLE)["Replicas"]
    assert replica["DeletionProtectionEnabled"] is protected
    policy = "RetainExceptOnCreate" if retain == "true" else "Delete"
    assert resource(template, TABLE)["DeletionPolicy"] == policy


def test_the_docs_say_of_deletion_protection_what_the_template_does(template, synth):
    page = (ROOT / "docs" / "settings.md").read_text()
    protected = {
        one: properties(each, TABLE)["Replicas"][0]["DeletionProtectionEnabled"]
        for one, each in {"true": template, "false": synth(retain="false")}.items()
    }

    assert protected == {"true": True, "false": False}
    assert "| `deletion_protection` | as `retain` |" in page


@pytest.mark.parametrize("logical_id", [DEAD_LETTER, PARKING_LOT])
def test_dead_letters_are_kept_for_as_long_as_sqs_can(template, logical_id):
    assert properties(template, logical_id)["MessageRetentionPeriod"] == FOURTEEN_DAYS


def test_the_source_queue_polls_long_and_gives_up_to_the_dead_letter_queue(synth):
    template = synth(source_visibility_timeout_seconds="45", max_receive_count="4")

    source = properties(template, SOURCE)
    assert source["ReceiveMessageWaitTimeSeconds"] == 20
    assert source["VisibilityTimeout"] == 45
    assert source["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [DEAD_LETTER, "Arn"]},
        "maxReceiveCount": 4,
    }


def test_only_the_source_queue_may_use_the_dead_letter_queue(template):
    policy = properties(template, DEAD_LETTER)["RedriveAllowPolicy"]
    name = properties(template, SOURCE)["QueueName"]

    assert policy["redrivePermission"] == "byQueue"
    [arn] = policy["sourceQueueArns"]
    # The ARN is spelt out, for a reference would be a circle; it must end in the queue's name.
    prefix, stack_id = name["Fn::Join"][1]
    assert arn["Fn::Join"][1][:2] == ["arn:", {"Ref": "AWS::Partition"}]
    assert arn["Fn::Join"][1][-2:] == [f":{prefix}", stack_id]


def test_no_queue_refers_to_the_queue_that_refers_to_it(template):
    assert SOURCE not in str(properties(template, DEAD_LETTER))


@pytest.mark.parametrize("logical_id", [SOURCE, DEAD_LETTER, PARKING_LOT, OUTCOMES])
def test_every_queue_is_encrypted_and_refuses_plain_http(template, logical_id):
    assert properties(template, logical_id)["SqsManagedSseEnabled"] is True
    template.has_resource_properties(
        "AWS::SQS::QueuePolicy",
        {
            "Queues": [{"Ref": logical_id}],
            "PolicyDocument": {
                "Statement": [
                    {
                        "Effect": "Deny",
                        "Principal": {"AWS": "*"},
                        "Action": "sqs:*",
                        "Resource": {"Fn::GetAtt": [logical_id, "Arn"]},
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    }
                ],
                "Version": Match.any_value(),
            },
        },
    )


def test_the_state_table_expires_items_and_can_be_restored(template):
    table = properties(template, TABLE)

    assert table["KeySchema"] == [{"AttributeName": "PK", "KeyType": "HASH"}]
    assert table["AttributeDefinitions"] == [{"AttributeName": "PK", "AttributeType": "S"}]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "TTL", "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    [replica] = table["Replicas"]
    assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert replica["DeletionProtectionEnabled"] is True


def test_nothing_has_a_name_that_a_second_stack_would_collide_with(sample_template):
    named = {
        logical_id: value
        for logical_id, found in sample_template.to_json()["Resources"].items()
        for key, value in found["Properties"].items()
        if key in {"QueueName", "TableName", "RoleName", "TopicName", "LogGroupName", "Name"}
        or (key == "FunctionName" and isinstance(value, str))
    }

    # The one queue whose ARN must be known beforehand is named after the stack's own id.
    assert list(named) == [SOURCE]
    assert {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]} in named[SOURCE][
        "Fn::Join"
    ][1]
    [prefix, _] = named[SOURCE]["Fn::Join"][1]
    assert len(prefix) + 36 <= 80
