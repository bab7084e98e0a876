"""The Lambda handler itself: cold start from the environment, one pass, a report as a JSON object."""

import importlib
import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from redrive.core.report import Report
from redrive.errors import SettingsError
from redrive.settings import Settings
from tests.integration.conftest import Account


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the handler asks of a Lambda context."""

    function_name: str = "redrive"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:redrive"
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 240_000


class Function:
    """The deployed function, cold."""

    def __init__(self, account: Account, environment: pytest.MonkeyPatch, **settings: str) -> None:
        variables = account.deployment.to_env() | Settings().to_env()
        for name, value in (variables | settings).items():
            environment.setenv(name, value)
        self._module: Any = importlib.import_module("redrive.handler")
        self._stream = io.StringIO()
        environment.setattr(sys, "stdout", self._stream)

    def invoke(self, event: object = None) -> Any:
        return self._module.lambda_handler(event, Context())

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        return [line for line in lines if "_aws" not in line]  # those are metrics


def test_an_invocation_redrives_a_letter_and_returns_its_report(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    account.dead_letters("hello")
    function = Function(account, environment)

    report = function.invoke({})

    assert json.loads(json.dumps(report)) == report
    assert report.keys() == Report(queue="", mode="").to_json().keys()
    assert (report["queue"], report["outcome"], report["redriven"]) == ("orders", "DONE", 1)
    account.advance(seconds=60)
    assert [message["Body"] for message in account.consumer_works()] == ["hello"]


@pytest.mark.parametrize("event", [None, {}, [], "anything", {"queue": "another"}], ids=repr)
def test_the_event_is_ignored(
    account: Account, environment: pytest.MonkeyPatch, event: object
) -> None:
    report = Function(account, environment).invoke(event)

    assert (report["queue"], report["outcome"]) == ("orders", "IDLE")


def test_the_log_tells_every_step_by_name_and_never_a_body_or_an_attribute(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    attribute = {"card": {"DataType": "String", "StringValue": "4111"}}
    account.dead_letters("the body 4111", MessageAttributes=attribute)
    function = Function(account, environment)

    function.invoke()

    assert "4111" not in json.dumps(function.log)
    assert [line["message"] for line in function.log] == ["letter.redriven", "pass.finished"]
    assert function.log[0]["function_request_id"] == "request"
    assert function.log[1]["redriven"] == 1


def test_a_missing_table_is_a_failed_report_and_no_error_of_the_function(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    account.dead_letters("hello")
    account.dynamodb.delete_table(TableName=account.deployment.table_name)

    report = Function(account, environment).invoke()

    assert report["outcome"] == "FAILED"
    assert report["faults"] == {"GetItem:ResourceNotFoundException": 1}
    assert account.counts(account.deployment.dlq_url) == (1, 0)


def test_the_mode_of_the_environment_is_the_mode_of_the_pass(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    account.dead_letters("hello")

    report = Function(account, environment, MODE="paused").invoke()

    assert (report["mode"], report["outcome"]) == ("paused", "PAUSED")
    assert sum(account.counts(account.deployment.dlq_url)) == 1


def test_a_cold_start_with_a_wrong_setting_fails_and_names_it(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match="max_attempts: saw 'many'"):
        Function(account, environment, MAX_ATTEMPTS="many")
