"""The re-driver of one dead-letter queue: function, schedule, and no permission beyond its work.

It stands alone, so another CDK app can use it for queues of its own; `docs/deploy.md` shows how.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

import redrive
from redrive.errors import Fault, SettingsError
from redrive.settings import Deployment, Settings
from redrive.targets import Origin
from smart_redriver.cdk.dashboard_widget import DashboardWidget
from smart_redriver.cdk.filling import filling_of
from smart_redriver.cdk.key_use import DECRYPT, ENCRYPT, KEEP_ITEMS, KeyUse, together
from smart_redriver.cdk.monitoring import QueueMonitoring
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.owners import tell_owners
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.queue_roles import fit_faults, role_faults
from smart_redriver.cdk.queues import make_outcome_queue, make_parking_lot
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import shared_state_table
from smart_redriver.cdk.target_access import target_calls, target_key_uses
from smart_redriver.cdk.ticks import schedule_ticks
from smart_redriver.cdk.topics import Topics
from smart_redriver.cdk.watched import watched_sources, watched_targets

#: The function's own package, wherever it is installed.
REDRIVE = Path(redrive.__file__).resolve().parent

#: The function's timeout: enough for a pass of thousands of letters, and well under the 15 minutes that Lambda
#: allows. Ticks that come meanwhile find the lease taken.
LONGEST_PASS = cdk.Duration.seconds(240)

_SEND = ("sqs:SendMessage", "sqs:GetQueueAttributes")
_EMPTY = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    # The re-driver stands aside while a native redrive is running.
    "sqs:ListMessageMoveTasks",
)
#: A parked letter near its expiry is renewed: received, sent again, deleted.
_PARK = (*_SEND, "sqs:ReceiveMessage", "sqs:DeleteMessage")
#: Reports that a pass can't take in, or a dry run has looked at, are let go.
_HEAR = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
#: What a consumer does to the outcome queue and, with what can never succeed, to the parking lot.
_REPORT = ("sqs:SendMessage",)
KEEP_STATE = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
)


class SmartRedriver(Construct):
    """``function`` makes passes over the dead-letter queue; each minute it is asked whether one is due.

    The queues may be anyone's, and encrypted: a queue imported with its key's ARN brings the
    grants on the key. ``further_sources`` share the dead-letter queue; each letter goes back to
    its own. All of them are FIFO queues, or none is. Without a ``parking_lot`` one is made, of their kind and encrypted as the dead-letter queue is unless
    ``parking_lot_key`` is given; without a ``table`` or ``topics`` all re-drivers of the stack
    share theirs. Alarms and dashboard are in ``monitoring_scope``, or else here. Raises
    SettingsError listing all that is wrong with settings and queues. ``known_as`` begins the
    names of its alarms, instead of the first source queue's name. ``safeguards`` are for what is made
    here: a table, topics or a parking lot that is given stays as it is.

    A DLQ that another ``origin`` than SQS fills has ``targets`` instead of source queues: ARNs and URLs known at synth, of
    which exactly these are called. ``target_keys`` are those of target queues and topics, in their order;
    ``private_hosts`` are those that a URL may have at an address that is not public.

    The consumers of all its sources may report to the one ``outcome_queue``: grant it to them by
    ``grant_report``, and give them ``report_environment``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        dead_letter_queue: sqs.IQueue,
        source_queue: sqs.IQueue | None = None,
        further_sources: Sequence[sqs.IQueue] = (),
        origin: Origin = Origin.SQS,
        targets: Sequence[str] = (),
        private_hosts: Sequence[str] = (),
        target_keys: Sequence[kms.IKey] = (),
        settings: Settings | None = None,
        parking_lot: sqs.IQueue | None = None,
        parking_lot_key: kms.IKey | None = None,
        table: dynamodb.ITableV2 | None = None,
        topics: Topics | None = None,
        monitoring: MonitoringSettings | None = None,
        monitoring_scope: Construct | None = None,
        safeguards: Safeguards | None = None,
        known_as: str | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN,
    ) -> None:
        super().__init__(scope, construct_id)
        sources = {
            **({"source_queue": source_queue} if source_queue else {}),
            **{f"further_sources[{i}]": one for i, one in enumerate(further_sources)},
        }
        others = {
            "dead_letter_queue": dead_letter_queue,
            **({"parking_lot": parking_lot} if parking_lot else {}),
        }
        filling, of_targets = filling_of(origin, targets, private_hosts, sources, others)
        settings, safeguards = _checked(
            settings or Settings(),
            safeguards or Safeguards(),
            [
                *role_faults({**sources, **others}),
                *fit_faults(sources, dead_letter_queue, parking_lot),
                *of_targets,
            ],
        )
        own_key = safeguards.key(self)
        lot_key = parking_lot_key or dead_letter_queue.encryption_master_key or own_key
        self.source_queues = tuple(sources.values())
        self.filling = filling
        self.target_keys = tuple(target_keys)
        self.dead_letter_queue = dead_letter_queue
        self.parking_lot = parking_lot or make_parking_lot(
            self,
            key=lot_key,
            removal_policy=removal_policy,
            fifo=dead_letter_queue.fifo,
        )
        self.outcome_queue = make_outcome_queue(
            self, key=own_key or lot_key, removal_policy=removal_policy
        )
        self.table = table or shared_state_table(self, removal_policy=removal_policy, key=own_key)
        watched = [*watched_sources(self.source_queues), *watched_targets(filling)]
        deployment = Deployment(
            queue_name=watched[0].name,
            table_name=self.table.table_name,
            dlq_url=dead_letter_queue.queue_url,
            source_queue_url=source_queue.queue_url if source_queue else "",
            parking_lot_url=self.parking_lot.queue_url,
            further_source_urls=tuple(queue.queue_url for queue in further_sources),
            outcome_queue_url=self.outcome_queue.queue_url,
            origin=filling.origin,
            targets=filling.targets,
            private_hosts=filling.private_hosts,
        )
        self.function = python_function(
            self,
            package=REDRIVE,
            description="Redrives dead letters, and learns from those that return",
            memory_mib=settings.memory_mib,
            timeout=LONGEST_PASS,
            environment=deployment.to_env() | settings.to_env(),
            removal_policy=removal_policy,
            safeguards=safeguards,
        )
        self.settings = settings
        self.encryption_key = own_key
        self.is_in_vpc = bool(safeguards.vpc_id)
        self._grant()
        schedule_ticks(self, self.function)
        self.topics = topics or shared_topics(self, own_key)
        monitoring = monitoring or MonitoringSettings()
        self.widget = (
            DashboardWidget(
                self,
                "Widget",
                deployment=deployment,
                settings=settings,
                queues=(*self.source_queues, dead_letter_queue, self.parking_lot),
                table=self.table,
                safeguards=safeguards,
                removal_policy=removal_policy,
                key=own_key,
            )
            if monitoring.has_widget
            else None
        )
        QueueMonitoring(
            monitoring_scope or self,
            "Monitoring",
            watched=watched,
            dead_letter_queue=dead_letter_queue,
            parking_lot=self.parking_lot,
            outcome_queue=self.outcome_queue,
            function=self.function,
            settings=settings,
            monitoring=monitoring,
            topics=self.topics,
            known_as=known_as or deployment.queue_name,
            widget=self.widget.widget if self.widget else None,
        )

    @property
    def report_environment(self) -> Mapping[str, str]:
        """The variables by which a consumer with the kit knows where to report and to park."""
        return {
            "OUTCOME_QUEUE_URL": self.outcome_queue.queue_url,
            "PARKING_LOT_URL": self.parking_lot.queue_url,
        }

    def grant_report(self, consumer: iam.IGrantable) -> None:
        """Let a consumer report outcomes, and park what can never succeed."""
        queues = (self.outcome_queue, self.parking_lot)
        for queue in queues:
            queue.grant(consumer, *_REPORT)
        uses = [_use(queue, ENCRYPT) for queue in queues]
        for use in together(one for one in uses if one):
            consumer.grant_principal.add_to_principal_policy(use.statement(self))

    def _grant(self) -> None:
        queues, keys = list(self._queue_actions()), list(together(self._key_uses()))
        for queue, actions in queues:
            queue.grant(self.function, *actions)
        calls = list(target_calls(self.filling))
        for target, actions in calls:
            allowed = iam.PolicyStatement(actions=list(actions), resources=[target.place])
            self.function.add_to_role_policy(allowed)
        for use in keys:
            self.function.add_to_role_policy(use.statement(self))
        self.table.grant(self.function, *KEEP_STATE)
        # CloudWatch has no permissions by resource, nor a condition that would narrow this one.
        self.function.add_to_role_policy(
            iam.PolicyStatement(actions=["cloudwatch:GetMetricData"], resources=["*"])
        )
        tell_owners(self, queues, keys, calls)

    def _queue_actions(self) -> Iterator[tuple[sqs.IQueue, Sequence[str]]]:
        for queue in self.source_queues:
            yield queue, _SEND
        yield self.dead_letter_queue, _EMPTY
        yield self.parking_lot, _PARK
        yield self.outcome_queue, _HEAR

    def _key_uses(self) -> Iterator[KeyUse]:
        for queue, done in self._queue_actions():
            if use := _use(queue, ENCRYPT if "sqs:SendMessage" in done else DECRYPT):
                yield use
        yield from self.target_key_uses()
        if key := self.table.encryption_key:
            yield KeyUse(key=key, service="dynamodb", actions=KEEP_ITEMS)
        if key := self.encryption_key:
            yield KeyUse(key=key, service="lambda", actions=DECRYPT)

    def target_key_uses(self) -> Iterator[KeyUse]:
        """What whoever gives letters to targets does with their keys."""
        home = self.dead_letter_queue.env.region
        return target_key_uses(self.filling, self.target_keys, home)


def _use(queue: sqs.IQueue, actions: tuple[str, ...]) -> KeyUse | None:
    """What is done with a queue's key; None for a queue without one that its owner manages."""
    key = queue.encryption_master_key
    return KeyUse(key=key, service="sqs", actions=actions) if key else None


def _checked(
    settings: Settings, safeguards: Safeguards, of_queues: Sequence[Fault]
) -> tuple[Settings, Safeguards]:
    """The settings as they will be read. Raises SettingsError listing every fault of settings and ``of_queues``."""
    faults: list[Fault] = []
    try:
        settings = Settings.parse({name: getattr(settings, name) for name in Settings.names()})
    except SettingsError as error:
        faults += error.faults
    try:
        safeguards = Safeguards.parse(
            {name: getattr(safeguards, name) for name in Safeguards.names()}
        )
    except SettingsError as error:
        faults += error.faults
    faults += of_queues
    if faults:
        raise SettingsError(faults)
    return settings, safeguards


_topics: WeakKeyDictionary[cdk.Stack, Topics] = WeakKeyDictionary()


def shared_topics(scope: Construct, key: kms.IKey | None) -> Topics:
    """The topics of the stack around ``scope``, made when they are first asked for."""
    stack = cdk.Stack.of(scope)
    if stack not in _topics:
        _topics[stack] = Topics(
            stack, "SmartRedriverTopics", monitoring=MonitoringSettings(), key=key
        )
    return _topics[stack]
