"""The attributes of a queue: what CreateQueue accepts and what GetQueueAttributes returns.

Source: botocore sqs CreateQueue, SetQueueAttributes, GetQueueAttributes. Ranges are the real ones.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from fakes.boto_client import Fault
from fakes.sqs.message_attributes import invalid
from fakes.sqs.metrics import Counts
from fakes.sqs.queue import DeadLetterTarget, Queue, QueueSettings

_SETTINGS = {
    # attribute: (field of QueueSettings, lowest, highest)
    "VisibilityTimeout": ("visibility_timeout", 0, 43_200),
    "DelaySeconds": ("delay", 0, 900),
    "MessageRetentionPeriod": ("retention", 60, 1_209_600),
    "MaximumMessageSize": ("maximum_message_size", 1024, 1_048_576),
    "ReceiveMessageWaitTimeSeconds": ("wait_time", 0, 20),
}
_POLICIES = ("RedrivePolicy", "RedriveAllowPolicy", "Policy")
_ENCRYPTION = ("SqsManagedSseEnabled", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds")
_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_TOLD = {"QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", *_COUNTS}
MAX_RECEIVE_COUNT_LIMIT = 1000  # [SQS Developer Guide]
MAX_ALLOWED_SOURCES = 10  # [botocore CreateQueue, RedriveAllowPolicy]

FindQueue = Callable[[str], Queue]


class QueueAttributes:
    """The attributes of one queue, kept as the strings that were given."""

    _settable = frozenset({*_SETTINGS, *_POLICIES, *_ENCRYPTION})

    def __init__(self, queue: Queue, created_at: float) -> None:
        self._queue = queue
        self._created_at = self._modified_at = created_at
        self._given: dict[str, str] = {"SqsManagedSseEnabled": "true"}
        self._fixed = self._all_but_counts()

    def allows_redrive_from(self, source_arn: str) -> bool:
        """Whether the queue's RedriveAllowPolicy lets a source queue name it as its DLQ."""
        policy = json.loads(self._given.get("RedriveAllowPolicy") or "{}")
        permission = policy.get("redrivePermission", "allowAll")
        return permission == "allowAll" or source_arn in policy.get("sourceQueueArns", [])

    def change(self, given: Mapping[str, str], find_by_arn: FindQueue, now: float) -> None:
        """Check all attributes, then apply them. `find_by_arn` raises for an unknown queue."""
        settings = {
            field.name: getattr(self._queue.settings, field.name) for field in fields(QueueSettings)
        }
        for name, value in given.items():
            if name not in self._settable:
                raise Fault("InvalidAttributeName", f"Unknown Attribute {name}.")
            if name in _SETTINGS:
                field, low, high = _SETTINGS[name]
                settings[field] = _number(name, value, low, high)
        if "RedriveAllowPolicy" in given:
            _check_allow_policy(given["RedriveAllowPolicy"])
        if "RedrivePolicy" in given:
            self._queue.dead_letter_target = _dead_letter_target(
                given["RedrivePolicy"], find_by_arn
            )
        self._queue.settings = QueueSettings(**settings)
        self._given |= given
        self._modified_at = now
        self._fixed = self._all_but_counts()

    def differ_from(self, given: Mapping[str, str]) -> bool:
        """Whether a second CreateQueue asks for other attributes than the queue has."""
        current = self.tell(["All"], Counts())
        return any(current.get(name) != value for name, value in given.items())

    def tell(self, names: Sequence[str], counts: Counts) -> dict[str, str]:
        """The requested attributes, all of them strings."""
        known = self._fixed | {
            "ApproximateNumberOfMessages": str(counts.visible),
            "ApproximateNumberOfMessagesNotVisible": str(counts.in_flight),
            "ApproximateNumberOfMessagesDelayed": str(counts.delayed),
        }
        if "All" in names:
            return known
        for name in names:
            if name not in _TOLD | self._settable:
                raise Fault("InvalidAttributeName", f"Unknown Attribute {name}.")
        return {name: value for name, value in known.items() if name in names}

    def _all_but_counts(self) -> dict[str, str]:
        """Attributes that stay until someone changes them."""
        settings = self._queue.settings
        return {
            "QueueArn": self._queue.arn,
            "CreatedTimestamp": str(int(self._created_at)),
            "LastModifiedTimestamp": str(int(self._modified_at)),
            **{name: str(getattr(settings, field)) for name, (field, _, _) in _SETTINGS.items()},
            **{name: value for name, value in self._given.items() if value},
        }


def _number(name: str, value: str, low: int, high: int) -> int:
    if not value.isdecimal() or not low <= int(value) <= high:
        raise Fault("InvalidAttributeValue", f"Invalid value for the parameter {name}.")
    return int(value)


def _dead_letter_target(policy: str, find_by_arn: FindQueue) -> DeadLetterTarget | None:
    if not policy:
        return None  # SetQueueAttributes removes a RedrivePolicy with an empty value
    parsed = json.loads(policy)
    max_receive_count = int(parsed["maxReceiveCount"])
    if not 1 <= max_receive_count <= MAX_RECEIVE_COUNT_LIMIT:
        raise invalid(f"Value {policy} for parameter RedrivePolicy is invalid.")
    return DeadLetterTarget(find_by_arn(parsed["deadLetterTargetArn"]), max_receive_count)


def _check_allow_policy(policy: str) -> None:
    parsed = json.loads(policy or "{}")
    sources = parsed.get("sourceQueueArns", [])
    permission = parsed.get("redrivePermission", "allowAll")
    is_by_queue = permission == "byQueue"
    if (
        permission not in {"allowAll", "denyAll", "byQueue"}
        or bool(sources) != is_by_queue
        or len(sources) > MAX_ALLOWED_SOURCES
    ):
        raise invalid(f"Value {policy} for parameter RedriveAllowPolicy is invalid.")
