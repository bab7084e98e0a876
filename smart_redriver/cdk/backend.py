"""What a kind of queue outside SQS has in an app: an entry and a construct. Also what all such constructs make.

See `smart_redriver.engine.config.backends`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypedDict, Unpack

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from smart_redriver.cdk.bundling import Sources
from smart_redriver.cdk.key_use import DECRYPT, KEEP_ITEMS, KeyUse
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.redriver import (
    ENGINE,
    ENGINE_PLACE,
    ENTRY,
    ENTRY_HANDLER,
    LONGEST_PASS,
    in_capitals,
    tell_command,
)
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.config.backends import BACKENDS, Location
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings

#: The runbook for queues. A backend's runbook is beside it.
_RUNBOOK = "runbook.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplesRights:
    """People's rights to letters of several re-drivers of one kind. Other rights are the same, see `OnCallPolicies`.

    Attributes:
        suffix: the end of the policies' names.
        viewing, operating: statements to look at letters and to change them, for given re-drivers.

    """

    suffix: str
    viewing: Callable[[Construct, Sequence[Any]], Iterator[iam.PolicyStatement]]
    operating: Callable[[Construct, Sequence[Any]], Iterator[iam.PolicyStatement]]


class OtherRedriver(IConstruct, Protocol):
    """A construct with one re-driver whose letters are outside SQS.

    Attributes:
        encryption_key: the key of the function's environment, if there is one.
        anywhere: what its passes may connect to, if that is more than this one queue.

    """

    rights: PeoplesRights
    function: lambda_.Function
    table: dynamodb.ITableV2
    topics: Topics
    encryption_key: kms.IKey | None

    @property
    def anywhere(self) -> str | None: ...


class Around(TypedDict):
    """Arguments that an app gives the construct of each queue in its list."""

    table: dynamodb.ITableV2
    topics: Topics
    monitoring: MonitoringSettings
    removal_policy: cdk.RemovalPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedElsewhere(ABC):
    """An entry in a list of queues: a queue outside SQS, and the settings of its re-driver.

    ``name`` is what people call it.
    """

    name: str
    stack: str = ""
    region: str
    account: str
    safeguards: Safeguards
    settings: Settings = field(default_factory=Settings)

    @property
    def id(self) -> str:
        """The name as the id of its construct, and the beginning of its outputs' names."""
        return in_capitals(self.name)

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """Names that must be unique in an account and Region."""

    @abstractmethod
    def redriver(self, scope: Construct, **around: Unpack[Around]) -> OtherRedriver:
        """Create ``Redriver`` in ``scope``."""


def pass_function(
    scope: Construct,
    *,
    room: Path,
    of: str,
    deployment: Deployment,
    settings: Settings,
    safeguards: Safeguards,
    removal_policy: cdk.RemovalPolicy,
    beside: Sources = MappingProxyType({}),
) -> lambda_.Function:
    """Create the function that makes passes. ``room`` is the backend's folder, ``of`` says what holds its dead letters.

    Its bundle has the engine, the backend's own part of it, the packages in `lambda.lock` beside the construct, and
    nothing else of the backend.
    """
    return python_function(
        scope,
        package=room / "engine",
        place=f"smart_redriver/{room.name}/engine",
        handler=ENTRY_HANDLER,
        description=f"Redrives dead letters of {of}, and learns from those that return",
        memory_mib=settings.memory_mib,
        timeout=LONGEST_PASS,
        environment=deployment.to_env() | settings.to_env(),
        removal_policy=removal_policy,
        safeguards=safeguards,
        beside={**ENTRY, ENGINE_PLACE: ENGINE, **beside},
        lock_file=room / "cdk" / "lambda.lock",
    )


def let_use_keys(
    function: lambda_.Function, table: dynamodb.ITableV2, key: kms.IKey | None
) -> None:
    """Let the function use the table's key and its own, if they have one."""
    for one, service, actions in (
        (table.encryption_key, "dynamodb", KEEP_ITEMS),
        (key, "lambda", DECRYPT),
    ):
        if one is not None:
            use = KeyUse(key=one, service=service, actions=actions)
            function.add_to_role_policy(use.statement(function))


def tell_places(
    scope: Construct,
    *,
    queue: str,
    known_as: str,
    location: Location,
    function: lambda_.Function,
    settings: Settings,
    table: dynamodb.ITableV2,
    topics: Topics,
) -> None:
    """Tell the command where everything is, as a stack of adopted queues does: one JSON output for each queue.

    ``queue`` is its name in circuit and ledger, ``known_as`` its name for people and alarms.
    """
    places = {
        BACKENDS[location.origin].output: location.encode(),
        "RedriveQueue": queue,
        "RedriveAlarms": known_as,
        "RedriveFunctionName": function.function_name,
        "RedriveLogGroupName": function.log_group.log_group_name,
        "RedriveMode": settings.mode.value,
        "StateTableName": table.table_name,
        "WarningTopicArn": topics.warning.topic_arn,
        "PagingTopicArn": topics.paging.topic_arn,
    }
    tell_command(scope, places, in_capitals(known_as))


def runbook_of(monitoring: MonitoringSettings, page: str) -> str:
    """Return the address of instructions: ``page`` beside the runbook for queues."""
    return monitoring.runbook_url.replace(_RUNBOOK, page)
