"""What consumers reported before a person looks: outcomes, as a pass takes them in."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from simulator.world import DLQ, SOURCE
from smart_redriver.engine.aws.items import ENTRY_KEPT
from smart_redriver.engine.model.breaker import new_circuit
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.reports.outcomes import Consumer, DeliveryOutcome, Result
from smart_redriver.engine.reports.processing import ReceivedOutcome, process_reports
from tests.oncall.desk import Desk

DECLINED = "shop.PaymentDeclined"
BILLING = Consumer(
    name="billing",
    version="4.2",
    log_group="/aws/lambda/billing",
    log_stream="2026/01/01/[$LATEST]c6af9ac67b61",
    request_id="c6af9ac6-7b61",
)


def declined(message_id: str, **fields: Any) -> DeliveryOutcome:
    """The last failure of a message on its first visit."""
    known: dict[str, Any] = {
        "queue": SOURCE,
        "message_id": message_id,
        "original_id": message_id,
        "result": Result.FAILED,
        "receive_count": 3,
        "error_class": DECLINED,
        "first_line": "card expired",
        "traceback": '  File "billing.py", line 7, in charge\nshop.PaymentDeclined: card expired',
        "consumer": BILLING,
    }
    return DeliveryOutcome(**(known | fields))


def report(desk: Desk, *outcomes: DeliveryOutcome) -> None:
    """Take these outcomes in."""
    now = desk.world.clock.now()
    told = [ReceivedOutcome(outcome=one, at=now) for one in outcomes]
    known = desk.store.read_ledger(one.original_id for one in outcomes).entries
    receives = dict.fromkeys(desk.deployment.source_names, 3)
    processed = process_reports(told, known, receives)
    desk.store.write_failures(list(processed.details.values()), now + ENTRY_KEPT)
    desk.store.write_ledger(list(processed.entries.values()), [], now)


def failed(desk: Desk, *bodies: str, **fields: Any) -> list[str]:
    """Letters of the DLQ whose last failure was reported; their ids."""
    ids = desk.dead_letters(*bodies)
    report(desk, *(declined(one, **fields) for one in ids))
    return ids


def hold(desk: Desk, **fields: Any) -> None:
    """Let the letters of a cause be held, or whatever else these fields say of it."""
    now = desk.world.clock.now()
    stored = desk.store.load_circuit() or new_circuit(SOURCE, desk.redriver.settings, now)
    known: dict[str, Any] = {"cause": DECLINED, "held_since": now, "seen_at": now, **fields}
    one = CauseCircuit(**known)
    assert desk.store.save_circuit(replace(stored, causes=(*stored.causes, one)))


def held_by_cause(desk: Desk, *bodies: str) -> list[str]:
    """Letters that a pass has hidden until the next canary of their cause; their ids."""
    ids = failed(desk, *bodies)
    hold(desk, cools_until=desk.world.clock.now() + timedelta(minutes=5), letters=len(ids))
    desk("run", "--yes")
    assert desk.visible(DLQ) == 0
    return ids
