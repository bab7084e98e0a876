"""List prices in us-east-1, and what a run costs by them. Free tiers are left out.

Sources: https://aws.amazon.com/sqs/pricing/, https://aws.amazon.com/dynamodb/pricing/on-demand/,
https://aws.amazon.com/lambda/pricing/, https://aws.amazon.com/cloudwatch/pricing/ (2026).
"""

from __future__ import annotations

from collections.abc import Mapping

MILLION = 1_000_000

SQS_REQUEST = 0.40 / MILLION
READ_UNIT = 0.125 / MILLION  # a strongly consistent read of up to 4 KB
WRITE_UNIT = 0.625 / MILLION  # a write of up to 1 KB
LAMBDA_GB_SECOND = 0.0000133334  # arm64
LAMBDA_REQUEST = 0.20 / MILLION
LOG_GB = 0.50

MEMORY_GB = 0.5

READS = ("GetItem", "BatchGetItem")
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")


def dollars_by_api(calls: Mapping[str, int], entries: Mapping[str, int]) -> dict[str, float]:
    """The cost of each API's calls. DynamoDB bills the items of a batch, SQS the call (of up to 64 KB)."""
    return {
        operation: _price(operation, count, entries.get(operation, count))
        for operation, count in calls.items()
    }


def lambda_dollars(seconds: float) -> float:
    """One invocation that lasts this long."""
    return LAMBDA_REQUEST + seconds * MEMORY_GB * LAMBDA_GB_SECOND


def _price(operation: str, calls: int, items: int) -> float:
    if operation in READS:
        return items * READ_UNIT
    if operation in WRITES:
        return items * WRITE_UNIT
    return calls * SQS_REQUEST
