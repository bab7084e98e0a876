"""The attributes that only FIFO queues have, and the name that makes a queue a FIFO queue.

Source: botocore sqs CreateQueue. The error codes of refusals are not recorded.
"""

from collections.abc import Mapping

from fakes.boto_client import Fault
from fakes.sqs.fifo_queue import FifoQueue
from fakes.sqs.message_attributes import invalid
from fakes.sqs.queue_attributes import FindQueue, QueueAttributes

SUFFIX = ".fifo"

#: Values that may be set; the first is the default.
_CHOICES = {
    "FifoQueue": ("true",),
    "ContentBasedDeduplication": ("false", "true"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}


class FifoAttributes(QueueAttributes):
    """The attributes of one FIFO queue."""

    _settable = QueueAttributes._settable | _CHOICES.keys()

    def __init__(self, queue: FifoQueue, created_at: float) -> None:
        super().__init__(queue, created_at)
        self._fifo = queue
        self._given |= {name: choices[0] for name, choices in _CHOICES.items()}
        self._fixed = self._all_but_counts()

    def change(self, given: Mapping[str, str], find_by_arn: FindQueue, now: float) -> None:
        """Check all attributes, then apply them. `find_by_arn` raises for an unknown queue."""
        chosen = {name: given.get(name, self._given[name]) for name in _CHOICES}
        for name, value in chosen.items():
            if value not in _CHOICES[name]:
                raise Fault("InvalidAttributeValue", f"Invalid value for the parameter {name}.")
        by_group = chosen["DeduplicationScope"] == "messageGroup"
        if chosen["FifoThroughputLimit"] == "perMessageGroupId" and not by_group:
            only = "only when DeduplicationScope is set to messageGroup"
            raise invalid(f"FifoThroughputLimit can be perMessageGroupId {only}.")
        super().change(given, find_by_arn, now)
        self._fifo.deduplicates_by_group = by_group
        self._fifo.deduplicates_by_content = chosen["ContentBasedDeduplication"] == "true"


def is_fifo_name(name: str) -> bool:
    """Whether this is the name of a FIFO queue: all FIFO queues, and no others, have the suffix."""
    return name.endswith(SUFFIX)


def check_kind(name: str, given: Mapping[str, str]) -> None:
    """Refuse a FIFO queue without the suffix, and the suffix without FifoQueue."""
    if is_fifo_name(name) != ("FifoQueue" in given):
        rule = f"The name of a FIFO queue, and of no other, ends with {SUFFIX}"
        raise invalid(f"Value {name} for parameter QueueName is invalid. Reason: {rule}.")
