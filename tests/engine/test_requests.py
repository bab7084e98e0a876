"""The requests that boto3 makes of a pass: how many, in which order, and whether botocore finds them valid."""

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bench.engine_policies import bare_calls
from fakes.stand_in import StandIn
from smart_redriver.engine.aws import clients
from smart_redriver.engine.report import Outcome
from tests.engine.standing_in import pass_over

#: Calls by the letter: a tenth each to receive, send and delete, a hundredth to read of the ledger and a
#: twenty-fifth to write; the pass's own calls, and batches that are not full at the end of a round, are the rest.
MOST_CALLS = 0.36

#: Python's function calls for a letter's three requests alone, as a share of those that a pass makes for it. Unlike a
#: speed it is the same on each machine. A pass that falls short by a tenth has become slower, and says so here.
BARE_SHARE = 0.54


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "example")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.mark.parametrize("workers", [1, clients.WORKERS])
@pytest.mark.parametrize("letters", [1_000, 3_000])
def test_many_letters_take_no_more_than_036_calls_each_in_the_right_order(
    letters: int, workers: int
) -> None:
    aws = StandIn(letters)

    report = pass_over(aws, letters, workers=workers)

    assert (report.redriven, aws.done, aws.seen.violations) == (letters, letters, 0)
    assert aws.seen.calls.total() <= MOST_CALLS * letters
    assert aws.seen.calls["BatchGetItem"] == letters // 100
    assert aws.seen.calls["BatchWriteItem"] == letters // 25
    assert aws.seen.calls["PutItem"] == 3, "the lease, and the circuit before and after"


def test_botocore_finds_nothing_wrong_with_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = clients.CONFIG.merge(type(clients.CONFIG)(parameter_validation=True))
    monkeypatch.setattr(clients, "CONFIG", checked)

    assert pass_over(StandIn(200), 200).redriven == 200


def test_a_pass_over_an_empty_dlq_makes_three_calls() -> None:
    aws = StandIn(0)

    report = pass_over(aws, 1)

    assert report.outcome is Outcome.IDLE
    assert aws.seen.calls == {"GetItem": 1, "GetQueueAttributes": 2}


def test_no_more_calls_wait_at_once_than_the_pool_has_connections() -> None:
    assert clients.CONFIG.max_pool_connections >= clients.WORKERS  # type: ignore[attr-defined]


def test_a_pass_does_not_get_slower_against_its_bare_requests() -> None:
    ours = _function_calls(lambda aws, letters: pass_over(aws, letters, workers=1))
    bare = _function_calls(lambda aws, letters: bare_calls(aws, letters, threads=1))

    assert bare / ours >= 0.9 * BARE_SHARE, f"{bare:,.0f} calls a letter of {ours:,.0f}"


def _function_calls(redrive: Callable[[StandIn, int], object]) -> float:
    """Function calls of a letter, without those of the set-up."""
    few, many = 500, 1_500
    redrive(StandIn(few), few)  # what is made once, as botocore's models are, is not a letter's
    return (_counted(redrive, many) - _counted(redrive, few)) / (many - few)


def _counted(redrive: Callable[[StandIn, int], object], letters: int) -> int:
    aws, count = StandIn(letters), 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        redrive(aws, letters)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return count
