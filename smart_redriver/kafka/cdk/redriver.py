"""The re-driver of a DLQ topic in a cluster of MSK: a function in the cluster's network, and its schedule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from smart_redriver.cdk.acknowledged import CONNECTING, accept_passes
from smart_redriver.cdk.arguments import checked
from smart_redriver.cdk.invocations import alarms_elsewhere, hear_recovery, schedule_ticks
from smart_redriver.cdk.key_use import DECRYPT, KEEP_ITEMS, KeyUse
from smart_redriver.cdk.outputs import in_capitals, tell_command
from smart_redriver.cdk.owners import open_key
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.redriver import ENGINE, ENGINE_PLACE, ENTRY, ENTRY_HANDLER, LONGEST_PASS
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import KEEP_STATE, shared_state_table, without_key
from smart_redriver.cdk.taken import take_resources
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault
from smart_redriver.kafka.engine.place import KafkaTopics

#: What the function runs beside the engine, and nothing else of this backend.
_ENGINE = Path(__file__).resolve().parents[1] / "engine"
#: A link to `requirements/lambda-kafka.lock`, which a wheel has as a file.
LOCK_FILE = Path(__file__).with_name("lambda.lock")
#: Of the 4 KB that a function's environment may have, what the settings leave, at their longest.
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_TOPICS = 2_500

_CLUSTER = re.compile(
    r"arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/(?P<name>[A-Za-z0-9._-]+)/(?P<id>[a-z0-9-]+)"
)
#: What IAM lets do with a cluster, a topic and a group.
#: https://docs.aws.amazon.com/msk/latest/developerguide/iam-access-control-use-cases.html
_CONNECT = ("kafka-cluster:Connect", "kafka-cluster:WriteDataIdempotently")
_READ = ("kafka-cluster:DescribeTopic", "kafka-cluster:ReadData")
_WRITE = ("kafka-cluster:DescribeTopic", "kafka-cluster:WriteData")
_BOTH = ("kafka-cluster:DescribeTopic", "kafka-cluster:ReadData", "kafka-cluster:WriteData")
_KEEP_POSITION = ("kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup")
_SEE_POSITION = ("kafka-cluster:DescribeGroup",)


class KafkaRedriver(Construct):
    """``function`` makes passes over a DLQ topic; each minute it is asked whether one is due.

    ``topics`` says where they are, and how the cluster is entered: by `iam_region`, with ``cluster_arn``, or by
    `secret`, with the ``secret_key`` that encrypts it. ``safeguards`` have to name the network: subnets from which the
    brokers and AWS can be reached, and a security group that the brokers let in. The topics are made by whoever owns
    the cluster. An output of the stack tells the `redrive` command where all of it is. Raises SettingsError.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        topics: KafkaTopics,
        safeguards: Safeguards,
        cluster_arn: str = "",
        secret_key: kms.IKey | None = None,
        settings: Settings | None = None,
        table: dynamodb.ITableV2 | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        settings, safeguards, _ = checked(
            settings,
            safeguards,
            None,
            [
                *_faults(topics, safeguards, cluster_arn),
                *take_resources(self, "topics", "topics", _places(topics)),
                *without_key(self, table, safeguards),
                *alarms_elsewhere(self, settings),
            ],
        )
        key = safeguards.key(self)
        if key:
            open_key(self, key)
        self.encryption_key = key
        self.topics = topics
        self.settings = settings
        self.table = table or shared_state_table(self, removal_policy=removal_policy, key=key)
        first = topics.topics[0]
        deployment = Deployment.at(topics, queue_name=first, table_name=self.table.table_name)
        self.function = python_function(
            self,
            package=_ENGINE,
            place="smart_redriver/kafka/engine",
            handler=ENTRY_HANDLER,
            description="Redrives dead letters of a topic, and learns from those that return",
            memory_mib=settings.memory_mib,
            timeout=LONGEST_PASS,
            environment=deployment.to_env() | settings.to_env(),
            removal_policy=removal_policy,
            safeguards=safeguards,
            beside=ENTRY | {ENGINE_PLACE: ENGINE},
            lock_file=LOCK_FILE,
        )
        self.table.grant(self.function, *KEEP_STATE)
        for statement in _rights(topics, cluster_arn):
            self.function.add_to_role_policy(statement)
        self._let_use_keys(secret_key)
        schedule_ticks(self, self.function)
        hear_recovery(self, self.function, topics.topics, settings)
        accept_passes(self, self.function, safeguards, CONNECTING)
        places = {
            "RedriveKafka": topics.encode(),
            "RedriveQueue": first,
            "RedriveFunctionName": self.function.function_name,
            "RedriveLogGroupName": self.function.log_group.log_group_name,
            "RedriveMode": settings.mode.value,
            "StateTableName": self.table.table_name,
        }
        tell_command(self, places, in_capitals(topics.name))

    def _let_use_keys(self, secret_key: kms.IKey | None) -> None:
        uses = [
            KeyUse(key=key, service=service, actions=actions)
            for key, service, actions in (
                (self.table.encryption_key, "dynamodb", KEEP_ITEMS),
                (self.encryption_key, "lambda", DECRYPT),
                (secret_key, "secretsmanager", DECRYPT),
            )
            if key is not None
        ]
        for use in uses:
            self.function.add_to_role_policy(use.statement(self))


def _places(topics: KafkaTopics) -> tuple[str, ...]:
    """What may be there once in an account and Region."""
    return (f"{topics.servers}/{topics.dead_letters}", topics.name)


def _faults(topics: KafkaTopics, safeguards: Safeguards, cluster_arn: str) -> Iterator[Fault]:
    if not (topics.secret or topics.iam_region):
        yield Fault(
            setting="topics",
            seen=None,
            accepted="with iam_region or secret: the messages go over the network",
        )
    if topics.iam_region and not _CLUSTER.fullmatch(cluster_arn):
        accepted = "the ARN of the cluster, which rights are given on"
        yield Fault(setting="cluster_arn", seen=cluster_arn or None, accepted=accepted)
    if topics.client:
        accepted = "nothing: what is in a function's environment is no secret"
        yield Fault(setting="client", seen=None, accepted=accepted)
    if (length := len(topics.encode())) > MAX_TOPICS:
        accepted = f"at most {MAX_TOPICS:,} as JSON, as a function's environment has 4 KB"
        yield Fault(setting="topics", seen=f"{length:,} characters", accepted=accepted)
    if not safeguards.vpc_id:
        accepted = "the brokers' network, with vpc_subnet_ids and vpc_security_group_ids"
        yield Fault(setting="vpc_id", seen=safeguards.vpc_id, accepted=accepted)


def _rights(topics: KafkaTopics, cluster_arn: str) -> Iterator[iam.PolicyStatement]:
    """What IAM has to let it do: with a password the cluster's own lists say what it may."""
    if topics.secret:
        yield _allow(["secretsmanager:GetSecretValue"], [topics.secret])
        return
    cluster = cluster_arn.partition(":cluster/")
    topic, group = f"{cluster[0]}:topic/{cluster[2]}/", f"{cluster[0]}:group/{cluster[2]}/"
    yield _allow(_CONNECT, [cluster_arn])
    yield _allow(_READ, [topic + topics.dead_letters])
    yield _allow(_WRITE, [topic + one for one in topics.topics])
    yield _allow(_BOTH, [topic + topics.held, topic + topics.parked])
    yield _allow(_KEEP_POSITION, [group + topics.group])
    yield _allow(_SEE_POSITION, [group + topics.consumer_group])


def _allow(actions: tuple[str, ...] | list[str], resources: list[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=resources)
