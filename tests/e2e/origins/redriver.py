"""An entry of the list of queues for a DLQ that SQS does not fill, and the re-driver that it makes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from demo.stack import DeployedStack, Depths
from tests.e2e.origins.places import queue_arn

#: By whose failed invocations the first two DLQs are filled.
FUNCTIONS = ("invoices", "refunds")
_ORIGINS = {
    **dict.fromkeys(FUNCTIONS, "lambda"),
    "order-events": "sns",
    "news": "sns",
    "parcels": "eventbridge",
    "nightly": "scheduler",
}


class OriginStack(DeployedStack):
    """The re-driver of one entry. It has no source queue."""

    def depths(self) -> Depths:
        return Depths(
            source=0,
            dead_letters=self._depth(self.dead_letter_url),
            parked=self._depth(self.parking_lot_url),
        )


def toml_of(name: str, targets: Sequence[str]) -> str:
    """The entry of this name. Web targets are on this machine."""
    fields: dict[str, Any] = {
        "name": name,
        "origin": _ORIGINS[name],
        "dead_letter_arn": queue_arn(f"{name}-dlq"),
        "targets": list(targets),
    }
    if any("http:" in one for one in targets):
        fields["private_hosts"] = ["127.0.0.1"]
    return "\n".join(["[[queues]]", *(f"{key} = {json.dumps(one)}" for key, one in fields.items())])
