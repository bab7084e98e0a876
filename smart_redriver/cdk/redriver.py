"""The re-driver of one dead-letter queue: function, schedule, and only the permissions that it needs.

It is self-contained, so another CDK app can use it for its own queues. `docs/deploy.md` shows how.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.acknowledged import UNRESTRICTED, accept_passes
from smart_redriver.cdk.arguments import (
    check_kinds,
    check_lists,
    check_resources,
    checked,
    fit_faults,
    key_faults,
    place_faults,
    role_faults,
    too_many,
    unread_settings,
    warn_of_retention,
)
from smart_redriver.cdk.claims import claim_name, claim_output, claim_queues
from smart_redriver.cdk.dashboard import DashboardWidget
from smart_redriver.cdk.invocations import alarms_elsewhere, hear_recovery, schedule_ticks
from smart_redriver.cdk.key_use import KeyUse
from smart_redriver.cdk.monitoring import MONITORING_ID, QueueMonitoring, crowded
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.origin_config import OriginConfig, origin_config_of, warn_of_functions
from smart_redriver.cdk.owners import open_key, outermost
from smart_redriver.cdk.props import Naming, Resources, Targets
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.queue_metrics import watched_sources, watched_targets
from smart_redriver.cdk.queues import make_outcome_queue, make_parking_lot
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import shared_state_table, table_faults
from smart_redriver.cdk.target_access import UsedResources
from smart_redriver.cdk.topics import Topics, shared_topics, unheard
from smart_redriver.engine.aws.metrics import (
    CIRCUIT_STATE,
    DEAD_LETTERS,
    LETTERS_REDRIVEN,
    NAMESPACE,
    PARKED_LETTERS,
    QUEUE,
)
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault, SettingsError

_OURS = Path(__file__).resolve().parents[1]
#: The code that the function runs, and its place in the bundle.
ENGINE = _OURS / "engine"
ENGINE_PLACE = "smart_redriver/engine"
#: The handler's module. `entry.py` is a link to `lambdas/redrive/handler.py`; in a wheel it is a file.
ENTRY_HANDLER = "redrive.handler"
ENTRY = {
    "smart_redriver/__init__.py": _OURS / "__init__.py",
    "redrive/handler.py": _OURS / "cdk" / "entry.py",
}

#: The function's timeout: enough for a pass over thousands of letters, and well under Lambda's 15 minutes. Ticks that
#: come meanwhile find the lease taken.
LONGEST_PASS = cdk.Duration.seconds(240)

#: None means no monitoring at all.
_DEFAULT_MONITORING = MonitoringSettings()


class SmartRedriver(Construct):
    """``function`` makes passes over the dead-letter queue. A tick each minute makes it check whether one is due.

    The queues may belong to anyone, and may be encrypted: for a queue imported with its key's ARN, the construct also
    grants the use of the key. Raises SettingsError listing every fault of the arguments.

    The consumers of all its sources can report to its one ``outcome_queue``: allow it with ``grant_report``, and give
    them ``report_environment``.

    Args:
        scope: the construct around it, in a stack of the queues' account and Region.
        construct_id: its id in ``scope``. A new id makes a new re-driver with a new parking lot.
        dead_letter_queue: the queue with the letters. It has no DLQ of its own, and only one re-driver.
        source_queue: the queue that SQS moves letters from, and that they go back to. Not with ``targets``.
        further_sources: other queues that share the DLQ. Each letter goes back to its own. Either all queues are
            FIFO, or none is.
        targets: where letters go back to if the DLQ has an origin other than SQS.
        settings: how the re-driver judges, and how fast it goes.
        resources: existing resources to use: parking lot, table, topics.
        monitoring: thresholds and who is notified; None for no alarms, no dashboard and no topics. A stack's first
            re-driver with monitoring makes its topics.
        naming: names by which people and the `redrive` command find it.
        safeguards: key, network, log retention and concurrency of the resources that it makes.
        removal_policy: for resources that hold letters, state or logs: RETAIN or DESTROY.

    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        dead_letter_queue: sqs.IQueue,
        source_queue: sqs.IQueue | None = None,
        further_sources: Sequence[sqs.IQueue] = (),
        targets: Targets | None = None,
        settings: Settings | None = None,
        resources: Resources | None = None,
        monitoring: MonitoringSettings | None = _DEFAULT_MONITORING,
        naming: Naming | None = None,
        safeguards: Safeguards | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        check_kinds(
            targets=(targets, Targets), resources=(resources, Resources), naming=(naming, Naming)
        )
        target_keys = targets.keys if targets else ()
        check_lists(**{"further_sources": further_sources, "targets.keys": target_keys})
        resources, naming = resources or Resources(), naming or Naming()
        if wrong := [*naming.faults(), *claim_name(self, naming.known_as)]:
            raise SettingsError(wrong)
        sources, others = _by_role(
            source_queue, further_sources, dead_letter_queue, resources.parking_lot
        )
        alarms_in = naming.monitoring_scope or self
        keys = {f"targets.keys[{i}]": one for i, one in enumerate(target_keys)}
        check_resources(
            sources | others,
            {"parking_lot_key": resources.parking_lot_key},
            keys,
        )
        origin_config, self.target_keys, of_targets = origin_config_of(targets, sources, others)
        settings, safeguards, thresholds = checked(
            settings,
            safeguards,
            monitoring,
            [
                *place_faults(cdk.Stack.of(self), {**sources, **others}),
                *key_faults(cdk.Stack.of(self), {**sources, **others}, resources.parking_lot_key),
                *too_many(sources),
                *role_faults({**sources, **others}),
                *fit_faults(sources, dead_letter_queue, resources.parking_lot),
                *of_targets,
                *claim_queues(self, {**sources, **others}, origin_config),
                *unheard(self, monitoring, resources.topics),
                *table_faults(self, resources.table, safeguards, removal_policy),
                *crowded(alarms_in),
                *unread_settings(settings),
                *_unread(monitoring, resources, naming),
                *alarms_elsewhere(self, settings),
            ],
            topics=(resources.topics, Topics),
        )
        warn_of_retention(self, sources, others)
        warn_of_functions(targets, dead_letter_queue)
        self.source_queues = tuple(sources.values())
        self.origin_config = origin_config
        self.settings = settings
        self.encryption_key = safeguards.key(self)
        self.is_in_vpc = bool(safeguards.vpc_id)
        self.dead_letter_queue = dead_letter_queue
        self._keep_letters_and_state(resources, removal_policy)
        self._used = self._all_of_it()
        self._watched = [*watched_sources(self.source_queues), *watched_targets(origin_config)]
        deployment = self._used.deployment(self._watched[0].name)
        self.known_as = naming.known_as or deployment.queue_name
        self.function = python_function(
            self,
            package=ENGINE,
            place=ENGINE_PLACE,
            handler=ENTRY_HANDLER,
            beside=ENTRY,
            description="Redrives dead letters, and learns from those that return",
            memory_mib=settings.memory_mib,
            timeout=LONGEST_PASS,
            environment=deployment.to_env() | settings.to_env(),
            removal_policy=removal_policy,
            safeguards=safeguards,
        )
        self._used.grant(self.function, self)
        schedule_ticks(self, self.function)
        hear_recovery(self, self.function, [one.name for one in self._watched], settings)
        accept_passes(self, self.function, safeguards, UNRESTRICTED)
        self.topics: Topics | None = None
        self.widget: DashboardWidget | None = None
        self.alarms: Sequence[cloudwatch.IAlarm] = ()
        if monitoring is not None:
            self.topics = resources.topics or shared_topics(self, self.encryption_key, thresholds)
            self.widget = self._widget(thresholds, deployment, safeguards, removal_policy)
            self.alarms = self._watch(alarms_in, thresholds, self.topics)
        self.output = tell_command(self, self.places, name_of(self)) if naming.output else None

    def _keep_letters_and_state(
        self, resources: Resources, removal_policy: cdk.RemovalPolicy
    ) -> None:
        """The parking lot, the outcome queue and the state table: the given ones, or new ones."""
        own_key, dead_letter_queue = self.encryption_key, self.dead_letter_queue
        if own_key:
            open_key(self, own_key)
        lot_key = resources.parking_lot_key or dead_letter_queue.encryption_master_key or own_key
        self.parking_lot = resources.parking_lot or make_parking_lot(
            self, key=lot_key, removal_policy=removal_policy, fifo=dead_letter_queue.fifo
        )
        self.outcome_queue = make_outcome_queue(
            self, key=own_key or lot_key, removal_policy=removal_policy
        )
        self.table = resources.table or shared_state_table(
            self, removal_policy=removal_policy, key=own_key
        )

    def _all_of_it(self) -> UsedResources:
        return UsedResources(
            sources=self.source_queues,
            dead_letter_queue=self.dead_letter_queue,
            parking_lot=self.parking_lot,
            outcome_queue=self.outcome_queue,
            origin_config=self.origin_config,
            target_keys=self.target_keys,
            table=self.table,
            function_key=self.encryption_key,
        )

    def _watch(
        self, scope: Construct, monitoring: MonitoringSettings, topics: Topics
    ) -> Sequence[cloudwatch.IAlarm]:
        return QueueMonitoring(
            scope,
            MONITORING_ID,
            watched=self._watched,
            dead_letter_queue=self.dead_letter_queue,
            parking_lot=self.parking_lot,
            outcome_queue=self.outcome_queue,
            function=self.function,
            settings=self.settings,
            monitoring=monitoring,
            topics=topics,
            known_as=self.known_as,
            widget=self.widget.widget if self.widget else None,
        ).alarms

    def _widget(
        self,
        monitoring: MonitoringSettings,
        deployment: Deployment,
        safeguards: Safeguards,
        removal_policy: cdk.RemovalPolicy,
    ) -> DashboardWidget | None:
        if not monitoring.dashboard_widget:
            return None
        return DashboardWidget(
            self,
            "Widget",
            deployment=deployment,
            settings=self.settings,
            queues=(*self.source_queues, self.dead_letter_queue, self.parking_lot),
            table=self.table,
            safeguards=safeguards,
            removal_policy=removal_policy,
            key=self.encryption_key,
        )

    @property
    def places(self) -> Mapping[str, str]:
        """The re-driver's places for the command, people and consumers, by the names of outputs."""
        sources = [queue.queue_url for queue in self.source_queues]
        topics = self.topics
        return {
            **(
                {"SourceQueueUrl": sources[0]}
                if sources
                else _places_of_targets(self.origin_config)
            ),
            **({"FurtherSourceQueueUrls": " ".join(sources[1:])} if len(sources) > 1 else {}),
            "DeadLetterQueueUrl": self.dead_letter_queue.queue_url,
            "ParkingLotQueueUrl": self.parking_lot.queue_url,
            "OutcomeQueueUrl": self.outcome_queue.queue_url,
            "RedriveFunctionName": self.function.function_name,
            "RedriveLogGroupName": self.function.log_group.log_group_name,
            "RedriveMode": self.settings.mode.value,
            "RedriveAlarms": self.known_as,
            "StateTableName": self.table.table_name,
            "WarningTopicArn": topics.warning.topic_arn if topics else "",
            "PagingTopicArn": topics.paging.topic_arn if topics else "",
        }

    @property
    def report_environment(self) -> Mapping[str, str]:
        """The variables that tell a consumer with the kit where to report and to park."""
        return {
            "OUTCOME_QUEUE_URL": self.outcome_queue.queue_url,
            "PARKING_LOT_URL": self.parking_lot.queue_url,
        }

    def grant_report(self, consumer: iam.IGrantable) -> None:
        """Let a consumer report outcomes, and park messages that can never succeed.

        Raises SettingsError for something that can't get grants. A consumer in a stack that this one depends on, such
        as the queues', would make the stacks depend on each other: then import the queues by their ARNs.
        """
        principal = getattr(consumer, "grant_principal", None)
        # An imported function without its role has a principal that can't get statements.
        if principal is None or isinstance(principal, iam.UnknownPrincipal):
            accepted = (
                "what runs the consumer: a function (an imported one with its `role`), a role, a task definition's "
                "`task_role`"
            )
            raise SettingsError([Fault(setting="consumer", seen=consumer, accepted=accepted)])
        self._used.grant_report(consumer, self)

    def metric(
        self, metric_name: str, *, statistic: str = "Maximum", period: cdk.Duration | None = None
    ) -> cloudwatch.Metric:
        """One of the re-driver's own metrics of its first queue, such as `DeadLetters`, see docs/monitoring.md."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric_name,
            dimensions_map={QUEUE: self._watched[0].name},
            statistic=statistic,
            period=period or cdk.Duration.minutes(5),
        )

    def metric_dead_letters(self) -> cloudwatch.Metric:
        """The number of letters in the DLQ."""
        return self.metric(DEAD_LETTERS.name)

    def metric_parked_letters(self) -> cloudwatch.Metric:
        """The number of letters in the parking lot."""
        return self.metric(PARKED_LETTERS.name)

    def metric_letters_redriven(self) -> cloudwatch.Metric:
        """The number of letters that went back."""
        return self.metric(LETTERS_REDRIVEN.name, statistic="Sum")

    def metric_circuit_state(self) -> cloudwatch.Metric:
        """0 while the circuit is CLOSED, 0.5 while it is HALF_OPEN, 1 while it is OPEN."""
        return self.metric(CIRCUIT_STATE.name)

    def target_key_uses(self) -> Iterator[KeyUse]:
        """The uses of targets' keys by a role that sends letters to targets."""
        return self._used.target_key_uses()


def _unread(
    monitoring: MonitoringSettings | None, resources: Resources, naming: Naming
) -> Iterator[Fault]:
    """Yield faults of arguments that nothing reads without monitoring: someone would wait for a page."""
    given = {"topics": resources.topics, "naming.monitoring_scope": naming.monitoring_scope}
    for name, value in given.items():
        if monitoring is None and value is not None:
            accepted = (
                "nothing with monitoring=None, which makes no alarms: leave out one of the two"
            )
            yield Fault(setting=name, seen=value.node.path, accepted=accepted)


def _places_of_targets(origin_config: OriginConfig) -> dict[str, str]:
    """The places of a DLQ without a source queue, for the command, by the function's variables."""
    hosts = {"RedrivePrivateHosts": " ".join(origin_config.private_hosts)}
    return {
        "RedriveOrigin": origin_config.origin.value,
        "RedriveTargets": " ".join(map(str, origin_config.targets)),
        **(hosts if origin_config.private_hosts else {}),
    }


def _by_role(
    source_queue: sqs.IQueue | None,
    further_sources: Sequence[sqs.IQueue],
    dead_letter_queue: sqs.IQueue,
    parking_lot: sqs.IQueue | None,
) -> tuple[dict[str, sqs.IQueue], dict[str, sqs.IQueue]]:
    """Return the source queues and the other queues, the DLQ first, by the names of their arguments."""
    sources = {
        **({"source_queue": source_queue} if source_queue else {}),
        **{f"further_sources[{i}]": one for i, one in enumerate(further_sources)},
    }
    others = {
        "dead_letter_queue": dead_letter_queue,
        **({"parking_lot": parking_lot} if parking_lot else {}),
    }
    return sources, others


#: The end of the name of such an output. The command takes the part before it as the queue's name.
_ENDS = "Redriver"


def tell_command(scope: Construct, places: Mapping[str, str], name: str) -> cdk.CfnOutput:
    """Write ``places`` as one JSON object to an output whose name begins with ``name``.

    The output is in the stack that a person deploys, because nobody types a nested stack's name. The `redrive` command
    then needs only `cloudformation:DescribeStacks` to find its queues. An output costs nothing, and is not a resource;
    docs/adr/0012 compares it with an SSM parameter. Raises SettingsError if another construct has the name.
    """
    stack = outermost(scope)
    if faults := [*claim_output(scope, stack, name)]:
        raise SettingsError(faults)
    place = f"RedriverPlaces{scope.node.addr}"
    output = cdk.CfnOutput(stack, place, value=stack.to_json_string(dict(places)))
    output.override_logical_id(f"{name}{_ENDS}")
    return output


def name_of(scope: Construct) -> str:
    """A re-driver's name by its place in the stack: `Orders` for `Shop/Orders/Redriver` and `Shop/OrdersRedriver`."""
    place = scope.node.path.removeprefix(outermost(scope).node.path)
    return in_capitals(place).removesuffix(_ENDS)


def in_capitals(name: str) -> str:
    """A name for outputs, with only letters and digits: `my-orders` becomes MyOrders."""
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)
