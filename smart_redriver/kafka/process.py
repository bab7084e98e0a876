"""`kafka.toml`, and the process of `redrive run --forever`: passes beside the broker, until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar
from uuid import uuid4

from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.backends import Stopped
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import FOR_MADE_QUEUES, FOR_SYNTH, Settings
from smart_redriver.engine.errors import CallFailed, Fault, SettingsError
from smart_redriver.engine.passes.circuit_keeper import GIVES_WAY_FOR, is_next_turn_asked_for
from smart_redriver.engine.passes.ports import Journal, Tools
from smart_redriver.engine.passes.redrive_pass import Rhythm, run_invocation
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.kafka.engine.connection import DeadLetterTopic
from smart_redriver.kafka.engine.credentials import Account
from smart_redriver.kafka.engine.open_letters import MOST_LETTERS
from smart_redriver.kafka.engine.place import HIDDEN, KafkaTopics
from smart_redriver.kafka.engine.records import Log, NewRecord, Partition, Position, Reading
from smart_redriver.kafka.sqlite import TABLE, SqliteTable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

P = ParamSpec("P")
T = TypeVar("T")

#: An invocation ends by itself within this time. If the process dies, its lease lasts as long.
LONGEST_VISIT = timedelta(minutes=2)

#: Seconds between two checks whether something is due.
TICK = 1.0

#: While redriven messages are out, a pass is due this soon after the last. A look costs a few calls to the broker.
WHILE_OUT = timedelta(seconds=5)

#: So often the process reads whether a person has given an order: a pass by the schedule may be minutes away.
ORDERS_EVERY = timedelta(seconds=10)

#: Tables that the file may hold.
_TABLES = ("kafka", "state", "settings")
#: Settings that a process can't follow: it makes no queue, and no event reaches it.
_FOR_STACKS = ("downstream", *FOR_SYNTH, *FOR_MADE_QUEUES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The content of `kafka.toml`: either `file` or `table` holds the state."""

    topics: KafkaTopics
    settings: Settings
    file: Path | None
    table: str | None

    @property
    def deployment(self) -> Deployment:
        """The topics, and the state table."""
        topics = self.topics
        return Deployment.at(topics, queue_name=topics.topics[0], table_name=self.table or TABLE)

    def open_state(self, *, is_made: bool = False) -> SqliteTable | None:
        """See `ProcessFile`."""
        if self.file is None:
            return None
        return SqliteTable.open(self.file, time.time, is_made=is_made)

    def run(
        self,
        journal: Journal,
        pause: Callable[[float], None],
        is_asked_to_end: Callable[[], bool],
        account: Account,
    ) -> None:
        """See `ProcessFile`."""
        from smart_redriver.kafka.engine.client import KafkaLog

        topics, deployment = self.topics, self.deployment
        with ExitStack() as stack:
            if (state := self.open_state(is_made=True)) is not None:
                stack.callback(state.close)
            memory = StateStore(
                state or account.client("dynamodb"),
                deployment.table_name,
                deployment.queue_name,
                names_within=deployment.names_within,
                letters_within=deployment.letters_within,
            )
            cluster = KafkaLog(topics, account)
            log = EndingLog(cluster, is_asked_to_end)
            name = state.identity() if state is not None else deployment.table_name
            connection = DeadLetterTopic(log, topics, _now, cluster.close, state=name)
            stack.callback(connection.close)
            journal("process.started", name=topics.name, dead_letters=topics.dead_letters)
            Process(
                connection, memory, self.settings, journal=journal, clock=_now, pause=pause
            ).run()

    @classmethod
    def read(cls, tables: Mapping[str, Any]) -> Self:
        """Raises SettingsError listing every fault."""
        faults = [
            Fault(
                setting=name,
                seen=HIDDEN,
                accepted=f"the tables {', '.join(_TABLES)}",
            )
            for name in sorted(tables.keys() - set(_TABLES))
        ]
        faults += [
            Fault(setting=name, seen=HIDDEN, accepted=f"one table, [{name}]")
            for name in _TABLES
            if not isinstance(tables.get(name, {}), dict)
        ]
        topics = _read(faults, lambda: KafkaTopics.read(_table(tables, "kafka")))
        settings = _read(faults, lambda: Settings.parse(_table(tables, "settings")))
        if topics is not None:
            faults += _refused_by_librdkafka(topics)
        file, table = _state(_table(tables, "state"), faults)
        faults += [
            Fault(setting=name, seen=value, accepted="nothing: no setting is called so")
            for name, value in sorted(_table(tables, "settings").items())
            if name not in Settings.names()
        ]
        faults += [
            Fault(setting=name, seen=value, accepted="nothing: it is for a stack")
            for name, value in _table(tables, "settings").items()
            if name in _FOR_STACKS
        ]
        if topics is None or settings is None or faults:
            raise SettingsError(faults)
        return cls(topics=topics, settings=settings, file=file, table=table)


def _read(faults: list[Fault], read: Callable[[], Any]) -> Any:
    try:
        return read()
    except SettingsError as error:
        faults += error.faults
        return None


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = tables.get(name, {})
    return value if isinstance(value, dict) else {}


#: Settings that the process adds to those of the file, if they affect whether librdkafka accepts the file's.
_OUR_PRODUCER = {"acks": "all", "enable.idempotence": True, "log_level": 0}
_OUR_CONSUMER = {"group.id": "redrive", "log_level": 0}
#: Stands for the credentials that a secret or IAM will give.
_SOME_CREDENTIALS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "user",
    "sasl.password": "password",
}


def _refused_by_librdkafka(topics: KafkaTopics) -> list[Fault]:
    """The settings of `client` that librdkafka refuses, by their names: a value may be a password."""
    ours = _SOME_CREDENTIALS if topics.secret or topics.iam_region else {}
    left, faults = dict(topics.client), []
    while left and (told := _refusal({**left, **ours})):
        names = [one for one in left if f'"{one}"' in told or f"`{one}`" in told] or sorted(left)
        accepted = f"what librdkafka takes. It says: {told}"
        faults.append(Fault(setting="client", seen=", ".join(names), accepted=accepted))
        left = {name: value for name, value in left.items() if name not in names}
    return faults


def _refusal(settings: Mapping[str, Any]) -> str | None:
    """Librdkafka's objection to settings. This makes no connection. If librdkafka is missing, a later call says so."""
    try:
        from confluent_kafka import Consumer, KafkaException, Producer
    except ImportError:
        return None
    try:
        Producer({**settings, **_OUR_PRODUCER})
        Consumer({**settings, **_OUR_CONSUMER}).close()
    except (TypeError, ValueError) as refused:
        return str(refused)
    except KafkaException as refused:
        error: KafkaError = refused.args[0]
        return error.str().strip()
    return None


def _state(state: Mapping[str, Any], faults: list[Fault]) -> tuple[Path | None, str | None]:
    file, table = state.get("sqlite"), state.get("dynamodb")
    is_one = isinstance(file or table, str) and len(state) == 1
    if not is_one:
        accepted = 'either sqlite = "FILE" or dynamodb = "TABLE"'
        faults.append(Fault(setting="state", seen=dict(state) or None, accepted=accepted))
        return None, None
    return (Path(file), None) if file else (None, table)


class EndingLog:
    """A log of a process that may be asked to end. Once a call has no answer then, each further one fails at once.

    Otherwise the process would wait for each call of its pass. To the pass, it is a cluster that has gone.
    """

    def __init__(self, log: Log, is_asked_to_end: Callable[[], bool]) -> None:
        self._log = log
        self._is_asked_to_end = is_asked_to_end
        self._last: CallFailed | None = None

    def partitions(self, topic: str) -> int:
        return self._ask(self._log.partitions, topic)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return self._ask(self._log.topic_ids, topics)

    def bounds(self, topic: str) -> dict[Partition, tuple[int, int]]:
        return self._ask(self._log.bounds, topic)

    def written_by(self, topic: str, at: datetime) -> int:
        return self._ask(self._log.written_by, topic, at)

    def committed(self, group: str, topic: str) -> dict[Partition, int]:
        return self._ask(self._log.committed, group, topic)

    def commit(self, group: str, offsets: Mapping[Partition, int], note: str = "") -> None:
        return self._ask(self._log.commit, group, offsets, note)

    def notes(self, group: str, topic: str) -> set[str]:
        return self._ask(self._log.notes, group, topic)

    def read(self, start: Mapping[Partition, int], limit: int) -> Reading:
        return self._ask(self._log.read, start, limit)

    def write(self, records: Sequence[NewRecord]) -> list[Position | CallFailed]:
        return self._ask(self._log.write, records)

    def _ask(self, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        if (last := self._last) is not None:
            raise CallFailed(last.call, last.code, last.detail)
        try:
            return call(*given, **named)
        except CallFailed as failed:
            if failed.code == "NoAnswer" and self._is_asked_to_end():
                self._last = failed
            raise


class Process:
    """Runs passes. `pause` waits for some seconds, and raises Stopped when the process should end."""

    def __init__(
        self,
        connection: DeadLetterTopic,
        memory: StateStore,
        settings: Settings,
        *,
        journal: Journal,
        clock: Callable[[], datetime],
        pause: Callable[[float], None],
    ) -> None:
        self._connection = connection
        self._memory = memory
        self._settings = settings
        self._journal: Journal = ToldOnce(journal)
        self._clock = clock
        self._pause = pause
        self._rhythm = Rhythm()
        self._looked_at: datetime | None = None
        self._gives_way_until: datetime | None = None
        self._topics: tuple[str, ...] = ()
        self._ordered: list[object] | None = []
        self._asked_at: datetime | None = None
        self._has_told_what_it_found = False
        self._owner = str(uuid4())

    def run(self) -> None:
        """Run invocation after invocation, until Stopped. Raises errors that no pass can fix."""
        try:
            self._memory.save_start(self._clock())
        except CallFailed as failed:
            self._tell_failed(failed)
        try:
            while True:
                if self._is_due(self._clock()):
                    self._invocation()
                    self._looked_at = self._clock()
                self._pause(TICK)
        except Stopped:
            self._journal("process.stopped")

    def _is_due(self, now: datetime) -> bool:
        if self._gives_way_until is not None and now < self._gives_way_until:
            return False
        if self._looked_at is not None and self._connection.awaits_outcomes:
            return now >= self._looked_at + WHILE_OUT
        return self._rhythm.is_due(now) or self._has_orders(now)

    def _has_orders(self, now: datetime) -> bool:
        """Whether a person has paused, resumed, drained, closed or opened since the last pass."""
        if self._asked_at is not None and now < self._asked_at + ORDERS_EVERY:
            return False
        return self._orders(now) != self._ordered

    def _orders(self, now: datetime) -> list[object] | None:
        """By topic, all that commands change; None if the state can't be read, as the next pass will say, too."""
        self._asked_at = now
        try:
            circuits = [self._memory.of(name).load_circuit() for name in self._topics]
        except CallFailed:
            return None
        return [one and (one.orders, one.state) for one in circuits]

    def _tell_what_it_found(self) -> None:
        """Log it once, before the first letter goes. Try again later if that fails."""
        try:
            found = self._connection.found()
        except CallFailed as failed:
            self._tell_failed(failed)
            return
        self._has_told_what_it_found = True
        reads_from = "the committed position"
        if found.is_first:
            reads_from = "its beginning, since our group has committed nothing yet"
        self._journal("topic.found", records=found.records, reads_from=reads_from)
        if found.another_state is not None:
            self._tell_failed(found.another_state)

    def _tell_failed(self, failed: CallFailed) -> None:
        self._journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)

    def _invocation(self) -> None:
        if not self._has_told_what_it_found:
            self._tell_what_it_found()
        tools = Tools(
            **self._connection.parts(self._memory, self._clock),
            journal=self._journal,
            clock=self._clock,
            rng=Random(),
            owner=self._owner,
            workers=self._connection.workers,
        )
        self._topics = tuple(one.name for one in tools.sources)
        deadline = self._clock() + LONGEST_VISIT
        passes = run_invocation(tools, self._settings, deadline=deadline, pause=self._pause)
        with closing(passes):  # which gives the lease back
            for report in passes:
                now = self._clock()
                self._rhythm.looked(report, now)
                self._connection.after_pass(tools, {})
                self._tell(report, now)
                if self._is_asked_to_give_way(tools):
                    self._gives_way_until = self._clock() + GIVES_WAY_FOR
                    break
            self._ordered = self._orders(self._clock())

    def _is_asked_to_give_way(self, tools: Tools) -> bool:
        """Whether a person's command waits for the lease. A failure is logged, and the person waits longer."""
        queue = tools.sources[0].name
        try:
            return is_next_turn_asked_for(self._memory, queue, self._owner, self._clock())
        except CallFailed as failed:
            self._tell_failed(failed)
            return False

    def _tell(self, report: Report, now: datetime) -> None:
        """Leave the report where the command finds it. A failure of that is logged, and stops no pass."""
        if report.outcome is Outcome.LEASE_HELD:
            return  # the holder of the lease reports
        try:
            self._memory.save_pass(report.to_json(), now)
        except CallFailed as failed:
            self._tell_failed(failed)


class ToldOnce:
    """A journal that says only once that a letter stays, and why, because passes come within seconds of each other."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._told: dict[str, tuple[Any, ...]] = {}

    def __call__(self, event: str, /, **fields: Any) -> None:
        """Write the event, unless it is the same as the last one about its letter."""
        if event.startswith("letter."):
            letter, told = fields["original_id"], (event, fields["reason"], fields["redrive_count"])
            if event in _STAYS and self._told.get(letter) == told:
                return
            self._told.pop(letter, None)
            if event in _STAYS:
                self._told[letter] = told
            if len(self._told) > _LETTERS_REMEMBERED:
                del self._told[next(iter(self._told))]
        self._journal(event, **fields)


_STAYS = frozenset({"letter.held", "letter.stuck"})
#: As many letters as the process may have in memory.
_LETTERS_REMEMBERED = MOST_LETTERS


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
