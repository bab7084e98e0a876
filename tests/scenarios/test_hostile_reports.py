"""Broken and forged reports: nothing is lost, verdicts are slower at worst, and each pass says what it was told."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from simulator.consumers import Consumer, Reports, down_until
from simulator.limits import breaches_of_run
from simulator.measures import Measures, measure
from simulator.scenarios import named
from simulator.smart_policy import SmartPolicy
from simulator.world import OUTCOMES, SOURCE, World, hours, minutes
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.passes.listen import MOST_AT_ONCE
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, Result, parse_outcomes

MIB = 1_048_576

#: All that can befall a report, and each more often than not.
BROKEN = Reports(
    permanent=True, lost=0.4, twice=0.6, late=0.4, late_by=hours(2), garbage=0.6, unparked=0.4
)


def send(world: World, body: str) -> None:
    world.sqs.send_message(QueueUrl=world.outcome_queue_url, MessageBody=body)


def tell(world: World, *outcomes: dict[str, Any]) -> None:
    send(world, json.dumps({"version": 1, "outcomes": outcomes}))


def unread(world: World) -> int:
    return len(world.sqs.inspect.messages(OUTCOMES))


def heard(policy: SmartPolicy) -> Counter[str]:
    """What all passes said that they were told."""
    return sum((one.heard for one in policy.reports), Counter())


def lost_nothing(run: Measures) -> bool:
    return (run.lost, run.at_large, run.stripped) == (0, 0, 0)


# Whole scenarios whose reports are broken.


@pytest.mark.parametrize("name", ["1", "2", "14:60:50", "25"])
def test_with_broken_reports_every_run_keeps_its_limits(name: str) -> None:
    scenario = named(name)
    limits = replace(scenario.limits, opens=None)  # what a consumer says of itself may open it

    played = scenario.reporting(BROKEN).played(0)

    assert list(breaches_of_run(limits, played.measures)) == []
    assert isinstance(played.policy, SmartPolicy)
    told = heard(played.policy)
    assert {"failed", "heard before", "unreadable: not JSON"} <= told.keys()
    assert unread(played.world) < 10


def test_reports_that_come_days_late_change_nothing() -> None:
    late = Reports(late=1.0, late_by=timedelta(days=2))
    scenario = replace(named("2").reporting(late), lasts=timedelta(days=3), until=timedelta(days=4))

    played = scenario.played(0)

    assert lost_nothing(played.measures)
    assert isinstance(played.policy, SmartPolicy)
    told = heard(played.policy)
    assert told["of an earlier copy, or none of ours"] > 0
    assert not played.policy.was_ever_open


# Forgeries of whoever may send to the queue.


class Forger:
    """Sees every letter that is sent to the source queue, and claims what it likes of it."""

    def __init__(self, world: World, claims: str, seed: int = 0) -> None:
        self._world = world
        self._claims = claims
        self._rng = Random(seed)
        self._known: list[dict[str, Any]] = []
        self.sent = 0
        world.sqs.inspect.subscribe(self._see)

    def _see(self, event: Any) -> None:
        if event.kind != "sent" or event.queue_name != SOURCE:
            return
        carried = event.message.attributes.get(METADATA_ATTRIBUTE)
        metadata = RedriveMetadata.decode(carried["StringValue"]) if carried else None
        ids: dict[str, Any] = {"queue": SOURCE, "message_id": event.message.message_id}
        if metadata is not None:
            ids |= {
                "original_id": metadata.original_id,
                "batch": metadata.batch,
                "generation": metadata.generation,
            }
        self._known.append(ids)

    def forge(self) -> None:
        """Claim something of each letter that was sent lately, some of it again, and of none of ours."""
        for ids in self._known[-30:]:
            tell(self._world, ids | self._claim())
            self.sent += 1
        tell(self._world, {"queue": "another", "message_id": "x", "result": "failed"})
        tell(
            self._world,
            {"queue": SOURCE, "message_id": "nobody", "batch": 7, "generation": 1}
            | {"result": "succeeded", "original_id": "nobody-knows"},
        )

    def _claim(self) -> dict[str, Any]:
        results = ["succeeded", "failed", "permanent"]
        result = self._rng.choice(results) if self._claims == "anything" else self._claims
        claim: dict[str, Any] = {"result": result, "receive_count": self._rng.choice([0, 1, 3, 99])}
        if result == "permanent":
            claim |= {"parked_id": "nowhere", "error_class": "Forged"}
        if result == "failed":
            claim |= {"error_class": self._rng.choice(["Forged", "Other", "x" * 200])}
        return claim


def forged(
    claims: str, consumer: Consumer, *, poison: int = 3
) -> tuple[World, SmartPolicy, Forger]:
    """A small world when all is done, with a forger who claims something every half an hour of its first six hours."""
    world = World(seed=1, consumer=replace(consumer, reports=Reports()), step=minutes(1))
    policy, forger = SmartPolicy(world), Forger(world, claims)
    for number in range(12):
        world.later(minutes(30 * number + 2), forger.forge)
    world.dead_letters(30, poison=poison)
    world.run(policy, until=hours(96), stop=lambda: world.elapsed > hours(6) and world.is_settled)
    return world, policy, forger


@pytest.mark.parametrize("claims", ["succeeded", "failed", "permanent", "anything"])
def test_whatever_is_claimed_of_letters_none_is_lost(claims: str) -> None:
    world, policy, forger = forged(claims, Consumer(health=down_until(hours(1))))

    run = measure(world, policy, hours(1))
    told = heard(policy)
    assert forger.sent > 0
    assert lost_nothing(run)
    assert (run.parked_wrongly, run.parked_rightly) == (0, 3)
    assert told["of another queue"] > 0
    assert told["of a letter that the ledger does not know"] > 0
    assert told["of an earlier copy, or none of ours"] > 0


# Bounded work.


def a_world(letters: int = 5) -> tuple[World, SmartPolicy]:
    """Letters that can go, and a consumer that does not poll before the pass is over."""
    world = World(seed=0, consumer=Consumer(reports=Reports()))
    world.dead_letters(letters)
    policy = SmartPolicy(world)
    world.clock.advance(300)
    while messages := world.sqs.receive_message(
        QueueUrl=world.outcome_queue_url, MaxNumberOfMessages=10
    ).get("Messages"):
        for one in messages:
            world.sqs.delete_message(
                QueueUrl=world.outcome_queue_url, ReceiptHandle=one["ReceiptHandle"]
            )
    return world, policy


def a_pass(world: World, policy: SmartPolicy) -> Report:
    return policy.run_pass(world.sqs, world.dynamodb)


@pytest.mark.parametrize(
    "body",
    ['{"version":1,"outcomes":[]}', "garbage", json.dumps({"version": 1, "outcomes": [{}] * 3})],
    ids=["nothing", "garbage", "nothing of anything"],
)
def test_no_number_of_empty_reports_keeps_letters_from_going(body: str) -> None:
    world, policy = a_world()
    for _ in range(MOST_AT_ONCE + 500):
        send(world, body)

    report = a_pass(world, policy)

    assert (report.outcome, report.redriven) == (Outcome.DONE, 5)
    assert 500 <= unread(world) < MOST_AT_ONCE + 500
    assert report.look_again_seconds <= 60
    while unread(world):
        world.clock.advance(60)
        before = unread(world)
        a_pass(world, policy)
        assert unread(world) < before


def test_ten_thousand_reports_for_one_letter_count_once() -> None:
    world, policy = a_world(letters=1)
    a_pass(world, policy)
    world.clock.advance(60)
    (message,) = world.sqs.inspect.messages(SOURCE)
    metadata = RedriveMetadata.decode(message.attributes[METADATA_ATTRIBUTE]["StringValue"])
    claim = {
        "queue": SOURCE,
        "message_id": message.message_id,
        "original_id": metadata.original_id,
        "batch": metadata.batch,
        "generation": metadata.generation,
        "result": "failed",
        "error_class": "Declined",
    }
    for _ in range(100):
        tell(world, *[claim] * 100)

    reports = [a_pass(world, policy), a_pass(world, policy)]

    told = sum((one.heard for one in reports), Counter())
    assert told == Counter({"failed": 1, "heard before": 9_999})
    entry = policy.store.read_ledger([metadata.original_id]).entries[metadata.original_id]
    assert (entry.failed_tries, entry.is_settled) == (1, False)
    assert unread(world) == 0


def garbage_of_a_mebibyte() -> Iterator[str]:
    """Bodies as large as SQS takes, each of which costs a reader as much as it can."""
    yield "[" * MIB
    yield '{"version":1,"outcomes":[' + "{}," * (MIB // 3 - 20) + "{}]}"
    yield '{"version":1,"outcomes":[' + "[]," * (MIB // 3 - 20) + "[]]}"
    yield json.dumps({"version": 1, "outcomes": [], "x": "y" * (MIB - 100)})
    yield '{"version":' + "1" * (MIB - 100) + "}"
    whole = {"queue": SOURCE, "message_id": "a", "batch": 1, "generation": 1, "result": "failed"}
    yield json.dumps({"version": 1, "outcomes": [whole] * (MIB // 100)})
    yield json.dumps({"version": 1, "outcomes": [whole | {"traceback": "z" * 900}] * 1_000})


def test_a_mebibyte_of_garbage_costs_a_pass_no_more_than_it_has() -> None:
    """With 512 MiB a function holds ten such reports beside all else that it may have in hand."""
    world, policy = a_world()
    for body in garbage_of_a_mebibyte():
        for _ in range(3):
            send(world, body[:MIB])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        report = a_pass(world, policy)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (report.outcome, report.redriven) == (Outcome.DONE, 5)
    assert sum(report.heard.values()) > 0
    assert peak - before < 100 * MIB
    for _ in range(21):
        a_pass(world, policy)
    assert unread(world) == 0
    assert policy.reports[-1].heard == Counter()


def test_a_dry_run_keeps_no_report_that_it_has_read() -> None:
    world, policy = a_world()
    for _ in range(100):
        send(world, "x" * MIB)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        report = policy.run_pass(
            world.sqs, world.dynamodb, settings=replace(policy.settings, mode=Mode.DRY_RUN)
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert report.heard == Counter({"unreadable: not JSON": 100})
    assert peak - before < 40 * MIB
    assert unread(world) == 100


def test_whoever_makes_up_causes_makes_no_circuit_too_large_to_be_written() -> None:
    world, policy = a_world(letters=200)
    policy.settings = replace(policy.settings, initial_window=200)
    a_pass(world, policy)
    world.clock.advance(60)
    for number, message in enumerate(world.sqs.inspect.messages(SOURCE)):
        metadata = RedriveMetadata.decode(message.attributes[METADATA_ATTRIBUTE]["StringValue"])
        tell(
            world,
            {
                "queue": SOURCE,
                "message_id": message.message_id,
                "original_id": metadata.original_id,
                "batch": metadata.batch,
                "generation": metadata.generation,
                "result": "failed",
                "receive_count": 1,
                "error_class": f"{number}" + "\N{PILE OF POO}" * 190,
            },
        )

    report = a_pass(world, policy)

    assert report.heard == Counter(failed=200)
    assert report.outcome is Outcome.DONE
    item = world.dynamodb.get_item(
        TableName="redriver-state", Key={"PK": {"S": f"CIRCUIT_BREAKER#{SOURCE}"}}
    )["Item"]
    assert len(json.dumps(item, ensure_ascii=False).encode()) < 20_000


def test_no_clock_but_sqss_is_believed() -> None:
    """A report has no time in it; what looks like one is not read."""
    world, policy = a_world(letters=1)
    a_pass(world, policy)
    world.clock.advance(60)
    (message,) = world.sqs.inspect.messages(SOURCE)
    metadata = RedriveMetadata.decode(message.attributes[METADATA_ATTRIBUTE]["StringValue"])
    outcome = DeliveryOutcome(
        queue=SOURCE,
        message_id=message.message_id,
        original_id=metadata.original_id,
        batch=metadata.batch,
        generation=metadata.generation,
        result=Result.SUCCEEDED,
    )
    fields = {k: v for k, v in asdict(outcome).items() if v is not None and k != "consumer"}
    wrong = fields | {"result": "succeeded", "at": "1999-01-01T00:00:00Z", "sent_at": 10**12}
    assert parse_outcomes(json.dumps({"version": 1, "outcomes": [wrong]})).outcomes == (outcome,)

    tell(world, wrong)
    a_pass(world, policy)

    entry = policy.store.read_ledger([metadata.original_id]).entries[metadata.original_id]
    assert entry.history[-1].startswith(f"{world.clock.now():%Y-%m-%d}")


def test_a_consumer_that_reports_success_and_deletes_nothing_gets_no_good_letter_parked() -> None:
    """Its handler raises when the report has gone: each letter comes back, and was never bad."""
    world = World(seed=0, consumer=Consumer(deletes=0, reports=Reports()))
    world.dead_letters(50)
    policy = SmartPolicy(world)

    world.run(policy, until=hours(8))

    assert world.parked() == []
    assert world.lost() == set()
    assert policy.was_ever_open
    assert world.deliveries.total < 50 * 3 * 5
