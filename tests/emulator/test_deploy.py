"""A stack deployed by the real CDK command line lives through virtual hours."""

import json
import textwrap
import time
from typing import Any

import pytest

from emulator import cdk
from emulator.environments import REGION
from emulator.process import LocalAws

_APP = """
from aws_cdk import App, CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch, aws_dynamodb as dynamodb, aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources, aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets, aws_sqs as sqs

app = App()
stack = Stack(app, "Probe")
dead_letters = sqs.Queue(stack, "DeadLetters")
source = sqs.Queue(
    stack, "Source", visibility_timeout=Duration.seconds(30),
    dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=3),
)
table = dynamodb.TableV2(
    stack, "Table", partition_key={"name": "PK", "type": dynamodb.AttributeType.STRING},
    time_to_live_attribute="TTL", removal_policy=RemovalPolicy.DESTROY,
)

def function(name, body, **settings):
    return lambda_.Function(
        stack, name, runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler",
        code=lambda_.Code.from_inline(body), timeout=Duration.seconds(20), **settings,
    )

consumer = function("Consumer", "def handler(event, context):\\n"
    "    if 'poison' in event['Records'][0]['body']: raise ValueError('poison')\\n")
consumer.add_event_source(sources.SqsEventSource(source, batch_size=1))
clockwork = function("Clockwork", "import boto3, os, time\\n"
    "table = boto3.resource('dynamodb').Table(os.environ['TABLE'])\\n"
    "def handler(event, context):\\n"
    "    table.update_item(Key={'PK': 'firings'}, UpdateExpression='ADD n :one',"
    " ExpressionAttributeValues={':one': 1})\\n",
    environment={"TABLE": table.table_name}, reserved_concurrent_executions=1)
table.grant_read_write_data(clockwork)
scheduler.Schedule(
    stack, "Every5Minutes", schedule=scheduler.ScheduleExpression.rate(Duration.minutes(5)),
    target=targets.LambdaInvoke(clockwork),
)
arrived = dead_letters.metric_approximate_number_of_messages_visible(period=Duration.minutes(1))
plain = arrived.create_alarm(stack, "Plain", threshold=1, evaluation_periods=1)
maths = cloudwatch.MathExpression(
    expression="FILL(a, 0) + 0", using_metrics={"a": arrived}, period=Duration.minutes(1)
).create_alarm(stack, "Maths", threshold=1, evaluation_periods=1)
both = cloudwatch.CompositeAlarm(
    stack, "Both", alarm_rule=cloudwatch.AlarmRule.all_of(plain, maths)
)
for output, value in {
    "SourceUrl": source.queue_url, "SourceArn": source.queue_arn,
    "DeadLetterUrl": dead_letters.queue_url, "TableName": table.table_name,
    "ClockworkName": clockwork.function_name, "AlarmName": both.alarm_name,
}.items():
    CfnOutput(stack, output, value=value)
app.synth()
"""


@pytest.fixture(scope="module")
def stack(aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    app_dir = tmp_path_factory.mktemp("probe")
    (app_dir / "app.py").write_text(textwrap.dedent(_APP))
    (app_dir / "cdk.json").write_text(json.dumps({"app": "$PYTHON app.py"}))
    cdk.bootstrap(aws)
    return cdk.deploy(aws, app_dir, {"colour": "blue"}, app_dir / "out")


def _firings(aws: LocalAws, table: str) -> int:
    answer: Any = aws.client("dynamodb").get_item(TableName=table, Key={"PK": {"S": "firings"}})
    return int(answer.get("Item", {}).get("n", {"N": "0"})["N"])


def test_a_schedule_fires_once_every_five_virtual_minutes(
    aws: LocalAws, stack: dict[str, str]
) -> None:
    before = _firings(aws, stack["TableName"])

    aws.pass_time(3600)

    assert _firings(aws, stack["TableName"]) == before + 12


def test_a_failing_message_reaches_the_dead_letter_queue_after_three_receives(
    aws: LocalAws, stack: dict[str, str], sqs: Any
) -> None:
    sent = sqs.send_message(QueueUrl=stack["SourceUrl"], MessageBody="poison")

    aws.pass_time(240)  # four receives, three timeouts of 30 s, each seen up to a step of 30 s late

    (letter,) = sqs.receive_message(
        QueueUrl=stack["DeadLetterUrl"], MessageSystemAttributeNames=["All"], VisibilityTimeout=0
    )["Messages"]
    assert letter["MessageId"] == sent["MessageId"]
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == stack["SourceArn"]
    assert letter["Attributes"]["ApproximateReceiveCount"] == "4"  # three, and this one


def test_a_composite_of_a_plain_and_a_math_alarm_follows_the_dead_letter_queue(
    aws: LocalAws, stack: dict[str, str], sqs: Any, cloudwatch: Any
) -> None:
    def state() -> str:
        alarms = cloudwatch.describe_alarms(
            AlarmNames=[stack["AlarmName"]], AlarmTypes=["CompositeAlarm"]
        )
        return str(alarms["CompositeAlarms"][0]["StateValue"])

    sqs.send_message(QueueUrl=stack["DeadLetterUrl"], MessageBody="a dead letter")
    aws.pass_time(120)
    in_trouble = state()
    sqs.purge_queue(QueueUrl=stack["DeadLetterUrl"])
    aws.pass_time(180)

    assert (in_trouble, state()) == ("ALARM", "OK")


def test_reserved_concurrency_and_time_to_live_of_the_template_are_in_force(
    aws: LocalAws, stack: dict[str, str], functions: Any
) -> None:
    concurrency = functions.get_function_concurrency(FunctionName=stack["ClockworkName"])
    ttl = aws.client("dynamodb").describe_time_to_live(TableName=stack["TableName"])

    assert concurrency["ReservedConcurrentExecutions"] == 1
    assert ttl["TimeToLiveDescription"]["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
    assert ttl["TimeToLiveDescription"]["AttributeName"] == "TTL"


def test_a_virtual_hour_does_not_take_an_hour(aws: LocalAws, stack: dict[str, str]) -> None:
    """It takes a second or so, on a busy machine some more; what waits in real time takes all of it."""
    started = time.monotonic()

    aws.pass_time(3600)

    assert time.monotonic() - started < 3600 / 10


def test_a_global_table_has_the_key_of_its_replica_from_its_creation_or_an_update(
    aws: LocalAws, name: str
) -> None:
    cloudformation, kms = aws.client("cloudformation"), aws.client("kms")
    keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2)]

    def of(key: str | None) -> str:
        here = {"Region": REGION}
        replica = here | ({"SSESpecification": {"KMSMasterKeyId": key}} if key else {})
        table = {
            "TableName": name,
            "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
            "SSESpecification": {"SSEEnabled": bool(key), **({"SSEType": "KMS"} if key else {})},
            "Replicas": [replica],
        }
        resource = {"Type": "AWS::DynamoDB::GlobalTable", "Properties": table}
        return json.dumps({"Resources": {"Table": resource}})

    def key_after(put: str, key: str | None) -> str | None:
        getattr(cloudformation, f"{put}_stack")(StackName=name, TemplateBody=of(key))
        cloudformation.get_waiter(f"stack_{put}_complete").wait(
            StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )
        described = aws.client("dynamodb").describe_table(TableName=name)["Table"]
        found: str | None = described.get("SSEDescription", {}).get("KMSMasterKeyArn")
        return found

    told = [key_after("create", keys[0]), key_after("update", keys[1]), key_after("update", None)]

    assert told == [*keys, None]


def test_an_account_is_prepared_as_the_command_line_does_it(
    aws: LocalAws, stack: dict[str, str]
) -> None:
    with LocalAws() as another:
        cdk.prepare(another)

        assert _of_the_cdk(another) == _of_the_cdk(aws)


def _of_the_cdk(aws: LocalAws) -> dict[str, Any]:
    """The parameters, the outputs and the resources of its stack, and what its roles may do."""
    stacks, iam = aws.client("cloudformation"), aws.client("iam")
    (told,) = stacks.describe_stacks(StackName="CDKToolkit")["Stacks"]
    listed = stacks.describe_stack_resources(StackName="CDKToolkit")["StackResources"]
    resources = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in listed}
    roles = [one["PhysicalResourceId"] for one in listed if one["ResourceType"] == "AWS::IAM::Role"]
    assert roles
    return {
        **{key: told[key] for key in ("Parameters", "Outputs")},
        **resources,
        **{role: _rights(iam, role) for role in roles},
    }


def _rights(iam: Any, role: str) -> list[Any]:
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return [
        iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"],
        iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"],
        [iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names],
    ]
