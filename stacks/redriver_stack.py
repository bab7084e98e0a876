"""The stack ``SmartRedriver``: composes the constructs and publishes where things are."""

from collections.abc import Sequence
from dataclasses import replace

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import Construct

from smart_redriver.cdk import (
    MonitoringSettings,
    Naming,
    OnCallPolicies,
    Resources,
    Settings,
    SmartRedriver,
    Targets,
    Topics,
)
from smart_redriver.cdk.acknowledged import (
    CONNECTING,
    UNTRACED,
    accept_function,
    accept_sqs_key,
    acknowledge,
    skip,
)
from smart_redriver.cdk.backend import AdoptedElsewhere, OtherRedriver
from smart_redriver.cdk.owners import open_key
from smart_redriver.cdk.queue_entry import Adopted, AdoptedQueue, as_id, import_queues
from smart_redriver.cdk.queues import NewQueues
from smart_redriver.cdk.redriver import tell_command
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import StateTable
from smart_redriver.engine.config.settings import Mode
from stacks.sample_consumer import SampleConsumer
from stacks.settings import NAME, Context

_NEVER_ASYNCHRONOUS = "Invoked only by its event source mapping, never asynchronously."
_POLLED = "Polled by its event source mapping, which begins with five at once; fewer are throttled."
#: Findings about the CDK's own style, whatever it is told: Join for Sub, and each dependency twice.
_STYLE_OF_THE_CDK = ["I1022", "W3005"]


def add_checks(app: cdk.App) -> None:
    """Check the app at synth, which fails on any finding that is not acknowledged."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def acknowledge_style(stack: cdk.Stack) -> None:
    """Accept in a template what cfn-lint finds in each one that the CDK writes."""
    stack.add_metadata("cfn-lint", {"config": {"ignore_checks": _STYLE_OF_THE_CDK}})


def acknowledge_queues(queues: NewQueues) -> None:
    """Accept that a dead-letter queue has no dead-letter queue of its own."""
    acknowledge(
        queues.dead_letter_queue,
        {
            "Serverless-SQSRedrivePolicy": "A dead-letter queue itself; with a redrive policy, "
            "each of the re-driver's receives would count against the letter."
        },
    )
    for queue in (queues.source_queue, queues.dead_letter_queue):
        accept_sqs_key(queue)


def acknowledge_sample_consumer(consumer: SampleConsumer, safeguards: Safeguards) -> None:
    """Accept that the example's failures end in the dead-letter queue, and nowhere else."""
    acknowledge(
        consumer,
        {
            "AwsSolutions-IAM5[Resource::*]": CONNECTING,
            "Serverless-LambdaDLQ": _NEVER_ASYNCHRONOUS,
            "Serverless-LambdaAsyncFailureDestination": _NEVER_ASYNCHRONOUS,
            "Serverless-LambdaEventSourceMappingDestination": "Not for SQS sources: the source "
            "queue's redrive policy takes the failures.",
            "Serverless-LambdaTracing": UNTRACED,
        },
    )
    accept_function(consumer.function, safeguards)
    skip(consumer.function, {"CKV_AWS_115": _POLLED, "CKV_AWS_116": _NEVER_ASYNCHRONOUS})
    for table in (consumer.control_table, consumer.idempotency_table):
        skip(table, {"CKV_AWS_165": "An example's, gone with its stack: nothing to restore."})


#: The first stack's output that names all stacks of the app in its account and Region.
STACKS = "RedriverStacks"
#: Outputs that this stack has once, or under its own name.
_OF_ALL = ("RedriveAlarms", "StateTableName", "WarningTopicArn", "PagingTopicArn")


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
        termination_protection: bool = False,
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
            termination_protection=termination_protection,
        )
        acknowledge_style(self)
        self.redrivers: list[SmartRedriver] = []
        self.teams: dict[str, list[SmartRedriver]] = {}
        self.others: list[OtherRedriver] = []
        self._settings = settings
        # Not what a first deployment made that failed: it would stand in nobody's way, and in nobody's list.
        kept = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        self._removal_policy = kept if retain else cdk.RemovalPolicy.DESTROY
        self._monitoring = monitoring or MonitoringSettings()
        self._safeguards = safeguards or Safeguards()
        self._key = self._safeguards.key(self)
        if self._key:
            open_key(self, self._key)
        self._all_are_paused = _switch(self)
        self._table = StateTable(
            self,
            "State",
            removal_policy=self._removal_policy,
            deletion_protection=deletion_protection,
            key=self._key,
        ).table
        self._topics = Topics(self, "Monitoring", monitoring=self._monitoring, key=self._key)
        self._topics_by_people = {self._topics.people: self._topics}
        if queues:
            adopted = Construct(self, "Adopted")
            for queue in queues:
                if isinstance(queue, AdoptedQueue):
                    self._adopt(adopted, queue)
                else:
                    self._adopt_elsewhere(adopted, queue)
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
            settings=replace(self._settings, with_sample_consumer=False),
            resources=Resources(
                parking_lot=queues.parking_lot, table=self._table, topics=self._topics
            ),
            monitoring=self._monitoring,
            # The queue is named by the stack's id, for nobody to read. Each of its outputs is a promise of its own.
            naming=Naming(known_as=self.stack_name, output=False),
            safeguards=self._safeguards,
            removal_policy=self._removal_policy,
        )
        self.teams[""] = [redriver]
        places = self._places_of(redriver)
        self._publish(**{name: one for name, one in places.items() if name not in _OF_ALL})
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
            dead_letter_queue=imported.dead_letter_queue,
            targets=None
            if sources
            else Targets(
                origin=adopted.origin_config.origin,
                to=[str(one) for one in adopted.origin_config.targets],
                keys=imported.target_keys,
                private_hosts=adopted.origin_config.private_hosts,
            ),
            settings=adopted.settings,
            resources=Resources(
                parking_lot_key=imported.parking_lot_key,
                table=self._table,
                topics=self._topics_for(here, adopted.monitoring),
            ),
            monitoring=adopted.monitoring,
            naming=Naming(monitoring_scope=alarms, output=False),
            safeguards=self._safeguards,
            removal_policy=self._removal_policy,
        )
        self.teams.setdefault(as_id(adopted.team), []).append(redriver)
        tell_command(redriver, self._places_of(redriver), adopted.id)

    def _topics_for(self, scope: Construct, monitoring: MonitoringSettings) -> Topics:
        """The topics of those whom a queue's entry names; queues that name the same people share them."""
        if monitoring.people not in self._topics_by_people:
            topics = Topics(scope, "Topics", monitoring=monitoring, key=self._key)
            self._topics_by_people[monitoring.people] = topics
        return self._topics_by_people[monitoring.people]

    def _adopt_elsewhere(self, scope: Construct, adopted: AdoptedElsewhere) -> None:
        redriver = adopted.redriver(
            Construct(scope, adopted.id),
            table=self._table,
            topics=self._topics,
            monitoring=self._monitoring,
            removal_policy=self._removal_policy,
        )
        self._let_pause(redriver.function, adopted.settings)
        self.others.append(redriver)

    def _places_of(self, redriver: SmartRedriver) -> dict[str, str]:
        """The places of one re-driver that people, consumers and the command have to know, by the outputs' names."""
        self.redrivers.append(redriver)
        mode = self._let_pause(redriver.function, redriver.settings)
        if redriver.widget:
            self._let_pause(redriver.widget.function, redriver.settings)
        report = _report_policy(redriver).managed_policy_arn
        return {**redriver.places, "RedriveMode": mode, "ReportPolicyArn": report}

    def _let_pause(self, function: lambda_.Function, settings: Settings) -> str:
        """Give a function the mode of its settings, unless all are paused; the mode, as the deployment knows it."""
        condition = self._all_are_paused.logical_id
        mode = cdk.Fn.condition_if(condition, Mode.PAUSED.value, settings.mode.value).to_string()
        function.add_environment("MODE", mode)
        return mode

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


def _switch(stack: cdk.Stack) -> cdk.CfnCondition:
    """A parameter that pauses every queue of the stack: `cdk deploy --parameters PauseAll=yes`, or in the console."""
    switch = cdk.CfnParameter(
        stack,
        "PauseAll",
        type="String",
        default="no",
        allowed_values=["no", "yes"],
        description="yes: no queue of this stack is redriven, whatever its mode; letters are kept from expiry",
    )
    is_on = cdk.Fn.condition_equals(switch.value_as_string, "yes")
    return cdk.CfnCondition(stack, "AllArePaused", expression=is_on)


def _report_policy(redriver: SmartRedriver) -> iam.ManagedPolicy:
    """Make the policy for the roles of consumers that are deployed elsewhere."""
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
        termination_protection=context.termination_protection,
        queues=context.queues,
        safeguards=context.safeguards,
        stack_name=context.stack_name,
        beside=beside,
        fifo=context.fifo,
    )
    context.rules.apply(stack)
    for team in sorted({"", *stack.teams} if context.oncall_policies else ()):
        others = () if team else stack.others
        OnCallPolicies(
            stack,
            f"OnCall{team}",
            redrivers=[*stack.teams.get(team, ()), *others],
            team=team,
        )
    return stack


def _home(queues: tuple[Adopted, ...], safeguards: Safeguards | None) -> cdk.Environment | None:
    """Return the environment of the queues, or else of the key, which refuses deployment elsewhere; None for any."""
    if queues:
        return cdk.Environment(account=queues[0].account, region=queues[0].region)
    if safeguards and (key := safeguards.encryption_key_arn):
        return cdk.Environment(region=key.split(":")[3])
    return None
