"""The messages of the story. Every third one, and every hopeless one, carries all kinds of attributes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One message to the source queue.

    A poison pill is one that the consumer can never process, and does not know it; of a permanent failure it knows.
    """

    number: int
    is_poison: bool = False
    is_permanent: bool = False
    has_payment: bool = False

    @property
    def is_hopeless(self) -> bool:
        """Whether it belongs into the parking lot in the end."""
        return self.is_poison or self.is_permanent

    @property
    def body(self) -> str:
        marks = {
            "poison": self.is_poison,
            "permanent": self.is_permanent,
            "payment": self.has_payment,
        }
        set_marks = {name: True for name, is_set in marks.items() if is_set}
        content = {"order": self.number, "item": "crème brûlée", **set_marks}
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
        return self.is_hopeless or self.number % 3 == 0
