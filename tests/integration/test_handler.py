"""The Lambda handler itself: cold start from the environment, one pass, a report as a JSON object."""

import importlib
import io
import json
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import SettingsError
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import Lease, State
from smart_redriver.engine.report import Report
from tests.integration.conftest import FORTNIGHT, Account

#: What the schedule's rule sends.
TICK = {"scheduled": True}


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the handler and Powertools ask of a Lambda context."""

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
        self._module.logger.registered_handler.setStream(self._stream)

    def invoke(self, event: object = None) -> Any:
        return self._module.lambda_handler(event, Context())

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]


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


def test_an_event_that_lambda_runs_twice_at_a_time_is_one_pass(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    """Both have one request id, and a lease is for one of them."""
    function = Function(account, environment)
    taken: list[str] = []
    acquire = StateStore.acquire_lease

    def note(store: StateStore, lease: Lease, now: datetime) -> bool:
        taken.append(lease.owner)
        return acquire(store, lease, now)

    environment.setattr(StateStore, "acquire_lease", note)
    environment.setattr(StateStore, "release_lease", lambda *_: True)

    outcomes = []
    for body in ("hello", "again"):
        account.dead_letters(body)
        outcomes.append(function.invoke({})["outcome"])

    assert outcomes == ["DONE", "LEASE_HELD"]
    assert all(owner.startswith("request/") for owner in taken)


@pytest.mark.parametrize(
    "event", [None, {}, [], "anything", {"queue": "another"}, {"scheduled": False}], ids=repr
)
def test_whoever_invokes_it_gets_a_pass_as_often_as_they_like(
    account: Account, environment: pytest.MonkeyPatch, event: object
) -> None:
    function = Function(account, environment)

    reports = [function.invoke(event) for _ in range(2)]

    assert [(one["queue"], one["outcome"]) for one in reports] == [("orders", "IDLE")] * 2


# Somebody says that the consumer is well.

RECOVERY = {
    "source": "smart-redriver",
    "detail-type": "Recovery",
    "detail": {"recovered": ["payments"], "by": "refunds"},
}


def test_word_of_a_recovery_sends_a_canary_while_the_circuit_is_open_and_else_is_no_pass(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    account.dead_letters("hello")
    function = Function(account, environment, DOWNSTREAM="payments")

    assert function.invoke(RECOVERY) == {"outcome": "NOT_DUE"}
    assert account.circuit is None
    circuit = new_circuit("orders", Settings(), account.now())
    account.store.save_circuit(force(circuit, State.OPEN, "by hand", account.now()))
    assert function.invoke({})["redriven"] == 0
    account.advance(seconds=5)
    report = function.invoke(RECOVERY)

    assert (report["redriven"], report["circuit_after"]) == (1, "HALF_OPEN")
    assert "recovery.heard" in [line["message"] for line in function.log]


def test_a_circuit_that_closes_is_told_to_those_who_share_the_downstream(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    function = Function(account, environment, DOWNSTREAM="payments")
    told: list[tuple[str, str]] = []

    class Neighbours:
        def tell(self, downstream: str, *, by: str) -> None:
            told.append((downstream, by))

    environment.setattr(sys.modules["redrive.handler"], "neighbours", Neighbours())
    report = Report(queue="orders", mode="automatic", look_again_seconds=60)
    states = {"before": "HALF_OPEN", "after": "CLOSED", "states": ["HALF_OPEN", "CLOSED"]}
    report.circuits = [{"queue": "orders", "window": 5, "awaiting_verdict": 0, **states}]
    environment.setattr(
        sys.modules["redrive.handler"], "run_invocation", lambda *_, **__: iter([report])
    )

    function.invoke({})

    assert told == [("payments", "orders, which shares payments,")]


def test_a_circuit_that_somebody_else_wrote_as_documented_is_heeded_and_goes_on(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    account.dead_letters("hello")
    item = {
        "PK": {"S": "CIRCUIT_BREAKER#orders"},
        "State": {"S": "OPEN"},
        "FailureCount": {"N": "3"},
        "SuccessCount": {"N": "0"},
        "LastStateChangeTimestamp": {"S": account.now().isoformat()},
        "LastAttemptTimestamp": {"S": account.now().isoformat()},
    }
    account.dynamodb.put_item(TableName=account.deployment.table_name, Item=item)
    function = Function(account, environment)

    first = function.invoke({})
    account.advance(minutes=30)
    second = function.invoke({})

    assert (first["circuit_after"], first["redriven"]) == ("OPEN", 0)
    assert (second["circuit_after"], second["redriven"]) == ("HALF_OPEN", 1)


# The schedule's ticks, one a minute.


def test_a_tick_looks_at_an_idle_queue_every_five_minutes_and_else_says_when_it_will(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    function = Function(account, environment)

    outcomes = minutely(account, function, 11)

    assert outcomes == (["IDLE"] + ["NOT_DUE"] * 4) * 2 + ["IDLE"]


def test_a_tick_that_is_not_due_calls_nobody_and_tells_when_the_next_look_is(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    function = Function(account, environment)
    function.invoke(TICK)
    account.dynamodb.delete_table(TableName=account.deployment.table_name)
    lines = len(function.log)

    answer = function.invoke(TICK)

    assert answer == {"outcome": "NOT_DUE", "next_look": "2026-01-10T12:05:00Z"}
    assert len(function.log) == lines


def test_while_letters_are_out_each_tick_looks(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    account.dead_letters("hello")
    function = Function(account, environment)

    outcomes = minutely(account, function, 4)

    assert "NOT_DUE" not in outcomes


def test_after_a_pass_that_failed_the_next_tick_looks_again(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    url = account.deployment.parking_lot_url
    account.sqs.delete_queue(QueueUrl=url)
    function = Function(account, environment)
    failed = minutely(account, function, 2)

    account.sqs.create_queue(
        QueueName=url.rpartition("/")[2], Attributes={"MessageRetentionPeriod": FORTNIGHT}
    )
    outcomes = minutely(account, function, 3)

    assert failed == ["FAILED", "FAILED"]
    assert outcomes == ["IDLE", "NOT_DUE", "NOT_DUE"]


def test_a_cold_start_looks_whatever_its_predecessor_found(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    Function(account, environment).invoke(TICK)
    environment.delitem(sys.modules, "redrive.handler")

    assert Function(account, environment).invoke(TICK)["outcome"] == "IDLE"


def minutely(account: Account, function: Function, count: int) -> list[str]:
    """The outcomes of so many ticks."""
    outcomes = []
    for _ in range(count):
        outcomes.append(function.invoke(TICK)["outcome"])
        account.advance(minutes=1)
    return outcomes


def test_the_log_tells_every_step_by_name_and_never_a_body_or_an_attribute(
    account: Account, environment: pytest.MonkeyPatch
) -> None:
    # No random id in the log can have this word, as it could have digits.
    attribute = {"card": {"DataType": "String", "StringValue": "swordfish"}}
    account.dead_letters("the body swordfish", MessageAttributes=attribute)
    function = Function(account, environment)

    function.invoke()

    assert "swordfish" not in json.dumps(function.log)
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
