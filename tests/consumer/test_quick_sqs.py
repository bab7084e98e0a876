"""The kit's own SQS client: done within a second, whatever SQS does, and without the consumer's trace."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from threading import Event, Thread, get_ident
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectTimeoutError, HTTPClientError, ReadTimeoutError

from smart_redriver.consumer import quick_sqs
from smart_redriver.consumer.quick_sqs import (
    AT_ONCE,
    DEADLINE,
    SILENCE,
    Allowance,
    NoTimeError,
    SilentError,
    Wire,
    quick_client,
)

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
        return AWSResponse(request.url, 200, {}, Answer())  # type: ignore[arg-type]

    client.meta.events.register("before-send", capture)
    client.send_message(QueueUrl=URL, MessageBody="{}")
    [headers] = seen
    return headers


def test_what_is_sent_carries_no_trace_of_the_consumers_own() -> None:
    assert "x-amzn-trace-id" in headers_of_a_send(boto3.client("sqs"))
    assert "x-amzn-trace-id" not in headers_of_a_send(quick_client())


def test_botocore_tries_nothing_twice() -> None:
    client, tries = quick_client(), []

    def time_out(request: Any, **_: Any) -> AWSResponse:
        tries.append(request)
        raise ConnectTimeoutError(endpoint_url=URL)

    client.meta.events.register("before-send", time_out)
    with pytest.raises(ConnectTimeoutError):
        client.send_message(QueueUrl=URL, MessageBody="{}")

    assert len(tries) == 1


class Slow:
    """An SQS client whose calls last until they are let go."""

    def __init__(self) -> None:
        self.let_go = Event()
        self.calls = 0
        self.threads: set[int] = set()

    def send_message(self, **_: Any) -> dict[str, str]:
        self.threads.add(get_ident())
        self.calls += 1
        self.let_go.wait()
        return {"MessageId": "m"}


@pytest.fixture
def slow() -> Iterator[Slow]:
    client = Slow()
    yield client
    client.let_go.set()


def test_a_call_that_lasts_is_given_up_and_no_other_is_begun_while_it_hangs(slow: Slow) -> None:
    wire = Wire(slow, seconds=0.01)

    with pytest.raises(TimeoutError):
        wire.send([{}])
    for _ in range(10):
        with pytest.raises(SilentError):
            wire.send([{}])

    assert slow.calls <= 1  # a busy machine may not even have begun it


def test_after_a_call_that_was_given_up_there_is_silence_for_half_a_minute(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(quick_sqs, "monotonic", lambda: now[0])
    wire = Wire(slow, seconds=0.01)
    with pytest.raises(TimeoutError):
        wire.send([{}])
    slow.let_go.set()
    while wire.is_hanging:
        pass
    wire.seconds = 600  # which a busy machine keeps, too

    now[0] += SILENCE - 1
    with pytest.raises(SilentError):
        wire.send([{}])
    now[0] += 1

    assert wire.send([{}]) == [{"MessageId": "m"}]


@pytest.mark.parametrize("fault", [ConnectTimeoutError, ReadTimeoutError])
def test_a_time_out_of_the_client_is_one_as_well_and_is_not_tried_again(
    fault: type[Exception],
) -> None:
    tries = []

    class Dead:
        def send_message(self, **request: Any) -> None:
            tries.append(request)
            raise fault(endpoint_url=URL)  # type: ignore[call-arg]

    wire = Wire(Dead(), seconds=600)
    with pytest.raises(fault):
        wire.send([{}])
    allowance = Allowance(600)
    with pytest.raises(SilentError):
        wire.send([{}], allowance)

    assert len(tries) == 1
    assert allowance.to_begin == 0  # the batch asks no more


def test_the_event_loop_goes_on_while_a_call_lasts(slow: Slow) -> None:
    """Nothing but the loop itself lets the call go: it would wait for ever if the call held the loop."""

    async def work() -> list[Any]:
        call = asyncio.create_task(Wire(slow, seconds=600).send_async([{}]))
        while not slow.calls:
            await asyncio.sleep(0)
        slow.let_go.set()
        return await call

    assert asyncio.run(work()) == [{"MessageId": "m"}]


def test_in_a_loop_a_call_that_lasts_is_given_up_too(slow: Slow) -> None:
    async def work() -> None:
        wire = Wire(slow, seconds=0.01)
        with pytest.raises(TimeoutError):
            await wire.send_async([{}])
        with pytest.raises(SilentError):
            await wire.send_async([{}])

    asyncio.run(work())


@asynccontextmanager
async def busy(wire: Wire) -> AsyncIterator[list[asyncio.Task[list[Any]]]]:
    """As many calls under way as there can be."""
    calls = [asyncio.create_task(wire.send_async([{}])) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    yield calls
    await asyncio.gather(*calls)


def test_many_calls_are_made_a_few_at_once(slow: Slow) -> None:
    async def work() -> list[list[Any]]:
        wire = Wire(slow, seconds=600)
        calls = [asyncio.create_task(wire.send_async([{}])) for _ in range(3 * AT_ONCE)]
        await asyncio.sleep(0)
        slow.let_go.set()
        return await asyncio.gather(*calls)

    assert asyncio.run(work()) == [[{"MessageId": "m"}]] * 3 * AT_ONCE
    assert len(slow.threads) <= AT_ONCE


async def send_in_a_loop(wire: Wire, allowance: Allowance) -> list[Any]:
    return await wire.send_async([{}], allowance)


async def send_in_a_thread(wire: Wire, allowance: Allowance) -> list[Any]:
    return await asyncio.to_thread(wire.send, [{}], allowance)


@pytest.mark.parametrize("send", [send_in_a_loop, send_in_a_thread])
def test_a_call_that_can_not_begin_in_time_is_not_made_and_is_no_hang(
    slow: Slow, send: Callable[[Wire, Allowance], Any]
) -> None:
    async def work() -> list[Any]:
        wire = Wire(slow, seconds=600)
        async with busy(wire):
            with pytest.raises(NoTimeError):
                await send(wire, Allowance(0.01))
            slow.let_go.set()
        return await wire.send_async([{}])

    assert asyncio.run(work()) == [{"MessageId": "m"}]
    assert slow.calls == AT_ONCE + 1


def test_no_other_call_of_an_allowance_begins_after_one_that_failed(slow: Slow) -> None:
    class Denied(Exception):  # noqa: N818
        pass

    class Refusing:
        def send_message(self, **_: Any) -> None:
            slow.send_message()
            raise Denied

    async def work() -> list[Any]:
        wire, allowance = Wire(Refusing(), seconds=600), Allowance(600)
        calls = [wire.send_async([{}], allowance) for _ in range(3 * AT_ONCE)]
        answers = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)
        slow.let_go.set()
        return await answers

    kinds = [type(one) for one in asyncio.run(work())]
    assert kinds == [Denied] * AT_ONCE + [NoTimeError] * 2 * AT_ONCE
    assert slow.calls == AT_ONCE


def test_a_call_whose_sender_is_cancelled_while_it_waits_is_not_made(slow: Slow) -> None:
    async def work() -> None:
        wire = Wire(slow, seconds=600)
        async with busy(wire):
            call = asyncio.create_task(wire.send_async([{}]))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            slow.let_go.set()

    asyncio.run(work())
    assert slow.calls == AT_ONCE


def test_while_any_call_that_was_given_up_hangs_no_other_is_begun(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(quick_sqs, "monotonic", lambda: now[0])
    timed_out = Event()

    class Sqs:
        def send_message(self, *, hangs: bool) -> None:
            if hangs:
                slow.send_message()
            timed_out.wait()
            raise TimeoutError

    async def work() -> None:
        wire = Wire(Sqs(), seconds=600)
        hanging = asyncio.create_task(wire.send_async([{"hangs": True}], Allowance(0.01)))
        ending = asyncio.create_task(wire.send_async([{"hangs": False}]))
        for call in (hanging, ending):
            with pytest.raises(TimeoutError):
                await call
            timed_out.set()
        now[0] += SILENCE

        with pytest.raises(SilentError):
            await wire.send_async([{}])

    asyncio.run(work())


def test_an_allowance_passes_while_anybody_waits_and_half_of_it_is_for_calls_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(quick_sqs, "monotonic", lambda: now[0])
    allowance = Allowance(1.0)

    with allowance:
        now[0] += 0.125
        with allowance:
            now[0] += 0.125
        now[0] += 0.125
    now[0] += 60
    assert (allowance.left, allowance.to_begin) == (0.625, 0.125)
    with allowance:
        now[0] += 0.125

    assert (allowance.left, allowance.to_begin) == (0.5, 0.0)


def test_an_answer_can_come_as_long_as_anybody_waits_for_it() -> None:
    assert quick_client().meta.config.read_timeout >= DEADLINE


class Endpoint:
    """A server on loopback that drips a byte of its answer now and then, or says nothing, until it is stopped."""

    def __init__(self, drip: bytes) -> None:
        self._drip = drip
        self._stopped = Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        Thread(target=self._serve, daemon=True).start()

    @property
    def is_serving(self) -> bool:
        return not self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            with connection:
                while not self._stopped.wait(0.02):
                    connection.sendall(self._drip)


@pytest.mark.parametrize(
    "drip", [b"H", b"HTTP/1.1 200 OK\r\nX: y\r\n", b""], ids=["bytes", "lines", "hangs"]
)
def test_an_endpoint_that_never_ends_its_answer_does_not_hold_the_consumer(
    drip: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(drip)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint.url)
    try:
        with pytest.raises((TimeoutError, HTTPClientError)):
            Wire(quick_client()).send([{"QueueUrl": f"{endpoint.url}/1/q", "MessageBody": "{}"}])

        assert endpoint.is_serving
    finally:
        endpoint.stop()
