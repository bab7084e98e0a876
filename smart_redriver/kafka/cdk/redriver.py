"""The re-driver of a DLQ topic in a cluster of MSK: a function in the cluster's network, schedule, alarms."""

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
from smart_redriver.cdk.backend import let_use_keys, pass_function, runbook_of, tell_places
from smart_redriver.cdk.invocations import alarms_elsewhere, hear_recovery, schedule_ticks
from smart_redriver.cdk.key_use import DECRYPT, KeyUse, allow
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.owners import open_key
from smart_redriver.cdk.pass_alarms import PassAlarms
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import KEEP_STATE, shared_state_table, without_key
from smart_redriver.cdk.taken import take_resources
from smart_redriver.cdk.topics import Topics, shared_topics, unheard
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault
from smart_redriver.kafka.engine.place import KafkaTopics

_ROOM = Path(__file__).resolve().parents[1]
_RUNBOOK = "kafka.md"
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

    ``kafka`` says where the topics are, and how the cluster is entered: by `iam_region`, with ``cluster_arn``, or by
    `secret`, with the ``secret_key`` that encrypts it. ``safeguards`` have to name the network: subnets from which the
    brokers and AWS can be reached, and a security group that the brokers let in. The topics are made by whoever owns
    the cluster. An output of the stack tells the `redrive` command where all of it is. Raises SettingsError.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kafka: KafkaTopics,
        safeguards: Safeguards,
        cluster_arn: str = "",
        secret_key: kms.IKey | None = None,
        settings: Settings | None = None,
        table: dynamodb.ITableV2 | None = None,
        topics: Topics | None = None,
        monitoring: MonitoringSettings | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        settings, safeguards, monitoring = checked(
            settings,
            safeguards,
            monitoring,
            [
                *_faults(kafka, safeguards, cluster_arn),
                *take_resources(self, "kafka", "topics", _places(kafka)),
                *unheard(self, monitoring, topics),
                *without_key(self, table, safeguards),
                *alarms_elsewhere(self, settings),
            ],
            topics=(topics, Topics),
        )
        key = safeguards.key(self)
        if key:
            open_key(self, key)
        self.encryption_key = key
        self.kafka = kafka
        self.settings = settings
        self.table = table or shared_state_table(self, removal_policy=removal_policy, key=key)
        first = kafka.topics[0]
        deployment = Deployment.at(kafka, queue_name=first, table_name=self.table.table_name)
        self.function = pass_function(
            self,
            room=_ROOM,
            of="a topic",
            deployment=deployment,
            settings=settings,
            safeguards=safeguards,
            removal_policy=removal_policy,
        )
        self.table.grant(self.function, *KEEP_STATE)
        for statement in _rights(kafka, cluster_arn):
            self.function.add_to_role_policy(statement)
        let_use_keys(self.function, self.table, key)
        if secret_key is not None:
            use = KeyUse(key=secret_key, service="secretsmanager", actions=DECRYPT)
            self.function.add_to_role_policy(use.statement(self))
        schedule_ticks(self, self.function)
        hear_recovery(self, self.function, kafka.topics, settings)
        accept_passes(self, self.function, safeguards, CONNECTING)
        self.topics = topics or shared_topics(self, key, monitoring)
        self.alarms = PassAlarms(
            self,
            name=deployment.called(first),
            known_as=kafka.name,
            function=self.function,
            topics=self.topics,
            runbook_url=runbook_of(monitoring, _RUNBOOK),
            section="runbook",
            why_open="consumers failed the redriven messages, or a topic refused them",
        ).made
        tell_places(
            self,
            queue=first,
            known_as=kafka.name,
            location=kafka,
            function=self.function,
            settings=settings,
            table=self.table,
            topics=self.topics,
        )


def _places(kafka: KafkaTopics) -> tuple[str, ...]:
    """What may be there once in an account and Region."""
    return (f"{kafka.servers}/{kafka.dead_letters}", kafka.name)


def _faults(kafka: KafkaTopics, safeguards: Safeguards, cluster_arn: str) -> Iterator[Fault]:
    if not (kafka.secret or kafka.iam_region):
        yield Fault(
            setting="kafka",
            seen=None,
            accepted="with iam_region or secret: the messages go over the network",
        )
    if kafka.iam_region and not _CLUSTER.fullmatch(cluster_arn):
        accepted = "the ARN of the cluster, which rights are given on"
        yield Fault(setting="cluster_arn", seen=cluster_arn or None, accepted=accepted)
    if kafka.client:
        accepted = "nothing: what is in a function's environment is no secret"
        yield Fault(setting="client", seen=None, accepted=accepted)
    if (length := len(kafka.encode())) > MAX_TOPICS:
        accepted = f"at most {MAX_TOPICS:,} as JSON, as a function's environment has 4 KB"
        yield Fault(setting="kafka", seen=f"{length:,} characters", accepted=accepted)
    if not safeguards.vpc_id:
        accepted = "the brokers' network, with vpc_subnet_ids and vpc_security_group_ids"
        yield Fault(setting="vpc_id", seen=safeguards.vpc_id, accepted=accepted)


def _rights(kafka: KafkaTopics, cluster_arn: str) -> Iterator[iam.PolicyStatement]:
    """What IAM has to let it do: with a password the cluster's own lists say what it may."""
    if kafka.secret:
        yield allow(["secretsmanager:GetSecretValue"], [kafka.secret])
        return
    cluster = cluster_arn.partition(":cluster/")
    topic, group = f"{cluster[0]}:topic/{cluster[2]}/", f"{cluster[0]}:group/{cluster[2]}/"
    yield allow(_CONNECT, [cluster_arn])
    yield allow(_READ, [topic + kafka.dead_letters])
    yield allow(_WRITE, [topic + one for one in kafka.topics])
    yield allow(_BOTH, [topic + kafka.held, topic + kafka.parked])
    yield allow(_KEEP_POSITION, [group + kafka.group])
    yield allow(_SEE_POSITION, [group + kafka.consumer_group])
