"""One source queue in a pass: what it asks for, what it lets through, and the batch that a pass leaves."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model import judging
from smart_redriver.engine.model.batch import Heard, Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.judging import Ruling
from smart_redriver.engine.model.queue_metrics import PERIOD, Minute, QueueMetrics
from smart_redriver.engine.model.rate import (
    AHEAD,
    AHEAD_OF_SCHEDULE,
    LOOKS_EVERY,
    Rate,
)
from smart_redriver.engine.model.verdict import Judgement
from smart_redriver.engine.passes.circuit_keeper import CircuitKeeper, LostRace
from smart_redriver.engine.passes.executor import Sending
from smart_redriver.engine.passes.pass_state import DELIVERED_AHEAD, FIFO_AHEAD, terms_of
from smart_redriver.engine.passes.ports import Memory, Source
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.reports.processing import ProcessedReports
from smart_redriver.engine.triage.admission import CONTROLS_AMONG
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Hold, HoldReason
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.engine.triage.retention import calm_margin, urgent_margin
from tests.unit.examples import (
    NOW,
    QUEUE,
    SOURCE_ARN,
    a_batch,
    a_circuit,
    a_judged,
    a_letter,
    ago,
    ahead,
)
from tests.unit.queue_minutes import BEGIN, MinuteKeeper
from tests.unit.situations import OTHER_ARN, TERMS, a_case, a_return

SETTINGS = Settings()
TIME_TO_FAIL = timedelta(seconds=90)
GRACE = timedelta(seconds=SETTINGS.verdict_grace_seconds)
FACTS = QueueFacts(
    arn=SOURCE_ARN,
    visible=0,
    in_flight=0,
    delayed=0,
    visibility_timeout=timedelta(seconds=30),
    retention=timedelta(days=4),
    max_message_size=262_144,
    max_receive_count=3,
)


class SourceInMemory:
    """A source that only knows how long a letter takes to fail."""

    name = QUEUE
    settles_at_once = False
    carries_metadata = True
    longest_delay = timedelta(minutes=15)

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:
        return facts.visibility_timeout * (facts.max_receive_count or max_receive_count_otherwise)


class MemoryOfOne:
    """A state table that holds one circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit

    def load_circuit(self) -> Circuit:
        return self.circuit

    def save_circuit(self, circuit: Circuit) -> Circuit:
        self.circuit = replace(circuit, version=circuit.version + 1)
        return self.circuit


def a_lane(
    metrics: QueueMetrics | None = None, *, is_paused: bool = False, **circuit: Any
) -> SourceContext:
    memory = cast("Memory", MemoryOfOne(a_circuit(**circuit)))
    return SourceContext(
        source=cast("Source", SourceInMemory()),
        keeper=CircuitKeeper(memory, QUEUE, SETTINGS, lambda: NOW),
        settings=SETTINGS,
        roll=0.5,
        is_paused=is_paused,
        facts=FACTS,
        metrics=metrics,
    )


def sending(seconds: float = 0, *, is_suspect: bool = False) -> Sending:
    return Sending(source=SOURCE_ARN, delay=timedelta(seconds=seconds), is_suspect=is_suspect)


def after_sending(context: SourceContext, *sendings: Sending) -> Circuit:
    """What a pass that let letters through leaves of the circuit."""
    context.open_gate(NOW)
    context.destination(NOW, ahead(minutes=4), context.keeper.save)
    context.sent(sendings)
    return context.after_sending(context.circuit, NOW)


# What it asks for.


SUSPECTS: dict[str, Any] = {"judged": (a_judged(returned=1),), "window": 50}


@pytest.mark.parametrize(
    ("circuit", "letters", "compares"),
    [
        (SUSPECTS, 100, True),
        (SUSPECTS, 101, False),
        ({"window": 50}, 10, False),
        (SUSPECTS | {"state": State.OPEN, "cools_until": ahead(hours=1)}, 10, False),
    ],
    ids=[
        "most of them may go, suspects among them",
        "fewer than half of them may go",
        "nobody is suspected",
        "nothing may go",
    ],
)
def test_it_compares_letters_where_it_matters_which_of_them_go(
    circuit: dict[str, Any], letters: int, compares: bool
) -> None:
    assert a_lane(**circuit).compares(letters, NOW) is compares


@pytest.mark.parametrize(("live", "compares"), [(0, True), (1, True), (2, False)])
def test_beside_live_messages_letters_are_compared_with_these(live: int, compares: bool) -> None:
    minute = Minute(at=NOW - 2 * PERIOD, sent=live, received=0, deleted=0)

    assert a_lane(QueueMetrics((minute,)), **SUSPECTS).compares(10, NOW) is compares


@pytest.mark.parametrize(
    ("context", "letters", "visible", "wants"),
    [
        (a_lane(), 1, 1, False),
        (a_lane(pending=(a_batch(),)), 0, 0, True),
        (a_lane(state=State.OPEN), 1, 0, True),
        (a_lane(state=State.OPEN), 0, 0, False),
        (a_lane(state=State.HALF_OPEN), 1, 1, False),
        (a_lane(None, **SUSPECTS), 1, 1, True),
        (a_lane(None, **SUSPECTS), 1, 0, False),
        (a_lane(pending=(a_batch(),), is_paused=True), 1, 1, False),
    ],
    ids=[
        "nothing is out",
        "a batch awaits its verdict",
        "live messages may bring the canary forward",
        "there is nothing to send as a canary",
        "the canary has not gone yet",
        "live messages may say whether suspects are poison",
        "the suspects are hidden",
        "a person paused the queue",
    ],
)
def test_the_metrics_are_read_only_where_they_can_move_anything(
    context: SourceContext, letters: int, visible: int, wants: bool
) -> None:
    assert context.wants_metrics(letters=letters, visible=visible) is wants


@pytest.mark.parametrize(
    ("batch", "may"),
    [
        (a_batch(first_try_at=NOW - TIME_TO_FAIL), True),
        (a_batch(first_try_at=NOW - TIME_TO_FAIL + timedelta(seconds=1)), False),
        (a_batch(returned=4), False),
        (a_batch(returned=3), True),
    ],
    ids=["had time to fail", "had not", "all were seen", "one was not"],
)
def test_returns_are_looked_for_once_letters_had_time_to_fail_and_not_all_were_seen(
    batch: Any, may: bool
) -> None:
    assert a_lane(pending=(batch,)).may_have_returns(NOW) is may


def test_the_metrics_tell_that_returns_are_in_the_dlq() -> None:
    moved = MinuteKeeper(BEGIN).minute(sent=4).minute(moved=2).quiet(2).metrics

    assert a_lane(moved, pending=(a_batch(),)).has_returns()
    assert not a_lane(moved, pending=(a_batch(returned=2),)).has_returns()
    assert not a_lane(None, pending=(a_batch(),)).has_returns()
    assert not a_lane(moved).has_returns()


# What it lets through.


def test_a_paused_queue_lets_nothing_through_whatever_its_circuit() -> None:
    permit = a_lane(is_paused=True).allow(NOW)

    assert (permit.limit, permit.reason) == (0, "paused")


def test_the_queues_own_live_traffic_brings_its_canary_forward() -> None:
    well = MinuteKeeper(ago(minutes=5)).minute(sent=5, deleted=5).metrics
    cooling: dict[str, Any] = {"state": State.OPEN, "cools_until": ahead(hours=1)}

    assert a_lane(well, **cooling).allow(NOW).limit == SETTINGS.canary_size
    assert a_lane(None, **cooling).allow(NOW).limit == 0


def test_a_lane_without_a_gate_has_no_room_and_one_with_has_its_permits() -> None:
    context = a_lane(window=8)
    assert context.room == 0

    context.open_gate(NOW)

    assert context.room == context.permit.limit == 8


# The batch of a pass.


def test_a_batch_is_written_before_its_first_letter_can_go_and_only_once() -> None:
    context, saved = a_lane(window=8), []
    context.open_gate(NOW)

    def save(circuit: Circuit) -> None:
        saved.append(circuit)
        context.keeper.save(circuit)

    first = context.destination(NOW, ahead(minutes=4), save)
    second = context.destination(ahead(seconds=9), ahead(minutes=4), save)

    (written,) = saved
    (announced,) = written.pending
    assert first.batch == second.batch == announced
    assert (announced.size, announced.is_complete) == (8, False)
    assert announced.due_at >= ahead(minutes=4) + MAX_SQS_DELAY + TIME_TO_FAIL


def test_a_batch_is_completed_with_what_was_really_sent() -> None:
    circuit = after_sending(a_lane(window=8), sending(60), sending(0), sending(30, is_suspect=True))

    (batch,) = circuit.pending
    assert (batch.size, batch.suspects, batch.is_complete) == (3, 1, True)
    assert (batch.first_try_at, batch.tried_by) == (NOW, ahead(seconds=60))
    assert batch.due_at == ahead(seconds=60) + TIME_TO_FAIL + GRACE


def test_a_batch_of_which_nothing_was_sent_is_as_if_it_had_never_been() -> None:
    assert after_sending(a_lane(window=8)).pending == ()


def test_a_source_that_refuses_letters_is_a_failure_at_once() -> None:
    context = a_lane(window=8)
    context.refusal = "AccessDenied"

    circuit = after_sending(context)

    assert circuit.failure_count == 1
    assert circuit.window < 8


def test_a_person_who_forces_the_circuit_while_letters_go_out_is_not_overruled() -> None:
    """Their change voided the batch: completing it would bring it back."""
    context = a_lane(window=8)
    context.open_gate(NOW)
    context.destination(NOW, ahead(minutes=4), context.keeper.save)
    context.sent([sending()])

    theirs = a_circuit(state=State.OPEN, generation=9)

    assert context.after_sending(theirs, NOW) == theirs


def test_who_lost_the_race_to_announce_a_batch_leaves_that_of_the_winner_alone() -> None:
    """Both made its id of the same version, and the loser has sent nothing."""
    winner, loser = a_lane(), a_lane()
    for context, now in ((winner, NOW), (loser, ahead(seconds=1))):
        context.open_gate(now)
        context.destination(now, ahead(minutes=4), context.keeper.save)
    theirs = winner.circuit

    assert len(theirs.pending) == 1
    assert loser.after_sending(theirs, ahead(seconds=2)).pending == theirs.pending


# Looks within a minute.

PACED = Rate(per_second=5.0, looked_at=NOW, live=3.0)
BEGUN = a_batch(
    id=11, sent_at=NOW, first_try_at=NOW, last_try_at=ahead(seconds=9), size=50, suspects=5
)


def looks_again(context: SourceContext, *sendings: Sending, seconds: float = 10) -> Circuit:
    """What a pass some seconds after the last one leaves of the circuit."""
    now = ahead(seconds=seconds)
    context.open_gate(now)
    context.destination(now, ahead(minutes=4), context.keeper.save)
    context.sent(sendings)
    return context.after_sending(context.circuit, now)


def test_at_a_rate_the_letters_of_one_minute_are_one_batch() -> None:
    """The metrics can't tell them apart, and a batch every ten seconds would make the circuit's item large."""
    context = a_lane(window=100, rate=PACED, pending=(BEGUN,))

    circuit = looks_again(context, sending(12), sending(0, is_suspect=True))

    (batch,) = circuit.pending
    assert (batch.id, batch.size, batch.suspects, batch.is_complete) == (11, 52, 6, True)
    assert (batch.sent_at, batch.first_try_at, batch.tried_by) == (NOW, NOW, ahead(seconds=22))
    assert batch.due_at == ahead(seconds=22) + TIME_TO_FAIL + GRACE


def test_a_batch_that_is_announced_anew_may_have_its_letters_and_those_of_the_pass() -> None:
    context = a_lane(window=100, rate=PACED, pending=(BEGUN,))
    context.open_gate(ahead(seconds=10))

    context.destination(ahead(seconds=10), ahead(minutes=4), context.keeper.save)

    (batch,) = context.circuit.pending
    assert (batch.size, batch.is_complete) == (50 + context.permit.limit, False)


def test_who_lost_the_race_to_announce_it_anew_leaves_that_of_the_winner_alone() -> None:
    """Both have its id and its moment."""
    context = a_lane(window=100, rate=PACED, pending=(BEGUN,))
    context.open_gate(ahead(seconds=10))

    def lost(_: Circuit) -> None:
        raise LostRace

    with pytest.raises(LostRace):
        context.destination(ahead(seconds=10), ahead(minutes=4), lost)
    theirs = a_circuit(rate=PACED, pending=(replace(BEGUN, size=54),))

    assert context.after_sending(theirs, ahead(seconds=11)).pending == theirs.pending


def test_suspects_that_go_beside_controls_are_announced_beyond_the_window() -> None:
    context = a_lane(QueueMetrics(()), **SUSPECTS | {"window": 10})
    context.open_gate(NOW)
    suspects = [a_return(strikes=1, last_redrive=ago(hours=1)) for _ in range(30)]
    good = [Case(letter=a_letter(message_id=f"m{n}", sent_at=ago(hours=2))) for n in range(4)]

    sizes = []
    for letters in ([*suspects[:20], *good], suspects[20:]):
        context.decide(letters, [0.0] * len(letters), TERMS, NOW, beyond=0)
        context.destination(NOW, ahead(minutes=4), context.keeper.save)
        sizes.append(context.circuit.pending[0].size)

    assert sizes == [10 + 20, 10 + 30]


def test_no_more_letters_are_announced_than_the_rate_lets_through() -> None:
    """A pass that dies leaves as many unknown ones, which would keep a failure from being one."""
    context = a_lane(window=500, rate=PACED)
    context.open_gate(NOW)

    context.destination(NOW, ahead(minutes=4), context.keeper.save)

    (batch,) = context.circuit.pending
    assert batch.size == 75


def test_a_canary_is_given_the_seconds_of_a_minute_where_no_look_follows_sooner() -> None:
    """At less than one a second the seconds until the next look may have none that is free, each time."""
    context = a_lane(
        rate=replace(PACED, per_second=0.05), state=State.OPEN, cools_until=ago(minutes=1)
    )

    context.open_gate(NOW)

    assert (context.permit.is_canary, context.ahead) == (True, AHEAD_OF_SCHEDULE)


def test_a_look_that_sends_nothing_leaves_the_batch_of_its_minute_as_it_was() -> None:
    assert looks_again(a_lane(window=100, rate=PACED, pending=(BEGUN,))).pending == (BEGUN,)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 60),
        ({"pending": (replace(BEGUN, is_complete=False),)}, 10),
        ({"pending": (replace(BEGUN, is_probe=True),)}, 10),
        ({"pending": (replace(BEGUN, generation=1),)}, 10),
        ({"heard_at": NOW}, 10),
        ({"rate": None}, 10),
    ],
    ids=[
        "a minute later",
        "its pass may have died",
        "a probe stands for itself",
        "the circuit has changed its state since",
        "reports tell of each letter",
        "no rate holds",
    ],
)
def test_others_begin_a_batch_of_their_own(changes: dict[str, Any], seconds: float) -> None:
    usual: dict[str, Any] = {"window": 100, "rate": PACED, "pending": (BEGUN,)}

    circuit = looks_again(a_lane(**usual | changes), sending(), seconds=seconds)

    assert [one.size for one in circuit.pending if one.id != BEGUN.id] == [1]


@pytest.mark.parametrize(
    ("circuit", "room"),
    [
        ({"rate": PACED}, 75),  # 15 seconds from the next one on
        ({"rate": replace(PACED, live=0.0)}, 75),
        ({}, 500),
    ],
    ids=["looks follow each other", "a quiet queue", "no rate"],
)
def test_no_more_letters_are_received_than_go_until_the_next_look(
    circuit: dict[str, Any], room: int
) -> None:
    context = a_lane(window=500, **circuit)

    context.open_gate(NOW)

    assert context.room == room


@pytest.mark.parametrize(
    ("circuit", "again"),
    [
        ({"rate": PACED}, LOOKS_EVERY),
        ({"rate": replace(PACED, live=0.0)}, LOOKS_EVERY),
        ({"rate": replace(PACED, live=0.0), "heard_at": NOW}, LOOKS_EVERY),
        ({"rate": PACED, "window": 3}, None),
        ({"rate": PACED, "state": State.OPEN, "cools_until": ahead(hours=1)}, None),
        ({}, None),
    ],
    ids=[
        "beside live messages",
        "on a quiet queue, too",
        "reports come anyway",
        "the window ends it",
        "nothing goes",
        "no rate",
    ],
)
def test_a_look_follows_soon_where_letters_wait_for_the_rate_alone(
    circuit: dict[str, Any], again: timedelta | None
) -> None:
    context = a_lane(**{"window": 500} | circuit)
    context.open_gate(NOW)
    letters = [a_case(message_id=f"letter-{n}") for n in range(90)]
    terms = replace(TERMS, ahead=context.ahead or timedelta(minutes=15))

    context.decide(letters, [0.0] * len(letters), terms, NOW, beyond=math.inf)

    assert context.looks_again_after() == again


# Returns.


def test_returns_are_counted_by_batch_and_by_whether_they_were_suspects() -> None:
    context = a_lane(pending=(a_batch(),))
    cases = [
        a_return(),
        a_return(),
        a_return(strikes=1),
        a_return(status=Status.RETURNED, seen_in_version=context.keeper.version - 1),
        a_case(),
    ]

    assert context.count_returns(cases, NOW) == {(7, False): 2, (7, True): 1}
    assert context.returned == 3


def test_returns_that_were_met_while_letters_went_out_are_charged_in_the_end() -> None:
    context = a_lane(pending=(a_batch(),), window=8)
    context.charge_later(Counter({(7, False): 1}))
    context.charge_later(Counter({(7, False): 1, (7, True): 1}))

    batch = context.after_sending(context.circuit, NOW).pending_batch(7)

    assert batch is not None
    assert (batch.returned, batch.suspects_returned) == (2, 1)


def test_a_batch_is_judged_by_the_metrics_of_its_own_source_beside_its_own_batches() -> None:
    """Where two queues have the same batch out, the one whose metrics show deletes succeeds."""
    well = MinuteKeeper(BEGIN).minute(sent=7).minute(deleted=7).metrics
    silent = MinuteKeeper(BEGIN).minute(sent=7).quiet(2).metrics
    out: dict[str, Any] = {
        "pending": (a_batch(due_at=ahead(hours=1)),),
        "judged": (a_judged(3, minutes=10),),
    }

    (success,) = a_lane(well, **out).judged(NOW)[1]
    (waits,) = a_lane(silent, **out).judged(NOW)[1]

    assert success.judgement.reason == "4 of 4 succeeded"
    assert waits.judgement.verdict is None


# What triage has to know.


@pytest.mark.parametrize(("is_flowing", "margin"), [(True, urgent_margin), (False, calm_margin)])
def test_letters_may_wait_nearer_to_their_end_while_letters_flow(
    is_flowing: bool, margin: Any
) -> None:
    context, retention = a_lane(), timedelta(days=14)
    other = a_lane()
    other.facts = replace(FACTS, arn=OTHER_ARN, max_message_size=1_024)

    terms = terms_of(
        context, {SOURCE_ARN: context, OTHER_ARN: other}, retention, is_flowing=is_flowing
    )

    assert terms.margin == margin(retention)
    assert terms.destinations == {SOURCE_ARN: 262_144, OTHER_ARN: 1_024}
    assert (terms.home, terms.time_to_fail) == (SOURCE_ARN, TIME_TO_FAIL)


@pytest.mark.parametrize(
    ("longest_delay", "arn", "ahead"),
    [
        (timedelta(minutes=15), SOURCE_ARN, timedelta(minutes=15)),
        (timedelta(), f"{SOURCE_ARN}.fifo", FIFO_AHEAD),
        (timedelta(), SOURCE_ARN, DELIVERED_AHEAD),
    ],
    ids=["what SQS can delay", "a FIFO queue", "what the pass delivers itself"],
)
def test_what_can_not_be_delayed_is_admitted_as_far_ahead_as_the_next_pass(
    longest_delay: timedelta, arn: str, ahead: timedelta
) -> None:
    context = a_lane()
    context.facts = replace(FACTS, arn=arn)
    context.source.longest_delay = longest_delay  # type: ignore[misc]

    terms = terms_of(context, {arn: context}, timedelta(days=14), is_flowing=True)

    assert (terms.longest_delay, terms.ahead) == (longest_delay, ahead)


def test_at_a_rate_what_can_not_be_delayed_does_not_go_ahead_of_its_second() -> None:
    rate = Rate(per_second=5.0, looked_at=NOW)
    context, beside_live = (a_lane(rate=replace(rate, live=3.0)) for _ in range(2))
    unpaced, quiet = a_lane(), a_lane(rate=rate)
    for one in (context, unpaced):
        one.facts = replace(FACTS, arn=f"{SOURCE_ARN}.fifo")
        one.source.longest_delay = timedelta()  # type: ignore[misc]
    for one in (context, unpaced, quiet, beside_live):
        one.open_gate(NOW)

    ahead = [
        terms_of(one, {SOURCE_ARN: one}, timedelta(days=14), is_flowing=True).ahead
        for one in (context, unpaced, quiet, beside_live)
    ]

    assert ahead == [timedelta(), FIFO_AHEAD, AHEAD, AHEAD]
    assert [one.waits_for_rate for one in (context, unpaced, quiet, beside_live)] == [
        True,
        False,
        False,
        False,
    ]


def test_live_messages_are_known_from_the_minutes_before_the_metrics_begin() -> None:
    minutes = tuple((ahead(minutes=n), 600) for n in range(-5, 0))

    known = a_lane(QueueMetrics((), sent_before=minutes)).felt(NOW)
    unknown = a_lane(QueueMetrics(())).felt(NOW)

    assert known is not None
    assert (known.live, known.per_second) == (10, 1)
    assert unknown is None


@pytest.mark.parametrize(
    ("state", "heard_at", "is_rated"),
    [
        (State.HALF_OPEN, None, True),
        (State.HALF_OPEN, NOW, False),
        (State.CLOSED, None, False),
        (State.OPEN, None, True),
    ],
)
def test_a_consumer_that_comes_back_unseen_is_met_with_a_rate(
    state: State, heard_at: Any, is_rated: bool
) -> None:
    rate = a_lane(QueueMetrics(()), state=state, heard_at=heard_at).felt(NOW)

    assert (rate is not None) is is_rated


@pytest.mark.parametrize(
    ("verdict", "letters_more", "is_rated"),
    [(Verdict.NO_EVIDENCE, 1, True), (Verdict.NO_EVIDENCE, 0, False), (Verdict.SUCCESS, 1, False)],
)
def test_letters_go_at_a_rate_when_nobody_knows_what_became_of_a_large_batch(
    verdict: Verdict, letters_more: int, is_rated: bool
) -> None:
    """Each batch of 80 was too many for a consumer, and each verdict was "no evidence", for eleven hours."""
    context = a_lane(QueueMetrics(()))
    context.rulings = (
        Ruling(
            queue=QUEUE,
            batch=a_batch(size=SETTINGS.initial_window + letters_more),
            judgement=Judgement(verdict=verdict, reason=""),
            evidence=Evidence(),
            before=State.CLOSED,
            after=State.CLOSED,
        ),
    )

    assert (context.felt(NOW) is not None) is is_rated


@pytest.mark.parametrize(
    ("live", "heard_at", "told_minutes_ago", "is_rated"),
    [
        (0, NOW, 3, True),
        (0, NOW, 1, False),
        (0, None, 3, False),
        (6, NOW, 3, False),
    ],
    ids=[
        "windows follow each other before the metrics",
        "the metrics show the time since the first letter",
        "no reports, and windows take minutes",
        "few live messages came before",
    ],
)
def test_letters_go_at_a_rate_until_the_metrics_show_what_producers_send_beside_them(
    live: int, heard_at: Any, told_minutes_ago: int, is_rated: bool
) -> None:
    told = [Minute(at=ago(minutes=told_minutes_ago + n), sent=live) for n in reversed(range(5))]
    pending = (a_batch(sent_at=ago(minutes=2)),)

    rate = a_lane(QueueMetrics(tuple(told)), pending=pending, heard_at=heard_at).felt(NOW)

    assert (rate is not None) is is_rated


@pytest.mark.parametrize(
    ("retention", "longest"),
    [(60, 30), (300, 150), (1800, 900), (345_600, 900), (0, 900)],
    ids=["a minute", "5 min", "half an hour", "4 days", "no queue"],
)
def test_no_letter_waits_in_a_queue_until_the_queue_forgets_it(
    retention: int, longest: int
) -> None:
    context = a_lane()
    context.facts = replace(FACTS, retention=timedelta(seconds=retention))

    terms = terms_of(context, {SOURCE_ARN: context}, timedelta(days=14), is_flowing=True)

    assert terms.longest_delay == terms.ahead == timedelta(seconds=longest)


# What its source says at once.


def test_what_a_source_answers_of_deliveries_is_heard_of_the_batch_at_once() -> None:
    context = a_lane()
    context.source.settles_at_once = True  # type: ignore[misc]

    circuit = after_sending(
        context,
        Sending(SOURCE_ARN, timedelta(), is_suspect=False, has_succeeded=True),
        Sending(SOURCE_ARN, timedelta(), is_suspect=True, has_succeeded=True),
        Sending(SOURCE_ARN, timedelta(), is_suspect=False, has_succeeded=False),
        Sending(SOURCE_ARN, timedelta(), is_suspect=True, has_succeeded=False),
    )

    assert circuit.heard_at == NOW
    (batch,) = circuit.pending
    assert batch.heard == Heard(succeeded=2, tries=2)
    assert (batch.returned, batch.suspects_returned) == (1, 1)


@pytest.mark.parametrize(
    ("queue", "at", "limit"),
    [(QUEUE, NOW, 1), ("payments", NOW, 0), (QUEUE, ago(minutes=9), 0)],
    ids=["a live message succeeded", "one of another queue", "one before the last canary"],
)
def test_a_reported_success_of_a_live_message_brings_the_canary_forward(
    queue: str, at: datetime, limit: int
) -> None:
    context = a_lane(
        state=State.OPEN,
        changed_at=ago(minutes=10),
        cools_until=ahead(minutes=50),
        last_attempt_at=ago(minutes=8),
    )
    assert context.allow(NOW).limit == 0

    context.heard(ProcessedReports(live={queue: at}), NOW)

    assert context.allow(NOW).limit == limit


def test_of_letters_whose_outcome_comes_later_nothing_is_heard() -> None:
    circuit = after_sending(a_lane(), sending())

    assert circuit.heard_at is None
    assert circuit.pending[0].heard == Heard()


def test_no_witness_is_asked_where_the_source_answers_itself() -> None:
    context = a_lane(state=State.OPEN, pending=(a_batch(),))
    context.source.settles_at_once = True  # type: ignore[misc]

    assert not context.wants_metrics(letters=1, visible=1)


# Whom it waits for.


@pytest.mark.parametrize(
    ("in_source", "unaccounted", "sent_at", "awaits"),
    [
        (1, 1, ago(minutes=5), True),
        (0, 1, ago(minutes=5), False),
        (1, 0, ago(minutes=5), False),
        (1, 1, ago(hours=1), False),
    ],
    ids=[
        "a letter of a success is in the source queue still",
        "nothing is there any more",
        "of all letters it is known what became of them",
        "all had time to fail",
    ],
)
def test_first_suspects_are_waited_for_where_a_success_did_not_wait_for_all_of_its_letters(
    in_source: int, unaccounted: int, sent_at: Any, awaits: bool
) -> None:
    success = a_judged(unaccounted=unaccounted, sent_at=sent_at)
    context = a_lane(judged=(success,), window=100)
    context.facts = replace(FACTS, visible=0, in_flight=in_source, delayed=0)
    letters = [Case(letter=a_letter(message_id=f"m{n}")) for n in range(CONTROLS_AMONG)]

    context.open_gate(NOW)
    decided = context.decide(letters, [0.0] * len(letters), TERMS, NOW, beyond=0)

    held = [what for _, what in decided if isinstance(what, Hold)]
    assert bool(held) is awaits
    assert {what.reason for what in held} <= {HoldReason.CONTROL}


def verdict_on(*, live: Live) -> Judged:
    batch = a_batch(size=4)
    known = Evidence(succeeded=3, live=live, met=4, deleted=3, were_tried=True, has_metrics=True)
    judged, _ = judging.judge(
        a_circuit(pending=(batch,)),
        {batch.id: known},
        SETTINGS,
        NOW,
        roll=0.5,
    )
    return judged.judged[-1]


def test_a_success_remembers_of_how_many_letters_nothing_was_known_but_beside_live_messages() -> (
    None
):
    assert verdict_on(live=Live()).unaccounted == 1
    assert verdict_on(live=Live(is_expected=True)).unaccounted == 0
