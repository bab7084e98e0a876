"""What letters of other origins than SQS go back to: the fakes, and moto where it has the call.

moto runs no function on an asynchronous invocation and retries none, so that what follows is the fake's alone; the fake
rests there on the Lambda Developer Guide and on what was recorded on AWS, see `fakes.functions`.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from fakes.clock import START, VirtualClock
from fakes.cloudwatch import FakeCloudWatch
from fakes.functions import FakeLambda
from fakes.sqs import FakeSqs
from fakes.targets import FakeFirehose, FakeSns, FakeStates
from tests.contract.conftest import Aws, code_of

REGION, ACCOUNT = "us-east-1", "123456789012"
FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:orders"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:orders"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"


@dataclass
class Targets:
    """The clients under test, each with one target named "orders"."""

    lambdas: Any
    firehose: Any
    states: Any
    sns: Any
    sqs: Any


@pytest.fixture(params=["fake", "moto"])
def targets(request: pytest.FixtureRequest) -> Iterator[Targets]:
    if request.param == "fake":
        yield fakes()
        return
    for marker in request.node.iter_markers("moto_differs"):
        request.applymarker(pytest.mark.xfail(strict=True, reason=marker.args[0]))
    session: boto3.Session = request.getfixturevalue("boto3_session")
    with mock_aws(config={"lambda": {"use_docker": False}}):
        yield of_moto(session)


def fakes() -> Targets:
    clock = VirtualClock()
    sqs = FakeSqs(clock, Random(7), count_lag_seconds=0)
    lambdas = FakeLambda(clock, sqs, Random(7), prefix=FUNCTION.removesuffix("orders"))
    lambdas.add("orders", print)
    sqs.create_queue(QueueName="orders")
    return Targets(
        lambdas,
        FakeFirehose(Random(7), ["orders"]),
        FakeStates([MACHINE]),
        FakeSns(Random(7), [TOPIC]),
        sqs,
    )


def of_moto(session: boto3.Session) -> Targets:
    iam: Any = session.client("iam")
    role = iam.create_role(RoleName="orders", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    lambdas, firehose, states, sns, sqs = (
        session.client(one) for one in ("lambda", "firehose", "stepfunctions", "sns", "sqs")
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code.py", "def handle(event, context): pass")
    lambdas.create_function(
        FunctionName="orders",
        Runtime="python3.13",
        Role=role,
        Handler="code.handle",
        Code={"ZipFile": code.getvalue()},
    )
    session.client("s3").create_bucket(Bucket="orders")
    place = {"RoleARN": role, "BucketARN": "arn:aws:s3:::orders"}
    firehose.create_delivery_stream(
        DeliveryStreamName="orders", ExtendedS3DestinationConfiguration=place
    )
    states.create_state_machine(name="orders", roleArn=role, definition=json.dumps(PASS))
    sns.create_topic(Name="orders")
    sqs.create_queue(QueueName="orders")
    return Targets(lambdas, firehose, states, sns, sqs)


PASS = {"StartAt": "Wait", "States": {"Wait": {"Type": "Pass", "End": True}}}


def test_an_asynchronous_invocation_is_accepted_under_a_request_id(targets: Targets) -> None:
    answer = targets.lambdas.invoke(FunctionName=FUNCTION, InvocationType="Event", Payload=b"{}")

    assert answer["StatusCode"] == 202
    assert answer["ResponseMetadata"]["RequestId"]


@pytest.mark.moto_differs("[botocore Invoke]; moto without Docker answers for any function")
def test_a_function_that_is_not_there_is_not_found(targets: Targets) -> None:
    with pytest.raises(targets.lambdas.exceptions.ResourceNotFoundException) as error:
        targets.lambdas.invoke(FunctionName=f"{FUNCTION}2", InvocationType="Event")

    assert code_of(error) == "ResourceNotFoundException"


@pytest.mark.moto_differs("Lambda refuses what is no JSON [botocore Invoke]; moto does not look")
def test_an_event_that_is_no_json_is_refused(targets: Targets) -> None:
    with pytest.raises(ClientError) as error:
        targets.lambdas.invoke(FunctionName=FUNCTION, InvocationType="Event", Payload=b"no JSON")

    assert code_of(error) == "InvalidRequestContentException"


def test_a_function_tells_its_time_out_and_none_of_retries_that_are_not_configured(
    targets: Targets,
) -> None:
    told = targets.lambdas.get_function_configuration(FunctionName=FUNCTION)
    with pytest.raises(ClientError) as error:
        targets.lambdas.get_function_event_invoke_config(FunctionName=FUNCTION)

    assert told["Timeout"] == 3
    assert code_of(error) == "ResourceNotFoundException"


def test_a_stream_takes_records_and_another_is_not_found(targets: Targets) -> None:
    record = {"Data": b"an order"}

    assert targets.firehose.put_record(DeliveryStreamName="orders", Record=record)["RecordId"]
    with pytest.raises(ClientError) as error:
        targets.firehose.put_record(DeliveryStreamName="others", Record=record)
    assert code_of(error) == "ResourceNotFoundException"


def test_a_name_stands_for_one_execution(targets: Targets) -> None:
    def start(text: str) -> Any:
        return targets.states.start_execution(stateMachineArn=MACHINE, name="a", input=text)

    first = start('{"order": 1}')

    assert first["executionArn"] == f"arn:aws:states:{REGION}:{ACCOUNT}:execution:orders:a"
    with pytest.raises(ClientError) as error:
        start('{"order": 2}')
    assert code_of(error) == "ExecutionAlreadyExists"


@pytest.mark.parametrize(
    ("arn", "text", "code"),
    [
        (f"{MACHINE}2", "{}", "StateMachineDoesNotExist"),
        (MACHINE, "no JSON", "InvalidExecutionInput"),
    ],
)
def test_executions_that_are_not_started(targets: Targets, arn: str, text: str, code: str) -> None:
    with pytest.raises(ClientError) as error:
        targets.states.start_execution(stateMachineArn=arn, name="a", input=text)

    assert code_of(error) == code


def test_a_topic_publishes_and_another_is_not_found(targets: Targets) -> None:
    assert targets.sns.publish(TopicArn=TOPIC, Message="an order")["MessageId"]
    with pytest.raises(ClientError) as error:
        targets.sns.publish(TopicArn=f"{TOPIC}2", Message="an order")
    assert code_of(error) == "NotFound"


def test_a_message_that_is_too_long_is_an_invalid_parameter(targets: Targets) -> None:
    with pytest.raises(ClientError) as error:
        targets.sns.publish(TopicArn=TOPIC, Message="x" * 262_145)

    assert code_of(error) == "InvalidParameter"


def test_a_queue_says_its_url_by_name_and_account(targets: Targets) -> None:
    url = targets.sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    account = url.split("/")[-2]

    asked = targets.sqs.get_queue_url(QueueName="orders", QueueOwnerAWSAccountId=account)

    assert asked["QueueUrl"] == url


def test_while_its_outage_lasts_a_fake_refuses_every_call() -> None:
    given = fakes()
    calls = [
        (given.lambdas, "invoke", {"FunctionName": FUNCTION, "InvocationType": "Event"}),
        (given.firehose, "put_record", {"DeliveryStreamName": "orders", "Record": {"Data": b""}}),
        (given.states, "start_execution", {"stateMachineArn": MACHINE, "name": "a"}),
        (given.sns, "publish", {"TopicArn": TOPIC, "Message": "m"}),
    ]

    for client, call, request in calls:
        client.outage = "ServiceUnavailable"
        with pytest.raises(ClientError) as error:
            getattr(client, call)(**request)  # type: ignore[arg-type]
        assert code_of(error) == "ServiceUnavailable"


class TestRetries:
    """Lambda Developer Guide, error handling for asynchronous invocation."""

    @pytest.fixture(autouse=True)
    def scene(self, fake: Aws) -> None:
        self.aws = fake
        self.clock = VirtualClock()
        sqs = FakeSqs(self.clock, Random(7), count_lag_seconds=0)
        self.aws = Aws(sqs, None, self.clock.advance)
        self.lambdas = FakeLambda(self.clock, sqs, Random(7))
        self.dlq = self.aws.queue("orders-dlq")

    def invoke(self) -> str:
        answer = self.lambdas.invoke(
            FunctionName="orders", InvocationType="Event", Payload=b'{"order": 1}'
        )
        return str(answer["ResponseMetadata"]["RequestId"])

    def pass_time(self, *seconds: float) -> list[int]:
        """How many letters there were after each of these waits."""
        letters = []
        for one in seconds:
            self.clock.advance(one)
            self.lambdas.run_due()
            letters.append(sum(self.aws.counts(self.dlq)))
        return letters

    def test_the_second_try_comes_after_a_minute_the_third_after_two_more(self) -> None:
        function = self.lambdas.add("orders", fail, dlq_url=self.dlq)
        request_id = self.invoke()

        assert self.pass_time(0, 59, 1, 119, 1) == [0, 0, 0, 0, 1]
        (letter,) = self.aws.receive(self.dlq)
        attributes = letter["MessageAttributes"]
        assert len(function.calls) == 3
        assert letter["Body"] == '{"order": 1}'
        assert attributes["RequestID"] == {"DataType": "String", "StringValue": request_id}
        assert attributes["ErrorCode"] == {"DataType": "Number", "StringValue": "200"}
        assert attributes["ErrorMessage"]["StringValue"] == "boom"
        assert self.lambdas.held == 0

    @pytest.mark.parametrize(("retries", "tries"), [(0, 1), (1, 2), (2, 3)])
    def test_retries_are_as_many_as_are_configured(self, retries: int, tries: int) -> None:
        function = self.lambdas.add("orders", fail, retries=retries)
        self.invoke()

        self.pass_time(0, 60, 120)

        assert len(function.calls) == tries
        answer = self.lambdas.get_function_event_invoke_config(FunctionName="orders")
        assert answer["MaximumRetryAttempts"] == retries

    def test_what_succeeds_leaves_no_letter(self) -> None:
        function = self.lambdas.add("orders", len, dlq_url=self.dlq)
        self.invoke()

        assert self.pass_time(0, 300) == [0, 0]
        assert len(function.calls) == 1

    def test_a_destination_gets_a_record_without_attributes(self) -> None:
        self.lambdas.add("orders", fail, destination_url=self.dlq)
        request_id = self.invoke()

        self.pass_time(0, 60, 120)

        (letter,) = self.aws.receive(self.dlq)
        told = json.loads(letter["Body"])
        assert "MessageAttributes" not in letter
        assert told["requestContext"]["requestId"] == request_id
        assert told["requestContext"]["approximateInvokeCount"] == 3
        assert told["requestPayload"] == {"order": 1}

    def test_cloudwatch_counts_by_the_minute_and_says_nothing_of_others(self) -> None:
        self.lambdas.add("orders", fail)
        self.invoke()
        self.pass_time(0, 60, 120, 120)
        cloudwatch = FakeCloudWatch(self.clock, self.aws.sqs, self.lambdas)
        names = ["AsyncEventsReceived", "Invocations", "Errors", "AsyncEventsDropped", "Throttles"]

        results = cloudwatch.get_metric_data(
            MetricDataQueries=[query(name) for name in names],
            StartTime=START,
            EndTime=START + timedelta(minutes=5),
        )["MetricDataResults"]

        told = {
            one["Id"]: [int((at - START) / timedelta(minutes=1)) for at in one["Timestamps"]]
            for one in results
        }
        assert told == {
            "asynceventsreceived": [0],
            "invocations": [1, 0],
            "errors": [1, 0],
            "asynceventsdropped": [],
            "throttles": [],
        }


def fail(_: bytes) -> None:
    raise RuntimeError("boom")


def query(name: str) -> dict[str, Any]:
    metric = {
        "Namespace": "AWS/Lambda",
        "MetricName": name,
        "Dimensions": [{"Name": "FunctionName", "Value": "orders"}],
    }
    return {"Id": name.lower(), "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
