"""What `status` says of the next step and the next look, from circuit, orders and depth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Batch
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import Orders, State
from smart_redriver.engine.model.permit import FLAPS_THAT_SHOW, cools_until
from smart_redriver.oncall.status.outlook import looks_every, next_step

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings()
CLOSED = new_circuit("orders", SETTINGS, NOW)
OPEN = force(CLOSED, State.OPEN, "3 failed batches in a row", NOW)
BATCH = Batch(
    id=3,
    generation=0,
    sent_at=NOW,
    first_try_at=NOW,
    due_at=NOW + timedelta(minutes=5),
    size=5,
)
OUT = replace(CLOSED, pending=(BATCH,))
FOREVER = Orders(is_paused=True, by="kim")
FOR_A_WHILE = replace(FOREVER, paused_until=NOW + timedelta(hours=2))

EMPTY = QueueFacts(
    arn="arn:dlq",
    visible=0,
    in_flight=0,
    delayed=0,
    visibility_timeout=timedelta(seconds=30),
    retention=timedelta(days=14),
    max_message_size=1_048_576,
)
FULL = replace(EMPTY, visible=40)

SPARED = timedelta(seconds=SETTINGS.max_cool_down_seconds)
IDLE, BUSY = timedelta(minutes=SETTINGS.schedule_minutes), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("circuit", "orders", "dlq", "step", "at"),
    [
        (CLOSED, Orders(), EMPTY, "nothing: the DLQ is empty", None),
        (OPEN, Orders(), EMPTY, "nothing: the DLQ is empty", None),
        (
            OUT,
            Orders(),
            EMPTY,
            "the verdict on batch 3 (5 letters), as soon as it is certain",
            None,
        ),
        (
            CLOSED,
            Orders(),
            FULL,
            f"redrive up to {SETTINGS.initial_window} letters "
            f"(window {SETTINGS.initial_window}) with the next pass",
            None,
        ),
        (
            OPEN,
            Orders(),
            None,
            "a canary, once live messages succeed or the cool-down is over",
            cools_until(OPEN, SETTINGS),
        ),
        (
            replace(OPEN, flaps=FLAPS_THAT_SHOW, up_seconds=180),
            Orders(),
            None,
            "a canary, once the cool-down is over",
            cools_until(OPEN, SETTINGS),
        ),
        (
            replace(OPEN, cools_until=NOW),
            Orders(),
            FULL,
            "a canary with the next pass or, while live messages fail, once one of them succeeds",
            None,
        ),
        (
            replace(OPEN, cools_until=NOW, changed_at=NOW - SPARED),
            Orders(),
            FULL,
            "a canary with the next pass",
            None,
        ),
        (OPEN, FOREVER, FULL, "paused until `redrive resume`", None),
        (OPEN, FOR_A_WHILE, FULL, "paused; goes on by itself", FOR_A_WHILE.paused_until),
    ],
)
def test_the_next_step(circuit, orders, dlq, step, at) -> None:
    assert next_step(SETTINGS, circuit, orders, dlq, NOW) == (step, at)


@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.PAUSED])
def test_nothing_comes_next_where_the_setting_says_so(mode: Mode) -> None:
    settings = replace(SETTINGS, mode=mode)

    step, at = next_step(settings, OPEN, Orders(), FULL, NOW)

    assert (step, at) == (f"nothing: the setting `mode` is {mode.value}", None)


@pytest.mark.parametrize(
    ("circuits", "dlq", "every"),
    [
        ([CLOSED], FULL, IDLE),
        ([OUT], EMPTY, BUSY),
        ([OPEN], FULL, BUSY),
        ([OPEN], None, BUSY),
        ([OPEN], EMPTY, IDLE),
        ([CLOSED, OPEN], FULL, BUSY),
        ([CLOSED, OUT], EMPTY, BUSY),
        ([replace(OUT, orders=FOREVER), OPEN], FULL, IDLE),
    ],
)
def test_it_looks_each_minute_while_there_is_something_to_wait_for(circuits, dlq, every) -> None:
    assert looks_every(SETTINGS, circuits, dlq, NOW) == every
