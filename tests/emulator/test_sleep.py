"""Functions that sleep: they sleep in virtual time, and nobody has to wait for them in real time."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from emulator.process import LocalAws

#: How often a log is looked into, at most.
_LOOKS = 2_000
_STEP = 30.0
#: Sends the moments at which it woke, and its process id, to the queue that the event names.
_SLEEPS = """
    import json, os, time
    import boto3

    sqs = boto3.client("sqs")

    def handler(event, context):
        for _ in range(event["times"]):
            said = {"pid": os.getpid(), "at": time.time(), "left": context.get_remaining_time_in_millis()}
            sqs.send_message(QueueUrl=event["url"], MessageBody=json.dumps(said))
            time.sleep(event["seconds"])
        return time.time()
"""
_SAYS_WHEN = """
    import json, os, time
    import boto3

    sqs = boto3.client("sqs")

    def handler(event, context):
        for record in event["Records"]:
            said = json.dumps({"consumed": time.time()})
            sqs.send_message(QueueUrl=record["body"], MessageBody=said)
"""

Said = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def url(make_queue: Callable[..., str]) -> str:
    """Where functions say what they do."""
    return make_queue()


@pytest.fixture
def said(sqs: Any, url: str) -> Said:
    """What functions have said, from the first, in order."""
    heard: list[dict[str, Any]] = []

    def all_said() -> list[dict[str, Any]]:
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            heard.extend(json.loads(one["Body"]) for one in messages)
            for one in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return sorted(heard, key=lambda one: one.get("at") or one["consumed"])

    return all_said


def _start(functions: Any, function: str, **event: Any) -> None:
    functions.invoke(
        FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode()
    )


def test_a_function_sleeps_in_virtual_time_and_others_work_meanwhile(
    aws: LocalAws,
    sqs: Any,
    functions: Any,
    make_queue: Callable[..., str],
    make_function: Callable[..., str],
    arn_of: Callable[[str], str],
    url: str,
    said: Said,
) -> None:
    work = make_queue()
    consumer = make_function(_SAYS_WHEN)
    functions.create_event_source_mapping(FunctionName=consumer, EventSourceArn=arn_of(work))
    sleeper = make_function(_SLEEPS, Timeout=600)
    aws.settle()
    _start(functions, sleeper, url=url, times=100, seconds=5)
    aws.settle()
    sqs.send_message(QueueUrl=work, MessageBody=url, DelaySeconds=12)

    aws.pass_time(2 * _STEP, step=_STEP)

    woke = [one["at"] for one in said() if "at" in one]
    (consumed,) = [one["consumed"] for one in said() if "consumed" in one]
    gaps = [after - before for before, after in pairwise(woke)]
    assert len(gaps) >= 2
    assert all(5 <= gap < _STEP for gap in gaps)  # no jump went past a wake-up
    assert woke[0] + 12 <= consumed < woke[-1]
    assert woke[-1] + 5 >= aws.clock.now() - _STEP  # it sleeps on, and nobody waits for it


def test_a_function_that_sleeps_loses_the_time_that_it_sleeps(
    aws: LocalAws, functions: Any, make_function: Callable[..., str], url: str, said: Said
) -> None:
    sleeper = make_function(_SLEEPS, Timeout=600)
    _start(functions, sleeper, url=url, times=3, seconds=100)

    aws.pass_time(400)

    first, *_, last = said()
    assert first["left"] - last["left"] == pytest.approx(1000 * (last["at"] - first["at"]), abs=10)
    assert last["at"] - first["at"] >= 200


def test_what_a_function_logs_is_to_be_read_while_it_sleeps(
    aws: LocalAws, functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function(
        """
        import os, time

        def handler(event, context):
            for number in range(3):
                print(f"{number} {os.environ['AWS_LAMBDA_LOG_STREAM_NAME']}")
                time.sleep(100)
            raise ValueError("at last")
        """,
        Timeout=600,
    )
    functions.put_function_event_invoke_config(FunctionName=function, MaximumRetryAttempts=0)
    began = aws.clock.now()
    _start(functions, function)
    aws.pass_time(150)

    in_its_sleep = _log(aws, function, lines=2)
    aws.pass_time(200)
    in_the_end = _log(aws, function, lines=4)

    assert [words[0] for words, *_ in in_its_sleep] == ["0", "1"]
    assert all(words[1] == stream for words, stream, _ in in_its_sleep)
    first, second = (at for *_, at in in_its_sleep)
    # The log has whole milliseconds, and is read some time after the function wrote.
    assert began - 0.001 <= first < began + 100 <= second + 0.001
    said = [" ".join(words) for words, *_ in in_the_end]
    assert [line[0] for line in said if line[0].isdigit()] == ["0", "1", "2"]
    assert "ValueError: at last" in said


def _log(aws: LocalAws, function: str, *, lines: int) -> list[tuple[list[str], str, float]]:
    """So many lines of a function's log, or more, as words, each with its stream and when it came.

    A function that has fallen asleep has written them; that they are read nobody waits for, as on AWS.
    """
    logs = aws.client("logs")
    for _ in range(_LOOKS):
        with suppress(logs.exceptions.ResourceNotFoundException):
            answer = logs.filter_log_events(logGroupName=f"/aws/lambda/{function}")
            found = [one for one in answer["events"] if one["message"].strip()]
            if len(found) >= lines:
                return [
                    (one["message"].split(), one["logStreamName"], one["timestamp"] / 1000)
                    for one in found
                ]
    raise AssertionError(f"no {lines} lines in the log of {function}")


def test_a_sleep_ends_by_itself_when_nobody_moves_the_clock(
    functions: Any, make_function: Callable[..., str], url: str, said: Said
) -> None:
    sleeper = make_function(_SLEEPS)
    event = json.dumps({"url": url, "times": 1, "seconds": 1}).encode()

    answer = functions.invoke(FunctionName=sleeper, Payload=event)

    ended = json.loads(answer["Payload"].read())
    assert ended - said()[0]["at"] >= 1


def test_a_function_that_is_killed_in_its_sleep_holds_nobody_up(
    aws: LocalAws, functions: Any, make_function: Callable[..., str], url: str, said: Said
) -> None:
    doomed = make_function(_SLEEPS, Timeout=600)
    functions.put_function_event_invoke_config(FunctionName=doomed, MaximumRetryAttempts=0)
    _start(functions, doomed, url=url, times=2, seconds=300)
    aws.settle()
    (before,) = said()

    os.kill(before["pid"], signal.SIGKILL)
    aws.pass_time(200)
    began = aws.clock.now()
    _start(functions, make_function(_SLEEPS), url=url, times=2, seconds=5)
    aws.pass_time(_STEP)

    # What it announced lies about still, and nobody heeds it.
    _, first, second = said()
    assert began <= first["at"] <= second["at"] - 5
    assert second["at"] < before["at"] + 300


def test_two_that_sleep_wake_in_their_order(
    aws: LocalAws, functions: Any, make_function: Callable[..., str], url: str, said: Said
) -> None:
    long, short = make_function(_SLEEPS, Timeout=600), make_function(_SLEEPS, Timeout=600)
    _start(functions, long, url=url, times=2, seconds=50)
    _start(functions, short, url=url, times=3, seconds=20)
    aws.settle()

    aws.pass_time(90)

    pids = [one["pid"] for one in said()]
    first_of_long, last_of_long = (i for i, pid in enumerate(pids) if pids.count(pid) == 2)
    assert (first_of_long <= 1, last_of_long) == (True, 4)
