"""What a kind of queue outside of SQS brings to an app, see `smart_redriver.engine.config.backends`: its entry,
and its construct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.config.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplesRights:
    """What people may do for several re-drivers of one kind.

    Attributes:
        suffix: what the names of the policies end with.
        most: re-drivers that one policy has room for.
        viewing, operating: to look, and to change, for the re-drivers that are given.

    """

    suffix: str
    most: int
    viewing: Callable[[Construct, Sequence[Any]], Iterator[iam.PolicyStatement]]
    operating: Callable[[Construct, Sequence[Any]], Iterator[iam.PolicyStatement]]


class OtherRedriver(IConstruct, Protocol):
    """A construct with one re-driver whose letters are outside of SQS.

    Attributes:
        credentials: the action by which a pass gets to its letters, and what that is allowed on.
        may_connect_anywhere: that is allowed on more than this one queue.

    """

    rights: PeoplesRights
    function: lambda_.Function

    @property
    def credentials(self) -> tuple[str, str]: ...
    @property
    def may_connect_anywhere(self) -> bool: ...


class AdoptedElsewhere(Protocol):
    """An entry of a list of queues: a queue outside of SQS, and the settings of its re-driver."""

    @property
    def name(self) -> str: ...
    @property
    def stack(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def places(self) -> tuple[str, ...]: ...
    @property
    def safeguards(self) -> Safeguards: ...
    @property
    def settings(self) -> Settings: ...
    def redriver(
        self,
        scope: Construct,
        *,
        table: dynamodb.ITableV2,
        topics: Topics,
        monitoring: MonitoringSettings,
        removal_policy: cdk.RemovalPolicy,
    ) -> OtherRedriver:
        """Create `Redriver` in `scope`."""
        ...
