# ruff: noqa: T201 - what it measures is what it prints
"""Measures the `redrive` command on the local AWS: `PYTHONPATH=lambdas:. python -m tests.e2e.oncall_figures`.

It prints what docs/benchmarks/README.md says: how long it takes to start, to list and to replay many parked letters. It
also prints its peak memory, and how fast the local AWS itself is at the same calls, made bare.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.parked import BODY, park
from demo.stack import DeployedStack
from emulator import cdk
from emulator.environments import ROOT
from emulator.process import LocalAws
from tests.e2e.synthesized import deploy

_STARTS = 9
_FEW, _MANY = 1_000, 10_000
_BARE = 2_000
_WORKERS = 8
_CALL = 10


def main() -> None:
    """Deploy, measure, print."""
    with LocalAws() as aws:
        cdk.prepare(aws)
        stack = deploy(aws, schedule_minutes="1440")
        starts(stack)
        for count in (_FEW, _MANY):
            park(stack, count)
            report(stack, f"parked, of {count:,}", "parked")
            seconds = report(
                stack, f"replay --all of {count:,}", "replay", "--all", "--yes", "--rate", "0"
            )
            assert stack.depths().source == count, stack.depths()
            print(f"  {count / seconds:,.0f} letters/s, start included")
            empty(stack)
        bare(stack)


def starts(stack: DeployedStack) -> None:
    """How long the command takes when there is little to do."""
    for arguments in (("--help",), ("status",)):
        times = [run(stack, *arguments)[0] for _ in range(_STARTS)]
        median = statistics.median(times)
        print(
            f"redrive {arguments[0]}: median {median:.2f} s of {_STARTS}, best {min(times):.2f} s"
        )


def report(stack: DeployedStack, what: str, *arguments: str) -> float:
    """Run once; seconds."""
    seconds, peak = run(stack, *arguments)
    print(f"redrive {what}: {seconds:.2f} s, peak memory {peak} MB")
    return seconds


def run(stack: DeployedStack, *arguments: str) -> tuple[float, int]:
    """Wall time in seconds, and the peak of the process's memory in MB."""
    environment = stack.aws.environment() | {"PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}"}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "smart_redriver.oncall", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return time.perf_counter() - started, usage.ru_maxrss // 1024


def bare(stack: DeployedStack) -> None:
    """The ceiling: receive, send and delete, with nothing in between, by as many workers."""
    bodies = [BODY % number for number in range(_BARE)]
    for start in range(0, _BARE, _CALL):
        send(stack, stack.parking_lot_url, bodies[start : start + _CALL])
    started = time.perf_counter()
    with ThreadPoolExecutor(_WORKERS) as pool:
        moved = sum(pool.map(lambda _: move(stack), range(_WORKERS)))
    seconds = time.perf_counter() - started
    assert moved == _BARE, moved
    print(f"bare receive, send, delete: {moved / seconds:,.0f} letters/s, no ledger, boto3 itself")


def move(stack: DeployedStack) -> int:
    """Move letters from parking lot to source queue until there are none; how many."""
    moved = 0
    while messages := receive(stack):
        send(stack, stack.source_url, [one["Body"] for one in messages])
        handles = [
            {"Id": str(index), "ReceiptHandle": one["ReceiptHandle"]}
            for index, one in enumerate(messages)
        ]
        stack.sqs.delete_message_batch(QueueUrl=stack.parking_lot_url, Entries=handles)
        moved += len(messages)
    return moved


def receive(stack: DeployedStack) -> list[dict[str, Any]]:
    answer = stack.sqs.receive_message(
        QueueUrl=stack.parking_lot_url, MaxNumberOfMessages=_CALL, WaitTimeSeconds=0
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def send(stack: DeployedStack, url: str, bodies: Sequence[str]) -> list[str]:
    """Send one call of messages; their ids."""
    entries = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
    answer = stack.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    return [one["MessageId"] for one in answer["Successful"]]


def empty(stack: DeployedStack) -> None:
    """Purge the source queue, which SQS allows once a minute."""
    stack.aws.pass_time(61)
    stack.sqs.purge_queue(QueueUrl=stack.source_url)


if __name__ == "__main__":
    main()
