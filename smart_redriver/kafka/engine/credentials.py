"""How the process authenticates to a cluster over TLS: by a secret's password with SCRAM, or by a signed IAM token."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.place import KafkaTopics

MakeClient = Callable[[str], Any]

#: Seconds that an IAM token is valid: the longest that MSK accepts.
#: https://github.com/aws/aws-msk-iam-sasl-signer-python
_LASTS = 900


def client_settings(place: KafkaTopics, make_client: MakeClient) -> dict[str, Any]:
    """Return librdkafka's credentials. `make_client` makes a boto3 client by its service. Raises CallFailed."""
    if place.secret:
        user, password = _read_secret(place.secret, make_client)
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
        }
    if place.iam_region:
        region = place.iam_region
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: iam_token(region, _credentials()),
        }
    return {}


def _read_secret(secret: str, make_client: MakeClient) -> tuple[str, str]:
    call = "GetSecretValue"
    with naming(call):
        answer = make_client("secretsmanager").get_secret_value(SecretId=secret)
    try:
        read = json.loads(answer["SecretString"])
        return str(read["username"]), str(read["password"])
    except (KeyError, TypeError, ValueError):
        raise CallFailed(call, "NotASecret", "username and password, as JSON") from None


def _credentials() -> Any:
    import botocore.session

    return botocore.session.Session().get_credentials()


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
