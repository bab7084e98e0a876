"""Reads the list of existing queues that a deployment adopts, and names every fault with its place."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redrive.errors import Fault, SettingsError
from smart_redriver.cdk.jobs_entry import AdoptedJobs, JobsEntry, is_jobs
from smart_redriver.cdk.queue_clashes import clashes
from smart_redriver.cdk.queue_entry import STACK, AdoptedQueue, QueueEntry

#: The context key, and the name of the array of tables in a TOML file.
QUEUES = "queues"

#: A DLQ in SQS, or a worker queue in a database.
Adopted = AdoptedQueue | AdoptedJobs


def read_adopted_queues(given: object, global_values: Mapping[str, Any]) -> tuple[Adopted, ...]:
    """The adopted queues in ``given``: a list of tables, or the path of a TOML file with one.

    A queue's settings go over the global ones. Raises SettingsError listing every fault.
    """
    entries = _load(given)
    faults: list[Fault] = []
    queues: list[Adopted | None] = []
    for index, entry in enumerate(entries):
        reader = (JobsEntry if is_jobs(entry) else QueueEntry)(f"{QUEUES}[{index}]", entry)
        queue = reader.read(global_values)
        faults += reader.faults
        queues.append(queue)
    faults += clashes(QUEUES, entries, str(global_values.get(STACK, "")))
    if faults:
        raise SettingsError(faults)
    return tuple(queue for queue in queues if queue)


def above_the_queues(given: object) -> Mapping[str, Any]:
    """What a TOML file says beside its queues: of their home. Nothing of a file that can't be read, which is told with its queues."""
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
