"""Answers of a cluster's administration: what the doctor and the process make of each."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine import client
from smart_redriver.kafka.engine.client import KafkaAdministration, KafkaLog
from smart_redriver.kafka.engine.credentials import OwnAccount
from tests.kafka.conftest import place_at

PLACE = place_at("127.0.0.1:1")


def answered(value: Any = None, *, error: int | None = None) -> Future[Any]:
    told = Future[Any]()
    if error is None:
        told.set_result(value)
    else:
        told.set_exception(KafkaException(KafkaError(error)))
    return told


class Cluster:
    """A cluster with one broker, which gives the same answer to each question."""

    controller_id = 1
    brokers = (1,)

    def __init__(self, monkeypatch) -> None:
        self.answer = answered()
        self.settings: list[dict[str, Any]] = []
        for kind in ("AdminClient", "Consumer", "Producer"):
            monkeypatch.setattr(client, kind, self._open)
        monkeypatch.setattr(client, "PATIENCE", 0.0)

    def _open(self, settings):
        self.settings.append(settings)
        return self

    def poll(self, _seconds):
        return None

    def list_topics(self, _topic, *, timeout):
        return self

    def describe_configs(self, asked):
        return dict.fromkeys(asked, self.answer)

    def describe_topics(self, _asked, **_):
        return {"orders": self.answer}

    def describe_consumer_groups(self, asked, **_):
        return dict.fromkeys(asked, self.answer)


@pytest.fixture
def cluster(monkeypatch):
    return Cluster(monkeypatch)


QUESTIONS = {
    "DescribeConfigs": lambda: KafkaAdministration(PLACE, OwnAccount()).settings("orders"),
    "DescribeGroups": lambda: KafkaAdministration(PLACE, OwnAccount()).rights_on_group("shop"),
    "DescribeTopics": lambda: KafkaAdministration(PLACE, OwnAccount()).rights_on_topic("orders"),
    "DescribeTopics of a pass": lambda: KafkaLog(PLACE).topic_ids(["orders"]),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (answered(error=KafkaError.TOPIC_AUTHORIZATION_FAILED), "TOPIC_AUTHORIZATION_FAILED"),
        (answered(error=KafkaError._TIMED_OUT), "NoAnswer"),
        (Future(), "NoAnswer"),
    ],
    ids=["refused", "timed out", "silent"],
)
def test_a_question_that_gets_no_answer_is_a_failed_call(cluster, question, answer, code):
    cluster.answer = answer

    with pytest.raises(CallFailed) as failed:
        QUESTIONS[question]()

    assert (failed.value.call, failed.value.code) == (question.split()[0], code)


def test_a_topic_that_is_gone_has_no_id_and_its_rights_are_refused(cluster):
    cluster.answer = answered(error=KafkaError.UNKNOWN_TOPIC_OR_PART)

    assert KafkaLog(PLACE).topic_ids(["orders"]) == {}
    with pytest.raises(CallFailed) as failed:
        KafkaAdministration(PLACE, OwnAccount()).rights_on_topic("orders")
    assert failed.value.code == "UNKNOWN_TOPIC_OR_PART"


def test_answers_are_read(cluster):
    doctor = KafkaAdministration(PLACE, OwnAccount())
    cluster.answer = answered({"a": SimpleNamespace(value="1"), "b": SimpleNamespace(value=None)})
    assert doctor.settings("orders") == {"a": "1"}

    rights = [AclOperation.READ, AclOperation.DESCRIBE]
    cluster.answer = answered(SimpleNamespace(authorized_operations=rights, topic_id=Uuid(1, 2)))
    assert doctor.rights_on_topic("orders") == frozenset({"READ", "DESCRIBE"})
    assert doctor.rights_on_group("shop") == frozenset({"READ", "DESCRIBE"})
    assert KafkaLog(PLACE).topic_ids(["orders"]) == {"orders": str(Uuid(1, 2))}

    cluster.answer = answered(SimpleNamespace(authorized_operations=None, topic_id=Uuid(0, 0)))
    assert doctor.rights_on_topic("orders") is None
    assert KafkaLog(PLACE).topic_ids(["orders"]) == {}


def test_the_doctor_reaches_the_cluster_as_the_process_does(cluster):
    KafkaAdministration(PLACE, OwnAccount())
    KafkaLog(PLACE)

    doctors, *processes = cluster.settings
    assert doctors["bootstrap.servers"] == "127.0.0.1:1"
    for one in processes:
        assert doctors.items() <= one.items()
