"""The stack ``SmartRedriver``: composes the constructs and publishes where things are."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from smart_redriver.cdk import (
    MonitoringSettings,
    OnCallPolicies,
    PostgresRedriver,
    Settings,
    SmartRedriver,
    Topics,
)
from smart_redriver.cdk.adopted_queues import Adopted
from smart_redriver.cdk.imported_queues import import_queues
from smart_redriver.cdk.jobs_entry import AdoptedJobs
from smart_redriver.cdk.owners import tell_key_owner
from smart_redriver.cdk.queue_entry import AdoptedQueue
from smart_redriver.cdk.queues import NewQueues
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import StateTable
from stacks.nag import (
    acknowledge_jobs,
    acknowledge_people,
    acknowledge_queues,
    acknowledge_redriver,
    acknowledge_sample_consumer,
    acknowledge_style,
    acknowledge_topics,
)
from stacks.sample_consumer import SampleConsumer
from stacks.settings import NAME, Context

#: How the output ends that has a queue's own in it, as JSON; its name is before it.
OF_A_QUEUE = "Redriver"
#: The first stack's output that names all stacks of the app in its account and Region.
STACKS = "RedriverStacks"


class RedriverStack(cdk.Stack):
    """Re-drivers that share one state table and two topics.

    With a list of ``queues``, one for each; without it the stack makes queues of its own.
    ``retain`` lets queues, table and logs outlive the stack. ``safeguards`` are for all that it makes.
    ``beside`` names the stacks of the same app, account and Region, where there are several.
    With ``fifo`` the queues of its own keep message groups in order.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        retain: bool = True,
        monitoring: MonitoringSettings | None = None,
        deletion_protection: bool | None = None,
        queues: tuple[Adopted, ...] = (),
        safeguards: Safeguards | None = None,
        stack_name: str = NAME,
        beside: Sequence[str] = (),
        fifo: bool = False,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Redrives SQS dead letters with a circuit breaker",
            env=_home(queues, safeguards),
            stack_name=stack_name,
        )
        acknowledge_style(self)
        self.redrivers: list[SmartRedriver] = []
        self.jobs: list[PostgresRedriver] = []
        self._settings = settings
        self._removal_policy = cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY
        self._monitoring = monitoring or MonitoringSettings()
        self._safeguards = safeguards or Safeguards()
        self._key = self._safeguards.key(self)
        if self._key:
            tell_key_owner(self, self._key)
        self._table = StateTable(
            self,
            "State",
            removal_policy=self._removal_policy,
            deletion_protection=deletion_protection,
            key=self._key,
        ).table
        self._topics = Topics(self, "Monitoring", monitoring=self._monitoring, key=self._key)
        acknowledge_topics(self._topics)
        if queues:
            adopted = Construct(self, "Adopted")
            for queue in queues:
                if isinstance(queue, AdoptedJobs):
                    self._adopt_jobs(adopted, queue)
                else:
                    self._adopt(adopted, queue)
        else:
            self._make_queues(fifo=fifo)
        self._publish(
            StateTableName=self._table.table_name,
            WarningTopicArn=self._topics.warning.topic_arn,
            PagingTopicArn=self._topics.paging.topic_arn,
        )
        if len(beside) > 1 and stack_name == NAME:
            self._publish(**{STACKS: " ".join(beside)})

    def _make_queues(self, *, fifo: bool) -> None:
        visibility_timeout = cdk.Duration.seconds(self._settings.source_visibility_timeout_seconds)
        queues = NewQueues(
            self,
            "Queues",
            visibility_timeout=visibility_timeout,
            max_receive_count=self._settings.max_receive_count,
            removal_policy=self._removal_policy,
            key=self._key,
            fifo=fifo,
        )
        acknowledge_queues(queues)
        redriver = SmartRedriver(
            self,
            "Redriver",
            source_queue=queues.source_queue,
            dead_letter_queue=queues.dead_letter_queue,
            parking_lot=queues.parking_lot,
            table=self._table,
            topics=self._topics,
            settings=self._settings,
            monitoring=self._monitoring,
            safeguards=self._safeguards,
            # The queue is named by the stack's id, for nobody to read.
            known_as=self.stack_name,
            removal_policy=self._removal_policy,
        )
        self._publish(**self._places_of(redriver))
        if self._settings.with_sample_consumer:
            self._consume(queues, redriver, visibility_timeout)

    def _adopt(self, scope: Construct, adopted: AdoptedQueue) -> None:
        here = Construct(scope, adopted.id)
        imported = import_queues(here, adopted)
        sources = imported.source_queues
        # A stack has at most 500 resources, and most of a re-driver's are alarms.
        alarms = cdk.NestedStack(here, "Alarms")
        acknowledge_style(alarms)
        redriver = SmartRedriver(
            here,
            "Redriver",
            source_queue=sources[0] if sources else None,
            further_sources=sources[1:],
            origin=adopted.filling.origin,
            targets=[str(one) for one in adopted.filling.targets],
            private_hosts=adopted.filling.private_hosts,
            target_keys=imported.target_keys,
            dead_letter_queue=imported.dead_letter_queue,
            parking_lot_key=imported.parking_lot_key,
            table=self._table,
            topics=self._topics,
            settings=adopted.settings,
            monitoring=self._monitoring,
            monitoring_scope=alarms,
            safeguards=self._safeguards,
            removal_policy=self._removal_policy,
        )
        # A stack has at most 200 outputs: what is of one queue is in one of them.
        places = self.to_json_string(self._places_of(redriver))
        self._publish(**{adopted.id + OF_A_QUEUE: places})

    def _adopt_jobs(self, scope: Construct, adopted: AdoptedJobs) -> None:
        redriver = PostgresRedriver(
            Construct(scope, adopted.id),
            "Redriver",
            name=adopted.name,
            database=adopted.database,
            safeguards=adopted.safeguards,
            authorities=adopted.authorities,
            database_resource_id=adopted.database_resource_id,
            settings=adopted.settings,
            table=self._table,
            topics=self._topics,
            monitoring=self._monitoring,
            removal_policy=self._removal_policy,
        )
        acknowledge_jobs(redriver, adopted.safeguards)
        self.jobs.append(redriver)

    def _places_of(self, redriver: SmartRedriver) -> dict[str, str]:
        """What people, consumers and the command have to know of one re-driver, by the outputs' names."""
        self.redrivers.append(redriver)
        acknowledge_redriver(redriver, self._safeguards)
        sources = [queue.queue_url for queue in redriver.source_queues]
        places = {
            **({"SourceQueueUrl": sources[0]} if sources else _targets_of(redriver)),
            "DeadLetterQueueUrl": redriver.dead_letter_queue.queue_url,
            "ParkingLotQueueUrl": redriver.parking_lot.queue_url,
            "OutcomeQueueUrl": redriver.outcome_queue.queue_url,
            "ReportPolicyArn": _report_policy(redriver).managed_policy_arn,
            "RedriveFunctionName": redriver.function.function_name,
            "RedriveLogGroupName": redriver.function.log_group.log_group_name,
            "RedriveMode": redriver.settings.mode.value,
        }
        if len(sources) > 1:
            places["FurtherSourceQueueUrls"] = " ".join(sources[1:])
        return places

    def _consume(
        self, queues: NewQueues, redriver: SmartRedriver, visibility_timeout: cdk.Duration
    ) -> None:
        consumer = SampleConsumer(
            self,
            "SampleConsumer",
            source_queue=queues.source_queue,
            visibility_timeout=visibility_timeout,
            safeguards=self._safeguards,
        )
        for name, url in redriver.report_environment.items():
            consumer.function.add_environment(name, url)
        redriver.grant_report(consumer.function)
        acknowledge_sample_consumer(consumer, self._safeguards)
        self._publish(
            SampleConsumerFunctionName=consumer.function.function_name,
            SampleControlTableName=consumer.control_table.table_name,
            SampleIdempotencyTableName=consumer.idempotency_table.table_name,
        )

    def _publish(self, **outputs: str) -> None:
        for name, value in outputs.items():
            cdk.CfnOutput(self, name, value=value)


def _targets_of(redriver: SmartRedriver) -> dict[str, str]:
    """What the command has to know where there is no source queue, as the function's variables say it."""
    filling = redriver.filling
    hosts = {"RedrivePrivateHosts": " ".join(filling.private_hosts)}
    return {
        "RedriveOrigin": filling.origin.value,
        "RedriveTargets": " ".join(map(str, filling.targets)),
        **(hosts if filling.private_hosts else {}),
    }


def _report_policy(redriver: SmartRedriver) -> iam.ManagedPolicy:
    """For the roles of consumers that are deployed elsewhere; nobody has it yet."""
    policy = iam.ManagedPolicy(
        redriver,
        "ReportPolicy",
        description="Consumers of the smart re-driver: reports outcomes, parks what can't succeed",
    )
    redriver.grant_report(policy)
    return policy


def make_stack(
    scope: Construct,
    context: Context,
    *,
    construct_id: str | None = None,
    beside: Sequence[str] = (),
) -> RedriverStack:
    """The stack that the context describes, under its one name."""
    stack = RedriverStack(
        scope,
        construct_id or context.stack_name,
        settings=context.settings,
        retain=context.retain,
        monitoring=context.monitoring,
        deletion_protection=context.deletion_protection,
        queues=context.queues,
        safeguards=context.safeguards,
        stack_name=context.stack_name,
        beside=beside,
        fifo=context.fifo,
    )
    context.rules.apply(stack)
    if context.oncall_policies:
        oncall = OnCallPolicies(stack, "OnCall", redrivers=stack.redrivers, jobs=stack.jobs)
        acknowledge_people(oncall, stack.jobs)
    return stack


def _home(queues: tuple[Adopted, ...], safeguards: Safeguards | None) -> cdk.Environment | None:
    """Where the queues are, or else the key, so that a deployment anywhere else is refused; None for anywhere."""
    if queues:
        return cdk.Environment(account=queues[0].account, region=queues[0].region)
    if safeguards and (key := safeguards.encryption_key_arn):
        return cdk.Environment(region=key.split(":")[3])
    return None
