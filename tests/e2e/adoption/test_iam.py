"""Least privilege on a local AWS that enforces IAM: what a role does not need, it may not do.

The story has shown that each role may do all that it needs. Here each role tries everything that it could do to
any queue, table, key, topic, log and function of the deployment, and may do what is listed and nothing else.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from emulator.environments import ACCOUNT, REGION
from tests.e2e.adoption.conftest import Town

PREFIXES = ("Orders", "Refunds", "Mails")

#: What the re-drive function of each queue may do, by role of the queue or other resource.
SOURCE = {"SendMessage", "GetQueueAttributes"}
DEAD_LETTERS = {
    "ReceiveMessage",
    "DeleteMessage",
    "ChangeMessageVisibility",
    "GetQueueAttributes",
    "ListMessageMoveTasks",
    "SendMessage",  # letters near their expiry are renewed
}
OUTCOMES = {"ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"}
PARKING_LOT = {
    "SendMessage",
    "ReceiveMessage",
    "ChangeMessageVisibility",
    "DeleteMessage",
    "GetQueueAttributes",
}
TABLE = {"GetItem", "PutItem", "DeleteItem", "BatchGetItem", "BatchWriteItem"}
ELSEWHERE = {"cloudwatch:GetMetricData"}

_TRUST_THIS_ACCOUNT = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "sts:AssumeRole",
        }
    ],
}

Attempt = tuple[str, dict[str, Any]]


def on_queue(url: str, arn: str) -> dict[str, Attempt]:
    """Every call on a queue, by its action. Handles are made up: only the permission is asked about."""
    at, handle = {"QueueUrl": url}, {"ReceiptHandle": "none"}
    return {
        "SendMessage": ("send_message", {**at, "MessageBody": "tried"}),
        "ReceiveMessage": ("receive_message", {**at, "VisibilityTimeout": 0, "WaitTimeSeconds": 0}),
        "DeleteMessage": ("delete_message", {**at, **handle}),
        "ChangeMessageVisibility": (
            "change_message_visibility",
            {**at, **handle, "VisibilityTimeout": 0},
        ),
        "GetQueueAttributes": ("get_queue_attributes", {**at, "AttributeNames": ["QueueArn"]}),
        "ListMessageMoveTasks": ("list_message_move_tasks", {"SourceArn": arn}),
        "StartMessageMoveTask": ("start_message_move_task", {"SourceArn": arn}),
        "SetQueueAttributes": (
            "set_queue_attributes",
            {**at, "Attributes": {"VisibilityTimeout": "30"}},
        ),
        "PurgeQueue": ("purge_queue", at),
        "DeleteQueue": ("delete_queue", at),
        "ListQueueTags": ("list_queue_tags", at),
        "TagQueue": ("tag_queue", {**at, "Tags": {"a": "b"}}),
    }


def on_table(name: str) -> dict[str, Attempt]:
    key = {"PK": {"S": "TRIED"}}
    at = {"TableName": name}
    return {
        "GetItem": ("get_item", {**at, "Key": key}),
        "PutItem": ("put_item", {**at, "Item": key}),
        "UpdateItem": ("update_item", {**at, "Key": key}),
        "DeleteItem": ("delete_item", {**at, "Key": key}),
        "BatchGetItem": ("batch_get_item", {"RequestItems": {name: {"Keys": [key]}}}),
        "BatchWriteItem": (
            "batch_write_item",
            {"RequestItems": {name: [{"PutRequest": {"Item": key}}]}},
        ),
        "Scan": ("scan", at),
        "Query": (
            "query",
            {
                **at,
                "KeyConditionExpression": "PK = :pk",
                "ExpressionAttributeValues": {":pk": key["PK"]},
            },
        ),
        "DescribeTable": ("describe_table", at),
        "UpdateTable": ("update_table", {**at, "BillingMode": "PAY_PER_REQUEST"}),
        "DeleteTable": ("delete_table", at),
    }


def elsewhere(town: Town) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Calls on everything else, by service and action."""
    function = town.redriver["OrdersRedriveFunctionName"]
    topic = town.redriver["PagingTopicArn"]
    metrics = {"StartTime": 0, "EndTime": 60, "MetricDataQueries": []}
    return {
        "cloudwatch:GetMetricData": ("cloudwatch", "get_metric_data", metrics),
        "cloudwatch:PutMetricData": (
            "cloudwatch",
            "put_metric_data",
            {"Namespace": "SmartRedriver", "MetricData": [{"MetricName": "Tried", "Value": 1}]},
        ),
        "cloudwatch:DescribeAlarms": ("cloudwatch", "describe_alarms", {}),
        "sns:Publish": ("sns", "publish", {"TopicArn": topic, "Message": "tried"}),
        # A dry run, as an invocation may last for minutes: what the roles tried to send is in the DLQ by now.
        "lambda:InvokeFunction": (
            "lambda",
            "invoke",
            {"FunctionName": function, "InvocationType": "DryRun"},
        ),
        "lambda:GetFunction": ("lambda", "get_function", {"FunctionName": function}),
        "logs:DescribeLogGroups": ("logs", "describe_log_groups", {}),
        "logs:CreateLogGroup": ("logs", "create_log_group", {"logGroupName": "tried"}),
        "kms:DescribeKey": ("kms", "describe_key", {"KeyId": town.shop["KeyArn"]}),
        "kms:ScheduleKeyDeletion": (
            "kms",
            "schedule_key_deletion",
            {"KeyId": town.shop["KeyArn"], "PendingWindowInDays": 30},
        ),
        "iam:ListRoles": ("iam", "list_roles", {}),
        "s3:ListBuckets": ("s3", "list_buckets", {}),
        "ssm:DescribeParameters": ("ssm", "describe_parameters", {}),
        "secretsmanager:ListSecrets": ("secretsmanager", "list_secrets", {}),
        "sqs:ListQueues": ("sqs", "list_queues", {}),
        "sqs:CreateQueue": ("sqs", "create_queue", {"QueueName": "tried"}),
        "dynamodb:ListTables": ("dynamodb", "list_tables", {}),
    }


class Role:
    """What a role may do, found out by trying."""

    def __init__(self, town: Town, arn: str) -> None:
        self._town = town
        # Only services may take these roles. Whom a role trusts does not change what it may do.
        town.aws.client("iam").update_assume_role_policy(
            RoleName=arn.rpartition("/")[2], PolicyDocument=json.dumps(_TRUST_THIS_ACCOUNT)
        )
        assumed = town.aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="tries")
        keys = assumed["Credentials"]
        self._session = boto3.Session(
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
            region_name=REGION,
        )
        self._clients: dict[str, Any] = {}

    def allowed(self, service: str, attempts: Mapping[str, Attempt]) -> set[str]:
        """Those actions that IAM lets through, whatever the service then says."""
        return {name for name, attempt in attempts.items() if self._may(service, *attempt)}

    def _may(self, service: str, operation: str, arguments: dict[str, Any]) -> bool:
        try:
            getattr(self._client(service), operation)(**arguments)
        except ClientError as refusal:
            code = refusal.response["Error"]["Code"]
            return code not in ("AccessDenied", "AccessDeniedException", "AuthorizationError")
        return True

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            certificate = self._town.aws.environment()["AWS_CA_BUNDLE"]
            self._clients[service] = self._session.client(  # type: ignore[call-overload]
                service, endpoint_url=self._town.aws.endpoint_url, verify=certificate
            )
        return self._clients[service]


def role_of(town: Town, function: str) -> Role:
    functions = town.aws.client("lambda")
    return Role(town, functions.get_function_configuration(FunctionName=function)["Role"])


def queues(town: Town) -> Iterator[tuple[str, str]]:
    """The URL and ARN of every queue that there is, application's and parking lots alike."""
    sqs = town.aws.client("sqs")
    for url in sqs.list_queues()["QueueUrls"]:
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        yield url, answer["Attributes"]["QueueArn"]


def name_of(url_or_arn: str) -> str:
    return url_or_arn.replace(":", "/").rpartition("/")[2]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_redriver_may_do_its_own_work_on_its_own_queues_and_nothing_on_any_other(
    town: Town, prefix: str
) -> None:
    role = role_of(town, town.redriver[f"{prefix}RedriveFunctionName"])
    own = {
        town.redriver[f"{prefix}SourceQueueUrl"]: SOURCE,
        town.redriver.get(f"{prefix}FurtherSourceQueueUrls", ""): SOURCE,
        town.redriver[f"{prefix}DeadLetterQueueUrl"]: DEAD_LETTERS,
        town.redriver[f"{prefix}ParkingLotQueueUrl"]: PARKING_LOT,
        town.redriver[f"{prefix}OutcomeQueueUrl"]: OUTCOMES,
    }
    expected = {name_of(url): actions for url, actions in own.items() if url}

    found = {name_of(arn): role.allowed("sqs", on_queue(url, arn)) for url, arn in queues(town)}

    assert len(found) == 13
    assert {name: actions for name, actions in found.items() if actions} == expected


def test_a_redriver_may_keep_its_state_and_touch_no_other_table(town: Town) -> None:
    role = role_of(town, town.redriver["OrdersRedriveFunctionName"])
    tables = town.aws.client("dynamodb").list_tables()["TableNames"]

    found = {table: role.allowed("dynamodb", on_table(table)) for table in tables}

    assert len(found) == 9
    assert {table: actions for table, actions in found.items() if actions} == {
        town.redriver["StateTableName"]: TABLE
    }


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_redriver_may_ask_for_metrics_and_nothing_else(town: Town, prefix: str) -> None:
    role = role_of(town, town.redriver[f"{prefix}RedriveFunctionName"])

    assert everything_allowed(role, town) == ELSEWHERE


def test_the_schedules_role_may_invoke_the_redrivers_of_its_stack_and_nothing_else(
    town: Town,
) -> None:
    schedules = town.aws.client("scheduler")
    targets = [
        schedules.get_schedule(Name=found["Name"])["Target"]
        for found in schedules.list_schedules()["Schedules"]
    ]
    redrivers = {town.redriver[f"{prefix}RedriveFunctionName"] for prefix in PREFIXES}
    assert {name_of(target["Arn"]) for target in targets} == redrivers
    [shared] = {target["RoleArn"] for target in targets}

    role = Role(town, shared)
    listed = town.aws.client("lambda").list_functions()["Functions"]
    invoked: dict[str, Attempt] = {
        one["FunctionName"]: (
            "invoke",
            {"FunctionName": one["FunctionName"], "InvocationType": "DryRun"},
        )
        for one in listed
    }

    assert invoked.keys() > redrivers  # the shop's consumers, too
    assert role.allowed("lambda", invoked) == redrivers
    assert everything_allowed(role, town) == {"lambda:InvokeFunction"}
    for url, arn in queues(town):
        assert role.allowed("sqs", on_queue(url, arn)) == set()


def test_the_sample_consumer_may_consume_its_queue_and_keep_its_records(town: Town) -> None:
    role = role_of(town, town.shop["MailsSampleConsumerFunctionName"])
    tables = town.aws.client("dynamodb").list_tables()["TableNames"]

    consumed = {name_of(arn): role.allowed("sqs", on_queue(url, arn)) for url, arn in queues(town)}
    kept = {table: role.allowed("dynamodb", on_table(table)) for table in tables}

    assert {name: actions for name, actions in consumed.items() if actions} == {
        name_of(town.shop["MailsSourceArn"]): {
            "ReceiveMessage",
            "DeleteMessage",
            "ChangeMessageVisibility",
            "GetQueueAttributes",
        }
    }
    assert {table: actions for table, actions in kept.items() if actions} == {
        town.shop["MailsSampleControlTableName"]: {"GetItem"},
        town.shop["MailsSampleIdempotencyTableName"]: {
            "GetItem",
            "PutItem",
            "UpdateItem",
            "DeleteItem",
        },
    }
    assert everything_allowed(role, town) == set()


def test_a_consumer_that_may_report_sends_to_its_own_outcome_queue_and_parking_lot_alone(
    town: Town,
) -> None:
    role = role_of(town, town.shop["OrdersSampleConsumerFunctionName"])
    own = {name_of(town.redriver[f"Orders{queue}QueueUrl"]) for queue in ("Outcome", "ParkingLot")}
    source = name_of(town.shop["OrdersSourceArn"])

    found = {name_of(arn): role.allowed("sqs", on_queue(url, arn)) for url, arn in queues(town)}

    sent_to = {name: actions for name, actions in found.items() if "SendMessage" in actions}
    assert sent_to == {name: {"SendMessage"} for name in own}
    assert {name for name, actions in found.items() if actions} == own | {source}


def test_reports_reach_the_redriver_of_an_adopted_queue_with_iam_enforced(town: Town) -> None:
    heard = {
        name: Counter(
            result
            for event in life.played.events("outcomes.heard")
            for result in event.fields
            if result in ("succeeded", "failed")
        )
        for name, life in town.lives.items()
    }

    assert heard["orders"].keys() == {"succeeded", "failed"}
    assert not heard["refunds"]
    assert not heard["mails"]


def everything_allowed(role: Role, town: Town) -> set[str]:
    return {
        name
        for name, (service, *attempt) in elsewhere(town).items()
        if role.allowed(service, {name: (attempt[0], attempt[1])})  # type: ignore[dict-item]
    }
