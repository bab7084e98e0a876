"""Existing queues: the list that a deployment adopts, each fault with its place, and their import by ARN."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.backend import AdoptedElsewhere
from smart_redriver.cdk.queue_clashes import clashes, reader_of
from smart_redriver.cdk.queue_entry import STACK, AdoptedQueue
from smart_redriver.engine.errors import Fault, SettingsError

#: The context key, and the name of the array of tables in a TOML file.
QUEUES = "queues"

#: A DLQ in SQS, or a queue elsewhere.
Adopted = AdoptedQueue | AdoptedElsewhere


def read_adopted_queues(given: object, global_values: Mapping[str, Any]) -> tuple[Adopted, ...]:
    """The adopted queues in ``given``: a list of tables, or the path of a TOML file with one.

    A queue's settings go over the global ones. Raises SettingsError listing every fault.
    """
    entries = _load(given)
    faults: list[Fault] = []
    queues: list[Adopted | None] = []
    for index, entry in enumerate(entries):
        reader = reader_of(entry)(f"{QUEUES}[{index}]", entry)
        queue = reader.read(global_values)
        faults += reader.faults
        queues.append(queue)
    faults += clashes(QUEUES, entries, str(global_values.get(STACK, "")))
    if faults:
        raise SettingsError(faults)
    return tuple(queue for queue in queues if queue)


def above_the_queues(given: object) -> Mapping[str, Any]:
    """The settings above the queues of a TOML file, for their account and Region. Empty for a file that can't be read,
    which is told with its queues.
    """
    try:
        document = _document(given) if isinstance(given, str) else {}
    except SettingsError:
        return {}
    return {key: value for key, value in document.items() if key != QUEUES}


def _load(given: object) -> Sequence[Mapping[str, Any]]:
    listed = _document(given).get(QUEUES) if isinstance(given, str) and given else given
    if not isinstance(listed, list) or not listed or not all(isinstance(e, dict) for e in listed):
        raise _fault(QUEUES, given, f"a list of tables, or the path of a TOML file of [[{QUEUES}]]")
    return listed


def _document(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise _fault(QUEUES, path, f"the path of a TOML file ({error})") from error


def _fault(place: str, seen: object, accepted: str) -> SettingsError:
    return SettingsError([Fault(setting=place, seen=seen, accepted=accepted)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQueues:
    """A dead-letter queue, and the source queues that share it or the keys of its targets;
    the stack owns none of them.
    """

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
