"""Sends the recovery event over the boto3 EventBridge client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from smart_redriver.engine.aws.calls import naming
from smart_redriver.engine.config.recovery import BY, DETAIL_TYPE, RECOVERED, SOURCE
from smart_redriver.engine.errors import CallFailed


class EventsClient(Protocol):
    """The call of a boto3 EventBridge client that is made here."""

    @property
    def put_events(self) -> Callable[..., Any]: ...


class RecoveryEvents:
    """The default bus of the function's account and Region."""

    def __init__(self, events: EventsClient) -> None:
        self._events = events

    def tell(self, downstream: str, *, by: str) -> None:
        """Say that it is well again, by the word of `by`. Raises CallFailed."""
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
