"""What fills a DLQ that SQS does not fill, and what its letters go back to, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from redrive.core.letter import Unfit
from redrive.targets import Origin, TargetKind

#: What a DLQ of each origin holds.
ORIGINS: Mapping[Origin, str] = {
    Origin.SQS: "SQS, with messages that a consumer failed",
    Origin.SNS: "SNS, with notifications that a subscriber did not take",
    Origin.LAMBDA: "Lambda, with events whose asynchronous invocation failed",
    Origin.EVENTBRIDGE: "EventBridge, with events that a rule's target did not take",
    Origin.SCHEDULER: "EventBridge Scheduler, with calls that a schedule's target did not take",
    Origin.POSTGRES: "workers of a queue in Postgres, with jobs that failed too often",
}
KINDS: Mapping[TargetKind, str] = {
    TargetKind.QUEUE: "an SQS queue",
    TargetKind.FUNCTION: "a Lambda function",
    TargetKind.DELIVERY_STREAM: "a Firehose delivery stream",
    TargetKind.STATE_MACHINE: "a Step Functions state machine",
    TargetKind.TOPIC: "an SNS topic",
    TargetKind.WEB: "an HTTP endpoint",
}
#: Why a letter is given back to nobody.
UNFIT: Mapping[Unfit, str] = {
    Unfit.UNKNOWN_ORIGIN: "it does not tell which of the listed targets failed it",
    Unfit.INCOMPLETE: "it does not hold what its target was given, or never failed",
}
