"""Letters of failed batches that the consumer keeps: each further round of failed tries is one more failure."""

from dataclasses import replace
from typing import Any

import pytest

from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.judging import judge_left_failing
from smart_redriver.engine.model.queue_metrics import Account, QueueMetrics
from tests.unit.circuits import ROLL, SETTINGS
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, ago
from tests.unit.queue_minutes import a_minute

FAILED = a_judged(5, generation=2, verdict=Verdict.FAILURE, is_strike=False)


def a_failing(**changes: Any) -> Circuit:
    """Five letters were sent, all are out, and their batch has failed."""
    usual: dict[str, Any] = {"failure_count": 1, "failed_at": ago(minutes=20), "judged": (FAILED,)}
    return a_circuit(**usual | changes)


def since_then(**of_last_minute: int) -> Account:
    """The metrics since a minute in which all five were in flight."""
    before = a_minute(19, in_flight=5)
    metrics = QueueMetrics((before, a_minute(18, in_flight=5), a_minute(1, **of_last_minute)))
    account = metrics.account(ago(minutes=18))
    assert account is not None
    return account


def after(circuit: Circuit, account: Account | None) -> Circuit:
    return judge_left_failing(circuit, account, SETTINGS, NOW, ROLL)


def test_a_round_of_failed_tries_is_one_more_failure() -> None:
    """Received again and hidden again: what was in flight when the span began has failed in it."""
    counted = after(a_failing(), since_then(received=5, in_flight=5))

    assert (counted.failure_count, counted.failed_at) == (2, NOW)


def test_the_last_of_failure_threshold_rounds_opens_the_circuit() -> None:
    circuit = a_failing(failure_count=SETTINGS.failure_threshold - 1)

    assert after(circuit, since_then(received=5, in_flight=5)).state is State.OPEN


def test_it_halves_no_window_that_was_not_tried() -> None:
    assert after(a_failing(window=8), since_then(received=5, in_flight=5)).window == 8


@pytest.mark.parametrize(
    ("account", "why"),
    [
        (None, "the metrics can't be asked"),
        (since_then(in_flight=5), "they are still in hand"),
        (since_then(received=4, in_flight=5), "only some were tried again"),
        (since_then(received=5, in_flight=4, deleted=1), "one succeeded"),
    ],
)
def test_less_than_that_counts_for_nothing(account: Account | None, why: str) -> None:
    circuit = a_failing()

    assert after(circuit, account) == circuit, why


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"failure_count": 0}, "nothing has failed since the last success"),
        ({"pending": (a_batch(),)}, "another batch is out, which can fail by itself"),
        ({"state": State.OPEN}, "it is open already"),
        ({"generation": 3}, "the circuit has changed since"),
        ({"judged": (replace(FAILED, returned=5),)}, "they are all back"),
        ({"judged": (a_judged(5),)}, "their batch has succeeded"),
    ],
)
def test_it_is_for_letters_that_are_out_while_nothing_else_is(
    changes: dict[str, Any], why: str
) -> None:
    circuit = a_failing(**changes)

    assert circuit.left_failing == 0, why
    assert after(circuit, since_then(received=5, in_flight=5)) == circuit
