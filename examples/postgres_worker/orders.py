"""The team's own part: what is done for one payload, and which of them no retry can heal."""

from __future__ import annotations

from typing import Any

import psycopg

from smart_redriver.consumer import PermanentError


def handle(payload: Any, connection: psycopg.Connection[Any]) -> None:
    """Book an order, once: its own id is the key. Raises PermanentError for what is no order."""
    order_id = payload.get("order_id") if isinstance(payload, dict) else None
    if not isinstance(order_id, int):
        raise PermanentError("an order without an id")
    connection.execute(
        "insert into booked (order_id) values (%s) on conflict do nothing", (order_id,)
    )
