"""Where a DLQ topic is, and what belongs to it: the checked table of `kafka.toml`. Standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar, Self, TypeVar

from smart_redriver.engine.config.targets import PLAIN, Origin, is_plain
from smart_redriver.engine.errors import Fault, SettingsError
from smart_redriver.kafka.engine.shapes import TOPIC

_TOPIC_NAME = "a topic's name: at most 249 letters, digits, dots, hyphens and underscores"
T = TypeVar("T")

#: A name or an address of one broker. IPv6 is in brackets.
_SERVER = r"([^\s,:\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
_SERVERS = re.compile(f"{_SERVER}(,{_SERVER})*")
_SECRET = re.compile(r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:\S+")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
_LONGEST_TO_FAIL = 7 * 86_400
_LARGEST_MESSAGE = 1 << 30


class Order(str, Enum):
    """Which messages keep their order: those with one key, or none."""

    KEY = "key"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopics:
    """A DLQ topic, where its letters go back to, and how to reach its cluster.

    Attributes:
        name: its name for ledger, logs and people.
        servers: some brokers to ask first.
        consumer_group: the group whose failed messages these are.
        topics: where letters go back to. Only these topics and the next three are ever written to.
        dead_letters: the DLQ topic.
        held: the retry topic, which keeps letters that wait longer than their partition.
        parked: the parking topic.
        time_to_fail: the longest time from the first try of a message to its record in the DLQ topic.
        commits_first: the group commits past a message before it has failed for good, as with its own retry topics.
        max_message_bytes: the largest message that the topics accept.
        secret: the ARN of a secret with user name and password, for SCRAM over TLS.
        iam_region: the Region of an MSK cluster that the process enters by IAM.
        client: further settings of librdkafka, such as those of TLS and SASL.

    """

    name: str
    servers: str
    consumer_group: str
    topics: tuple[str, ...]
    dead_letters: str
    held: str
    parked: str
    order: Order = Order.KEY
    time_to_fail: timedelta = timedelta(minutes=1)
    commits_first: bool = False
    max_message_bytes: int = 1_048_576
    secret: str = ""
    iam_region: str = ""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def group(self) -> str:
        """Our own group. Its committed offsets are where we read on."""
        return f"redrive-{self.name}"

    @property
    def home(self) -> str:
        """The topic for letters that don't say where they came from; empty if there are several."""
        return self.topics[0] if len(self.topics) == 1 else ""

    @property
    def keeps_order(self) -> bool:
        """Whether letters with one key wait for each other."""
        return self.order is Order.KEY

    @property
    def origin(self) -> Origin:
        """The origin of the DLQ topic's letters."""
        return Origin.KAFKA

    @property
    def urls(self) -> tuple[str, str, str]:
        """The names that people see for the DLQ topic, the first source topic and the parking topic."""
        first, *_ = self.servers.split(",")
        dead_letters, source, parked = (
            f"kafka://{first}/{one}" for one in (self.dead_letters, self.topics[0], self.parked)
        )
        return dead_letters, source, parked

    @property
    def names_within(self) -> str:
        """The name: several groups can fail messages of one topic, and clusters can have topics with equal names."""
        return self.name

    @property
    def services(self) -> tuple[str, ...]:
        """The service with the password, if there is a secret. Brokers have no AWS service endpoint."""
        return ("secretsmanager",) if self.secret else ()

    def encode(self) -> str:
        """The table that `read` takes, as JSON."""
        table = {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "order": self.order.value,
            "time_to_fail_seconds": int(self.time_to_fail.total_seconds()),
        }
        del table["time_to_fail"]
        return json.dumps(table, separators=(",", ":"))

    @property
    def further_sources(self) -> tuple[str, ...]:
        """The other topics that letters go back to."""
        return self.topics[1:]

    #: The variable that holds it in the environment of a function.
    variable: ClassVar[str] = "KAFKA"
    names: ClassVar[str] = _TOPIC_NAME

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text that `encode` wrote. Raises SettingsError listing every fault."""
        try:
            table = json.loads(text)
        except ValueError:
            table = None
        if not isinstance(table, dict):
            raise SettingsError([Fault(setting=cls.variable, seen=text, accepted="JSON of topics")])
        return cls.read(table)

    @classmethod
    def may_be_called(cls, name: str) -> bool:
        """Whether a source can have this name, which must be a topic's."""
        return TOPIC.fullmatch(name) is not None

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Read a table of `kafka.toml` or `queues.toml`. Raises SettingsError listing every fault."""
        reader = _Reader(table)
        dead_letters = reader.topic("dead_letters")
        place = cls(
            name=reader.matching("name", is_plain, PLAIN),
            servers=reader.matching("servers", _SERVERS.fullmatch, "host:port,host:port"),
            consumer_group=reader.matching(
                "consumer_group", str.isprintable, "the consumers' group"
            ),
            topics=reader.topics(),
            dead_letters=dead_letters,
            held=reader.topic("held", f"{dead_letters}.held"),
            parked=reader.topic("parked", f"{dead_letters}.parked"),
            order=reader.order(),
            time_to_fail=timedelta(
                seconds=reader.number("time_to_fail_seconds", 60, _LONGEST_TO_FAIL)
            ),
            commits_first=reader.flag("commits_first"),
            max_message_bytes=reader.number("max_message_bytes", 1_048_576, _LARGEST_MESSAGE),
            secret=reader.optional("secret", _SECRET, "the ARN of a secret"),
            iam_region=reader.optional("iam_region", _REGION, "a Region, such as eu-west-1"),
            client=reader.client(),
        )
        if place.secret and place.iam_region:
            reader.faults.append(
                Fault(setting="iam_region", seen=place.iam_region, accepted="nothing beside secret")
            )
        if place.secret or place.iam_region:
            reader.check_credentials(place.client)
        reader.check_names()
        if faults := reader.faults or list(_in_two_roles(place)):
            raise SettingsError(faults)
        return place


class _Hidden:
    def __repr__(self) -> str:
        return "a value that is not shown, because it may be a password"


#: A fault shows this for a value at a wrong place.
HIDDEN = _Hidden()


class _Reader:
    """Reads one table and collects its faults."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self.faults: list[Fault] = []

    def matching(self, name: str, fits: Any, accepted: str) -> str:
        value = self._table.get(name)
        if isinstance(value, str) and value and fits(value):
            return value
        return self._fault(name, value, accepted, "")

    def optional(self, name: str, pattern: re.Pattern[str], accepted: str) -> str:
        value = self._table.get(name, "")
        if isinstance(value, str) and (not value or pattern.fullmatch(value)):
            return value
        return self._fault(name, value, accepted, "")

    def topic(self, name: str, usual: str | None = None) -> str:
        value = self._table.get(name, usual)
        if isinstance(value, str) and TOPIC.fullmatch(value):
            return value
        return self._fault(name, value, _TOPIC_NAME, "")

    def topics(self) -> tuple[str, ...]:
        value = self._table.get("topics")
        if isinstance(value, list) and value and all(map(_is_topic, value)):
            if len(set(value)) == len(value):
                return tuple(value)
            return self._fault("topics", value, "a list that names each topic once", ("",))
        return self._fault("topics", value, f"a list of topics, each {_TOPIC_NAME}", ("",))

    def order(self) -> Order:
        value = self._table.get("order", Order.KEY.value)
        try:
            return Order(value)
        except ValueError:
            return self._fault("order", value, "key, none", Order.KEY)

    def number(self, name: str, usual: int, most: int) -> int:
        value = self._table.get(name, usual)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        return self._fault(name, value, f"a whole number from 1 to {most}", usual)

    def flag(self, name: str) -> bool:
        value = self._table.get(name, False)
        return value if isinstance(value, bool) else self._fault(name, value, "true, false", False)

    def client(self) -> dict[str, str]:
        value = self._table.get("client", {})
        if not isinstance(value, dict):
            return self._fault("client", HIDDEN, "a table of librdkafka's settings", {})
        if ours := sorted(OURS & value.keys()):
            return self._fault("client", ", ".join(ours), "none that the re-driver sets itself", {})
        # Of a list or table, and of a callback of the Python client, text would be made. A value may be a password.
        if unfit := [name for name, one in value.items() if not isinstance(one, str | int | float)]:
            return self._fault("client", ", ".join(unfit), "text, numbers, true and false", {})
        return {name: _setting(one) for name, one in value.items()}

    def check_credentials(self, client: Mapping[str, str]) -> None:
        if given := sorted(OUR_CREDENTIALS & client.keys()):
            accepted = "no credentials beside secret or iam_region"
            self._fault("client", ", ".join(given), accepted, None)

    def check_names(self) -> None:
        known = {one.name for one in fields(KafkaTopics)} - {"time_to_fail"}
        for name in sorted(self._table.keys() - known - {"time_to_fail_seconds"}):
            # A setting of librdkafka may have come here, such as a password.
            self._fault(name, HIDDEN, "nothing: there is no such setting", None)

    def _fault(self, name: str, seen: object, accepted: str, instead: T) -> T:
        self.faults.append(Fault(setting=name, seen=seen, accepted=accepted))
        return instead


#: Settings of librdkafka and its Python client that `KafkaLog` sets, by all their names: the file's would not count.
#: Also one that would create a retry topic whose records expire.
OURS = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.offset.reset",
        "batch.size",
        "bootstrap.servers",
        "default.topic.config",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "error_cb",
        "fetch.wait.max.ms",
        "group.id",
        "isolation.level",
        "linger.ms",
        "log_level",
        "logger",
        "message.max.bytes",
        "message.timeout.ms",
        "metadata.broker.list",
        "partitioner",
        "queue.buffering.max.ms",
        "request.required.acks",
        "transactional.id",
    }
)
#: Settings that a secret or IAM provides.
OUR_CREDENTIALS = frozenset(
    {
        "oauth_cb",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.username",
        "security.protocol",
    }
)


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_topic(value: object) -> bool:
    return isinstance(value, str) and TOPIC.fullmatch(value) is not None


def _in_two_roles(place: KafkaTopics) -> Iterator[Fault]:
    """Yield a fault for each topic that is given twice, and for our own group as the consumers'.

    A DLQ that is its own source would be redriven for ever.
    """
    known = dict.fromkeys(place.topics, "topics")
    for role in ("dead_letters", "held", "parked"):
        topic = getattr(place, role)
        if (other := known.setdefault(topic, role)) != role:
            yield Fault(setting=role, seen=topic, accepted=f"another topic than {other}")
    if place.consumer_group == place.group:
        accepted = "the consumers' group, which is not the re-driver's own"
        yield Fault(setting="consumer_group", seen=place.consumer_group, accepted=accepted)
