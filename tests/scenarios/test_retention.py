"""The circuit is OPEN for 20 days, six more than SQS keeps a letter: nothing expires, and looking costs little.

Letters near their expiry are renewed, and wait on. The consumer is down for these days and well for 22 more, in which
parked letters wait for a person. All letters were sent on day 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

import pytest

from simulator.consumers import Consumer, down_until
from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, FOURTEEN_DAYS, PARKING_LOT, SOURCE, World, minutes
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.engine.triage.retention import CALM_MARGIN, SWEEPS_PER_MARGIN
from tests.scenarios.runs import SCENARIOS_KEPT

DAY = timedelta(days=1)
OUTAGE, WATCHED = 20 * DAY, 42 * DAY
#: More than a pass looks at when it awaits a return.
LETTERS = 120
#: More than become a canary in the days before they are near expiry, which gives a letter a new clock.
MANY_LETTERS = 620
POISON = 4
#: What SQS keeps a message for by default. What arrives in the DLQ is as old as its source lets it become: with a
#: source that keeps it for 14 days there is no day on which nothing could expire.
FOUR_DAYS = 4 * 86_400

SEEDS = range(2)

#: The least age of a parked letter that is renewed: half of what SQS lets it live.
DAYS_TO_RENEWAL = 7

#: One canary a day: all others lie in the DLQ untouched.
PATIENT = Settings(cool_down_seconds=86_400, max_cool_down_seconds=86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What differs between the runs."""

    settings: Settings
    letters: int = LETTERS
    source_retention: int = FOUR_DAYS
    seed: int = 0


BY_DEFAULT = Case(settings=Settings(), letters=MANY_LETTERS)
UNTOUCHED = Case(settings=PATIENT)
OLD_NEWCOMERS = Case(settings=PATIENT, source_retention=FOURTEEN_DAYS)
PAUSED = Case(settings=replace(Settings(), mode=Mode.PAUSED))
CASES = {
    "by-default": BY_DEFAULT,
    **{f"untouched-seed{seed}": replace(UNTOUCHED, seed=seed) for seed in SEEDS},
    "old-newcomers": OLD_NEWCOMERS,
    "paused": PAUSED,
}
WORKING = {name: case for name, case in CASES.items() if case is not PAUSED}
#: `make test` plays these alone: six weeks take long.
SAMPLES = {"untouched-seed0", "paused"}


def _each(cases: Mapping[str, Case]) -> pytest.MarkDecorator:
    enumeration = pytest.mark.enumeration
    params = [
        pytest.param(case, id=name, marks=() if name in SAMPLES else enumeration)
        for name, case in cases.items()
    ]
    return pytest.mark.parametrize("case", params)


EVERY_CASE = _each(CASES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A case that was played to its end."""

    world: World
    policy: SmartPolicy

    def received(self, queue: str) -> Counter[int]:
        """Messages handed out by day."""
        metrics = self.world.sqs.inspect.metrics(queue)
        assert metrics is not None
        days: Counter[int] = Counter()
        for minute, count in metrics.received_in.items():
            days[(timedelta(minutes=minute) - self._began) // DAY] += count
        return days

    def letter_days(self, queue: str) -> int:
        """The letters in the queue at the end of each day, added up."""
        metrics = self.world.sqs.inspect.metrics(queue)
        assert metrics is not None
        ends = ((self._began + day * DAY) // minutes(1) for day in range(1, WATCHED // DAY + 1))
        return sum(seen.counts.total for end in ends if (seen := metrics.at_end_of(end)))

    @property
    def _began(self) -> timedelta:
        return timedelta(seconds=self.world.started.timestamp())

    @property
    def least_to_live(self) -> timedelta:
        """The least time to expiry in any report."""
        told = [report.least_seconds_to_expiry for report in self.policy.reports]
        return timedelta(seconds=min(seconds for seconds in told if seconds is not None))


@lru_cache(maxsize=SCENARIOS_KEPT)
def play(case: Case) -> Run:
    world = World(seed=case.seed, consumer=Consumer(health=down_until(OUTAGE)), step=minutes(2.5))
    world.sqs.set_queue_attributes(
        QueueUrl=world.url(SOURCE),
        Attributes={"MessageRetentionPeriod": str(case.source_retention)},
    )
    world.dead_letters(case.letters, poison=POISON)
    policy = SmartPolicy(world, case.settings, seed=case.seed)
    world.run(policy, until=WATCHED)
    return Run(world=world, policy=policy)


@EVERY_CASE
def test_nothing_expires_and_nothing_is_lost(case: Case) -> None:
    world = play(case).world

    assert [world.sqs.inspect.expired(queue) for queue in (SOURCE, DLQ, PARKING_LOT)] == [[]] * 3
    assert world.lost() == set()
    assert set(world.deliveries.done.values()) <= {1}


@pytest.mark.parametrize("settings", [Settings(), Settings(max_rate=0.25)], ids=["fast", "slow"])
def test_nothing_expires_in_a_source_that_keeps_messages_for_five_minutes(
    settings: Settings,
) -> None:
    """SQS delays a message for longer than that, and then there is none."""
    world = World(seed=0, consumer=Consumer(), step=minutes(0.5))
    world.sqs.set_queue_attributes(
        QueueUrl=world.url(SOURCE), Attributes={"MessageRetentionPeriod": "300"}
    )
    world.dead_letters(120, poison=POISON)

    world.run(SmartPolicy(world, settings, seed=0), until=timedelta(hours=4))

    assert world.sqs.inspect.expired(SOURCE) == []
    assert world.lost() == set()
    assert len(world.deliveries.done) == 120 - POISON


@_each(WORKING)
def test_in_the_end_every_letter_is_done_or_waits_for_a_person(case: Case) -> None:
    world = play(case).world

    parked = Counter(world.parked())

    assert world.is_drained
    assert set(parked.values()) == {1}
    assert parked.keys() | world.deliveries.done.keys() == world.letters
    assert world.poison <= parked.keys()


def test_while_it_is_paused_every_letter_stays_in_the_dlq() -> None:
    world = play(PAUSED).world

    assert world.parked() == []
    assert len(world.sqs.inspect.messages(DLQ)) == LETTERS


@_each({"by-default": BY_DEFAULT, "untouched-seed0": UNTOUCHED})
def test_the_circuit_lets_nothing_but_canaries_through_for_20_days(case: Case) -> None:
    """Else the tests here would prove nothing."""
    policy = play(case).policy
    opened_at = next(at for at, state in policy.states if state == "OPEN")

    seen = {state for at, state in policy.states if opened_at <= at < OUTAGE}

    assert seen == {"OPEN", "HALF_OPEN"}


@EVERY_CASE
def test_no_letter_comes_nearer_to_its_expiry_than_a_day(case: Case) -> None:
    """What is renewed comes no nearer than two days, and pages nobody; a canary may be older."""
    slack = CALM_MARGIN / SWEEPS_PER_MARGIN - timedelta(minutes=case.settings.schedule_minutes)

    assert play(case).least_to_live >= slack


@EVERY_CASE
def test_the_ledger_lists_what_is_parked_however_often_it_was_renewed(case: Case) -> None:
    run = play(case)
    parked = {
        message.message_id: RedriveMetadata.decode(
            message.attributes[METADATA_ATTRIBUTE]["StringValue"]
        )
        for message in run.world.sqs.inspect.messages(PARKING_LOT)
    }
    ledger = run.policy.store.read_ledger(
        metadata.original_id for metadata in parked.values()
    ).entries

    assert {(one.current_id, one.status) for one in ledger.values()} == {
        (message_id, Status.PARKED) for message_id in parked
    }


@EVERY_CASE
def test_parked_letters_are_renewed_once_a_week_at_most_and_looked_at_four_times(
    case: Case,
) -> None:
    """They come to the parking lot one after another, and the oldest of them says when it is looked through."""
    run = play(case)
    parked = len(run.world.parked())
    lot = run.world.sqs.inspect.metrics(PARKING_LOT)
    assert lot is not None
    renewed = sum(lot.sent_in.values()) - sum(one.parked.total() for one in run.policy.reports)

    assert parked <= renewed <= run.letter_days(PARKING_LOT) / DAYS_TO_RENEWAL
    assert run.received(PARKING_LOT).total() <= 4 * parked


@_each({name: case for name, case in CASES.items() if name.startswith("untouched")})
def test_the_dlq_is_looked_through_on_three_days_before_its_letters_are_near_expiry(
    case: Case,
) -> None:
    """At first, when a newcomer could be near expiry, and when the oldest letter is."""
    received = play(case).received(DLQ)

    whole = [day for day, count in received.items() if 0 <= day < 12 and count >= LETTERS]

    assert len(whole) <= 3


@_each({"old-newcomers": OLD_NEWCOMERS})
def test_where_newcomers_can_be_of_any_age_the_dlq_is_looked_through_once_a_day(case: Case) -> None:
    """And every half an hour on the first day, until the circuit opens: while letters flow one may expire sooner."""
    received = play(case).received(DLQ)

    assert received.pop(0) <= 4 * LETTERS
    assert max(count for day, count in received.items() if day < OUTAGE // DAY) < 2 * LETTERS


# A schedule that is slower than letters expire.


@pytest.mark.parametrize("minutes_between_looks", [60, 1440])
def test_letters_that_expire_sooner_than_the_schedule_looks_are_renewed_in_time(
    minutes_between_looks: int,
) -> None:
    retention = timedelta(hours=1)
    world = World(seed=0, consumer=Consumer(), step=minutes(1))
    for queue in (SOURCE, DLQ):
        world.sqs.set_queue_attributes(
            QueueUrl=world.url(queue),
            Attributes={"MessageRetentionPeriod": str(int(retention.total_seconds()))},
        )
    world.dead_letters(12)
    settings = Settings(schedule_minutes=minutes_between_looks, mode=Mode.PAUSED)

    world.run(SmartPolicy(world, settings), until=2 * retention)

    assert world.sqs.inspect.expired(DLQ) == []
    assert len(world.sqs.inspect.messages(DLQ)) == 12


# Letters that nobody sees while the DLQ is looked through.


def test_letters_that_were_hidden_from_the_look_through_are_looked_for_again() -> None:
    """Held for their cause, or in a person's hands: eight days later, when a newcomer could expire, they were gone."""
    world = World(seed=0, consumer=Consumer(), step=minutes(10))
    world.sqs.set_queue_attributes(
        QueueUrl=world.url(SOURCE), Attributes={"MessageRetentionPeriod": str(FOUR_DAYS)}
    )
    world.dead_letters(12, left=3 * DAY)
    for _ in range(2):
        world.sqs.receive_message(
            QueueUrl=world.url(DLQ), MaxNumberOfMessages=10, VisibilityTimeout=900
        )

    world.run(SmartPolicy(world, Settings(mode=Mode.PAUSED)), until=4 * DAY)

    assert world.sqs.inspect.expired(DLQ) == []
    assert len(world.sqs.inspect.messages(DLQ)) == 12
