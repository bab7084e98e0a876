"""The re-driver of a worker queue in Postgres: function in the database's network, schedule, alarms."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from redrive.databases import VERIFIED, JobsDatabase
from redrive.deployment import Deployment
from redrive.errors import Fault
from redrive.queue_names import PLAIN, is_plain
from redrive.settings import Settings
from smart_redriver.cdk.arguments import checked
from smart_redriver.cdk.bundling import POSTGRES_LOCK_FILE
from smart_redriver.cdk.key_use import DECRYPT, KEEP_ITEMS, KeyUse
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.postgres_alarms import PostgresAlarms, runbook_of
from smart_redriver.cdk.postgres_dashboard import make_postgres_dashboard
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.redriver import LONGEST_PASS, REDRIVE
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import KEEP_STATE, shared_state_table, without_key
from smart_redriver.cdk.taken import take_tables
from smart_redriver.cdk.ticks import schedule_ticks
from smart_redriver.cdk.topics import Topics, shared_topics, unheard

#: Where the function finds the authorities that a file of the team's names.
_AUTHORITIES = "database-ca.pem"
_NONE: Mapping[str, Path] = MappingProxyType({})
#: Of the 4 KB that a function's environment may have, what the settings leave, at their longest.
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_DATABASE = 2_500


class PostgresRedriver(Construct):
    """``function`` makes passes over the table of dead letters; each minute it is asked whether one is due.

    ``database`` says where tables and credentials are; ``authorities`` is the file of the certificate authorities that
    sign for it (for RDS AWS's global bundle), if the machine's own are not enough. ``safeguards`` have to name the
    network: subnets from which the database and AWS can be reached, and a security group that the database lets in.
    ``name`` is what circuit, alarms and people call the queue. The tables of the re-driver's own, and its role, are made
    by whoever owns the database: `python -m redrive.postgres.migration` prints the SQL. An output of the stack tells the
    `redrive` command where all of it is. Raises SettingsError.
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
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN,
    ) -> None:
        super().__init__(scope, construct_id)
        settings, safeguards, monitoring = checked(
            settings,
            safeguards,
            monitoring,
            [
                *jobs_faults(name, database, safeguards),
                *take_tables(self, database),
                *unheard(self, monitoring, topics),
                *without_key(self, table, safeguards),
            ],
            topics=(topics, Topics),
        )
        self.name = name
        if authorities is not None:
            database = replace(database, sslrootcert=f"/var/task/{_AUTHORITIES}")
        key = safeguards.key(self)
        self.database = database
        self.encryption_key = key
        self.settings = settings
        self.table = table or shared_state_table(self, removal_policy=removal_policy, key=key)
        deployment = Deployment.of_database(
            database, queue_name=name, table_name=self.table.table_name
        )
        self.function = python_function(
            self,
            package=REDRIVE,
            description="Redrives dead letters of a table, and learns from those that return",
            memory_mib=settings.memory_mib,
            timeout=LONGEST_PASS,
            environment=deployment.to_env() | settings.to_env(),
            removal_policy=removal_policy,
            safeguards=safeguards,
            beside=_NONE if authorities is None else {_AUTHORITIES: authorities},
            lock_file=POSTGRES_LOCK_FILE,
        )
        self.table.grant(self.function, *KEEP_STATE)
        self._resource_id = database_resource_id
        self._let_connect()
        if table_key := self.table.encryption_key:
            use = KeyUse(key=table_key, service="dynamodb", actions=KEEP_ITEMS)
            self.function.add_to_role_policy(use.statement(self))
        if key:
            use = KeyUse(key=key, service="lambda", actions=DECRYPT)
            self.function.add_to_role_policy(use.statement(self))
        schedule_ticks(self, self.function)
        self.topics = topics or shared_topics(self, key, monitoring)
        self.alarms = PostgresAlarms(
            self,
            name=name,
            function=self.function,
            monitoring=monitoring,
            topics=self.topics,
        ).made
        if monitoring.alarms is Alarms.ALL:
            make_postgres_dashboard(
                self,
                name=name,
                function=self.function,
                alarms=self.alarms,
                runbook_url=runbook_of(monitoring),
            )
        self._publish()

    def _publish(self) -> None:
        """Tell the command where all of it is, as a stack of adopted queues does: an output for each queue, of JSON."""
        places = {
            "RedriveDatabase": self.database.encode(),
            "RedriveQueue": self.name,
            "RedriveFunctionName": self.function.function_name,
            "RedriveLogGroupName": self.function.log_group.log_group_name,
            "RedriveMode": self.settings.mode.value,
            "StateTableName": self.table.table_name,
            "WarningTopicArn": self.topics.warning.topic_arn,
            "PagingTopicArn": self.topics.paging.topic_arn,
        }
        value = cdk.Stack.of(self).to_json_string(places)
        output = cdk.CfnOutput(self, "Places", value=value)
        output.override_logical_id(f"{output_prefix(self.name)}Redriver")

    @property
    def credentials(self) -> tuple[str, str]:
        """The action by which a pass gets into the database, and what it is allowed on."""
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
    def may_connect_anywhere(self) -> bool:
        """Whether its token is good for every database that has such a role."""
        return not self.database.secret and self._resource_id == "*"

    def _let_connect(self) -> None:
        action, resource = self.credentials
        allowed = iam.PolicyStatement(actions=[action], resources=[resource])
        self.function.add_to_role_policy(allowed)


def output_prefix(name: str) -> str:
    """What the output of a queue begins with: `my-orders` is MyOrders."""
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)


def jobs_faults(name: str, database: JobsDatabase, safeguards: Safeguards) -> list[Fault]:
    """What keeps a re-driver of a worker queue from working, or from being safe."""
    faults = []
    if not is_plain(name):
        faults.append(Fault(setting="name", seen=name, accepted=PLAIN))
    if database.sslmode != VERIFIED:
        accepted = f"{VERIFIED}: the password and every payload go over the network"
        faults.append(Fault(setting="sslmode", seen=database.sslmode, accepted=accepted))
    if (length := len(database.encode())) > MAX_DATABASE:
        accepted = f"at most {MAX_DATABASE:,} as JSON, as a function's environment has 4 KB: fewer `permanent` or `columns`"
        faults.append(Fault(setting="database", seen=f"{length:,} characters", accepted=accepted))
    if not safeguards.vpc_id:
        accepted = "the database's network, with vpc_subnet_ids and vpc_security_group_ids"
        faults.append(Fault(setting="vpc_id", seen=safeguards.vpc_id, accepted=accepted))
    return faults
