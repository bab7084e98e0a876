"""Owns where the function's letters and its state table are: the stack puts that into its environment.

Standard library only, as ``settings``: synth, Lambda and simulator all import this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Self

from smart_redriver.engine.config.backends import BACKENDS, Location, LocationReader
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import Origin, Target, is_fifo, read_targets, within
from smart_redriver.engine.errors import Fault, SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The places of the function's queues and table.

    ``queue_name`` is the source queue's name. ``further_source_urls`` are other source queues that
    share its DLQ; in the environment they are one text, separated by spaces. ``outcome_queue_url`` is where consumers
    report, empty if there is no such queue.

    A DLQ that an ``origin`` other than SQS fills has ``targets`` instead of source queues, and ``queue_name`` is the
    first target's name. ``private_hosts`` are the web targets' hosts that may have addresses that are not public.

    A queue outside SQS has a ``location``; its queue URLs are only texts for people to read.
    """

    queue_name: str = field(metadata={"variable": "QUEUE_NAME"})
    table_name: str = field(metadata={"variable": "DYNAMODB_TABLE_NAME"})
    dlq_url: str = field(metadata={"variable": "DLQ_URL"})
    source_queue_url: str = field(metadata={"variable": "SOURCE_QUEUE_URL"})
    parking_lot_url: str = field(metadata={"variable": "PARKING_LOT_URL"})
    further_source_urls: tuple[str, ...] = ()
    outcome_queue_url: str = ""
    origin: Origin = Origin.SQS
    targets: tuple[Target, ...] = ()
    private_hosts: tuple[str, ...] = ()
    location: Location | None = None

    @classmethod
    def at(cls, location: Location, *, queue_name: str, table_name: str) -> Self:
        """The place of a queue outside SQS, and its state table."""
        dead_letters, source, parking_lot = location.urls
        return cls(
            queue_name=queue_name,
            table_name=table_name,
            dlq_url=dead_letters,
            source_queue_url=source,
            parking_lot_url=parking_lot,
            origin=location.origin,
            location=location,
        )

    @property
    def letters_within(self) -> str:
        """The queue within which an id means one letter; empty for SQS, which gives no id twice.

        Tables and topics each count their rows from one.
        """
        return self.names_within or self.queue_name if self.location is not None else ""

    @property
    def names_within(self) -> str:
        """The name within which a source's name means one source; empty if names are unique."""
        return self.location.names_within if self.location is not None else ""

    def called(self, queue: str) -> str:
        """The name of a source in the state table and in the account's metrics."""
        return within(self.names_within, queue)

    @property
    def source_urls(self) -> tuple[str, ...]:
        """Every source queue that shares the DLQ, the first one first; none if there are targets instead."""
        if self.origin is not Origin.SQS:
            return ()
        return (self.source_queue_url, *self.further_source_urls)

    @property
    def source_names(self) -> tuple[str, ...]:
        """The source queues' names in circuits, metadata and ledger, in the same order.

        All source queues of a DLQ are in its account and Region, so a name tells them apart.
        """
        if self.location is not None:
            return (self.queue_name, *self.location.further_sources)
        if self.origin is not Origin.SQS:
            return (self.queue_name, *(one.name for one in self.targets[1:]))
        further = (url.rpartition("/")[2] for url in self.further_source_urls)
        return (self.queue_name, *further)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the variables. Raises SettingsError listing all that are missing or empty, and queues that don't fit.

        Only ``OUTCOME_QUEUE_URL`` may be missing, and ``SOURCE_QUEUE_URLS``, as most DLQs have one source. With an
        ``ORIGIN`` other than SQS, which has ``TARGETS``, all variables of a source queue may be missing.
        """
        origin = _origin(env)
        if BACKENDS[origin].location:
            return cls._outside_of_sqs(env, BACKENDS[origin].load("location"))
        variables = _variables(cls)
        if origin is not Origin.SQS:
            del variables["source_queue_url"]
        faults = [
            Fault(
                setting=variable,
                seen=env.get(variable),
                accepted="a name or URL, with no space around it",
            )
            for variable in variables.values()
            if not (place := env.get(variable, "")) or place != place.strip()
        ]
        targets, unfit_targets = read_targets(origin, tuple(env.get(_TARGETS, "").split()))
        if faults := [*faults, *unfit_targets]:
            raise SettingsError(faults)
        places = {name: env[variable] for name, variable in variables.items()}
        further = tuple(env.get(_FURTHER_SOURCES, "").split())
        if unfit := [
            *_in_two_roles(env, further),
            *_of_two_kinds(env, further),
            *_in_order(env, origin),
        ]:
            raise SettingsError(unfit)
        return cls(
            **{"source_queue_url": "", **places},  # type: ignore[arg-type]  # the fields with a variable are texts
            further_source_urls=further,
            outcome_queue_url=env.get(_OUTCOMES, ""),
            origin=origin,
            targets=targets,
            private_hosts=tuple(env.get(_PRIVATE_HOSTS, "").split()),
        )

    @classmethod
    def _outside_of_sqs(cls, env: Mapping[str, str], reader: LocationReader) -> Self:
        faults = [
            Fault(setting=one, seen=env.get(one), accepted="a name, not empty")
            for one in _OUTSIDE_OF_SQS
            if not env.get(one, "").strip()
        ]
        queue_name = env.get("QUEUE_NAME", "")
        if queue_name and not reader.may_be_called(queue_name):
            faults.append(Fault(setting="QUEUE_NAME", seen=queue_name, accepted=reader.names))
        location = None
        try:
            location = reader.parse(env.get(reader.variable, ""))
        except SettingsError as error:
            faults += error.faults
        if location is None or faults:
            raise SettingsError(faults)
        return cls.at(location, queue_name=queue_name, table_name=env["DYNAMODB_TABLE_NAME"])

    def to_env(self) -> dict[str, str]:
        """The variables: the inverse of ``from_env``."""
        if self.location is not None:
            reader: LocationReader = BACKENDS[self.origin].load("location")
            return {
                "QUEUE_NAME": self.queue_name,
                "DYNAMODB_TABLE_NAME": self.table_name,
                _ORIGIN: self.origin.value,
                reader.variable: self.location.encode(),
            }
        env = {variable: str(getattr(self, name)) for name, variable in _variables(self).items()}
        if self.further_source_urls:
            env[_FURTHER_SOURCES] = " ".join(self.further_source_urls)
        if self.outcome_queue_url:
            env[_OUTCOMES] = self.outcome_queue_url
        if self.origin is not Origin.SQS:
            del env["SOURCE_QUEUE_URL"]
            env |= {_ORIGIN: self.origin.value, _TARGETS: " ".join(map(str, self.targets))}
        if self.private_hosts:
            env[_PRIVATE_HOSTS] = " ".join(self.private_hosts)
        return env


_FURTHER_SOURCES = "SOURCE_QUEUE_URLS"
_OUTCOMES = "OUTCOME_QUEUE_URL"
_ORIGIN = "ORIGIN"
_TARGETS = "TARGETS"
_PRIVATE_HOSTS = "PRIVATE_HOSTS"
_OUTSIDE_OF_SQS = ("QUEUE_NAME", "DYNAMODB_TABLE_NAME")


def _origin(env: Mapping[str, str]) -> Origin:
    """The origin of the DLQ's letters. Raises SettingsError for an unknown one."""
    try:
        return Origin(env.get(_ORIGIN) or Origin.SQS)
    except ValueError:
        accepted = ", ".join(one.value for one in Origin)
        raise SettingsError(
            [Fault(setting=_ORIGIN, seen=env[_ORIGIN], accepted=accepted)]
        ) from None


def _in_two_roles(env: Mapping[str, str], further: Sequence[str]) -> Iterator[Fault]:
    """A fault for each queue that is given twice: if a DLQ were its own source, live messages would be redriven."""
    urls = _urls(env, further)
    if reports := env.get(_OUTCOMES):
        urls.append((_OUTCOMES, reports))
    for place, (role, url) in enumerate(urls):
        if other := next((one for one, earlier in urls[:place] if earlier == url), None):
            yield Fault(setting=role, seen=url, accepted=f"another queue than {other}")


def _of_two_kinds(env: Mapping[str, str], further: Sequence[str]) -> Iterator[Fault]:
    """A fault for each queue that is not FIFO if the first one is, or vice versa; reports are never in order."""
    (first, first_url), *others = _urls(env, further)
    in_order = is_fifo(first_url)
    kind = "a FIFO queue" if in_order else "a standard queue"
    for role, url in others:
        if is_fifo(url) != in_order:
            yield Fault(setting=role, seen=url, accepted=f"{kind}, as {first} is")
    if is_fifo(env.get(_OUTCOMES, "")):
        yield Fault(setting=_OUTCOMES, seen=env[_OUTCOMES], accepted="a standard queue")


def _in_order(env: Mapping[str, str], origin: Origin) -> Iterator[Fault]:
    """A fault for a FIFO DLQ that SQS does not fill: no other origin keeps letters in order here."""
    if origin is not Origin.SQS and is_fifo(env["DLQ_URL"]):
        accepted = f"a standard queue, with origin {origin.value}"
        yield Fault(setting="DLQ_URL", seen=env["DLQ_URL"], accepted=accepted)


def _urls(env: Mapping[str, str], further: Sequence[str]) -> list[tuple[str, str]]:
    """The queues that hold letters, each by its variable."""
    one_each = ("SOURCE_QUEUE_URL", "DLQ_URL", "PARKING_LOT_URL")
    return [
        *((role, env[role]) for role in one_each if env.get(role)),
        *((_FURTHER_SOURCES, url) for url in further),
    ]


def _variables(deployment: Deployment | type[Deployment]) -> dict[str, str]:
    """The environment variables that each deployment needs, by the field that holds each."""
    return {
        place.name: str(place.metadata["variable"])
        for place in fields(deployment)
        if "variable" in place.metadata
    }


def read_environment(env: Mapping[str, str]) -> tuple[Settings, Deployment]:
    """The settings and the places in the function's environment.

    Raises SettingsError listing every fault of both, so that a person can fix them all at once.
    """
    faults: list[Fault] = []
    try:
        settings = Settings.from_env(env)
    except SettingsError as error:
        faults += error.faults
    try:
        deployment = Deployment.from_env(env)
    except SettingsError as error:
        faults += error.faults
    if faults:
        raise SettingsError(faults)
    return settings, deployment
