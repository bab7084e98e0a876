"""The headline, sentence by sentence, and that it is never green while letters wait for what does not come."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.headline import (
    Colour,
    Headline,
    KindDown,
    Passes,
    Seen,
    Topic,
    headline,
    seen_of,
    worst,
)
from smart_redriver.engine.model.batch import Batch, Heard, Verdict
from smart_redriver.engine.model.breaker import new_circuit
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.model.circuit import Circuit, Fared, Orders, State
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.permit import FLAPS_THAT_SHOW, allow
from tests.oncall.test_outlook import FULL
from tests.unit.examples import a_batch, a_circuit, a_judged
from tests.unit.test_apart import after

NOW = datetime(2026, 11, 24, 2, 30, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=27)
WAITING = Seen(at=NOW, backlog=16)
FAILURE, NO_EVIDENCE = Verdict.FAILURE, Verdict.NO_EVIDENCE


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


DOWN = replace(
    WAITING,
    state=State.OPEN,
    belief_down=0.97,
    tried=14,
    failed=14,
    since=SINCE,
    next_canary_at=NOW + minutes(11),
)
SILENT = replace(
    WAITING, backlog=11, out=5, out_since=NOW - minutes(19), out_until=NOW + minutes(4)
)
FLOWING = replace(WAITING, backlog=300, succeeded_at=NOW - minutes(2))
DECLINED = KindDown(
    name="PaymentDeclined",
    letters=212,
    since=NOW.replace(hour=1, minute=12),
    next_canary_at=NOW + minutes(3),
)

LONG = "KeyError in work.charge: no price"
MIXED = replace(FLOWING, came_back=14, of_these=28)

SENTENCES = [
    (
        replace(MIXED, fails_together=True),
        Colour.YELLOW,
        "Consumer fails whole batches if one message fails. 300 letters wait. Letters go back one by one.",
    ),
    (
        MIXED,
        Colour.YELLOW,
        "14 of the last 28 letters failed while others succeeded. 300 letters wait. "
        "Letters that were never tried go first.",
    ),
    (
        replace(FLOWING, stuck=1),
        Colour.RED,
        "1 of 300 letters can't be parked: it is too large for the parking lot, or refused by it.",
    ),
    (
        replace(WAITING, stuck=20),
        Colour.RED,
        "16 of 16 letters can't be parked: they are too large for the parking lot, or refused by it.",
    ),
    (
        replace(FLOWING, blocking=1),
        Colour.RED,
        "1 letter blocks its message group until a person acts. 300 letters wait.",
    ),
    (
        replace(WAITING, blocking=2),
        Colour.RED,
        "2 letters block their message groups until a person acts. 16 letters wait.",
    ),
    (Seen(at=NOW, backlog=0), Colour.GREEN, "No letter waits: the DLQ is empty."),
    (
        replace(FLOWING, backlog=0, out=63),
        Colour.GREEN,
        "The DLQ is empty; 63 letters are out, and may come back.",
    ),
    (
        Seen(at=NOW, backlog=0, parked=1),
        Colour.NONE,
        "The DLQ is empty; 1 parked letter waits for a person.",
    ),
    (
        DOWN,
        Colour.RED,
        "Consumer likely down (97%): 0 of 14 letters succeeded since 02:03. 16 letters wait. "
        "Next canary at 02:41, or at once when a live message succeeds.",
    ),
    (
        replace(DOWN, queue="orders", refusal="InsufficientPrivilege"),
        Colour.RED,
        "orders refuses letters: InsufficientPrivilege. 16 letters wait. "
        "Next canary at 02:41, or at once when a live message succeeds.",
    ),
    (
        replace(DOWN, belief_down=None, heeds_live=False),
        Colour.RED,
        "Consumer likely down: 0 of 14 letters succeeded since 02:03. 16 letters wait. "
        "Next canary at 02:41.",
    ),
    (
        replace(DOWN, belief_down=None, tried=0, next_canary_at=NOW, backlog=1),
        Colour.RED,
        "Consumer likely down. 1 letter waits. Next canary with the next pass, or, "
        "while live messages fail, once one of them succeeds.",
    ),
    (
        replace(DOWN, belief_down=None, next_canary_at=NOW, canary_at_latest=NOW + minutes(11)),
        Colour.RED,
        "Consumer likely down: 0 of 14 letters succeeded since 02:03. 16 letters wait. "
        "Next canary with the next pass, or, while live messages fail, once one of them succeeds, "
        "until 02:41 at the latest.",
    ),
    (
        replace(DOWN, belief_down=None, next_canary_at=NOW, canary_at_latest=NOW),
        Colour.RED,
        "Consumer likely down: 0 of 14 letters succeeded since 02:03. 16 letters wait. "
        "Next canary with the next pass.",
    ),
    (
        replace(DOWN, backlog=0),
        Colour.NONE,
        "No letter waits. The consumer has not been seen to work since it was down: "
        "the next letter goes as a canary.",
    ),
    (
        replace(DOWN, backlog=0, parked=2),
        Colour.NONE,
        "The DLQ is empty; 2 parked letters wait for a person.",
    ),
    (
        replace(SILENT, state=State.HALF_OPEN, out=1),
        Colour.YELLOW,
        "Consumer was down; a canary is out since 02:11. 11 letters wait. "
        "The canary's outcome is awaited, until 02:34 at the latest.",
    ),
    (
        replace(SILENT, state=State.HALF_OPEN, out=192),
        Colour.YELLOW,
        "Consumer was down; a canary of 192 letters is out since 02:11. 11 letters wait. "
        "The canary's outcome is awaited, until 02:34 at the latest.",
    ),
    (
        SILENT,
        Colour.YELLOW,
        "Consumer not seen to work: 5 letters are out since 02:11, and none of them is known to have succeeded. "
        "11 letters wait. The outcome of those that are out is awaited, until 02:34 at the latest.",
    ),
    (
        replace(SILENT, out_since=NOW - minutes(2)),
        Colour.NONE,
        "5 letters are out since 02:28, and their outcome is not due yet. 11 letters wait. "
        "The outcome of those that are out is awaited, until 02:34 at the latest.",
    ),
    (
        # They keep their places in order, and were counted as out and as waiting.
        replace(SILENT, keeps_order=True, out_since=NOW - minutes(2)),
        Colour.NONE,
        "5 letters are out since 02:28, and their outcome is not due yet. 6 letters wait. "
        "The outcome of those that are out is awaited, until 02:34 at the latest.",
    ),
    (
        replace(SILENT, keeps_order=True, backlog=5, out_since=NOW - minutes(2)),
        Colour.NONE,
        "5 letters are out since 02:28, and their outcome is not due yet. No letter waits. "
        "The outcome of those that are out is awaited, until 02:34 at the latest.",
    ),
    (
        replace(SILENT, out=1, out_since=NOW - minutes(2)),
        Colour.NONE,
        "1 letter is out since 02:28, and its outcome is not due yet. 11 letters wait. "
        "The outcome of those that are out is awaited, until 02:34 at the latest.",
    ),
    (
        replace(SILENT, tried=5, failed=4, since=SINCE),
        Colour.RED,
        "Consumer may be down: 0 of 5 letters succeeded since 02:03. 11 letters wait. "
        "Few letters are tried until some succeed.",
    ),
    (
        replace(FLOWING, kinds_down=(DECLINED,)),
        Colour.YELLOW,
        "Healthy; 212 of 300 letters wait for PaymentDeclined, down since 01:12. "
        "Next canary of it at 02:33.",
    ),
    (
        replace(FLOWING, backlog=200, kinds_down=(DECLINED,)),
        Colour.YELLOW,
        "200 of 200 letters wait for PaymentDeclined, down since 01:12. Next canary of it at 02:33.",
    ),
    (
        replace(FLOWING, keeps_order=True, kinds_down=(DECLINED,)),
        Colour.YELLOW,
        "Healthy; 212 of 300 letters, and those in order behind them, wait for PaymentDeclined, down since 01:12. "
        "Next canary of it at 02:33.",
    ),
    (
        replace(FLOWING, keeps_order=True, backlog=212, kinds_down=(DECLINED,)),
        Colour.YELLOW,
        "212 of 212 letters wait for PaymentDeclined, down since 01:12. Next canary of it at 02:33.",
    ),
    (
        replace(FLOWING, kinds_down=(replace(DECLINED, letters=0, name="Late: after *"),)),
        Colour.YELLOW,
        "300 letters wait for the next pass to look at them; Late is down since 01:12. Next canary of it at 02:33.",
    ),
    (
        replace(FLOWING, backlog=1, kinds_down=(replace(DECLINED, letters=0, name=LONG),)),
        Colour.YELLOW,
        "1 letter waits for the next pass to look at it; KeyError is down since 01:12. Next canary of it at 02:33.",
    ),
    (
        replace(
            FLOWING, kinds_down=(DECLINED, replace(DECLINED, letters=3, name="KeyError in a.b: x"))
        ),
        Colour.YELLOW,
        "Healthy; 212 of 300 letters wait for PaymentDeclined, down since 01:12; "
        "3 of 300 letters wait for KeyError, down since 01:12. Next canary of PaymentDeclined at 02:33.",
    ),
    (
        replace(
            FLOWING,
            kinds_down=(
                replace(DECLINED, name=LONG),
                replace(DECLINED, letters=0, name="KeyError in a.b: x"),
            ),
        ),
        Colour.YELLOW,
        f'Healthy; 212 of 300 letters wait for "{LONG}", down since 01:12, 1 more cause. '
        f'Next canary of "{LONG}" at 02:33.',
    ),
    (FLOWING, Colour.GREEN, "Healthy: letters go back; 300 left."),
    (
        replace(FLOWING, rate_per_second=0.4, drained_by=NOW + minutes(50)),
        Colour.GREEN,
        "Healthy: letters go back, about 24 a minute; 300 left, drained by 03:20.",
    ),
    (
        # "By 02:30" at 02:30 would be no time to come.
        replace(FLOWING, rate_per_second=10, drained_by=NOW + timedelta(seconds=30)),
        Colour.GREEN,
        "Healthy: letters go back, about 10 a second; 300 left, drained by 02:31.",
    ),
    (
        replace(FLOWING, rate_per_second=6, live_per_second=12, drained_by=NOW + minutes(110)),
        Colour.GREEN,
        "Consumer bears about 18 a second, 12 a second of them live: 6 a second for letters, drained by 04:20.",
    ),
    (WAITING, Colour.NONE, "16 letters wait. The next pass looks at them."),
    (
        replace(WAITING, backlog=0, out=3),
        Colour.NONE,
        "The DLQ is empty; 3 letters are out, and may come back.",
    ),
    (
        replace(WAITING, succeeded_at=NOW - minutes(9)),
        Colour.NONE,
        "16 letters wait. The next pass looks at them.",
    ),
    (
        replace(WAITING, hidden=16),
        Colour.YELLOW,
        "All 16 letters of the DLQ are hidden until their time.",
    ),
    (
        replace(WAITING, hidden=3),
        Colour.NONE,
        "16 letters wait. The next pass looks at them.",
    ),
    (
        # No pass sees letters behind it in a FIFO queue: for hours, the next one was promised to look at them.
        replace(WAITING, hidden=1, keeps_order=True),
        Colour.YELLOW,
        "1 of 16 letters is hidden until its time; those in order behind it wait, too. "
        "The next pass looks at the others.",
    ),
    (
        replace(WAITING, hidden=2, keeps_order=True),
        Colour.YELLOW,
        "2 of 16 letters are hidden until their time; those in order behind them wait, too. "
        "The next pass looks at the others.",
    ),
    (
        replace(WAITING, backlog=1, hidden=1),
        Colour.YELLOW,
        "The DLQ's one letter is hidden until its time.",
    ),
    (
        replace(WAITING, backlog=1),
        Colour.NONE,
        "1 letter waits. The next pass looks at it.",
    ),
    (
        replace(WAITING, suspects=12, suspects_until=NOW + timedelta(days=1)),
        Colour.YELLOW,
        "12 letters failed while others succeeded. 16 letters wait. "
        "Those that failed wait for their next try, until 2026-11-25 02:30 at the latest.",
    ),
    (
        replace(WAITING, mode=Mode.DRY_RUN),
        Colour.YELLOW,
        "Dry run: letters are looked at, and none is redriven. 16 letters wait.",
    ),
    (
        replace(WAITING, passes=Passes.NOT_SCHEDULED),
        Colour.RED,
        "No pass runs by itself: the schedule is off. 16 letters wait.",
    ),
    (
        replace(WAITING, passes=Passes.NO_PROCESS),
        Colour.RED,
        "No pass runs by itself: no process is at work. 16 letters wait.",
    ),
    (
        replace(
            WAITING,
            orders=Orders(
                is_paused=True, paused_until=NOW + minutes(60), by="arn:x:user/kim", reason="moving"
            ),
        ),
        Colour.YELLOW,
        'Paused by kim until 03:30: "moving". 16 letters wait.',
    ),
    (
        replace(
            WAITING,
            orders=Orders(is_paused=True, by="arn:aws:iam::123456789012:root", reason="again"),
        ),
        Colour.YELLOW,
        'Paused by root until somebody resumes it: "again". 16 letters wait.',
    ),
    (
        replace(WAITING, orders=Orders(is_paused=True, reason="is it the provider?")),
        Colour.YELLOW,
        'Paused until somebody resumes it: "is it the provider?". 16 letters wait.',
    ),
    (replace(WAITING, backlog=None), Colour.YELLOW, "Not known: the DLQ could not be read."),
    (
        replace(FLOWING, unread="DescribeTopic: UNKNOWN_TOPIC_OR_PART"),
        Colour.YELLOW,
        "The source queue can't be read: DescribeTopic: UNKNOWN_TOPIC_OR_PART. 300 letters wait.",
    ),
    (
        replace(FLOWING, failed_pass="GetQueueAttributes: NonExistentQueue"),
        Colour.YELLOW,
        "The last pass failed: GetQueueAttributes: NonExistentQueue. 300 letters wait.",
    ),
    (
        replace(WAITING, passes=Passes.NO_FUNCTION),
        Colour.RED,
        "No pass runs by itself: the function does not exist. 16 letters wait.",
    ),
    (
        replace(WAITING, mode=Mode.PAUSED),
        Colour.YELLOW,
        "The setting `mode` is paused: nothing is redriven. 16 letters wait.",
    ),
    (
        replace(WAITING, state=State.HALF_OPEN),
        Colour.YELLOW,
        "Consumer was down. 16 letters wait. The next canary goes with the next pass.",
    ),
    (
        replace(FLOWING, crowded_since=NOW - minutes(3), live_per_second=2),
        Colour.YELLOW,
        "Consumer is at capacity beside 2 a second live since 02:27. 300 letters wait. "
        "Letters go on once its queue holds no more than usual, until 02:37 at the latest.",
    ),
]


@pytest.mark.parametrize(("seen", "colour", "sentence"), SENTENCES)
def test_each_state_has_its_sentence_and_colour(seen: Seen, colour: Colour, sentence: str) -> None:
    found = headline(seen)

    assert (found.sentence(NOW), found.colour) == (sentence, colour)


@pytest.mark.parametrize(
    "of_the_issue",
    [
        replace(SILENT, backlog=16),
        replace(SILENT, succeeded_at=NOW - timedelta(days=2)),
        replace(SILENT, backlog=0, tried=5),
        replace(FLOWING, kinds_down=(DECLINED,)),
        replace(FLOWING, out=40, out_since=NOW - minutes(19)),
    ],
)
def test_it_is_not_green_while_letters_wait_for_what_does_not_come(of_the_issue: Seen) -> None:
    """Payments down, nothing live: it said "CLOSED, letters flow" for 19 minutes, in green."""
    assert headline(of_the_issue).colour is not Colour.GREEN


moments = st.none() | st.integers(-600, 600).map(lambda n: NOW + minutes(n))
counts = st.integers(0, 50)


@given(
    st.builds(
        Seen,
        at=st.just(NOW),
        state=st.sampled_from(State),
        mode=st.sampled_from(Mode),
        passes=st.sampled_from(Passes),
        unread=st.sampled_from(["", "GetQueueAttributes: AccessDenied"]),
        failed_pass=st.sampled_from(["", "GetItem: ResourceNotFoundException"]),
        backlog=st.none() | counts,
        hidden=counts,
        keeps_order=st.booleans(),
        parked=counts,
        out=counts,
        out_since=moments,
        out_until=moments,
        belief_down=st.none() | st.floats(0, 1),
        succeeded=counts,
        tried=counts,
        failed=counts,
        since=moments,
        succeeded_at=moments,
        next_canary_at=moments,
        kinds_down=st.sampled_from([(), (DECLINED,)]),
        suspects=counts,
        suspects_until=moments,
        drained_by=moments,
        fails_together=st.booleans(),
        came_back=counts,
        of_these=counts,
    )
)
def test_whatever_is_seen_has_a_sentence_and_green_means_flowing_or_empty(seen: Seen) -> None:
    found = headline(seen)

    assert found.sentence(NOW).endswith(".")
    assert ".." not in found.sentence(NOW)
    if found.colour is Colour.GREEN:
        assert seen.state is State.CLOSED
        assert seen.backlog or not seen.parked
        assert not seen.backlog or (seen.is_fresh and not seen.kinds_down and not seen.came_back)


@pytest.mark.parametrize(
    ("up_seconds", "size"), [(0, Settings().canary_size), (180, Settings().initial_window)]
)
def test_while_live_messages_fail_the_canary_goes_when_the_headline_says(
    up_seconds: int, size: int
) -> None:
    """It said "with the next pass" for as long as they failed."""
    settings = Settings()
    opened = replace(
        new_circuit("orders", settings, SINCE),
        state=State.OPEN,
        cools_until=SINCE,
        flaps=FLAPS_THAT_SHOW,
        up_seconds=up_seconds,
    )
    told = seen_of(opened, settings, NOW, dlq=None).canary_at_latest
    assert told is not None

    def limit_at(moment: datetime) -> int:
        return allow(opened, settings, moment, LiveOutcome.FAILS).limit

    assert (limit_at(told - timedelta(seconds=1)), limit_at(told)) == (0, size)


_UNREAD = (
    "The source queue can't be read; the last pass failed; not known: the DLQ could not be read"
)
_HIDDEN = "Letters are hidden until their time"
#: How the runbook's table calls each sentence, by its beginning.
ROWS = {
    r"No letter waits: the DLQ is empty": "No letter waits",
    r"No letter waits\. The consumer": "No letter waits. The consumer has not been seen to work",
    r"The DLQ is empty; [\d,]+ letters? (is|are) out": "The DLQ is empty; N letters are out",
    r"The DLQ is empty; [\d,]+ parked": "The DLQ is empty; N parked letters wait for a person",
    r"Healthy: ": "Healthy: letters go back; consumer bears about N a second",
    r"Consumer bears about": "Healthy: letters go back; consumer bears about N a second",
    r"[\d,]+ letters? waits?\. ": "N letters wait. The next pass looks at them",
    r"[\d,]+ letters? (is|are) out since": "N letters are out; their outcome is not due yet",
    r"(All [\d,]+ letters of the DLQ are|The DLQ's one letter is) hidden": _HIDDEN,
    r"[\d,]+ of [\d,]+ letters? (is|are) hidden": _HIDDEN,
    r"No pass runs by itself": "No pass runs by itself",
    r"Dry run": "Dry run; the setting `mode` is paused",
    r"The setting `mode` is paused": "Dry run; the setting `mode` is paused",
    r"Paused": "Paused",
    r"Consumer likely down": "Consumer likely down",
    r"orders refuses letters": "QUEUE or TARGET refuses letters",
    r"Consumer was down; a canary": "Consumer was down; a canary is out, or goes with the next pass",
    r"Consumer was down\. ": "Consumer was down; a canary is out, or goes with the next pass",
    r"Consumer may be down": "Consumer may be down",
    r"Consumer not seen to work": "Consumer not seen to work",
    r"Consumer is at capacity": "Consumer is at capacity",
    r"Consumer fails whole batches": "Consumer fails whole batches",
    r"(Healthy; )?[\d,]+ of [\d,]+ letters?(, and those in order behind (it|them),)? waits? for": (
        "N of M letters wait for CAUSE; or for the next pass to look at them, and CAUSE is down"
    ),
    r"[\d,]+ letters? waits? for the next pass": (
        "N of M letters wait for CAUSE; or for the next pass to look at them, and CAUSE is down"
    ),
    r"[\d,]+ letters? failed while": "N letters failed while others succeeded",
    r"[\d,]+ of the last [\d,]+ letters? failed": "N of the last M letters failed while others succeeded",
    r"[\d,]+ of [\d,]+ letters? can't be parked": "N of M letters can't be parked",
    r"[\d,]+ letters? blocks? (its|their) message group": "N letters block their message groups",
    r"Not known: the DLQ could not be read": _UNREAD,
    r"The source queue can't be read": _UNREAD,
    r"The last pass failed": _UNREAD,
}


def test_the_runbook_explains_every_headline() -> None:
    page = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text()
    table = re.findall(r"^\| (.+?) \|", page.partition("# What pages")[0], re.MULTILINE)
    told = [(headline(seen).topic, sentence) for seen, _, sentence in SENTENCES]

    explained = [[one for one in ROWS if re.match(one, sentence)] for _, sentence in told]

    assert {topic for topic, _ in told} == set(Topic)
    assert set(map(len, explained)) == {1}
    assert {one for (one,) in explained} == ROWS.keys()
    assert set(ROWS.values()) == set(table) - {"headline", "---"}


def of_suspects(**fields: Any) -> Batch:
    """One letter is out, as the canary of a cause: it has been back already."""
    return a_batch(size=1, suspects=1, suspects_returned=1, **fields)


@pytest.mark.parametrize(
    "circuit",
    [
        a_circuit(pending=(of_suspects(heard=Heard(suspects_failed=1, tries=3)),)),
        a_circuit(judged=(a_judged(size=1, returned=1, verdict=NO_EVIDENCE, was_alone=True),)),
        a_circuit(judged=(a_judged(size=5, returned=5, verdict=FAILURE),), generation=3),
    ],
    ids=[
        "the canary of a cause is back",
        "suspects were alone",
        "it failed before a person closed it",
    ],
)
def test_a_failure_that_tells_nothing_of_the_consumer_now_makes_no_headline(
    circuit: Circuit,
) -> None:
    """With payments down alone it said "Consumer may be down: 0 of 1 letter succeeded", in red, at each canary."""
    seen = seen_of(circuit, Settings(), NOW, dlq=FULL)

    assert (seen.tried, seen.failed) == (0, 0)
    assert headline(seen).topic is Topic.STARTING


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        (Heard(succeeded=4, failed=69), (69, 73)),
        (Heard(succeeded=4, failed=4), (4, 8)),
        (Heard(succeeded=5, failed=4), (0, 0)),
        (Heard(failed=69), (0, 0)),
    ],
    ids=["most", "half", "fewer", "all: the consumer may be down"],
)
def test_a_batch_that_is_out_and_mostly_failed_is_told_as_a_mixture(
    heard: Heard, told: tuple[int, int]
) -> None:
    """With 69 of 73 letters back it said "Healthy: letters go back, about 24 a minute", in green."""
    before = a_batch(id=6, sent_at=NOW - minutes(12), heard=Heard(succeeded=4))
    batch = a_batch(size=73, sent_at=NOW - minutes(3), heard=heard)
    circuit = a_circuit(pending=(before, batch))

    seen = seen_of(circuit, Settings(), NOW, dlq=FULL)

    assert (seen.came_back, seen.of_these) == told
    assert (headline(seen).colour is Colour.GREEN) == (heard.succeeded > heard.failed)


def test_letters_that_are_back_are_no_rate() -> None:
    """It told a rate, and an hour at which all would be drained, from letters that had come back."""
    sent_at = NOW - minutes(5)
    judged = replace(a_judged(size=60, returned=50), sent_at=sent_at)
    out = a_batch(size=20, returned=14, suspects_returned=1, sent_at=sent_at)
    circuit = a_circuit(judged=(judged,), pending=(out,))

    seen = seen_of(circuit, Settings(), NOW, dlq=FULL)

    assert seen.rate_per_second == pytest.approx(15 / 300)
    assert seen.drained_by == NOW + timedelta(seconds=FULL.depth * 20)


def test_letters_that_are_all_hidden_until_their_time_are_not_drained_at_the_rate() -> None:
    """It told the hour at which all would be drained while what was left was in its backoff for longer."""
    judged = replace(a_judged(size=60, returned=50), sent_at=NOW - minutes(5))
    hidden = replace(FULL, visible=0, in_flight=FULL.depth)

    seen = seen_of(a_circuit(judged=(judged,)), Settings(), NOW, dlq=hidden)

    assert seen.rate_per_second
    assert seen.drained_by is None


def test_it_is_said_that_letters_go_one_by_one_once_that_is_known() -> None:
    assert seen_of(after("tAtA"), Settings(), NOW, dlq=FULL).fails_together
    assert not seen_of(after("tA"), Settings(), NOW, dlq=FULL).fails_together


def test_a_suspect_that_succeeds_speaks_for_the_consumer() -> None:
    batch = a_batch(size=3, suspects=3, heard=Heard(succeeded=2))

    seen = seen_of(a_circuit(pending=(batch,)), Settings(), NOW, dlq=FULL)

    assert (seen.tried, seen.succeeded, seen.failed) == (2, 2, 0)


def test_the_canary_of_a_cause_does_not_make_the_consumer_silent() -> None:
    held = CauseCircuit(cause=DECLINED.name, held_since=SINCE, canary_sent_at=SINCE, letters=9)
    canary = a_batch(size=1, suspects=1, sent_at=NOW - minutes(9))
    circuit = a_circuit(pending=(canary,), causes=(held,))

    told = headline(seen_of(circuit, Settings(), NOW, dlq=FULL))

    assert told.topic is Topic.KINDS
    assert told.waits_for == "A canary of it is out"


def test_of_queues_that_share_a_dlq_the_worst_speaks() -> None:
    told = {"a": headline(FLOWING), "b": headline(DOWN), "c": headline(SILENT)}

    assert worst(told).topic is Topic.DOWN
    assert worst(told).text.startswith("b: Consumer likely down")
    assert worst({"a": headline(FLOWING)}) == headline(FLOWING)


def test_a_headline_of_one_queue_says_how_those_are_that_share_its_dlq() -> None:
    """Its letters may all be of a neighbour that is well."""
    down, well, silent = (headline(one) for one in (DOWN, FLOWING, SILENT))

    told = [
        worst({"b": down, "a": well}).text,
        worst({"b": down, "a": silent}).text,
        worst({"b": down, "a": silent, "c": well}).text,
        worst({"b": down, "a": silent, "c": silent}).text,
    ]

    assert [one.partition("16 letters wait. ")[2] for one in told] == [
        "It shares the DLQ with a, which lets letters go.",
        "It shares the DLQ with a, which waits, too.",
        "It shares the DLQ with 2 others, of which 1 lets letters go.",
        "It shares the DLQ with 2 others, of which none let letters go.",
    ]
    unread = headline(replace(WAITING, unread="AccessDenied"))
    for others, shared in ({"a": well}, "a"), ({"a": well, "c": silent}, "2 others"):
        text = worst({"b": unread, **others}).text
        assert text.endswith(f"16 letters wait. It shares the DLQ with {shared}."), text
    paused = headline(replace(WAITING, orders=Orders(is_paused=True)))
    assert worst({"a": paused, "b": paused}) == paused


def test_a_dlq_that_is_empty_is_not_called_by_the_first_of_its_targets() -> None:
    """It said "lambda:routing: The DLQ is empty; 8 parked letters wait", of letters of other targets."""
    parked = headline(Seen(at=NOW, backlog=0, parked=8))
    alone = headline(replace(DOWN, backlog=0))

    assert worst({"lambda:routing": parked, "sns:parcels": parked}) == parked
    assert worst({"a": alone, "b": headline(Seen(at=NOW, backlog=0))}).text.startswith(
        "a: No letter"
    )


def test_of_several_targets_one_that_refuses_letters_is_named_once() -> None:
    refuses = headline(replace(DOWN, queue="lambda:billing", refusal="AccessDenied"))

    told = worst({"lambda:billing": refuses, "sqs:news": headline(FLOWING)})

    assert told.text.startswith("lambda:billing refuses letters: AccessDenied.")


@pytest.mark.parametrize("cooled_ago", [timedelta(minutes=-11), timedelta(seconds=1)])
@pytest.mark.parametrize("settings", [Settings(), None])
def test_where_passes_count_no_live_messages_none_is_promised_to_help(
    cooled_ago: timedelta, settings: Settings | None
) -> None:
    circuit = a_circuit(state=State.OPEN, cools_until=NOW - cooled_ago)

    told = headline(seen_of(circuit, settings, NOW, dlq=FULL, hears_live=False))

    assert told.topic is Topic.DOWN
    assert told.waits_for in ("Next canary at 02:41", "Next canary with the next pass")


def test_a_headline_is_no_other_one_for_what_it_counts() -> None:
    """While live messages failed, `drain` told it anew at each look."""
    more, later = replace(DOWN, backlog=90), replace(DOWN, next_canary_at=NOW + minutes(12))

    assert headline(more).is_about == headline(DOWN).is_about
    assert headline(later).is_about != headline(DOWN).is_about != headline(SILENT).is_about


def test_as_json_it_says_until_when_and_what_to_do() -> None:
    found = Headline(
        topic=Topic.SILENT,
        colour=Colour.YELLOW,
        text="Seen.",
        waits_for="Waits",
        until=NOW,
        then="Look.",
    )

    assert found.to_json(SINCE) == {
        "topic": "no outcome known",
        "colour": "yellow",
        "text": "Seen. Waits, until 02:30 at the latest.",
        "until": "2026-11-24T02:30:00Z",
        "then": "Look.",
    }


@pytest.mark.parametrize(
    ("returned", "is_strike", "told"),
    [(14, False, (14, 28)), (13, False, (0, 0)), (14, True, (0, 0)), (0, False, (0, 0))],
)
def test_a_success_of_which_half_came_back_is_told_as_a_mixture(
    returned: int, is_strike: bool, told: tuple[int, int]
) -> None:
    last = a_judged(size=28, returned=returned, is_strike=is_strike)
    circuit = a_circuit(judged=(last, a_judged(id=8, verdict=Verdict.NO_EVIDENCE)))

    seen = seen_of(circuit, Settings(), NOW, dlq=None)

    assert (seen.came_back, seen.of_these) == told


@pytest.mark.parametrize(
    ("fared", "told"),
    [
        (Fared(failed=14, succeeded=14), (14, 28)),
        (Fared(failed=13, succeeded=14), (0, 0)),
        (Fared(failed=14), (0, 0)),
    ],
)
def test_a_mixture_whose_returns_are_strikes_is_told_from_how_letters_fared(
    fared: Fared, told: tuple[int, int]
) -> None:
    """On a quiet queue each return is a strike; where live messages vouch, few letters or none succeeded."""
    circuit = a_circuit(judged=(a_judged(size=28, returned=14),), fared=fared)

    seen = seen_of(circuit, Settings(), NOW, dlq=None)

    assert (seen.came_back, seen.of_these) == told
