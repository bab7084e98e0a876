"""Existing queues as the constructs that a re-driver takes: imported by ARN, with their keys."""

from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.queue_entry import AdoptedQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQueues:
    """A dead-letter queue, and the source queues that share it or the keys of its targets; the stack owns none of them."""

    source_queues: tuple[sqs.IQueue, ...]
    dead_letter_queue: sqs.IQueue
    parking_lot_key: kms.IKey | None
    target_keys: tuple[kms.IKey, ...]


def import_queues(scope: Construct, adopted: AdoptedQueue) -> ImportedQueues:
    """Import what ``adopted`` names by ARN into ``scope``.

    Source keys go with the sources in order, and the last one with all sources that are left: one
    key for all of them is the usual case.
    """
    keys = adopted.source_key_arns
    sources = tuple(
        _import(scope, f"Source{index}", arn, keys[min(index, len(keys) - 1)] if keys else None)
        for index, arn in enumerate(adopted.source_arns)
    )
    dead_letters = _import(
        scope, "DeadLetter", adopted.dead_letter_arn, adopted.dead_letter_key_arn
    )
    lot_key = adopted.parking_lot_key_arn
    return ImportedQueues(
        source_queues=sources,
        dead_letter_queue=dead_letters,
        parking_lot_key=kms.Key.from_key_arn(scope, "ParkingLotKey", lot_key) if lot_key else None,
        target_keys=tuple(
            kms.Key.from_key_arn(scope, f"TargetKey{index}", arn)
            for index, arn in enumerate(adopted.target_key_arns)
        ),
    )


def _import(scope: Construct, construct_id: str, arn: str, key_arn: str | None) -> sqs.IQueue:
    return sqs.Queue.from_queue_attributes(scope, construct_id, queue_arn=arn, key_arn=key_arn)
