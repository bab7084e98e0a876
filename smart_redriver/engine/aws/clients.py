"""The function's boto3 clients, set up for a pass with short time-outs and botocore's own retries.

The module also has the bus that tells other queues that a consumer is well again, and the errors of calls to AWS, named
once for the report and the log.

If a whole call fails and a pass can't go on without its answer, `CallFailed` is raised. If one entry of a batch is not
accepted, an `EntryFault` is returned, because the others were.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock
from typing import Any, Protocol

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from smart_redriver.engine.config.recovery import BY, DETAIL_TYPE, RECOVERED, SOURCE
from smart_redriver.engine.errors import CallFailed, EntryFault

#: Rounds that a pass has under way at once. A call to AWS takes about ten milliseconds, and Python works for less than
#: one of them: two dozen waiting calls keep one processor busy (docs/benchmarks).
WORKERS = 24

#: A call that hangs must not eat the pass: three tries of at most seven seconds each.
CONFIG = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=WORKERS,
    # SQS and DynamoDB validate requests, too. Botocore's own validation costs a third of the work of a call with
    # a batch in it; tests/engine runs a pass with it on.
    parameter_validation=False,
    # Given here, so that botocore does not build it twice for each call.
    user_agent=f"smart-redriver Boto3/{boto3.__version__} Botocore/{botocore.__version__}",
)


def _longest_call(config: Any) -> timedelta:
    """The time if every try times out and botocore waits its longest before each further one: 1 s, 2 s, 4 s, ... 20 s.

    https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
    """
    tries: int = config.retries["total_max_attempts"]
    waits = sum(min(2**retry, 20) for retry in range(tries - 1))
    return timedelta(seconds=tries * (config.connect_timeout + config.read_timeout) + waits)


#: The longest time that one call takes without an answer; work after a deadline must leave room for it. An answer that
#: drips (`read_timeout` counts from byte to byte), or that asks for up to 5 s more before the next try
#: (`x-amz-retry-after`, in newer versions of botocore), can take longer.
LONGEST_CALL = _longest_call(CONFIG)


def sqs_client() -> Any:
    """An SQS client whose sends don't carry the re-driver's own trace.

    In Lambda, botocore adds the function's trace, `Lineage` included, to every call, and SQS gives it to each
    message of a SendMessageBatch that has none. Lambda's recursion guard counts hops in it.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-x-ray.html
    """
    client = boto3.client("sqs", config=CONFIG)
    # Not "before-call.sqs.…": botocore runs the more special handlers first, and its own, which adds the
    # header, on plain "before-call".
    client.meta.events.register_last("before-call", _without_own_trace)
    return client


def target_client(service: str, region: str) -> Any:
    """A client of a service that letters go back to, whose calls don't carry the re-driver's own trace either."""
    client = boto3.client(service, region, config=CONFIG)  # type: ignore[call-overload]  # any of the targets' services
    client.meta.events.register_last("before-call", _without_own_trace)
    return client


def dynamodb_client() -> Any:
    """A DynamoDB client."""
    return boto3.client("dynamodb", config=CONFIG)


def cloudwatch_client() -> Any:
    """A CloudWatch client."""
    return boto3.client("cloudwatch", config=CONFIG)


def client(service: str) -> Any:
    """A client of another service, by its name."""
    make: Any = boto3.client  # typed by each service's own name
    return make(service, config=CONFIG)


class OnFirstUse:
    """A client that is made on its first use: few passes ask CloudWatch anything."""

    #: boto3 makes one client at a time only, and rounds side by side may each be the first to ask.
    #: https://docs.aws.amazon.com/boto3/latest/guide/resources.html#multithreading-or-multiprocessing-with-resources
    _making = Lock()

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._client: Any = None

    def __getattr__(self, operation: str) -> Any:
        with self._making:
            if self._client is None:
                self._client = self._make()
        return getattr(self._client, operation)


def _without_own_trace(params: dict[str, Any], **_: Any) -> None:
    params["headers"].pop("X-Amzn-Trace-Id", None)


class EventsClient(Protocol):
    """The call to a boto3 EventBridge client that is made here."""

    @property
    def put_events(self) -> Callable[..., Any]: ...


class RecoveryEvents:
    """The default bus of the function's account and Region."""

    def __init__(self, events: EventsClient) -> None:
        self._events = events

    def tell(self, downstream: str, *, by: str) -> None:
        """Announce that it is well again, according to `by`. Raises CallFailed."""
        detail = json.dumps({RECOVERED: [downstream], BY: by})
        with naming("PutEvents"):
            answer = self._events.put_events(
                Entries=[{"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail}]
            )
        if answer.get("FailedEntryCount"):
            [entry] = answer["Entries"]
            raise CallFailed(
                "PutEvents", entry.get("ErrorCode", "Unknown"), entry.get("ErrorMessage", "")
            )


@contextmanager
def naming(call: str) -> Iterator[None]:
    """Turn whatever botocore raises for `call` into CallFailed."""
    try:
        yield
    except ClientError as error:
        failure = error.response.get("Error", {})
        raise CallFailed(
            call, _plain(failure.get("Code", "Unknown")), failure.get("Message", "")
        ) from error
    except BotoCoreError as error:
        raise CallFailed(call, type(error).__name__, str(error)) from error


@dataclass(slots=True, kw_only=True)
class BatchAnswer:
    """The results of the entries of one batch call, by their place in it.

    `failed_as_a_whole`: there was no answer about single entries, so each has the call's own fault.
    """

    message_ids: dict[int, str] = field(default_factory=dict)
    faults: dict[int, EntryFault] = field(default_factory=dict)
    failed_as_a_whole: bool = False


def batch(
    call: str, keys: Sequence[str], entries: Sequence[dict[str, Any]], request: Callable[..., Any]
) -> BatchAnswer:
    """Make one SQS batch call. Every entry, known by its key, is accepted or has a fault; nothing is raised.

    `request` takes the entries under boto3's name for them; their Ids are their positions.
    """
    numbered = [{"Id": str(index), **entry} for index, entry in enumerate(entries)]
    try:
        with naming(call):
            answer = request(Entries=numbered)
    except CallFailed as failed:
        faults = {index: EntryFault.of(failed, key) for index, key in enumerate(keys)}
        return BatchAnswer(faults=faults, failed_as_a_whole=True)
    accepted = {int(one["Id"]): one.get("MessageId", "") for one in answer.get("Successful", ())}
    refused = {int(one["Id"]): one for one in answer.get("Failed", ())}
    return BatchAnswer(
        message_ids=accepted,
        faults={
            index: _fault(call, key, refused.get(index, {}))
            for index, key in enumerate(keys)
            if index not in accepted
        },
    )


def _fault(call: str, key: str, entry: dict[str, Any]) -> EntryFault:
    """The fault of an entry that was refused or that the answer does not mention."""
    code = _plain(str(entry.get("Code", "NoAnswer")))
    return EntryFault(call=call, key=key, code=code, detail=str(entry.get("Message", "")))


def _plain(code: str) -> str:
    """The code without its service: SQS's query-compatible errors read "AWS.SimpleQueueService.NonExistentQueue"."""
    return code.rpartition(".")[2]
