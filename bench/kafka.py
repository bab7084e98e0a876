"""A DLQ topic on librdkafka's mock cluster: letters a second of whole passes, and the memory that they take."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer

from bench.kafka_run import PARTITIONS, Job, Run
from bench.request import Request
from bench.results import Results, Table
from smart_redriver.kafka.engine.place import Order

KIB = 1_024
LETTERS, LETTERS_WHEN_QUICK = 10_000, 300
#: Bytes of a letter's value. The mock forgets what is beyond 5 MiB of a partition.
SIZE = KIB
#: Nothing to move: what the process takes by itself.
NONE = 0

NOTE = f"""\
Three brokers of librdkafka's mock cluster run on the same processors, with {PARTITIONS} partitions; each message has its own key, and the state is in a file.
The mock neither writes to a disk nor copies to a second broker; real brokers wait for both. "Back": every letter is in its topic again. "Settled": our
group has committed past all letters. With order by key, that needs a pass that knows each outcome, and a receive then returns at most nine letters.
Other work shared the processors, so processor time says more than the clock."""


def bench(request: Request) -> None:
    """Measure, show, leave."""
    letters = LETTERS_WHEN_QUICK if request.is_quick else LETTERS
    results = Results(name="kafka", title="DLQ topics in Kafka")
    idle = _measured(Order.KEY, NONE)
    runs = [_measured(order, letters) for order in Order]
    results.figures |= {"idle_mib": idle.peak_mib, "runs": [vars(one) for one in runs]}
    results.show(
        request,
        Table(
            title=f"{letters:,} letters of {SIZE // KIB} KiB from the DLQ topic to their topic",
            headings=(
                "order",
                "passes",
                "back, letters a second",
                "settled after, s",
                "of the processor, s",
                "peak memory",
                "of that idle",
            ),
            rows=[_row(one, idle.peak_mib) for one in runs],
            note=NOTE,
        ),
    )
    results.leave(request)


def _row(one: Run, idle: float) -> list[str]:
    return [
        one.order,
        f"{one.passes:,}",
        f"{one.letters_a_second:,.0f}",
        f"{one.settled_seconds:.1f}",
        f"{one.cpu_seconds:.1f}",
        f"{one.peak_mib:.0f} MiB",
        f"{idle:.0f} MiB",
    ]


def _measured(order: Order, letters: int) -> Run:
    """One run in a fresh interpreter, beside a cluster that is gone with it. Raises RuntimeError where a letter is not back."""
    with _cluster() as servers:
        job = Job(servers=servers, order=order.value, letters=letters, value_bytes=SIZE)
        done = subprocess.run(
            [sys.executable, "-m", "bench.kafka_run"],
            input=json.dumps(vars(job)),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    told: dict[str, Any] = json.loads(done.stdout)
    run = Run(**told)
    if run.back != letters or run.left:
        raise RuntimeError(f"of {letters} letters {run.back} are back, and {run.left} left: {run}")
    return run


@contextmanager
def _cluster() -> Iterator[str]:
    """Addresses of brokers that live as long as the producer that has them."""
    owner = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{one.host}:{one.port}" for one in brokers)
    owner.flush()
