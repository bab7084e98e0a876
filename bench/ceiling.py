"""Letters a second against the emulator, beside what the emulator answers at best."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

from bench.engine_policies import OurPass
from bench.request import Request
from bench.results import Results, Table
from emulator.process import LocalAws
from fakes.stand_in import DEPLOYMENT, DLQ, PARKING_LOT, SOURCE, TABLE

LETTERS, LETTERS_WHEN_QUICK = 2_000, 200
ENTRIES = 10
#: A second DLQ, for the bare calls.
BARE_DLQ = "orders-dlq-bare"


def bench(request: Request) -> None:
    """Measure both in one run, show, leave."""
    letters = LETTERS_WHEN_QUICK if request.is_quick else LETTERS
    results = Results(name="ceiling", title="A pass against the local AWS")
    with LocalAws() as aws, patch.dict(os.environ, aws.environment()):
        queues = _Queues(aws)
        queues.fill(BARE_DLQ, letters)
        bare = _seconds(lambda: queues.move_bare(letters))
        queues.fill(DLQ, letters)
        ours = _seconds(lambda: _one_pass(queues, letters))
    results.figures |= {"letters": letters, "bare_seconds": bare, "our_seconds": ours}
    results.show(
        request,
        Table(
            title=f"{letters:,} letters through the emulator",
            headings=("what", "letters a second", "of the ceiling"),
            rows=[
                ["bare receive, send, delete, one after the other", f"{letters / bare:,.0f}", ""],
                ["one pass of ours", f"{letters / ours:,.0f}", f"{bare / ours:.0%}"],
            ],
            note="The emulator answers one call at a time: its own work is the limit.",
        ),
    )
    results.leave(request)


class _Queues:
    """The queues and the table of one run."""

    def __init__(self, aws: LocalAws) -> None:
        self._sqs = aws.client("sqs")
        names = (SOURCE, DLQ, BARE_DLQ, PARKING_LOT)
        self.urls = {name: self._sqs.create_queue(QueueName=name)["QueueUrl"] for name in names}
        aws.client("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def fill(self, name: str, letters: int) -> None:
        """Put messages into a queue."""
        for first in range(0, letters, ENTRIES):
            entries = [{"Id": str(n), "MessageBody": f"order {first + n}"} for n in range(ENTRIES)]
            self._sqs.send_message_batch(QueueUrl=self.urls[name], Entries=entries)

    def move_bare(self, letters: int) -> None:
        """The least that moves letters: three calls for ten."""
        moved = 0
        while moved < letters:
            messages = self._sqs.receive_message(
                QueueUrl=self.urls[BARE_DLQ], MaxNumberOfMessages=ENTRIES
            ).get("Messages", [])
            sent = [{"Id": one["MessageId"], "MessageBody": one["Body"]} for one in messages]
            gone = [
                {"Id": one["MessageId"], "ReceiptHandle": one["ReceiptHandle"]} for one in messages
            ]
            self._sqs.send_message_batch(QueueUrl=self.urls[SOURCE], Entries=sent)
            self._sqs.delete_message_batch(QueueUrl=self.urls[BARE_DLQ], Entries=gone)
            moved += len(messages)


def _one_pass(queues: _Queues, letters: int) -> None:
    deployment = replace(
        DEPLOYMENT,
        source_queue_url=queues.urls[SOURCE],
        dlq_url=queues.urls[DLQ],
        parking_lot_url=queues.urls[PARKING_LOT],
    )
    ours = OurPass(deployment, letters)
    ours.open_window()
    report = ours.run(journal=_untold)
    if report.redriven != letters:
        raise RuntimeError(f"{report.redriven} of {letters} letters were redriven: {report.reason}")


def _untold(_event: str, /, **_fields: object) -> None:
    """No log: the emulator has none either."""


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
