"""Groups of optional arguments that an app gives to a re-driver beside its queues and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.config.targets import Origin
from smart_redriver.engine.errors import Fault

#: An alarm's name has 255 characters: a part says which alarm it is, and a part where it is. People read a name up to
#: its first space. Quotes and backslashes would end or change it in the rule of an alarm that names it.
_KNOWN_AS = re.compile(r"[^\s\"\\\x00-\x1f\x7f]{1,80}")
_ANY_KNOWN_AS = "1 to 80 characters without spaces, quotes, backslashes and control characters"

#: A construct, an ARN, or a URL.
TargetLike = (
    sqs.IQueue
    | lambda_.IFunction
    | sns.ITopic
    | stepfunctions.IStateMachine
    | firehose.IDeliveryStream
    | str
)


@dataclass(frozen=True, kw_only=True)
class Targets:
    """The targets of letters in a DLQ with an ``origin`` other than SQS. The re-driver calls exactly these.

    Attributes:
        origin: `"sns"`, `"lambda"`, `"eventbridge"` or `"scheduler"`.
        to: constructs, ARNs or URLs. If subscriptions of an SNS topic share the DLQ, a pair for each: the
            subscription's ARN and its endpoint.
        keys: the keys of the queues and topics among them, in order, or one for all. A construct has its own.
        private_hosts: hosts of URLs that may be at an address that is not public.

    """

    origin: Origin | str
    to: Sequence[TargetLike | tuple[str, TargetLike]]
    keys: Sequence[kms.IKey] = ()
    private_hosts: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Resources to use instead of new ones. Safeguards do not change them.

    Attributes:
        parking_lot: holds poison pills; FIFO if the DLQ is.
        parking_lot_key: encrypts the parking lot that the construct makes, instead of the DLQ's key.
        table: keeps circuits and ledger. Its partition key is the string `PK`, and its TTL attribute `TTL`.
        topics: notify people. Otherwise all re-drivers of a stack share two, which the first one's monitoring makes.

    """

    parking_lot: sqs.IQueue | None = None
    parking_lot_key: kms.IKey | None = None
    table: dynamodb.ITableV2 | None = None
    topics: Topics | None = None


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Names by which people and the command find a re-driver.

    Attributes:
        known_as: begins the names of its alarms, instead of the first source queue's name.
        monitoring_scope: holds its alarms and its dashboard, and no other re-driver's, such as a nested stack.
        output: whether the stack has an output that lets `redrive --stack` find it.

    """

    known_as: str | None = None
    monitoring_scope: Construct | None = None
    output: bool = True

    def faults(self) -> Iterator[Fault]:
        """Yield faults: a name that no alarm can begin with, a scope that can't hold alarms, an `output` of text."""
        name, scope = self.known_as, self.monitoring_scope
        fits = isinstance(name, str) and (
            cdk.Token.is_unresolved(name) or _KNOWN_AS.fullmatch(name)
        )
        if name is not None and not fits:
            yield Fault(setting="naming.known_as", seen=name, accepted=_ANY_KNOWN_AS)
        if scope is not None and not isinstance(scope, Construct):
            yield Fault(setting="naming.monitoring_scope", seen=scope, accepted="a construct")
        if not isinstance(self.output, bool):
            yield Fault(setting="naming.output", seen=self.output, accepted="True or False")
