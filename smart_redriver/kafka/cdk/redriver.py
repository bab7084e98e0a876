"""The re-driver of a DLQ topic in an MSK cluster: a function in the cluster's network, schedule, alarms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from smart_redriver.cdk.acknowledged import CONNECTING, accept_passes
from smart_redriver.cdk.arguments import check_resources, checked
from smart_redriver.cdk.backend import (
    PeoplesRights,
    let_use_keys,
    pass_function,
    runbook_of,
    tell_places,
)
from smart_redriver.cdk.claims import claim_name, claim_resources
from smart_redriver.cdk.invocations import alarms_elsewhere, hear_recovery, schedule_ticks
from smart_redriver.cdk.key_use import DECRYPT, KeyUse, allow, key_arns, through, unique
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.owners import open_key
from smart_redriver.cdk.pass_alarms import PassAlarms, make_pass_dashboard
from smart_redriver.cdk.queue_clashes import partition_faults
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import KEEP_STATE, shared_state_table, table_faults
from smart_redriver.cdk.topics import Topics, shared_topics, unheard
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault
from smart_redriver.kafka.engine.place import KafkaTopics

_ROOM = Path(__file__).resolve().parents[1]
_RUNBOOK = "kafka.md"
#: What the settings, at their longest, leave of the 4 KB of a function's environment.
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_TOPICS = 2_500

CLUSTER = re.compile(
    r"arn:aws[a-z-]*:kafka:(?P<region>[a-z0-9-]+):[0-9]{12}:cluster/[A-Za-z0-9._-]+/[a-z0-9-]+"
)
#: IAM actions on a cluster, a topic and a group.
#: https://docs.aws.amazon.com/msk/latest/developerguide/iam-access-control-use-cases.html
_CONNECT = ("kafka-cluster:Connect", "kafka-cluster:WriteDataIdempotently")
_READ = ("kafka-cluster:DescribeTopic", "kafka-cluster:ReadData")
_WRITE = ("kafka-cluster:DescribeTopic", "kafka-cluster:WriteData")
_BOTH = ("kafka-cluster:DescribeTopic", "kafka-cluster:ReadData", "kafka-cluster:WriteData")
_KEEP_POSITION = ("kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup")
_SEE_POSITION = ("kafka-cluster:DescribeGroup",)
#: Further actions that the doctor needs.
_SEE_SETTINGS = ("kafka-cluster:DescribeTopic", "kafka-cluster:DescribeTopicDynamicConfiguration")


class KafkaRedriver(Construct):
    """``function`` makes passes over a DLQ topic. A tick each minute makes it check whether one is due.

    ``kafka`` says where the topics are, and how to get access to the cluster: by `iam_region`, with ``cluster_arn``, or
    by `secret`, with the ``secret_key`` that encrypts it. ``safeguards`` have to name the network: subnets that can
    reach the brokers and AWS, and a security group that the brokers let in. The owner of the cluster makes the topics.
    An output of the stack tells the `redrive` command where everything is. Raises SettingsError.
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
        self.rights = RIGHTS
        check_resources({}, {"secret_key": secret_key}, {})
        settings, safeguards, monitoring = checked(
            settings,
            safeguards,
            monitoring,
            [
                *kafka_faults(kafka, safeguards, cluster_arn),
                *claim_resources(self, "kafka", "topics", places_of(kafka)),
                *claim_name(self, kafka.name, "kafka"),
                *unheard(self, monitoring, topics),
                *table_faults(self, table, safeguards, removal_policy),
                *alarms_elsewhere(self, settings),
            ],
            topics=(topics, Topics),
        )
        key = safeguards.key(self)
        if key:
            open_key(self, key)
        self.encryption_key = key
        self.kafka = kafka
        self.cluster_arn = cluster_arn
        self.secret_key = secret_key
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
        if monitoring.alarms is Alarms.ALL:
            make_pass_dashboard(
                self,
                title=f"the DLQ topic `{kafka.dead_letters}`",
                circuits={one: deployment.called(one) for one in deployment.source_names},
                function=self.function,
                alarms=self.alarms,
                runbook_url=runbook_of(monitoring, _RUNBOOK),
            )
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

    @property
    def anywhere(self) -> str | None:
        """Return None, because each right names its topic or group."""
        return None


def places_of(kafka: KafkaTopics) -> tuple[str, ...]:
    """What only one re-driver may have: topics whose records it treats as its own, and the group of its positions."""
    return tuple(
        f"{server}/{one}"
        for server in kafka.servers.lower().split(",")
        for one in (kafka.dead_letters, kafka.held, kafka.parked, f"group {kafka.group}")
    )


def kafka_faults(kafka: KafkaTopics, safeguards: Safeguards, cluster_arn: str) -> Iterator[Fault]:
    """Faults that would keep a DLQ topic's re-driver from working, or make it unsafe."""
    if not (kafka.secret or kafka.iam_region):
        yield Fault(
            setting="kafka",
            seen=None,
            accepted="with iam_region or secret: the messages go over the network",
        )
    if fault := _unfit_cluster(kafka, cluster_arn):
        yield Fault(setting="cluster_arn", seen=cluster_arn or None, accepted=fault)
    yield from partition_faults("cluster_arn", cluster_arn)
    yield from partition_faults("secret", kafka.secret)
    if kafka.client:
        accepted = "nothing: what is in a function's environment is no secret"
        yield Fault(setting="client", seen=None, accepted=accepted)
    if (length := len(kafka.encode())) > MAX_TOPICS:
        accepted = f"at most {MAX_TOPICS:,} as JSON, as a function's environment has 4 KB"
        yield Fault(setting="kafka", seen=f"{length:,} characters", accepted=accepted)
    if not safeguards.vpc_id:
        accepted = "the brokers' network, with vpc_subnet_ids and vpc_security_group_ids"
        yield Fault(setting="vpc_id", seen=safeguards.vpc_id, accepted=accepted)


def _unfit_cluster(kafka: KafkaTopics, cluster_arn: str) -> str | None:
    """The accepted values, if this one is not accepted; else None."""
    if kafka.secret:
        return (
            "nothing beside a secret: the cluster's own lists say what may be done"
            if cluster_arn
            else None
        )
    match = CLUSTER.fullmatch(cluster_arn)
    if kafka.iam_region and not match:
        return "the ARN of the cluster, which rights are given on"
    if match and kafka.iam_region and match["region"] != kafka.iam_region:
        return f"a cluster in {kafka.iam_region}, as iam_region says"
    return None


@dataclass(frozen=True, slots=True)
class _Cluster:
    """ARNs of a cluster's topics and groups."""

    arn: str

    def topics(self, *names: str) -> list[str]:
        return [self.arn.replace(":cluster/", ":topic/", 1) + f"/{one}" for one in names]

    def group(self, name: str) -> list[str]:
        return [self.arn.replace(":cluster/", ":group/", 1) + f"/{name}"]


def _rights(kafka: KafkaTopics, cluster_arn: str) -> Iterator[iam.PolicyStatement]:
    """Yield the IAM statements that the function needs. With a password, the cluster's own lists grant access."""
    if kafka.secret:
        yield allow(["secretsmanager:GetSecretValue"], [kafka.secret])
        return
    cluster = _Cluster(cluster_arn)
    yield allow(_CONNECT, [cluster_arn])
    yield allow(_READ, cluster.topics(kafka.dead_letters))
    yield allow(_WRITE, cluster.topics(*kafka.topics))
    yield allow(_BOTH, cluster.topics(kafka.held, kafka.parked))
    yield allow(_KEEP_POSITION, cluster.group(kafka.group))
    yield allow(_SEE_POSITION, cluster.group(kafka.consumer_group))


def _viewing(scope: Construct, redrivers: Sequence[KafkaRedriver]) -> Iterator[iam.PolicyStatement]:
    """Let people look at letters by reading topics. A password is the re-driver's own, which may also write."""
    yield from _by_password(scope, redrivers)
    for kafka, cluster in _by_iam(redrivers):
        yield allow(["kafka-cluster:Connect"], [cluster.arn])
        own = (kafka.dead_letters, kafka.held, kafka.parked)
        yield allow(["kafka-cluster:ReadData"], cluster.topics(*own))
        yield allow(_SEE_SETTINGS, cluster.topics(*own, *kafka.topics))
        groups = cluster.group(kafka.group) + cluster.group(kafka.consumer_group)
        yield allow(_SEE_POSITION, groups)


def _operating(
    scope: Construct, redrivers: Sequence[KafkaRedriver]
) -> Iterator[iam.PolicyStatement]:
    """Let people send letters by writing topics, and finish with them by moving our group's position."""
    yield from _by_password(scope, redrivers)
    for kafka, cluster in _by_iam(redrivers):
        yield allow(["kafka-cluster:WriteDataIdempotently"], [cluster.arn])
        written = cluster.topics(*kafka.topics, kafka.held, kafka.parked)
        yield allow(["kafka-cluster:WriteData"], written)
        yield allow(["kafka-cluster:AlterGroup"], cluster.group(kafka.group))


def _by_iam(redrivers: Sequence[KafkaRedriver]) -> Iterator[tuple[KafkaTopics, _Cluster]]:
    for one in redrivers:
        if not one.kafka.secret:
            yield one.kafka, _Cluster(one.cluster_arn)


def _by_password(
    scope: Construct, redrivers: Sequence[KafkaRedriver]
) -> Iterator[iam.PolicyStatement]:
    if secrets := unique(one.kafka.secret for one in redrivers if one.kafka.secret):
        yield allow(["secretsmanager:GetSecretValue"], secrets)
    yield from through(
        scope, "secretsmanager", DECRYPT, key_arns(one.secret_key for one in redrivers)
    )


RIGHTS = PeoplesRights(suffix="Topics", viewing=_viewing, operating=_operating)
