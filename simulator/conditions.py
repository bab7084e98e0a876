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
    """Conditions of the queues of a world, and of what AWS tells of them. Seconds but for the counts.

    Attributes:
        visibility_timeout, max_receive_count: of every source queue.
        dlq_retention: of the DLQ; all other queues keep messages for 14 days.
        count_lag_seconds: `GetQueueAttributes` tells counts up to this old.
        count_noise: and each of them wrong by up to so many.
        metrics_lag_seconds: CloudWatch knows a minute so long after its end.
        lateness: what else befalls the points of CloudWatch; None where nothing does.
        order_width: a receive from a standard queue draws at random among so many of the oldest messages.
        fifo: whether source queues, DLQ and parking lot are FIFO queues; the outcome queue never is.
        groups: message groups that producers deal their messages to, of FIFO queues.
        origin: what fills the DLQ. Where that is not SQS, the source queue stands for what SNS, Lambda, EventBridge or
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
        """The name that SQS knows a queue of the world by; one that is that already stays as it is."""
        return f"{queue}{FIFO}" if self.fifo and not queue.endswith(FIFO) else queue

    def attributes_of(self, queue: str) -> dict[str, str]:
        """Return the attributes that one of the world's queues is made with."""
        retention = self.dlq_retention if queue == DLQ else FOURTEEN_DAYS
        made_with = {"MessageRetentionPeriod": str(retention)}
        if queue not in (DLQ, PARKING_LOT):
            made_with["VisibilityTimeout"] = str(self.visibility_timeout)
        if self.fifo:
            made_with["FifoQueue"] = "true"
        return made_with
