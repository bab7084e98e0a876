"""The kit for consumers: it tells the re-driver within seconds what became of a message, and why it failed.

Consumers use `reporter`, or `powertools` with Powertools' batch processing. Consumers in other languages write reports
as in `outcomes.schema.json`. See docs/consumer.md.
"""

from smart_redriver.consumer.delivery import idempotency_key
from smart_redriver.consumer.errors import PERMANENT, PermanentError, RetryableError
from smart_redriver.consumer.report import Consumer
from smart_redriver.consumer.reporter import Batch, Reporter

__all__ = [
    "PERMANENT",
    "Batch",
    "Consumer",
    "PermanentError",
    "Reporter",
    "RetryableError",
    "idempotency_key",
]
