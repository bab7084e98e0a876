"""How the process authenticates to a cluster over TLS: by a secret's password with SCRAM, or by a signed IAM token."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Protocol

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.place import KafkaTopics


class Account(Protocol):
    """AWS, as a person or a process is logged in there."""

    def client(self, service: str) -> Any:
        """A client of a service, by botocore's name for it."""
        ...

    def credentials(self) -> Any:
        """Botocore's credentials; None if there are none."""
        ...


class OwnAccount:
    """See `Account`, as the environment says."""

    def client(self, service: str) -> Any:
        """See `Account`."""
        from smart_redriver.engine.aws.clients import client

        return client(service)

    def credentials(self) -> Any:
        """See `Account`."""
        import botocore.session

        return botocore.session.Session().get_credentials()


#: Seconds that an IAM token is valid: the longest that MSK accepts.
#: https://github.com/aws/aws-msk-iam-sasl-signer-python
_LASTS = 900


def client_settings(place: KafkaTopics, account: Account) -> dict[str, Any]:
    """Return librdkafka's credentials. Raises CallFailed.

    A token is made here, too: librdkafka would wait ten seconds for one, and not say why there is none.
    """
    if place.secret:
        user, password = _read_secret(place.secret, account)
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
        }
    if place.iam_region:
        region = place.iam_region
        iam_token(region, account.credentials())
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: iam_token(region, account.credentials()),
        }
    return {}


def _read_secret(secret: str, account: Account) -> tuple[str, str]:
    call = "GetSecretValue"
    with naming(call):
        answer = account.client("secretsmanager").get_secret_value(SecretId=secret)
    try:
        read = json.loads(answer["SecretString"])
        return str(read["username"]), str(read["password"])
    except (KeyError, TypeError, ValueError):
        raise CallFailed(call, "NotASecret", "username and password, as JSON") from None


def iam_token(region: str, credentials: Any) -> tuple[str, float]:
    """A token for MSK, and when it ends: a request to connect, signed, in Base64 for URLs. Raises CallFailed."""
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    if credentials is None:
        raise CallFailed("SignToken", "NoCredentialsError", "no AWS credentials were found")
    url = f"https://kafka.{region}.amazonaws.com/?Action=kafka-cluster%3AConnect"
    request = AWSRequest(method="GET", url=url)
    with naming("SignToken"):
        frozen = credentials.get_frozen_credentials()
        SigV4QueryAuth(frozen, "kafka-cluster", region, expires=_LASTS).add_auth(request)
    signed = f"{request.url}&User-Agent=smart-redriver"
    token = base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")
    return token, time.time() + _LASTS
