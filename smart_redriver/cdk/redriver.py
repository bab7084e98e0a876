"""The re-driver of one dead-letter queue: function, schedule, and no permission beyond its work.

It stands alone, so another CDK app can use it for queues of its own; `docs/deploy.md` shows how.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

import redrive
from redrive.deployment import Deployment
from redrive.settings import Settings
from redrive.targets import Origin
from smart_redriver.cdk.app_filling import filling_of
from smart_redriver.cdk.arguments import check_lists, check_resources, checked
from smart_redriver.cdk.belongings import Belongings
from smart_redriver.cdk.dashboard_widget import DashboardWidget
from smart_redriver.cdk.key_use import KeyUse
from smart_redriver.cdk.monitoring import MONITORING_ID, QueueMonitoring, crowded
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.queue_roles import fit_faults, place_faults, role_faults
from smart_redriver.cdk.queues import make_outcome_queue, make_parking_lot
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.state_table import shared_state_table, without_key
from smart_redriver.cdk.taken import take
from smart_redriver.cdk.ticks import schedule_ticks
from smart_redriver.cdk.topics import Topics, shared_topics, unheard
from smart_redriver.cdk.watched import Watched, watched_sources, watched_targets

#: The function's own package, wherever it is installed.
REDRIVE = Path(redrive.__file__).resolve().parent

#: The function's timeout: enough for a pass of thousands of letters, and well under the 15 minutes that Lambda
#: allows. Ticks that come meanwhile find the lease taken.
LONGEST_PASS = cdk.Duration.seconds(240)


class SmartRedriver(Construct):
    """``function`` makes passes over the dead-letter queue; each minute it is asked whether one is due.

    The queues may be anyone's, and encrypted: a queue imported with its key's ARN brings the
    grants on the key. ``further_sources`` share the dead-letter queue; each letter goes back to
    its own. All of them are FIFO queues, or none is. Without a ``parking_lot`` one is made, of their kind and encrypted as the dead-letter queue is unless
    ``parking_lot_key`` is given; without a ``table`` or ``topics`` all re-drivers of the stack
    share theirs: the first one's ``monitoring`` says who is told. Alarms and dashboard are in ``monitoring_scope``, in which there are no others, or else here. Raises
    SettingsError listing all that is wrong with settings and queues. ``known_as`` begins the
    names of its alarms, instead of the first source queue's name. ``safeguards`` are for what is made
    here: a table, topics or a parking lot that is given stays as it is.

    A DLQ that another ``origin`` than SQS fills, such as ``"sns"``, has ``targets`` instead of source queues: ARNs and URLs known at synth, of
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
        origin: Origin | str = Origin.SQS,
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
        check_lists(further_sources=further_sources, target_keys=target_keys)
        sources, others = _by_role(source_queue, further_sources, dead_letter_queue, parking_lot)
        keys = {f"target_keys[{i}]": one for i, one in enumerate(target_keys)}
        check_resources(
            sources | others, {"table": table}, {"parking_lot_key": parking_lot_key, **keys}
        )
        filling, of_targets = filling_of(
            origin, targets, private_hosts, sources, others, target_keys
        )
        settings, safeguards, monitoring = checked(
            settings,
            safeguards,
            monitoring,
            [
                *place_faults(cdk.Stack.of(self), {**sources, **others}),
                *role_faults({**sources, **others}),
                *fit_faults(sources, dead_letter_queue, parking_lot),
                *of_targets,
                *take(self, dead_letter_queue, filling),
                *unheard(self, monitoring, topics),
                *without_key(self, table, safeguards),
                *crowded(monitoring_scope or self),
            ],
            topics=(topics, Topics),
        )
        own_key = safeguards.key(self)
        lot_key = parking_lot_key or dead_letter_queue.encryption_master_key or own_key
        self.source_queues = tuple(sources.values())
        self.filling = filling
        self.target_keys = tuple(target_keys)
        self.settings = settings
        self.encryption_key = own_key
        self.is_in_vpc = bool(safeguards.vpc_id)
        self.dead_letter_queue = dead_letter_queue
        self.parking_lot = parking_lot or make_parking_lot(
            self, key=lot_key, removal_policy=removal_policy, fifo=dead_letter_queue.fifo
        )
        self.outcome_queue = make_outcome_queue(
            self, key=own_key or lot_key, removal_policy=removal_policy
        )
        self.table = table or shared_state_table(self, removal_policy=removal_policy, key=own_key)
        self._belongings = self._all_of_it()
        watched = [*watched_sources(self.source_queues), *watched_targets(filling)]
        deployment = self._belongings.deployment(watched[0].name)
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
        self._belongings.grant(self.function, self)
        schedule_ticks(self, self.function)
        self.topics = topics or shared_topics(self, own_key, monitoring)
        self.widget = (
            self._widget(deployment, safeguards, removal_policy) if monitoring.has_widget else None
        )
        self._watch(
            monitoring_scope or self, watched, monitoring, known_as or deployment.queue_name
        )

    def _all_of_it(self) -> Belongings:
        return Belongings(
            sources=self.source_queues,
            dead_letter_queue=self.dead_letter_queue,
            parking_lot=self.parking_lot,
            outcome_queue=self.outcome_queue,
            filling=self.filling,
            target_keys=self.target_keys,
            table=self.table,
            function_key=self.encryption_key,
        )

    def _watch(
        self,
        scope: Construct,
        watched: Sequence[Watched],
        monitoring: MonitoringSettings,
        known_as: str,
    ) -> None:
        QueueMonitoring(
            scope,
            MONITORING_ID,
            watched=watched,
            dead_letter_queue=self.dead_letter_queue,
            parking_lot=self.parking_lot,
            outcome_queue=self.outcome_queue,
            function=self.function,
            settings=self.settings,
            monitoring=monitoring,
            topics=self.topics,
            known_as=known_as,
            widget=self.widget.widget if self.widget else None,
        )

    def _widget(
        self, deployment: Deployment, safeguards: Safeguards, removal_policy: cdk.RemovalPolicy
    ) -> DashboardWidget:
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
    def report_environment(self) -> Mapping[str, str]:
        """The variables by which a consumer with the kit knows where to report and to park."""
        return {
            "OUTCOME_QUEUE_URL": self.outcome_queue.queue_url,
            "PARKING_LOT_URL": self.parking_lot.queue_url,
        }

    def grant_report(self, consumer: iam.IGrantable) -> None:
        """Let a consumer report outcomes, and park what can never succeed."""
        self._belongings.grant_report(consumer, self)

    def target_key_uses(self) -> Iterator[KeyUse]:
        """What whoever gives letters to targets does with their keys."""
        return self._belongings.target_key_uses()


def _by_role(
    source_queue: sqs.IQueue | None,
    further_sources: Sequence[sqs.IQueue],
    dead_letter_queue: sqs.IQueue,
    parking_lot: sqs.IQueue | None,
) -> tuple[dict[str, sqs.IQueue], dict[str, sqs.IQueue]]:
    """Source queues, and the others, of which the DLQ is the first; each by the name of its argument."""
    sources = {
        **({"source_queue": source_queue} if source_queue else {}),
        **{f"further_sources[{i}]": one for i, one in enumerate(further_sources)},
    }
    others = {
        "dead_letter_queue": dead_letter_queue,
        **({"parking_lot": parking_lot} if parking_lot else {}),
    }
    return sources, others
