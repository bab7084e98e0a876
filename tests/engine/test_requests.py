"""The requests that boto3 makes of a pass: how many, in which order, and whether botocore finds them valid."""

import pytest

from bench.engine_policies import smart_redriver
from fakes.stand_in import StandIn
from redrive.aws import clients
from redrive.core.report import Outcome

LETTERS = 1_000


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "example")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


def test_a_thousand_letters_take_no_more_than_036_calls_each_in_the_right_order() -> None:
    aws = StandIn(LETTERS)

    report = smart_redriver(aws, LETTERS)

    assert (report.redriven, aws.done, aws.seen.violations) == (LETTERS, LETTERS, 0)
    assert aws.seen.calls.total() <= 0.36 * LETTERS
    assert aws.seen.calls["BatchGetItem"] == LETTERS // 100
    assert aws.seen.calls["BatchWriteItem"] == LETTERS // 25


def test_botocore_finds_nothing_wrong_with_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = clients.CONFIG.merge(type(clients.CONFIG)(parameter_validation=True))
    monkeypatch.setattr(clients, "CONFIG", checked)

    assert smart_redriver(StandIn(200), 200).redriven == 200


def test_a_pass_over_an_empty_dlq_makes_three_calls() -> None:
    aws = StandIn(0)

    report = smart_redriver(aws, 1)

    assert report.outcome is Outcome.IDLE
    assert aws.seen.calls == {"GetItem": 1, "GetQueueAttributes": 2}


def test_no_more_calls_wait_at_once_than_the_pool_has_connections() -> None:
    assert clients.CONFIG.max_pool_connections >= clients.WORKERS
