"""Batches that DynamoDB leaves half done: asked again, after pauses that are bounded."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.aws.state_table import LONGEST_PAUSE, ROUNDS, StateStore
from smart_redriver.engine.errors import CallFailed
from tests.unit.examples import NOW, QUEUE
from tests.unit.stores import TABLE, Unwilling, entries_of


def hurried(dynamodb: Any) -> StateStore:
    """A store that waits for nothing."""
    return StateStore(dynamodb, TABLE, QUEUE, pause=lambda _: None)


def test_items_that_were_left_unwritten_are_written_again_and_only_they(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    unwilling = Unwilling(dynamodb, rounds=1)

    hurried(unwilling).write_ledger(entries_of("a", "b", "c"), [], NOW)

    assert unwilling.asked == [["MESSAGE#a", "MESSAGE#b", "MESSAGE#c"], ["MESSAGE#c"]]
    assert set(store.read_ledger(["a", "b", "c"]).entries) == {"a", "b", "c"}


def test_keys_that_were_left_unread_are_read_again_and_only_they(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    store.write_ledger(entries_of("a", "b", "c"), [], NOW)
    unwilling = Unwilling(dynamodb, rounds=1)

    known = hurried(unwilling).read_ledger(["a", "b", "c"])

    assert unwilling.asked == [["MESSAGE#a", "MESSAGE#b", "MESSAGE#c"], ["MESSAGE#c"]]
    assert set(known.entries) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda store: store.read_ledger(["a", "b"]), "BatchGetItem: UnprocessedKeys"),
        (
            lambda store: store.write_ledger(entries_of("a", "b"), [], NOW),
            "BatchWriteItem: UnprocessedItems",
        ),
    ],
    ids=["read", "write"],
)
def test_what_stays_undone_fails_by_name(
    dynamodb: FakeDynamoDb, call: Callable[[StateStore], object], fault: str
) -> None:
    unwilling = Unwilling(dynamodb, rounds=100)

    with pytest.raises(CallFailed, match=fault):
        call(hurried(unwilling))

    assert len(unwilling.asked) == ROUNDS


def test_what_was_left_undone_is_asked_again_after_pauses_that_double(
    dynamodb: FakeDynamoDb,
) -> None:
    """Asked again at once, a table that throttles is asked three times in thirty milliseconds, and refuses all."""
    pauses: list[float] = []
    unwilling = Unwilling(dynamodb, rounds=3)
    store = StateStore(unwilling, TABLE, QUEUE, pause=pauses.append, roll=lambda: 0.5)  # type: ignore[arg-type]

    store.write_ledger(entries_of("a", "b"), [], NOW)

    assert pauses == [0.1, 0.2, 0.4]


def test_a_batch_that_gets_done_waits_for_nothing(dynamodb: FakeDynamoDb) -> None:
    pauses: list[float] = []

    StateStore(dynamodb, TABLE, QUEUE, pause=pauses.append).write_ledger(entries_of("a"), [], NOW)

    assert pauses == []


def test_all_pauses_of_a_batch_together_are_bounded(dynamodb: FakeDynamoDb) -> None:
    pauses: list[float] = []
    store = StateStore(
        Unwilling(dynamodb, rounds=100),  # type: ignore[arg-type]
        TABLE,
        QUEUE,
        pause=pauses.append,
        roll=lambda: 1.0,
    )

    with pytest.raises(CallFailed):
        store.read_ledger(["a", "b"])

    assert sum(pauses) == pytest.approx(LONGEST_PAUSE)
    assert LONGEST_PAUSE < 2
