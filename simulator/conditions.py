"""The queues of a world by their names, and what holds for them."""

from __future__ import annotations

from dataclasses import dataclass

from fakes.cloudwatch import Lateness
from smart_redriver.engine.config.targets import Origin

SOURCE = "orders"
DLQ = "orders-dlq"
PARKING_LOT = "orders-parking-lot"
OUTCOMES = "orders-outcomes"
FIFO = ".fifo"
FOURTEEN_DAYS = 1_209_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Conditions of a world's queues, and of what AWS reports about them. Durations are in seconds.

    Attributes:
        visibility_timeout, max_receive_count: of every source queue.
        dlq_retention: of the DLQ; all other queues keep messages for 14 days.
        count_lag_seconds: how old the counts of `GetQueueAttributes` may be.
        count_noise: by how many each of those counts may be wrong.
        metrics_lag_seconds: how long after its end a minute is known to CloudWatch.
        lateness: other mishaps of CloudWatch's data points; None for none.
        order_width: a receive from a standard queue draws at random among this many of the oldest messages.
        fifo: whether source queues, DLQ and parking lot are FIFO queues; the outcome queue never is.
        groups: how many message groups producers use in FIFO queues.
        origin: what fills the DLQ. If that is not SQS, the source queue stands for what SNS, Lambda, EventBridge or
            Scheduler tries to deliver: `max_receive_count` times, `visibility_timeout` apart.

    """

    visibility_timeout: int = 30
    max_receive_count: int = 3
    dlq_retention: int = FOURTEEN_DAYS
    count_lag_seconds: float = 60.0
    count_noise: int = 0
    metrics_lag_seconds: float = 120.0
    lateness: Lateness | None = None
    order_width: int = 20
    fifo: bool = False
    groups: int = 10
    origin: Origin = Origin.SQS

    def queue_name(self, queue: str) -> str:
        """SQS's name for a queue of the world. A name that SQS already uses stays as it is."""
        return f"{queue}{FIFO}" if self.fifo and not queue.endswith(FIFO) else queue

    def attributes_of(self, queue: str) -> dict[str, str]:
        """Return the attributes with which one of the world's queues is created."""
        retention = self.dlq_retention if queue == DLQ else FOURTEEN_DAYS
        made_with = {"MessageRetentionPeriod": str(retention)}
        if queue not in (DLQ, PARKING_LOT):
            made_with["VisibilityTimeout"] = str(self.visibility_timeout)
        if self.fifo:
            made_with["FifoQueue"] = "true"
        return made_with
