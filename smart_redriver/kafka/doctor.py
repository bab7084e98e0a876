"""Checks that a cluster has what passes need, with the process's credentials. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

from smart_redriver.engine.errors import GONE, CallFailed
from smart_redriver.engine.headline import Passes
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.oncall.topics import Clusters
from smart_redriver.kafka.process import Configuration
from smart_redriver.oncall.doctor.checkup import Check
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown, wrong
from smart_redriver.oncall.doctor.network import check_network
from smart_redriver.oncall.doctor.passes import (
    check_circuits,
    check_mode,
    check_passes,
    check_state,
)
from smart_redriver.oncall.status.passes import last_pass, passes_of_process
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.words import ago, span

if TYPE_CHECKING:
    from smart_redriver.kafka.engine.records import Log
    from smart_redriver.oncall.deployment.session import Session

#: Waiting letters move to the retry topic after twelve hours (`open_letters.OLD`). A process may be away for as long.
LEAST_RETENTION = timedelta(hours=24)

#: Redrive metadata, a note on a held letter and their names take less.
_OUR_HEADERS = 1_024


class Administration(Protocol):
    """Questions to a cluster about topics and rights. Each call may raise CallFailed."""

    def settings(self, topic: str) -> Mapping[str, str]:
        """A topic's settings by name."""
        ...

    def rights_on_topic(self, topic: str) -> frozenset[str] | None:
        """The operations that the process is allowed; None if the cluster does not say."""
        ...

    def rights_on_group(self, group: str) -> frozenset[str] | None:
        """The same for a consumer group."""
        ...


def check_cluster(session: Session) -> Iterator[Finding]:
    """Look at brokers, topics, rights and groups. Raises CallFailed and Refused."""
    place = session.place.deployment.location
    assert isinstance(place, KafkaTopics), "read by this backend"  # noqa: S101 - a mistake of ours
    try:
        log = session.connections.of(Clusters).of(place, session.aws)
    except Refused as silent:
        yield wrong(str(silent), "Run it again once one answers.")
        return
    from smart_redriver.kafka.engine.client import KafkaAdministration

    yield from examine(place, log, KafkaAdministration(place, session.aws))


def examine(place: KafkaTopics, log: Log, cluster: Administration) -> Iterator[Finding]:
    """Yield all findings, or only one if the cluster does not answer."""
    partitions: dict[str, int] = {}
    for topic in (place.dead_letters, *place.topics, place.held, place.parked):
        try:
            partitions[topic] = log.partitions(topic)
        except CallFailed as failed:
            yield _no_topic(place, topic, failed)
            if failed.code == "NoAnswer":
                return
        else:
            yield good(f"Topic {topic} is there, with {partitions[topic]} partitions.")
    if partitions:
        yield from _administered(place, cluster, list(partitions))
    for topic in place.topics:
        if topic in partitions:
            yield _consumers(place, log, topic)
    if place.dead_letters in partitions:
        yield _position(place, log)
        yield from _states(place, log)


def _no_topic(place: KafkaTopics, topic: str, failed: CallFailed) -> Finding:
    if failed.code == "NoAnswer":
        return wrong(
            f"No broker of {place.servers} answers: {failed.detail}.",
            "See that the servers are right and can be reached from here, and that [kafka.client] has the cluster's "
            "security.protocol and credentials.",
        )
    if failed.code in GONE:
        kept = topic in (place.held, place.parked)
        keeps = " --config retention.ms=-1 --config cleanup.policy=delete" if kept else ""
        return wrong(
            f"Topic {topic} is not there.",
            f"kafka-topics.sh --create --topic {topic} --partitions N{keeps}, or name another in the file.",
        )
    return wrong(
        f"Topic {topic} can't be described: {failed.code}.",
        f"Grant Describe on topic {topic} to the process's principal.",
    )


def _administered(
    place: KafkaTopics, cluster: Administration, topics: Sequence[str]
) -> Iterator[Finding]:
    """Yield findings about settings and rights; stop at a cluster that leaves the first question unanswered."""
    for topic in topics:
        try:
            told, code = cluster.settings(topic), "NotTold"
        except CallFailed as failed:
            told, code = {}, failed.code
        if "retention.ms" in told:
            yield _compaction(place, topic, told)
            yield _retention(place, topic, told)
            yield from _sizes(place, topic, told)
        else:
            yield _no_settings(topic, code)
        if code == "NoAnswer":
            return
        yield from _rights_on_topic(place, topic, cluster)
    for group, needed in ((place.group, "READ"), (place.consumer_group, "DESCRIBE")):
        yield _granted(f"group {group}", {needed}, partial(cluster.rights_on_group, group))


def _no_settings(topic: str, code: str) -> Finding:
    return unknown(
        f"The settings of {topic} could not be read: {code}.",
        f"Grant DescribeConfigs on topic {topic}, or read them by hand: docs/kafka.md says what they must be.",
    )


def _compaction(place: KafkaTopics, topic: str, told: Mapping[str, str]) -> Finding:
    policy = told.get("cleanup.policy", "delete")
    if "compact" not in policy:
        return good(f"{topic} is not compacted.")
    if topic in place.topics:
        return unknown(
            f"{topic} is compacted: a redriven message becomes the newest of its key, whatever came since.",
            "See that the consumers can bear an older value after a newer one; else don't redrive this topic.",
        )
    return wrong(
        f"{topic} is compacted: of letters with the same key only the last is kept.",
        f"kafka-configs.sh --alter --topic {topic} --add-config cleanup.policy=delete",
    )


def _retention(place: KafkaTopics, topic: str, told: Mapping[str, str]) -> Finding:
    milliseconds = _number(told, "retention.ms")
    has_limit = _number(told, "retention.bytes") >= 0
    if topic in (place.held, place.parked):
        return check(
            milliseconds < 0 and not has_limit,
            f"{topic} keeps its records.",
            f"{topic} forgets records: letters in it would be lost.",
            f"kafka-configs.sh --alter --topic {topic} --add-config retention.ms=-1,retention.bytes=-1",
        )
    kept = timedelta(milliseconds=min(milliseconds, 10**14))
    if milliseconds >= 0 and kept < LEAST_RETENTION:
        is_dlq = topic == place.dead_letters
        told_wrong = wrong if is_dlq else unknown
        why = (
            "a letter may be gone before it is held"
            if is_dlq
            else "a redriven message may be gone before it is read"
        )
        return told_wrong(
            f"{topic} forgets records after {span(kept)}: {why}.",
            f"kafka-configs.sh --alter --topic {topic} --add-config "
            f"retention.ms={int(LEAST_RETENTION.total_seconds() * 1000)}, or more.",
        )
    if has_limit:
        return unknown(
            f"{topic} forgets records beyond {told['retention.bytes']} bytes a partition.",
            "See that so many bytes are not written within a day.",
        )
    return good(f"{topic} keeps records for {'ever' if milliseconds < 0 else span(kept)}.")


def _sizes(place: KafkaTopics, topic: str, told: Mapping[str, str]) -> Iterator[Finding]:
    most = _number(told, "max.message.bytes")
    if most < 0:
        return
    if topic in place.topics:
        yield check(
            most >= place.max_message_bytes,
            f"{topic} takes messages of {place.max_message_bytes:,} bytes.",
            f"{topic} takes {most:,} bytes a message, and the file says {place.max_message_bytes:,}.",
            f"max_message_bytes = {most} in the file, or raise max.message.bytes of {topic}.",
        )
    elif topic != place.dead_letters:
        yield check(
            most >= place.max_message_bytes + _OUR_HEADERS,
            f"{topic} takes the largest letter.",
            f"{topic} takes {most:,} bytes a message: a letter of {place.max_message_bytes:,} has headers besides.",
            f"kafka-configs.sh --alter --topic {topic} --add-config "
            f"max.message.bytes={place.max_message_bytes + _OUR_HEADERS}",
        )


def _number(told: Mapping[str, str], name: str) -> int:
    """A setting that is a number. -1 means no limit, or not known."""
    text = told.get(name, "-1")
    return int(text) if text.removeprefix("-").isdigit() else -1


def _rights_on_topic(place: KafkaTopics, topic: str, cluster: Administration) -> Iterator[Finding]:
    needed = {"DESCRIBE", "WRITE"} if topic in place.topics else {"DESCRIBE", "READ", "WRITE"}
    if topic == place.dead_letters:
        needed = {"DESCRIBE", "READ"}
    yield _granted(f"topic {topic}", needed, partial(cluster.rights_on_topic, topic))


def _granted(what: str, needed: Iterable[str], ask: Callable[[], frozenset[str] | None]) -> Finding:
    words = ", ".join(one.capitalize() for one in sorted(needed))
    try:
        told = ask()
    except CallFailed as failed:
        told, why = None, f": {failed.code}"
    else:
        why = ""
    if told is None:
        return unknown(
            f"The cluster does not tell who may do what with {what}{why}.",
            f"The process needs {words} on {what}.",
        )
    lacks = ", ".join(one.capitalize() for one in sorted(set(needed) - told))
    return check(
        not lacks,
        f"The process may do what it needs with {what}.",
        f"The process may not do with {what}: {lacks}.",
        f"Grant {words} on {what} to its principal.",
    )


def _consumers(place: KafkaTopics, log: Log, topic: str) -> Finding:
    group = place.consumer_group
    committed, bounds = log.committed(group, topic), log.bounds(topic)
    if not committed:
        return unknown(
            f"Group {group} has committed nothing of {topic}: no outcome can be told.",
            "Name the consumers' group in consumer_group; a group that never ran has committed nothing, too.",
        )
    lag = sum(max(0, end - committed.get(one, first)) for one, (first, end) in bounds.items())
    return good(f"Group {group} is {lag:,} messages behind in {topic}.")


def _position(place: KafkaTopics, log: Log) -> Finding:
    """Whether the topic dropped records that the re-driver had not read."""
    committed, bounds = (
        log.committed(place.group, place.dead_letters),
        log.bounds(place.dead_letters),
    )
    lost = sum(max(0, first - committed.get(one, first)) for one, (first, _) in bounds.items())
    return check(
        not lost,
        f"No record of {place.dead_letters} was forgotten before it was read.",
        f"{lost:,} records of {place.dead_letters} were forgotten before they were dealt with.",
        f"Keep {place.dead_letters} for longer, and the process running.",
    )


def _states(place: KafkaTopics, log: Log) -> Iterator[Finding]:
    """Whether a process would notice another state, which it does by the notes with commits."""
    if not log.committed(place.group, place.dead_letters):
        return
    if log.notes(place.group, place.dead_letters):
        yield good(f"Commits of {place.group} name their state.")
        return
    yield unknown(
        f"No commit of {place.group} names its state: a second process with another state would not be noticed.",
        "If the process has committed, the broker keeps no metadata with offsets: see yourself that one process runs.",
    )


def check_memory(session: Session) -> Iterator[Finding]:
    """Look at the state: whether it exists, its circuits, and people's orders. Raises CallFailed and Refused."""
    process = session.place.process
    if not isinstance(process, Configuration) or process.file is None:
        yield from check_state(session)
        return
    try:
        circuits = list(check_circuits(session))
    except CallFailed as failed:
        told = failed.detail or failed.code
        yield wrong(f"The state can't be read: {told}.", "Restore the file, or see who holds it.")
        return
    except Refused as absent:
        yield wrong(str(absent), "Run it again then.")
        return
    yield check_mode(session)
    yield from circuits


def check_process(session: Session) -> Iterator[Finding]:
    """Look at the process's last pass, or at the function's with its schedule. Raises CallFailed and Refused."""
    if session.place.process is None:
        yield from check_passes(session)
        yield from check_network(session)
        return
    try:
        last, now = last_pass(session), session.clock()
        started_at = session.store.load_start()
    except Refused:
        return  # `check_memory` reports on the state
    remedy = f"`redrive run --forever {session.place.stack}` runs them; what it prints says why one fails."
    is_recent = passes_of_process(last, started_at, session.settings, now) is Passes.RUN
    if last is None:
        none = "No process has ended a pass"
        yield check(is_recent, f"{none}, but one has started.", f"{none}.", remedy)
        return
    told = f"The last pass ended {ago(last.at, now)}"
    yield check(is_recent, f"{told}.", f"{told}: no process is at work.", remedy)
    for fault, count in sorted((last.report.get("faults") or {}).items()):
        yield wrong(f"The last pass met {fault} ({count:,}).", remedy)


#: The checks for letters that are records.
CHECKS: Mapping[str, Check] = {
    "cluster": check_cluster,
    "state": check_memory,
    "process": check_process,
}
