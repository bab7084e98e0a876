"""Whether the state table can be read, forgets what is old, and lets the re-driver work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from redrive.core.circuit import Orders
from redrive.settings import Mode
from smart_redriver.oncall.doctor.findings import Finding, check, good, wrong
from smart_redriver.oncall.stack.session import Session


def check_state(session: Session) -> Iterator[Finding]:
    """Look at the table, the circuit in it, and the settings. Raises CallFailed and Refused."""
    table = session.place.deployment.table_name
    described = session.aws.dynamodb.describe_time_to_live(TableName=table)
    status = described["TimeToLiveDescription"].get("TimeToLiveStatus")
    yield check(
        status in ("ENABLED", "ENABLING"),
        "The state table forgets what is old.",
        "The state table never forgets: time to live is off.",
        f"Enable time to live of {table} on the attribute TTL, or deploy the stack anew.",
    )
    mode = session.settings.mode
    yield check(
        mode is Mode.AUTOMATIC,
        "The setting `mode` is automatic.",
        f"The setting `mode` is {mode.value}: nothing is redriven.",
        "Deploy with -c mode=automatic when you are ready.",
    )
    circuits = {name: session.store.of(name).load_circuit() for name in session.place.sources}
    for name in circuits:
        yield good(f"The circuit of {name} can be read.")
    if first := circuits[session.place.queue]:  # it keeps the pause of all that share the DLQ
        yield judge_pause(first.orders, session.clock())


def judge_pause(orders: Orders, now: datetime) -> Finding:
    """A pause without an end is one that people forget."""
    if orders.pauses(now) and orders.paused_until is None:
        return wrong(
            f"Paused without an end, by {orders.by}: {orders.reason}.", "`redrive resume` ends it."
        )
    return good("Nobody paused it for good.")
