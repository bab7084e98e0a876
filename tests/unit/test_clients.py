"""The boto3 clients: no trace of the function's own, and no call that eats the pass."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from smart_redriver.engine.aws import clients


@pytest.fixture
def in_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment in which botocore adds the function's own trace to every call."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "redrive")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-own;Parent=p;Sampled=1;Lineage=1:own:7")


class Answer:
    """What urllib3 hands to botocore, as far as it looks."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield b"{}"


def headers_of(client: Any, call: Callable[[Any], object]) -> dict[str, str]:
    """The headers of the request that `call` would put on the wire."""
    seen: list[dict[str, str]] = []

    def capture(request: Any, **_: Any) -> AWSResponse:
        # Prepared headers are bytes or text, by where they came from.
        seen.append({name.lower(): str(value) for name, value in request.headers.items()})
        return AWSResponse(request.url, 200, {}, Answer())  # type: ignore[arg-type]

    client.meta.events.register("before-send", capture)
    call(client)
    (headers,) = seen
    return headers


def send_batch(client: Any) -> object:
    return client.send_message_batch(
        QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
        Entries=[{"Id": "0", "MessageBody": "hello"}],
    )


@pytest.mark.usefixtures("in_lambda")
def test_a_batch_leaves_lambda_without_the_functions_own_trace() -> None:
    assert "x-amzn-trace-id" not in headers_of(clients.sqs_client(), send_batch)


@pytest.mark.usefixtures("in_lambda")
def test_nor_does_an_invocation_carry_it() -> None:
    """Lambda's recursion guard would count our own hops against the function."""

    def invoke(client: Any) -> object:
        return client.invoke(FunctionName="orders", InvocationType="Event", Payload=b"{}")

    lambdas = clients.target_client("lambda", "eu-west-1")

    assert "x-amzn-trace-id" not in headers_of(lambdas, invoke)


@pytest.mark.usefixtures("in_lambda")
def test_a_client_of_a_target_is_of_its_region_and_does_not_eat_the_pass_either() -> None:
    config = clients.target_client("sns", "us-east-1").meta.config

    assert config.region_name == "us-east-1"
    assert config.read_timeout == clients.CONFIG.read_timeout  # type: ignore[attr-defined]


def test_a_client_is_made_when_it_is_first_asked_something_and_once() -> None:
    made = []
    client = clients.OnFirstUse(lambda: made.append(1) or "client")  # type: ignore[func-returns-value]

    assert made == []
    assert (client.upper(), client.title()) == ("CLIENT", "Client")
    assert made == [1]


@pytest.mark.usefixtures("in_lambda")
def test_a_plain_client_would_have_stamped_it() -> None:
    """Proves that the test above tests something: a botocore that stops stamping makes it void."""
    assert "Lineage=1:own:7" in headers_of(boto3.client("sqs"), send_batch)["x-amzn-trace-id"]


@pytest.mark.usefixtures("in_lambda")
@pytest.mark.parametrize(
    "make", [clients.sqs_client, clients.dynamodb_client, clients.cloudwatch_client]
)
def test_no_client_lets_a_hanging_call_eat_the_pass(make: Callable[[], Any]) -> None:
    config = make().meta.config

    longest = config.connect_timeout + config.read_timeout
    assert longest * config.retries["total_max_attempts"] <= 30


def test_the_longest_call_is_every_try_timed_out_and_every_wait_at_its_longest() -> None:
    """What a pass reserves for stopping counts on it."""
    tries = 3 * (clients.CONFIG.connect_timeout + clients.CONFIG.read_timeout)  # type: ignore[attr-defined]

    assert timedelta(seconds=tries + 1 + 2) == clients.LONGEST_CALL
