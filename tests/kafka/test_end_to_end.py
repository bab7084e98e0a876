"""The command beside a real broker, with a consumer of another library: aiokafka shares no code with librdkafka."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench import trace_check
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.kafka.engine.records import Partition, Position
from tests.kafka.bench import spring
from tests.kafka.broker import create, create_again, running_broker

#: So long a test waits for what is to come; on a quiet machine it is here after a few seconds.
PATIENCE = 60

FILE = """
[kafka]
name = "orders"
servers = "{servers}"
consumer_group = "shop"
topics = ["orders"]
dead_letters = "orders.DLT"

[state]
sqlite = "state.sqlite"

[settings]
base_delay_seconds = 0
max_attempts = 1
last_chance_seconds = 0
"""


class Shop:
    """A consumer that fails with what `fails` says, and writes that to the DLQ topic as Spring does."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.fails: Callable[[bytes], bool] = lambda _: True
        self.seen: list[tuple[bytes, bytes, tuple[tuple[str, bytes], ...], int]] = []

    async def work(self, until: Callable[[], bool]) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers,
            group_id="shop",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        producer = AIOKafkaProducer(bootstrap_servers=self.servers, acks="all")
        await consumer.start()
        await producer.start()
        try:
            consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
            ends = time.monotonic() + PATIENCE
            while not until():
                assert time.monotonic() < ends, f"in vain so far: {self.seen}"
                for at, messages in (await consumer.getmany(timeout_ms=200)).items():
                    for one in messages:
                        await self._take(producer, one)
                        await consumer.commit({at: one.offset + 1})
        finally:
            await producer.stop()
            await consumer.stop()

    async def _take(self, producer, message) -> None:
        if not self.fails(message.value):
            self.seen.append(
                (message.key, message.value, tuple(message.headers), message.partition)
            )
            return
        position = Position(Partition("orders", message.partition), message.offset)
        await producer.send_and_wait(
            "orders.DLT",
            key=message.key,
            value=message.value,
            headers=[*message.headers, *spring(position, "Boom")],
            partition=message.partition,
        )
        self.failed += 1

    failed = 0


async def produce(servers, values):
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    await producer.start()
    for key, value in values:
        headers = [("tenant", b"a"), ("tenant", b"b"), ("raw", b"\x00\xff")]
        await producer.send_and_wait("orders", key=key, value=value, headers=headers)
    await producer.stop()


@pytest.fixture
def servers(tmp_path):
    with running_broker(tmp_path) as address:
        create(address, "orders", "orders.DLT", "orders.DLT.held", "orders.DLT.parked")
        yield address


def redrive(folder, *arguments):
    """The command, as somebody types it there."""
    command = [sys.executable, "-m", "smart_redriver.oncall", *arguments, "--stack", "kafka.toml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


@contextmanager
def process_of(folder):
    """The process of `kafka.toml`, until the block ends. It writes to `out`."""
    command = [sys.executable, "-m", "smart_redriver.oncall", "run"]
    command += ["--forever", "kafka.toml", "--yes"]
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            ended = process.wait(PATIENCE)
    assert ended == 0, (folder / "out").read_text()


def wait_for_depths(folder, wanted):
    ends, depths = time.monotonic() + PATIENCE, None
    while depths != wanted:
        assert time.monotonic() < ends, depths
        status = redrive(folder, "status", "--json")
        assert status.returncode == 0, status.stderr
        depths = json.loads(status.stdout)["queues"][0]["depths"]


def test_letters_go_back_in_order_with_their_headers_and_what_is_bad_is_parked(servers, tmp_path):
    (tmp_path / "kafka.toml").write_text(FILE.format(servers=servers))
    values = [(key, b"%b %d" % (key, n)) for n in range(3) for key in (b"alpha", b"beta", b"c")]
    values += [(b"bad", b"bad 0")]
    shop = Shop(servers)
    asyncio.run(produce(servers, values))
    asyncio.run(shop.work(lambda: shop.failed == len(values)))
    shop.fails = lambda value: value.startswith(b"bad")

    with process_of(tmp_path):
        asyncio.run(shop.work(lambda: len(shop.seen) == 9))
        wait_for_depths(tmp_path, {"source": 0, "dead_letters": 0, "parked": 1})

    said = (tmp_path / "out").read_text()
    for key in (b"alpha", b"beta", b"c"):
        assert [value for of, value, _, _ in shop.seen if of == key] == [
            b"%b %d" % (key, n) for n in range(3)
        ]
    for _, _, headers, _ in shop.seen:
        assert headers[:3] == (("tenant", b"a"), ("tenant", b"b"), ("raw", b"\x00\xff"))
        ((name, metadata),) = headers[3:]
        assert name == "RedriveTrail"
        assert RedriveMetadata.decode(metadata.decode()).queue == "orders"
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert events[0]["event"] == "process.started"
    assert events[-1]["event"] == "process.stopped"
    assert any(one["event"] == "letter.redriven" for one in events)
    assert trace_check.main([str(tmp_path / "out")]) == 0

    # The cluster tells no settings and no rights; nothing of what it tells is wrong.
    checked = redrive(tmp_path, "doctor", "--json")
    findings = json.loads(checked.stdout)["queues"][0]["findings"]
    assert checked.returncode == 0, checked.stdout
    assert sum(one["what"].endswith("with 2 partitions.") for one in findings) == 4

    shop.fails = lambda _: False
    replayed = redrive(tmp_path, "replay", "--all", "--yes", "--even-though-paused")
    asyncio.run(shop.work(lambda: len(shop.seen) == 10))

    assert replayed.returncode == 0, replayed.stderr
    assert shop.seen[-1][:2] == (b"bad", b"bad 0")
    wait_for_depths(tmp_path, {"source": 0, "dead_letters": 0, "parked": 0})


def test_topics_that_are_created_again_beside_the_process_with_the_same_messages_lose_none(
    servers, tmp_path
):
    """Their records are at the same places as before."""
    (tmp_path / "kafka.toml").write_text(FILE.format(servers=servers))
    values = [(b"alpha", b"alpha %d" % n) for n in range(3)]
    shop = Shop(servers)

    def fail_and_recover() -> None:
        failed, seen = shop.failed + 3, len(shop.seen) + 3
        shop.fails = lambda _: True
        asyncio.run(produce(servers, values))
        asyncio.run(shop.work(lambda: shop.failed == failed))
        shop.fails = lambda _: False
        # The process, which is idle for up to a minute, looks at once for an order.
        drained = redrive(tmp_path, "drain", "--no-follow", "--yes")
        assert drained.returncode == 0, drained.stderr
        asyncio.run(shop.work(lambda: len(shop.seen) == seen))
        wait_for_depths(tmp_path, {"source": 0, "dead_letters": 0, "parked": 0})

    with process_of(tmp_path):
        fail_and_recover()
        create_again(servers, "orders", "orders.DLT", group="shop")
        fail_and_recover()

    assert [value for _, value, _, _ in shop.seen] == [value for _, value in values] * 2
