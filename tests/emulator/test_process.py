"""Starting, standing in between, and permissions: emulators of their own."""

import io
import json
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from emulator.driving import LocalAwsError
from emulator.process import LocalAws

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
_SENDS_THEN_RECEIVES = """
import boto3
def handler(event, context):
    sqs = boto3.client("sqs")
    entries = [{"Id": "a", "MessageBody": "x"}]
    sent = sqs.send_message_batch(QueueUrl=event["url"], Entries=entries)
    sqs.list_message_move_tasks(SourceArn=event["arn"])
    try:
        sqs.receive_message(QueueUrl=event["url"])
    except sqs.exceptions.ClientError as fault:
        return [len(sent["Successful"]), fault.response["Error"]["Code"]]
"""


def test_a_function_may_do_what_its_role_allows_and_no_more_even_hours_later() -> None:
    with LocalAws(enforce_iam=True) as aws:
        sqs, iam, functions = aws.client("sqs"), aws.client("iam"), aws.client("lambda")
        url = sqs.create_queue(QueueName="q")["QueueUrl"]
        arn = "arn:aws:sqs:us-east-1:000000000000:q"
        role = iam.create_role(RoleName="sender", AssumeRolePolicyDocument=json.dumps(_TRUST))
        statement = {
            "Effect": "Allow",
            "Action": ["sqs:SendMessage", "sqs:ListMessageMoveTasks"],
            "Resource": arn,
        }
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        iam.put_role_policy(RoleName="sender", PolicyName="send", PolicyDocument=json.dumps(policy))
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("index.py", _SENDS_THEN_RECEIVES)
        functions.create_function(
            FunctionName="sender",
            Runtime="python3.13",
            Handler="index.handler",
            Role=role["Role"]["Arn"],
            Code={"ZipFile": code.getvalue()},
            Timeout=20,
        )

        def outcome() -> Any:
            event = json.dumps({"url": url, "arn": arn}).encode()
            answer = functions.invoke(FunctionName="sender", Payload=event)
            return json.loads(answer["Payload"].read())

        at_first = outcome()
        aws.pass_time(20 * 3600, step=600)

        assert at_first == [1, "AccessDenied"]
        assert outcome() == at_first


def test_nothing_is_left_of_an_emulator_that_was_stopped() -> None:
    with LocalAws() as aws:
        work_dir, port, pid = aws.work_dir, aws.port, aws.pid
        os.kill(pid, 0)  # raises if there is no such process

    assert not work_dir.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port))


def test_an_emulator_that_cannot_start_says_why() -> None:
    wrong_environment = Path(sys.executable)  # the development environment has no MiniStack

    with pytest.raises(LocalAwsError, match=r"patches ministack 1\.5\.33, but none is installed"):
        LocalAws(python=wrong_environment).start()


def test_a_running_emulator_is_driven_from_another_process(tmp_path: Path) -> None:
    with LocalAws(work_dir=tmp_path / "work") as aws:
        before, offset = aws.clock.now(), aws.clock.offset
        subprocess.run(
            [sys.executable, "-m", "emulator", "--work-dir", str(aws.work_dir), "advance", "90"],
            check=True,
        )

        # The clock goes on by itself, too, while the process starts: the rest is a jump.
        assert aws.clock.now() - before >= 90
        assert 0 < aws.clock.offset - offset <= 90


def test_functions_may_see_another_endpoint_than_everyone_else(tmp_path: Path) -> None:
    with LocalAws(work_dir=tmp_path, lambda_endpoint_url="http://127.0.0.1:9") as aws:
        assert aws.environment()["AWS_ENDPOINT_URL"] == aws.endpoint_url
        functions = aws.client("lambda")
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr(
                "index.py",
                "import os\ndef handler(event, context): return os.environ['AWS_ENDPOINT_URL']\n",
            )
        functions.create_function(
            FunctionName="looks",
            Runtime="python3.13",
            Handler="index.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": code.getvalue()},
        )

        answer = functions.invoke(FunctionName="looks")

        assert json.loads(answer["Payload"].read()) == "http://127.0.0.1:9"
