"""One entry for a DLQ topic in MSK in a list of queues: `origin = "kafka"`, and every fault with its place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from aws_cdk import aws_kms as kms
from constructs import Construct

from smart_redriver.cdk.backend import AdoptedElsewhere, Around
from smart_redriver.cdk.queue_clashes import HOME, KEY_ARN, partition_faults
from smart_redriver.cdk.queue_entry import (
    ANY_NAME,
    ANY_STACK,
    NAME,
    OWN_SETTINGS,
    STACK,
    STACK_NAME,
    EntryInNetwork,
    table_in,
)
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import SettingsError
from smart_redriver.kafka.cdk.redriver import CLUSTER, KafkaRedriver, kafka_faults, places_of
from smart_redriver.kafka.engine.place import KafkaTopics

_AT_HOME = re.compile(rf"arn:aws[a-z-]*:(?:kafka|secretsmanager){HOME}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedTopics(AdoptedElsewhere):
    """A DLQ topic with its other topics and its group, and the settings of its re-driver."""

    kafka: KafkaTopics
    cluster_arn: str = ""
    secret_key_arn: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """See `AdoptedElsewhere`."""
        return (*places_of(self.kafka), self.name)

    def redriver(self, scope: Construct, **around: Unpack[Around]) -> KafkaRedriver:
        """See `AdoptedElsewhere`."""
        key = self.secret_key_arn
        return KafkaRedriver(
            scope,
            "Redriver",
            kafka=self.kafka,
            safeguards=self.safeguards,
            cluster_arn=self.cluster_arn,
            secret_key=kms.Key.from_key_arn(scope, "SecretKey", key) if key else None,
            settings=self.settings,
            **around,
        )


class TopicsEntry(EntryInNetwork):
    """One entry while it is read. ``faults`` fills meanwhile."""

    places = (
        "name",
        STACK,
        "origin",
        "kafka",
        "cluster_arn",
        "secret_key_arn",
        *EntryInNetwork.network,
    )

    resources_key, resources_called = "kafka", "topics"

    @staticmethod
    def home(entry: Mapping[str, Any]) -> tuple[str, str]:
        """Region and account of its cluster, or of its secret; empty texts if they can't be read."""
        for given in (entry.get("cluster_arn"), table_in(entry, "kafka").get("secret")):
            if match := _AT_HOME.match(str(given)):
                return match["region"], match["account"]
        return "", ""

    @staticmethod
    def resources(entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The topics that it reads letters from or keeps them in, and its group; none if they can't be read."""
        try:
            return places_of(
                KafkaTopics.read({**table_in(entry, "kafka"), "name": entry.get("name")})
            )
        except SettingsError:
            return ()

    def read(self, global_values: Mapping[str, Any]) -> AdoptedTopics | None:  # type: ignore[override]
        """The queue; None if something is wrong with it. Its settings take precedence over the global ones."""
        self._refuse_unknown_keys()
        name = self._one("name", NAME, ANY_NAME)
        stack = self._one(STACK, STACK_NAME, ANY_STACK, is_needed=False)
        kafka = self._topics(name)
        of_iam = "the ARN of the cluster, with kafka.iam_region"
        cluster = self._one("cluster_arn", CLUSTER, of_iam, is_needed=False)
        key = self._secret_key(kafka)
        safeguards = self._safeguards(global_values)
        if kafka and safeguards is not None:
            self._add_faults_of(kafka, safeguards)
        settings = self._settings(Settings, OWN_SETTINGS, global_values)
        if self.faults or not (name and kafka and settings and safeguards is not None):
            return None
        region, account = self.home(self._entry)
        return AdoptedTopics(
            name=name,
            stack=stack or str(global_values.get(STACK, "")),
            region=region,
            account=account,
            kafka=kafka,
            safeguards=safeguards,
            cluster_arn=cluster or "",
            secret_key_arn=key or "",
            settings=settings,
        )

    def _secret_key(self, kafka: KafkaTopics | None) -> str | None:
        if kafka and not kafka.secret:
            self._refuse("secret_key_arn", "nothing without kafka.secret, which it encrypts")
            return None
        accepted = "the ARN of the KMS key that encrypts kafka.secret"
        key = self._one("secret_key_arn", KEY_ARN, accepted, is_needed=False)
        self.faults += partition_faults(f"{self._place}.secret_key_arn", key or "")
        return key

    def _topics(self, name: str | None) -> KafkaTopics | None:
        given = self._entry.get("kafka")
        if not isinstance(given, Mapping):
            accepted = "a table with servers, consumer_group, topics, dead_letters, and secret or iam_region"
            self._add("kafka", given, f"{accepted} (docs/kafka.md)")
            return None
        if "name" in given:
            self._add("kafka.name", given["name"], "nothing: it is the entry's name")
        try:
            return KafkaTopics.read({**given, "name": name or "name"})
        except SettingsError as error:
            for fault in error.faults:
                self._add(f"kafka.{fault.setting}", fault.seen, fault.accepted)
            return None

    def _add_faults_of(self, kafka: KafkaTopics, safeguards: Safeguards) -> None:
        cluster = str(self._entry.get("cluster_arn", ""))
        told = {fault.setting for fault in self.faults}
        for fault in kafka_faults(kafka, safeguards, cluster):
            key = (
                f"kafka.{fault.setting}" if fault.setting in ("client", "secret") else fault.setting
            )
            if f"{self._place}.{key}" not in told:
                self._add(key, fault.seen, fault.accepted)
