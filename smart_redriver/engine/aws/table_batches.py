"""Batches of reads and writes on one DynamoDB table: what DynamoDB leaves undone is asked again, after a pause."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from smart_redriver.engine.aws.calls import naming
from smart_redriver.engine.aws.codecs import Item
from smart_redriver.engine.errors import CallFailed

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
KEYS_PER_READ = 100
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
ITEMS_PER_WRITE = 25

#: DynamoDB may leave part of a batch undone; it is asked this often before the rest counts as failed.
ROUNDS = 4
#: Seconds before it is asked again: up to this, then up to twice as long each time, at random, so that those who
#: wait together don't come back together.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html#Programming.Errors.RetryAndBackoff
FIRST_PAUSE = 0.2
#: Seconds that one batch waits at most in all its rounds.
LONGEST_PAUSE = FIRST_PAUSE * (2 ** (ROUNDS - 1) - 1)

T = TypeVar("T")


class BatchClient(Protocol):
    """The batch calls of a boto3 DynamoDB client."""

    @property
    def batch_get_item(self) -> Callable[..., Any]: ...
    @property
    def batch_write_item(self) -> Callable[..., Any]: ...


class TableBatches:
    """One table, by the batch. `pause` waits for so many seconds; `roll` gives a share of 0 to 1, the jitter."""

    def __init__(
        self,
        dynamodb: BatchClient,
        table: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._pause = pause
        self._roll = roll

    def get(self, keys: Iterable[Item]) -> Iterator[Item]:
        """The items that there are under `keys`, none of which may occur twice.
        Raises CallFailed for any left unread.
        """
        for some in _cut(keys, KEYS_PER_READ):
            yield from self._get(some)

    def put(self, items: Sequence[Item]) -> None:
        """Write items of different keys, over what is there. Raises CallFailed for any left unwritten."""
        for some in _cut(items, ITEMS_PER_WRITE):
            self._put([{"PutRequest": {"Item": item}} for item in some])

    def _get(self, keys: list[Item]) -> list[Item]:
        found: list[Item] = []
        for _ in self._rounds():
            with naming("BatchGetItem"):
                answer = self._dynamodb.batch_get_item(
                    RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}}
                )
            found += answer["Responses"].get(self._table, [])
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if not keys:
                return found
        raise CallFailed("BatchGetItem", "UnprocessedKeys", f"{len(keys)} keys were left unread")

    def _put(self, requests: list[dict[str, Any]]) -> None:
        for _ in self._rounds():
            with naming("BatchWriteItem"):
                answer = self._dynamodb.batch_write_item(RequestItems={self._table: requests})
            requests = answer.get("UnprocessedItems", {}).get(self._table, [])
            if not requests:
                return
        raise CallFailed(
            "BatchWriteItem", "UnprocessedItems", f"{len(requests)} were left unwritten"
        )

    def _rounds(self) -> Iterator[int]:
        """The rounds that a batch has to get done, with a pause before each but the first."""
        for number in range(ROUNDS):
            if number:
                self._pause(self._roll() * FIRST_PAUSE * 2 ** (number - 1))
            yield number


def _cut(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while some := list(islice(iterator, size)):
        yield some
