"""The re-driver of a worker queue in Postgres: function in the database's network, schedule, alarms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from smart_redriver.cdk.acknowledged import CONNECTING, accept_anywhere, accept_passes
from smart_redriver.cdk.alarms import Comparison, Evaluation
from smart_redriver.cdk.arguments import checked
from smart_redriver.cdk.backend import (
    PeoplesRights,
    let_use_keys,
    pass_function,
    runbook_of,
    tell_places,
)
from smart_redriver.cdk.claims import claim_resources
from smart_redriver.cdk.dashboard import COUNT, graph
from smart_redriver.cdk.invocations import alarms_elsewhere, hear_recovery, schedule_ticks
from smart_redriver.cdk.key_use import allow, unique
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.owners import open_key
from smart_redriver.cdk.pass_alarms import PERIOD, PassAlarms, make_pass_dashboard, pass_metric
from smart_redriver.cdk.queue_clashes import partition_faults
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import KEEP_STATE, shared_state_table, table_faults
from smart_redriver.cdk.topics import Topics, shared_topics, unheard
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import PLAIN, is_plain
from smart_redriver.engine.errors import Fault
from smart_redriver.postgres.engine.place import VERIFIED, JobsDatabase

#: New letters within five minutes, counted by each pass. Also named in `smart_redriver.postgres.engine.connection`,
#: which needs psycopg.
ADDED = "DeadLettersAdded"
TOO_MANY = 200

_SECTION = "when-an-alarm-rings"
RUNBOOK = "postgres.md"


class JobsAlarms(PassAlarms):
    """The alarms of every queue outside SQS, after an alarm on growth."""

    def __init__(
        self,
        scope: Construct,
        *,
        name: str,
        function: lambda_.IFunction,
        monitoring: MonitoringSettings,
        topics: Topics,
    ) -> None:
        super().__init__(
            scope,
            name=name,
            known_as=name,
            function=function,
            topics=topics,
            runbook_url=runbook_of(monitoring, RUNBOOK),
            section=_SECTION,
            why_open="workers failed the redriven jobs, or the table refused them",
        )

    def _make_first(self) -> None:
        self._make.alarm(
            "DeadLettersGrow",
            self._metric(ADDED, "Maximum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            TOO_MANY,
            Evaluation(seconds=PERIOD),
            self._advice(
                f"{TOO_MANY} jobs or more have died within five minutes.", "`redrive causes`."
            ),
            topic=self._topics.paging,
        )


def died_lately(name: str) -> cloudwatch.GraphWidget:
    """The graph of new letters, which are counted only for jobs."""
    return graph(
        "Died within five minutes", [pass_metric(name, ADDED, "Maximum", "letters")], COUNT
    )


#: Where the function finds the team's own file of certificate authorities.
_AUTHORITIES = "database-ca.pem"
_ROOM = Path(__file__).resolve().parents[1]
#: What the settings, at their longest, leave of the 4 KB of a function's environment.
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_DATABASE = 2_500


class PostgresRedriver(Construct):
    """``function`` makes passes over the table of dead letters. A tick each minute makes it check whether one is due.

    ``database`` says where tables and credentials are. ``authorities`` is a file with the certificate authorities that
    sign for it (for RDS, AWS's global bundle), if the machine's own are not enough. ``safeguards`` have to name the
    network: subnets that can reach the database and AWS, and a security group that the database lets in. ``name`` is
    the queue's name for circuit, alarms and people. The owner of the database makes the re-driver's own tables and its
    role: `python -m smart_redriver.postgres.migration` prints the SQL. An output of the stack tells the `redrive`
    command where everything is. Raises SettingsError.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        database: JobsDatabase,
        safeguards: Safeguards,
        authorities: Path | None = None,
        database_resource_id: str = "*",
        settings: Settings | None = None,
        table: dynamodb.ITableV2 | None = None,
        topics: Topics | None = None,
        monitoring: MonitoringSettings | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.rights = RIGHTS
        settings, safeguards, monitoring = checked(
            settings,
            safeguards,
            monitoring,
            [
                *jobs_faults(name, database, safeguards),
                *claim_resources(self, "database", "tables", database.places),
                *unheard(self, monitoring, topics),
                *table_faults(self, table, safeguards, removal_policy),
                *alarms_elsewhere(self, settings),
            ],
            topics=(topics, Topics),
        )
        self.name = name
        if authorities is not None:
            database = replace(database, sslrootcert=f"/var/task/{_AUTHORITIES}")
        key = safeguards.key(self)
        if key:
            open_key(self, key)
        self.database = database
        self.encryption_key = key
        self.settings = settings
        self.table = table or shared_state_table(self, removal_policy=removal_policy, key=key)
        deployment = Deployment.at(database, queue_name=name, table_name=self.table.table_name)
        self.function = pass_function(
            self,
            room=_ROOM,
            of="a table",
            deployment=deployment,
            settings=settings,
            safeguards=safeguards,
            removal_policy=removal_policy,
            beside={} if authorities is None else {_AUTHORITIES: authorities},
        )
        self.table.grant(self.function, *KEEP_STATE)
        self._resource_id = database_resource_id
        self._let_connect()
        let_use_keys(self.function, self.table, key)
        schedule_ticks(self, self.function)
        hear_recovery(self, self.function, [name], settings)
        accept_passes(self, self.function, safeguards, CONNECTING)
        if self.anywhere:
            accept_anywhere(self, self.anywhere)
        self.topics = topics or shared_topics(self, key, monitoring)
        self.alarms = JobsAlarms(
            self,
            name=name,
            function=self.function,
            monitoring=monitoring,
            topics=self.topics,
        ).made
        if monitoring.alarms is Alarms.ALL:
            make_pass_dashboard(
                self,
                title=f"the worker queue `{name}`",
                circuits={name: name},
                function=self.function,
                alarms=self.alarms,
                runbook_url=runbook_of(monitoring, RUNBOOK),
                further=[died_lately(name)],
            )
        tell_places(
            self,
            queue=name,
            known_as=name,
            location=database,
            function=self.function,
            settings=settings,
            table=self.table,
            topics=self.topics,
        )

    @property
    def credentials(self) -> tuple[str, str]:
        """The action that gives a pass access to the database, and its resource."""
        if self.database.secret:
            return "secretsmanager:GetSecretValue", self.database.secret
        resource = cdk.Stack.of(self).format_arn(
            service="rds-db",
            resource="dbuser",
            resource_name=f"{self._resource_id}/{self.database.user}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        return "rds-db:connect", resource

    @property
    def anywhere(self) -> str | None:
        """The databases that its token opens, if these are all databases with such a role."""
        is_anywhere = not self.database.secret and self._resource_id == "*"
        return self.credentials[1] if is_anywhere else None

    def _let_connect(self) -> None:
        action, resource = self.credentials
        allowed = iam.PolicyStatement(actions=[action], resources=[resource])
        self.function.add_to_role_policy(allowed)


def jobs_faults(name: str, database: JobsDatabase, safeguards: Safeguards) -> list[Fault]:
    """The faults that would keep a worker queue's re-driver from working, or make it unsafe."""
    faults = []
    if not is_plain(name):
        faults.append(Fault(setting="name", seen=name, accepted=PLAIN))
    if database.sslmode != VERIFIED:
        accepted = f"{VERIFIED}: the password and every payload go over the network"
        faults.append(Fault(setting="sslmode", seen=database.sslmode, accepted=accepted))
    faults += partition_faults("secret", database.secret)
    if (length := len(database.encode())) > MAX_DATABASE:
        accepted = (
            f"at most {MAX_DATABASE:,} as JSON, as a function's environment has 4 KB: "
            "fewer `permanent` or `columns`"
        )
        faults.append(Fault(setting="database", seen=f"{length:,} characters", accepted=accepted))
    if not safeguards.vpc_id:
        accepted = "the database's network, with vpc_subnet_ids and vpc_security_group_ids"
        faults.append(Fault(setting="vpc_id", seen=safeguards.vpc_id, accepted=accepted))
    return faults


def _connecting(
    scope: Construct,  # noqa: ARG001 - of every backend
    redrivers: Sequence[PostgresRedriver],
) -> Iterator[iam.PolicyStatement]:
    """Let people connect as the re-driver's role to look at letters.

    The role may also move letters: the database has no lesser right.
    """
    for action in unique(one.credentials[0] for one in redrivers):
        places = (one.credentials[1] for one in redrivers if one.credentials[0] == action)
        yield allow([action], unique(places))


RIGHTS = PeoplesRights(suffix="Jobs", viewing=_connecting, operating=_connecting)
