"""What triage has to know about the queues, for letters of one lane."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from redrive.core.retention import calm_margin, urgent_margin
from redrive.core.triage import Terms
from redrive.passes.lane import Lane

#: What can't be delayed goes a minute's letters at a time, as there is a pass a minute.
FIFO_AHEAD = timedelta(minutes=1)
#: What is delivered at its pace by the pass itself goes so many seconds' letters at a time: a pass has to end.
DELIVERED_AHEAD = timedelta(seconds=20)


#: A letter that waits in a queue grows older there: of what the queue keeps it for, the rest is its consumer's.
SHARE_SPENT_WAITING = 0.5


def terms_of(
    lane: Lane, lanes: Mapping[str, Lane], retention: timedelta, *, is_flowing: bool
) -> Terms:
    """What triage has to know about the queues, for letters of one lane.

    Args:
        lanes: all of them, by their queues' ARNs.
        retention: of the DLQ.
        is_flowing: whether a letter that stays has good hopes to go soon.

    """
    is_fifo, longest_delay = lane.known_facts.is_fifo, _longest_delay(lane)
    return Terms(
        destinations={arn: one.known_facts.max_message_size for arn, one in lanes.items()},
        home=lane.known_facts.arn,
        retention=retention,
        margin=urgent_margin(retention) if is_flowing else calm_margin(retention),
        time_to_fail=lane.time_to_fail(),
        is_fifo=is_fifo,
        is_source_empty=lane.known_facts.depth == 0,
        longest_delay=longest_delay,
        ahead=longest_delay or (FIFO_AHEAD if is_fifo else DELIVERED_AHEAD),
    )


def _longest_delay(lane: Lane) -> timedelta:
    """For how long a letter that was sent may be kept from its consumer: SQS deletes what is older than its queue keeps it.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
    """
    retention = lane.known_facts.retention
    if not retention:  # not of a queue
        return lane.source.longest_delay
    return min(lane.source.longest_delay, retention * SHARE_SPENT_WAITING)
