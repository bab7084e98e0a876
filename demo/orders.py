"""The messages of the story. Every third one, and every poison pill, carries all kinds of attributes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One message to the source queue; a poison pill is one that the consumer can never process."""

    number: int
    is_poison: bool = False

    @property
    def body(self) -> str:
        poison = {"poison": True} if self.is_poison else {}
        content = {"order": self.number, "item": "crème brûlée", **poison}
        return json.dumps(content, ensure_ascii=False)

    @property
    def attributes(self) -> Mapping[str, Mapping[str, Any]]:
        """One attribute of each kind that SQS knows, with a custom label among them."""
        if not self._is_dressed:
            return {}
        return {
            "Channel": {"DataType": "String", "StringValue": "web"},
            "Amount": {"DataType": "Number", "StringValue": "12.50"},
            "Weight": {"DataType": "Number.float", "StringValue": "0.25"},
            "Signature": {"DataType": "Binary", "BinaryValue": bytes([0, 255, self.number % 256])},
            "Customer": {"DataType": "String.json", "StringValue": '{"id": 7, "vip": true}'},
        }

    @property
    def group_id(self) -> str | None:
        """The tenant, for SQS's fair queues."""
        return f"tenant-{self.number % 4}" if self._is_dressed else None

    @property
    def _is_dressed(self) -> bool:
        return self.is_poison or self.number % 3 == 0
