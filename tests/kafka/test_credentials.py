"""How the process proves who it is: SCRAM by a secret, a token by IAM. No broker here takes either."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest
import time_machine
from botocore.credentials import Credentials
from confluent_kafka import KafkaError, KafkaException

from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine import client
from smart_redriver.kafka.engine.client import KafkaLog
from smart_redriver.kafka.engine.credentials import client_settings, iam_token
from smart_redriver.kafka.engine.place import OUR_CREDENTIALS, OURS
from tests.kafka.conftest import place_at

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_shop-x"


class Secrets:
    def __init__(self, text: str) -> None:
        self.text = text

    def client(self, service):
        assert service == "secretsmanager"
        return self

    def credentials(self):
        return Credentials("AKID", "key")

    def get_secret_value(self, *, SecretId):  # noqa: N803 - boto3's name
        assert SecretId == SECRET
        return {"SecretString": self.text}


def test_a_secret_is_a_user_and_a_password_over_tls():
    secrets = Secrets(json.dumps({"username": "me", "password": "hunter2"}))

    told = client_settings(place_at("broker:9096", secret=SECRET), secrets)

    assert told == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "hunter2",
    }
    KafkaLog(place_at("127.0.0.1:1", secret=SECRET), secrets).close()


@pytest.mark.parametrize("text", ["hunter2", "{}", "[]", '{"username": "me"}'])
def test_a_secret_that_is_none_is_told_without_its_content(text):
    with pytest.raises(CallFailed) as failed:
        client_settings(place_at("broker:9096", secret=SECRET), Secrets(text))

    assert failed.value.code == "NotASecret"
    assert "hunter2" not in str(failed.value)


@time_machine.travel("2026-11-25T12:00:00Z", tick=False)
def test_a_token_of_iam_is_a_signed_request_to_connect_that_ends_in_a_quarter_of_an_hour():
    token, ends = iam_token("eu-west-1", Credentials("AKID", "key", "session"))

    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    query = parse_qs(url.query)
    assert (url.scheme, url.netloc) == ("https", "kafka.eu-west-1.amazonaws.com")
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"] == ["AKID/20261125/eu-west-1/kafka-cluster/aws4_request"]
    assert query["X-Amz-Security-Token"] == ["session"]
    assert query["X-Amz-Expires"] == ["900"]
    assert query["User-Agent"] == ["smart-redriver"]
    assert len(query["X-Amz-Signature"][0]) == 64
    assert "=" not in token
    assert ends == 1_795_608_000 + 900


class LoggedOut(Secrets):
    def credentials(self):
        return None


def test_without_credentials_no_client_is_opened_and_no_token_is_waited_for():
    """The process and the command waited ten seconds for a token, and reported a bug."""
    with pytest.raises(CallFailed) as failed:
        KafkaLog(place_at("127.0.0.1:1", iam_region="eu-west-1"), LoggedOut(""))

    assert (failed.value.call, failed.value.code) == ("SignToken", "NoCredentialsError")


def test_a_client_that_gets_no_token_in_time_is_a_failed_call(monkeypatch):
    def give_up(_settings):
        late = KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, "no token in time"))
        raise SystemError("returned a result with an exception set") from late

    monkeypatch.setattr(client, "Consumer", give_up)

    with pytest.raises(CallFailed) as failed:
        KafkaLog(place_at("127.0.0.1:1", iam_region="eu-west-1"), Secrets(""))

    assert failed.value.call == "OpenClient"
    assert "no token in time" in failed.value.detail


def test_a_cluster_that_asks_for_neither_is_told_nothing():
    assert client_settings(place_at("broker:9092"), Secrets("")) == {}


@pytest.mark.parametrize("credentials", [{"secret": SECRET}, {"iam_region": "eu-west-1"}, {}])
def test_no_setting_of_the_file_counts_for_nothing(credentials, monkeypatch):
    """What the process sets itself is refused in the file: `linger.ms` was read, and ignored."""
    given = set[str]()
    for kind in ("Consumer", "Producer"):
        monkeypatch.setattr(client, kind, lambda settings: given.update(settings))

    secrets = Secrets(json.dumps({"username": "me", "password": "hunter2"}))
    KafkaLog(place_at("127.0.0.1:1", **credentials), secrets)

    assert given <= (OURS | OUR_CREDENTIALS if credentials else OURS)
