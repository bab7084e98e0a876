"""The kit for consumers in a world. Its reports and what it parks are the real kit's; time and wire are simulated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from fakes.clock import VirtualClock
from fakes.sqs import FakeSqs
from simulator.consumers import Reports
from simulator.failures import BadOrder
from smart_redriver.consumer import PERMANENT, Reporter
from smart_redriver.consumer import Consumer as Author
from smart_redriver.consumer.quick_sqs import Allowance

#: Makes something happen after this long.
After = Callable[[timedelta, Callable[[], object]], None]

#: Other messages that someone may send to the outcome queue. None of them says anything about a letter.
GARBAGE = (
    "not JSON",
    "[]",
    "[" * 10_000,
    '{"version":2,"outcomes":[]}',
    '{"version":1,"outcomes":[null,7,{"queue":"orders"}]}',
    '{"version":1,"outcomes":[{"queue":"orders","message_id":"\\u001b[2J","result":"failed"}]}',
    '{"version":1,"outcomes":[{"queue":"nowhere","message_id":"0","result":"succeeded"}]}',
)

# The kit warns about each message that it parks. A consumer logs that; a simulation must not print thousands of
# warnings.
logging.getLogger("smart_redriver.consumer").addHandler(logging.NullHandler())


def reporter_of(queue: str, how: Reports, post: Post, parking_lot_url: str) -> Reporter:
    """The reporter of the consumer of `queue`."""
    name = f"{queue}-consumer"
    return _Unhurried(
        outcome_queue_url=post.outcome_queue_url,
        parking_lot_url=parking_lot_url if how.permanent else "",
        consumer=Author(name=name, version="1", log_group=f"/aws/lambda/{name}"),
        permanent=(*PERMANENT, BadOrder) if how.permanent else PERMANENT,
        client=post,
    )


class _Unhurried(Reporter):
    """Time stands still while it reports, so that a slow machine does not change what a seed plays."""

    deadline = 3600.0

    def call(self, requests: list[dict[str, Any]], allowance: Allowance | None = None) -> list[Any]:
        try:
            return [self.client.send_message(**one) for one in requests]
        except ClientError:
            if allowance:
                allowance.close()
            raise

    def now(self) -> float:
        seconds: float = self.client.now()
        return seconds


class Post:
    """The SQS client of a kit: the world's, with everything that can happen to reports on their way."""

    def __init__(
        self,
        sqs: FakeSqs,
        outcome_queue_url: str,
        how: Reports,
        *,
        rng: Random,
        after: After,
        clock: VirtualClock,
    ) -> None:
        self.outcome_queue_url = outcome_queue_url
        self._sqs = sqs
        self._how = how
        self._rng = rng
        self._after = after
        self._clock = clock

    def now(self) -> float:
        """Seconds on the world's clock."""
        return self._clock.time()

    def send_message(self, **request: Any) -> dict[str, Any]:
        """Take a report, or a message for the parking lot. Raises ClientError if the parking lot refuses it."""
        if request["QueueUrl"] != self.outcome_queue_url:
            return self._park(request)
        if self._befalls(self._how.garbage):
            body = request["MessageBody"]
            self._deliver(self._rng.choice((*GARBAGE, body[: len(body) // 2])))
        if not self._befalls(self._how.lost):
            for _ in range(2 if self._befalls(self._how.twice) else 1):
                self._carry(request["MessageBody"])
        return {}

    def _park(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._befalls(self._how.unparked):
            said = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
            raise ClientError(said, "SendMessage")  # type: ignore[arg-type]  # plain dict
        return self._sqs.send_message(**request)

    def _carry(self, body: str) -> None:
        """Deliver one copy of a report. Each copy goes its own way."""
        if self._befalls(self._how.late):
            self._after(self._how.late_by, lambda: self._deliver(body))
        else:
            self._deliver(body)

    def _deliver(self, body: str) -> None:
        self._sqs.send_message(QueueUrl=self.outcome_queue_url, MessageBody=body)

    def _befalls(self, share: float) -> bool:
        return share > 0 and self._rng.random() < share
