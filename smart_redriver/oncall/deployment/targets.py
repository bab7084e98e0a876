"""Kinds of targets, and why a letter goes back to none, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from smart_redriver.engine.config.targets import TargetKind
from smart_redriver.engine.messages.letter import Unfit

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
