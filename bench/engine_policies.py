"""Ways to redrive what the stand-in for AWS holds, each by the real requests of real boto3 clients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from aws_lambda_powertools import Logger

from fakes.stand_in import BODY, DEPLOYMENT, DLQ, SOURCE, URL, StandIn
from simulator.rivals import EventSource, PublishedPattern
from smart_redriver.engine.aws import clients
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model import breaker
from smart_redriver.engine.passes.ports import Journal
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Report
from smart_redriver.engine.wiring import Queues, make_tools

#: The log's own work, write calls included; what Lambda does with the lines is not the function's time.
_NOWHERE = open(os.devnull, "w")  # noqa: PTH123, SIM115 - a device, for good

#: As the function's.
_logger = Logger(service="bench", stream=_NOWHERE, json_deserializer=str)

#: Threads of bare calls, to see what botocore itself allows.
BARE_THREADS = 32


def now() -> datetime:
    """The time of the machine: the stand-in's latency is real, too."""
    return datetime.now(UTC)


def smart_redriver(aws: StandIn, letters: int, workers: int = clients.WORKERS) -> Report:
    """One pass of ours over all letters of the stand-in."""
    ours = OurPass(DEPLOYMENT, letters)
    aws.serve(ours.sqs, ours.dynamodb)
    ours.open_window()
    aws.seen.forget()
    return ours.run(journal=_log, workers=workers)


def _log(event: str, /, **fields: Any) -> None:
    _logger.info(event, **fields)


class OurPass:
    """One pass over `letters` letters, with room for them all and no pace, over the clients that the function has."""

    def __init__(
        self, deployment: Deployment, letters: int, settings: Settings | None = None
    ) -> None:
        self.sqs, self.dynamodb = clients.sqs_client(), clients.dynamodb_client()
        self._deployment = deployment
        self._letters = letters
        self._settings = replace(settings or Settings(), max_window=letters, max_rate=0.0)

    def open_window(self) -> None:
        """Let the pass through with all letters."""
        name = self._deployment.queue_name
        circuit = breaker.new_circuit(name, self._settings, now())
        store = StateStore(self.dynamodb, self._deployment.table_name, name)
        store.save_circuit(replace(circuit, window=self._letters))

    def run(self, *, journal: Journal, workers: int = clients.WORKERS) -> Report:
        """The pass."""
        tools = make_tools(
            Queues(
                self._deployment,
                sqs=self.sqs,
                cloudwatch=clients.OnFirstUse(clients.cloudwatch_client),
            ),
            self._deployment,
            dynamodb=self.dynamodb,
            journal=journal,
            clock=now,
            rng=Random(0),
            owner="bench",
            workers=workers,
        )
        return run_pass(tools, self._settings, deadline=now() + timedelta(hours=1))


@dataclass(frozen=True, kw_only=True)
class _Account:
    """An account as a rival sees the simulated world, over real clients."""

    sqs: Any
    dynamodb: Any

    @property
    def clock(self) -> Any:
        """A clock with `now`."""
        return type("Clock", (), {"now": staticmethod(now)})

    def url(self, queue: str) -> str:
        """The queue's URL."""
        return URL + queue

    def let_dead_letters_end_in(self, *_: Any, **__: Any) -> None:
        """The stand-in's queues need no redrive policy."""


def published_pattern(aws: StandIn, letters: int) -> None:
    """The published pattern, pass after pass until the DLQ is empty."""
    policy = PublishedPattern(_rival_account(aws))  # type: ignore[arg-type]
    aws.seen.forget()
    while aws.done < letters:
        policy.tick()


def event_source(aws: StandIn, letters: int) -> None:
    """A function with the DLQ as its event source. Its poller deletes in batches, unlike the simulated one."""
    policy = EventSource(_rival_account(aws))  # type: ignore[arg-type]
    aws.seen.forget()
    while aws.done < letters:
        policy.tick()
    aws.seen.calls["DeleteMessageBatch"] = -(-aws.seen.calls.pop("DeleteMessage") // 10)


def bare_calls(aws: StandIn, letters: int, threads: int = BARE_THREADS) -> None:
    """The limit: receive, send and delete in batches of ten, and nothing else; 0.3 calls a letter."""
    aws.checks_order = False
    sqs = clients.sqs_client()
    aws.serve(sqs)
    aws.seen.forget()

    def work(count: int) -> None:
        for _ in range(count):
            messages = sqs.receive_message(
                QueueUrl=URL + DLQ,
                MaxNumberOfMessages=10,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )["Messages"]
            sqs.send_message_batch(QueueUrl=URL + SOURCE, Entries=list(_bare_entries(messages)))
            sqs.delete_message_batch(
                QueueUrl=URL + DLQ,
                Entries=[
                    {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]}
                    for n, message in enumerate(messages)
                ],
            )

    with ThreadPoolExecutor(threads) as pool:
        share, rest = divmod(letters // 10, threads)
        for done in [pool.submit(work, share + (n < rest)) for n in range(threads)]:
            done.result()


def _bare_entries(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for n, message in enumerate(messages):
        metadata = {"DataType": "String", "StringValue": f'{{"id":"{message["MessageId"]}"}}'}
        attributes = message["MessageAttributes"] | {"RedriveTrail": metadata}
        yield {"Id": str(n), "MessageBody": BODY, "MessageAttributes": attributes}


def _rival_account(aws: StandIn) -> _Account:
    aws.checks_order = False
    account = _Account(sqs=clients.sqs_client(), dynamodb=clients.dynamodb_client())
    aws.serve(account.sqs, account.dynamodb)
    return account


POLICIES: dict[str, Callable[[StandIn, int], object]] = {
    "smart re-driver": smart_redriver,
    "published pattern": published_pattern,
    "event source": event_source,
    "bare calls": bare_calls,
}
