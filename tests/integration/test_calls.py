"""What a pass costs: the calls that it makes, counted."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from botocore.client import BaseClient

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.report import Outcome
from tests.integration.conftest import Account

IDLE = {"GetItem": 1, "GetQueueAttributes": 2}


@pytest.fixture
def calls(account: Account) -> Iterator[Counter[str]]:
    """How often each operation is called from here on; reads and writes of the circuit also as such."""
    made: Counter[str] = Counter()
    make_api_call = BaseClient._make_api_call  # type: ignore[attr-defined]

    def note(client: Any, operation: str, request: dict[str, Any]) -> Any:
        made[operation] += 1
        item = request.get("Item") or request.get("Key") or {}
        if item.get("PK", {}).get("S", "").startswith("CIRCUIT"):
            made[f"{operation} of the circuit"] += 1
        return make_api_call(client, operation, request)

    with patch.object(BaseClient, "_make_api_call", note):
        yield made


def settled(account: Account, **changes: Any) -> Circuit:
    """A circuit whose next sweeps are far off, in the state table."""
    later = account.now().replace(year=2027)
    circuit = replace(
        new_circuit("orders", Settings(), account.now()),
        dlq_sweep_at=later,
        urgent_sweep_at=later,
        **changes,
    )
    saved = account.store.save_circuit(circuit)
    assert saved is not None
    return saved


def without_circuit(calls: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in calls.items() if "circuit" not in name}


@pytest.mark.parametrize("mode", ["automatic", "dry_run", "paused"])
def test_an_idle_pass_makes_three_calls(account: Account, calls: Counter[str], mode: str) -> None:
    report = account.run_pass(mode=mode)

    assert without_circuit(calls) == IDLE
    assert report.outcome is not Outcome.FAILED


def test_a_pass_that_waits_for_a_cool_down_asks_also_the_metrics_the_source_and_for_a_hint(
    account: Account, calls: Counter[str]
) -> None:
    account.dead_letters("a")
    settled(account)
    circuit = account.circuit
    assert circuit is not None
    account.store.save_circuit(force(circuit, State.OPEN, "by hand", account.now()))
    account.run_pass()  # notes, once, since when letters wait
    calls.clear()

    report = account.run_pass()

    assert report.outcome is Outcome.WAITING
    assert without_circuit(calls) == {"GetItem": 2, "GetQueueAttributes": 3, "GetMetricData": 1}


def test_a_pass_that_sends_nothing_writes_the_circuit_once(
    account: Account, calls: Counter[str]
) -> None:
    """The verdict. It is read before the lease is asked for, and once more under it."""
    account.dead_letters("a")
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_works()
    account.advance(minutes=10)
    calls.clear()

    report = account.run_pass()

    assert [verdict["verdict"] for verdict in report.verdicts] == ["SUCCESS"]
    assert report.redriven == 0
    assert calls["PutItem of the circuit"] == 1
    assert calls["GetItem of the circuit"] == calls["GetItem"] == 2


def test_a_pass_that_sends_writes_the_circuit_before_its_first_letter_and_at_its_end(
    account: Account, calls: Counter[str]
) -> None:
    account.dead_letters(*(f"letter {number}" for number in range(5)))
    settled(account)
    calls.clear()

    report = account.run_pass()

    assert report.redriven == 5
    assert calls["PutItem of the circuit"] == 2
    assert calls["GetItem of the circuit"] == calls["GetItem"] == 2
    assert without_circuit(calls) == {
        "GetItem": 2,
        "GetQueueAttributes": 3,
        "PutItem": 3,
        "ListMessageMoveTasks": 1,
        "ReceiveMessage": 1,
        "BatchGetItem": 1,
        "SendMessageBatch": 1,
        "BatchWriteItem": 1,
        "DeleteMessageBatch": 1,
        "DeleteItem": 1,
    }
