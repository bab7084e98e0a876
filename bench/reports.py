"""The cost of consumers' reports: for each message that fails, and for each letter that goes back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bench.prices import (
    LAMBDA_GB_SECOND,
    LAMBDA_REQUEST,
    MEMORY_GB,
    READ_UNIT,
    READS,
    SQS_REQUEST,
    WRITE_UNIT,
    WRITES,
)
from bench.request import Request
from bench.results import Results, Table
from fakes.faults import Call, Wire
from simulator.consumers import Consumer, Reports, down_until
from simulator.smart_policy import SmartPolicy
from simulator.world import World, minutes
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.passes.reporting import BUSY_SECONDS

LETTERS, LETTERS_WHEN_QUICK = 10_000, 500

#: The consumer is down until all messages have died, and the re-driver is paused: it only listens.
DEAD_BY = minutes(20)
LONGEST = timedelta(hours=12)

#: Seconds that a call takes, as in the other benchmarks.
CALL_SECONDS = 0.010


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of one part of a life. Each of `reports` is one more request, by the consumer.

    Attributes:
        listening_seconds: for which the function stays, to hear what it can hear at once.

    """

    calls: int
    sqs_requests: int
    reports: int
    read_units: int
    write_units: int
    passes: int
    listening_seconds: float

    @property
    def lambda_seconds(self) -> float:
        """All that the function is billed for."""
        return CALL_SECONDS * self.calls + self.listening_seconds

    @property
    def dollars(self) -> float:
        """By list prices."""
        return (
            SQS_REQUEST * (self.sqs_requests + self.reports)
            + READ_UNIT * self.read_units
            + WRITE_UNIT * self.write_units
            + LAMBDA_REQUEST * self.passes
            + LAMBDA_GB_SECOND * MEMORY_GB * self.lambda_seconds
        )


class _Metered(SmartPolicy):
    """Our policy, over a wire that notes its calls."""

    def __init__(self, world: World, settings: Settings) -> None:
        super().__init__(world, settings)
        self._metered = world
        self.wire = Wire()

    def tick(self) -> None:
        if self._rhythm.is_due(self._metered.clock.now()):
            self.run_pass(
                self.wire.to(self._metered.sqs),
                self.wire.to(self._metered.dynamodb),
                cloudwatch=self.wire.to(self._metered.cloudwatch),
            )

    def spent(self) -> Spent:
        """Since the last time that this was asked."""
        calls, reports, times = self.wire.calls, self.reports, self.times
        waits = [
            (after - before).total_seconds()
            for before, after, report in zip(times, times[1:], reports, strict=False)
            if report.look_again_seconds < BUSY_SECONDS
        ]
        spent = Spent(
            calls=len(calls),
            sqs_requests=sum(_is_of_sqs(call) for call in calls),
            reports=sum(_reports_read(call, self._metered.outcome_queue_url) for call in calls),
            read_units=sum(_read_units(call) for call in calls),
            write_units=sum(_write_units(call) for call in calls),
            passes=len(reports) - len(waits),
            listening_seconds=sum(waits),
        )
        calls.clear()
        reports.clear()
        times.clear()
        return spent


def bench(request: Request) -> None:
    """Measure, show, leave."""
    letters = LETTERS_WHEN_QUICK if request.is_quick else LETTERS
    lives = {}
    for how, what in ((None, "without reports"), (Reports(), "with reports")):
        with request.console.status(f"{letters:,} letters, {what}"):
            lives[what] = live(letters, how)
    results = Results(name="reports", title="What reports cost")
    results.figures |= {
        what: {part: _figures(spent, letters) for part, spent in parts.items()}
        for what, parts in lives.items()
    }
    results.figures["letters"] = letters
    results.show(request, _table(letters, lives))
    results.leave(request)


def live(letters: int, how: Reports | None) -> dict[str, Spent]:
    """Messages that die of an outage, and go back when it is over: what the re-driver spends on each half."""
    world = World(seed=0, consumer=Consumer(health=down_until(DEAD_BY), reports=how))
    policy = _Metered(world, replace(Settings(), mode=Mode.PAUSED))
    for number in range(letters):
        world.send(f"message-{number}")
    world.run(policy, until=DEAD_BY)
    failing = policy.spent()
    policy.settings = Settings()
    world.run(policy, until=LONGEST, stop=lambda: world.is_drained)
    if not world.is_drained or world.lost():
        raise RuntimeError("the letters did not all go back: what they cost would not be theirs")
    return {"failed": failing, "redriven": policy.spent()}


def _table(letters: int, lives: Mapping[str, Mapping[str, Spent]]) -> Table:
    rows = []
    for part in ("failed", "redriven"):
        for what, parts in lives.items():
            spent = parts[part]
            rows.append(
                [
                    f"{part}, {what}",
                    f"{spent.sqs_requests / letters:.2f}",
                    f"{spent.reports / letters:.2f}",
                    f"{spent.read_units / letters:.2f}",
                    f"{spent.write_units / letters:.2f}",
                    f"{1000 * spent.lambda_seconds / letters:.1f} ms",
                    f"{1_000_000 * spent.dollars / letters:.2f}",
                ]
            )
    return Table(
        title=f"{letters:,} messages that fail three times each, and go back as letters",
        headings=(
            "for each message",
            "SQS requests of the function",
            "of the consumer, for reports",
            "read units",
            "write units",
            "Lambda time",
            "dollars a million",
        ),
        rows=rows,
        note="Counted on the fakes, at list prices. Each of the three tries is reported, ten in a report; the ledger keeps the last, at one write unit for each KB of traceback. "
        f"Lambda time is {1000 * CALL_SECONDS:.0f} ms a call, and {lives['with reports']['redriven'].listening_seconds:.0f} s of listening in all.",
    )


def _figures(spent: Spent, letters: int) -> dict[str, Any]:
    return {name: getattr(spent, name) for name in spent.__dataclass_fields__} | {
        "lambda_seconds": spent.lambda_seconds,
        "dollars_a_million": 1_000_000 * spent.dollars / letters,
    }


def _is_of_sqs(call: Call) -> bool:
    return call.operation not in (*READS, *WRITES, "GetMetricData")


def _reports_read(call: Call, outcome_queue_url: str) -> int:
    is_delete = call.operation == "DeleteMessageBatch"
    if not is_delete or call.request["QueueUrl"] != outcome_queue_url:
        return 0
    return len(call.request["Entries"])


def _read_units(call: Call) -> int:
    """Read units for items that are all below 4 KB, but for a circuit of many batches."""
    if call.operation == "BatchGetItem":
        return sum(len(asked["Keys"]) for asked in call.request["RequestItems"].values())
    return int(call.operation == "GetItem")


def _write_units(call: Call) -> int:
    if call.operation == "BatchWriteItem":
        writes = [one for some in call.request["RequestItems"].values() for one in some]
        return sum(_units(one.get("PutRequest", {}).get("Item", {})) for one in writes)
    if call.operation in WRITES:
        return _units(call.request.get("Item", {}))
    return 0


def _units(item: Mapping[str, Any]) -> int:
    return max(1, math.ceil(sum(len(name) + _size(value) for name, value in item.items()) / 1024))


def _size(value: Mapping[str, Any]) -> int:
    """Bytes that DynamoDB counts of a value, nearly."""
    ((kind, content),) = value.items()
    match kind:
        case "M":
            return 3 + sum(1 + len(name) + _size(one) for name, one in content.items())
        case "L":
            return 3 + sum(1 + _size(one) for one in content)
        case "N":
            return len(content) // 2 + 1
        case "BOOL" | "NULL":
            return 1
        case _:
            return len(content.encode() if isinstance(content, str) else content)
