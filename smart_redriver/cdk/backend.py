"""The parts of a kind of queue outside SQS in an app (see `smart_redriver.engine.config.backends`): its entry,
and its construct; and what all such constructs make.
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

#: The runbook for queues. That of a backend is beside it, wherever that is.
_RUNBOOK = "runbook.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplesRights:
    """Rights of people to letters of several re-drivers of one kind; other rights are alike, see `OnCallPolicies`.

    Attributes:
        suffix: what the names of the policies end with.
        viewing, operating: to look at letters, and to change them, for the re-drivers that are given.

    """

    suffix: str
    viewing: Callable[[Construct, Sequence[Any]], Iterator[iam.PolicyStatement]]
    operating: Callable[[Construct, Sequence[Any]], Iterator[iam.PolicyStatement]]


class OtherRedriver(IConstruct, Protocol):
    """A construct with one re-driver whose letters are outside of SQS.

    Attributes:
        encryption_key: that of the function's environment, where there is one.
        anywhere: what its passes may connect to, where that is more than this one queue.

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
    """An entry of a list of queues: a queue outside of SQS, and the settings of its re-driver.

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
        """The name as the id of its construct, and what the names of its outputs begin with."""
        return in_capitals(self.name)

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """Names that may be there once in an account and Region."""

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
    """Create the function that makes passes. ``room`` is the backend's folder, ``of`` what holds its dead letters.

    Its bundle has the engine, the room's own part of it, what `lambda.lock` beside the construct names, and nothing
    else of the backend.
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
    """Let it use the table's key and its own, where they have one."""
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
    """Tell the command where all of it is, as a stack of adopted queues does: an output for each queue, of JSON.

    ``queue`` is what circuit and ledger call it, ``known_as`` what people and alarms do.
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
