"""The stack as a whole: outputs, topics, the example consumer, and the same template every time."""

import pytest
from aws_cdk.assertions import Template

from smart_redriver.engine.aws.metrics import KEPT_VARIABLE
from smart_redriver.engine.config.settings import Settings

#: All that functions are told beside settings: nothing that would have to be kept secret.
PLACES = {
    "CONTROL_TABLE_NAME",
    "DLQ_URL",
    "DYNAMODB_TABLE_NAME",
    "IDEMPOTENCY_TABLE_NAME",
    "OUTCOME_QUEUE_URL",
    "PARKING_LOT_URL",
    "QUEUE_NAME",
    "SOURCE_QUEUE_URL",
}
OUTPUTS = {
    "SourceQueueUrl",
    "DeadLetterQueueUrl",
    "ParkingLotQueueUrl",
    "OutcomeQueueUrl",
    "ReportPolicyArn",
    "StateTableName",
    "RedriveFunctionName",
    "RedriveLogGroupName",
    "RedriveMode",
    "WarningTopicArn",
    "PagingTopicArn",
}
SAMPLE_OUTPUTS = {
    "SampleConsumerFunctionName",
    "SampleControlTableName",
    "SampleIdempotencyTableName",
}


def outputs(template: Template) -> dict[str, str]:
    """What each output refers to, or says by itself."""
    values = {name: output["Value"] for name, output in template.to_json()["Outputs"].items()}
    return {
        name: next(iter(value.values())) if isinstance(value, dict) else value
        for name, value in values.items()
    }


def resources(template: Template) -> dict:
    return template.to_json()["Resources"]


def output_resource(template: Template, output: str) -> dict:
    return resources(template)[outputs(template)[output]]


def test_the_outputs_are_exactly_the_public_ones(template, sample_template):
    assert set(outputs(template)) == OUTPUTS
    assert set(outputs(sample_template)) == OUTPUTS | SAMPLE_OUTPUTS


def test_two_synths_give_the_same_template(template, synth):
    assert synth().to_json() == template.to_json()


def test_the_stack_is_tied_to_no_account_or_region(template):
    arns = [part for part in str(template.to_json()).split("'") if part.startswith("arn:")]

    assert set(arns) == {"arn:"}


def alarms_statements(policy: dict) -> list[dict]:
    return [
        statement
        for statement in policy["Statement"]
        if statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    ]


@pytest.mark.parametrize("output", ["WarningTopicArn", "PagingTopicArn"])
def test_an_alarm_reaches_the_topic_through_topic_policy_and_key_policy(template, output):
    topic_id = outputs(template)[output]
    topic = resources(template)[topic_id]["Properties"]
    key_id = topic["KmsMasterKeyId"]["Fn::GetAtt"][0]
    [topic_policy] = [
        found["Properties"]["PolicyDocument"]
        for found in template.find_resources("AWS::SNS::TopicPolicy").values()
        if found["Properties"]["Topics"] == [{"Ref": topic_id}]
    ]

    [publish] = alarms_statements(topic_policy)
    [use_key] = alarms_statements(resources(template)[key_id]["Properties"]["KeyPolicy"])

    assert (publish["Effect"], publish["Action"]) == ("Allow", "sns:Publish")
    assert publish["Resource"] == {"Ref": topic_id}
    assert use_key["Effect"] == "Allow"
    assert set(use_key["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey*"}
    for statement in (publish, use_key):
        condition = statement["Condition"]
        assert condition["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        parts = condition["ArnLike"]["aws:SourceArn"]["Fn::Join"][1]
        text = "".join(part if isinstance(part, str) else part["Ref"] for part in parts)
        assert text == "arn:AWS::Partition:cloudwatch:AWS::Region:AWS::AccountId:alarm:*"


def test_topics_refuse_plain_http_and_share_one_rotated_key(template):
    template.resource_count_is("AWS::KMS::Key", 1)
    template.has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    for policy in template.find_resources("AWS::SNS::TopicPolicy").values():
        [deny] = [
            statement
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Deny"
        ]
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        assert deny["Principal"] == "*"


def test_there_is_no_consumer_unless_asked_for(template):
    template.resource_count_is("AWS::Lambda::Function", 1)
    template.resource_count_is("AWS::Lambda::EventSourceMapping", 0)


def test_the_sample_consumer_reports_each_failed_message(sample_template):
    sample_template.has_resource_properties(
        "AWS::Lambda::EventSourceMapping",
        {
            "FunctionName": {"Ref": outputs(sample_template)["SampleConsumerFunctionName"]},
            "EventSourceArn": {"Fn::GetAtt": [outputs(sample_template)["SourceQueueUrl"], "Arn"]},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        },
    )


@pytest.mark.parametrize(("visibility", "timeout"), [("1", 1), ("30", 5), ("43200", 900)])
def test_the_sample_consumer_is_done_well_before_its_messages_return(synth, visibility, timeout):
    template = synth(with_sample_consumer="true", source_visibility_timeout_seconds=visibility)

    function = output_resource(template, "SampleConsumerFunctionName")["Properties"]
    assert function["Timeout"] == timeout


def test_the_sample_consumer_has_its_tables_and_no_more(sample_template):
    found = outputs(sample_template)
    function = output_resource(sample_template, "SampleConsumerFunctionName")["Properties"]

    assert function["Handler"] == "consumer.handler.lambda_handler"
    variables = function["Environment"]["Variables"]
    assert variables["IDEMPOTENCY_TABLE_NAME"] == {"Ref": found["SampleIdempotencyTableName"]}
    assert variables["CONTROL_TABLE_NAME"] == {"Ref": found["SampleControlTableName"]}
    role = function["Role"]["Fn::GetAtt"][0]
    [policy] = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for policy in sample_template.find_resources("AWS::IAM::Policy").values()
        if policy["Properties"]["Roles"] == [{"Ref": role}]
    ]
    actions = {
        resource["Fn::GetAtt"][0]: statement["Action"]
        for statement in policy
        for resource in _listed(statement["Resource"])
    }
    assert actions[found["SampleControlTableName"]] == "dynamodb:GetItem"
    assert set(actions[found["SampleIdempotencyTableName"]]) == {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
    }
    assert set(actions[found["SourceQueueUrl"]]) == {
        "sqs:ReceiveMessage",
        "sqs:ChangeMessageVisibility",
        "sqs:GetQueueUrl",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
    }
    assert actions[found["OutcomeQueueUrl"]] == "sqs:SendMessage"
    assert actions[found["ParkingLotQueueUrl"]] == "sqs:SendMessage"
    assert len(actions) == 6
    assert variables["OUTCOME_QUEUE_URL"] == {"Ref": found["OutcomeQueueUrl"]}
    assert variables["PARKING_LOT_URL"] == {"Ref": found["ParkingLotQueueUrl"]}


def _listed(one_or_several):
    return one_or_several if isinstance(one_or_several, list) else [one_or_several]


def test_the_sample_consumers_tables_go_with_the_stack(sample_template):
    idempotency = output_resource(sample_template, "SampleIdempotencyTableName")
    control = output_resource(sample_template, "SampleControlTableName")

    assert idempotency["DeletionPolicy"] == control["DeletionPolicy"] == "Delete"
    assert idempotency["Properties"]["KeySchema"][0]["AttributeName"] == "id"
    assert idempotency["Properties"]["TimeToLiveSpecification"] == {
        "AttributeName": "expiration",
        "Enabled": True,
    }
    assert control["Properties"]["KeySchema"][0]["AttributeName"] == "PK"


def test_the_sample_consumer_changes_nothing_else(template, sample_template):
    # Its switch is a setting, which the function gets like any other.
    with_sample = resources(sample_template)
    for logical_id, found in resources(template).items():
        found.get("Properties", {}).get("Environment", {}).get("Variables", {}).pop(
            "WITH_SAMPLE_CONSUMER", None
        )
        with_sample[logical_id].get("Properties", {}).get("Environment", {}).get(
            "Variables", {}
        ).pop("WITH_SAMPLE_CONSUMER", None)
        assert with_sample[logical_id] == found


def test_no_function_is_told_anything_but_places_and_settings(sample_template):
    functions = sample_template.find_resources("AWS::Lambda::Function").values()
    told = {
        name
        for function in functions
        for name in function["Properties"].get("Environment", {}).get("Variables", {})
    }

    assert told - {name.upper() for name in Settings.names()} == PLACES | {KEPT_VARIABLE}
