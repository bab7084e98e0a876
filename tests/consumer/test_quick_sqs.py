"""The kit's own SQS client: done within a second, whatever SQS does, and without the consumer's trace."""

import socket
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectTimeoutError

from smart_redriver.consumer.quick_sqs import TIME_TO_BEGIN, quick_client

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/outcomes"


@pytest.fixture(autouse=True)
def in_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment in which botocore adds the function's own trace to every call."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "billing")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-own;Parent=p;Sampled=1;Lineage=1:own:7")


class Answer:
    """What urllib3 hands to botocore, as far as it looks."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield b"{}"


def headers_of_a_send(client: Any) -> set[str]:
    seen: list[set[str]] = []

    def capture(request: Any, **_: Any) -> AWSResponse:
        seen.append({name.lower() for name in request.headers})
        return AWSResponse(request.url, 200, {}, Answer())

    client.meta.events.register("before-send", capture)
    client.send_message(QueueUrl=URL, MessageBody="{}")
    [headers] = seen
    return headers


def test_what_is_sent_carries_no_trace_of_the_consumers_own() -> None:
    assert "x-amzn-trace-id" in headers_of_a_send(boto3.client("sqs"))
    assert "x-amzn-trace-id" not in headers_of_a_send(quick_client())


def test_the_last_call_that_begins_is_over_within_a_second() -> None:
    config = quick_client().meta.config

    assert TIME_TO_BEGIN + config.connect_timeout + config.read_timeout <= 1


def test_nobody_waits_longer_for_an_endpoint_in_three_zones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each address has the whole time to connect."""
    waited: list[float | None] = []

    class Silent(socket.socket):
        def connect(self, _: Any) -> None:
            waited.append(self.gettimeout())
            raise TimeoutError

    zones = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.{n}.9", 443)) for n in range(3)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: zones)
    monkeypatch.setattr(socket, "socket", Silent)
    client = quick_client()
    with pytest.raises(ConnectTimeoutError):
        client.send_message(QueueUrl=URL, MessageBody="{}")

    assert len(waited) == 3
    assert sum(one or 60 for one in waited) + client.meta.config.read_timeout <= 1.01


def test_botocore_tries_nothing_twice() -> None:
    client, tries = quick_client(), []

    def time_out(request: Any, **_: Any) -> AWSResponse:
        tries.append(request)
        raise ConnectTimeoutError(endpoint_url=URL)

    client.meta.events.register("before-send", time_out)
    with pytest.raises(ConnectTimeoutError):
        client.send_message(QueueUrl=URL, MessageBody="{}")

    assert len(tries) == 1
