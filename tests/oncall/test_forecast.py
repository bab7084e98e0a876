"""What is expected of a replay, one letter sent first, and what became of letters that went."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from simulator.consumers import Consumer
from simulator.world import PARKING_LOT, SOURCE
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.headline import Passes, Seen
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.batch import Heard, Verdict
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.model.circuit import Orders
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.status.outlook import Basis, became_of, forecast
from tests.oncall.desk import Desk
from tests.oncall.ran import Ran
from tests.oncall.test_headline import DECLINED, DOWN, FLOWING, NOW, WAITING, minutes
from tests.unit.examples import a_batch, a_judged

CIRCUIT = breaker.new_circuit(SOURCE, Settings(), NOW)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (DOWN, "Expected: they fail again, as long as this holds: consumer likely down."),
        (
            replace(DOWN, queue=SOURCE, refusal="AccessDenied"),
            "Expected: they are refused again, unless that was mended: AccessDenied.",
        ),
        (FLOWING, "Expected: they succeed, as did letters sent 2 min ago."),
        (WAITING, "Expected: not known. No letter is known to have succeeded."),
        (
            replace(WAITING, succeeded_at=NOW - timedelta(hours=3)),
            "Expected: not known. The last that are known to have succeeded are letters sent 3 h ago.",
        ),
    ],
)
def test_a_plan_says_what_to_expect(seen: Seen, expected: str) -> None:
    assert list(forecast({SOURCE: seen}, [CIRCUIT], Basis())) == [expected]


@pytest.mark.parametrize(
    "kept",
    [
        replace(DOWN, passes=Passes.NO_PROCESS),
        replace(DOWN, orders=Orders(is_paused=True)),
        replace(DOWN, mode=Mode.PAUSED),
    ],
)
def test_what_keeps_passes_from_acting_hides_no_consumer_that_is_down(kept: Seen) -> None:
    """It said that nothing is known of a paused queue."""
    [told] = forecast({SOURCE: kept}, [CIRCUIT], Basis())

    assert told == "Expected: they fail again, as long as this holds: consumer likely down."


def plans_before_and_after_letters_come_back(desk: Desk) -> tuple[Ran, Ran]:
    """Plans of a replay of the whole DLQ, a minute after others succeeded and when all letters have failed again."""
    succeeded = a_judged(verdict=Verdict.SUCCESS, sent_at=desk.world.clock.now(), size=3)
    circuit = breaker.new_circuit(SOURCE, Settings(), desk.world.clock.now())
    desk.store.save_circuit(replace(circuit, judged=(succeeded,)))
    desk.world.clock.advance(60)
    plan = ("replay", "--all", "--from-dlq", "--dry-run")
    first = desk(*plan)
    desk("replay", "--all", "--from-dlq", "--yes")
    desk.world.clock.advance(60)
    desk.fail_again()
    return first, desk(*plan)


def test_no_success_is_promised_to_letters_that_came_back_since(desk: Desk) -> None:
    """A circuit knows nothing of letters that a person sent: all had failed, and the plan promised success."""
    desk.dead_letters("a")

    first, again = plans_before_and_after_letters_come_back(desk)

    assert "Expected: they succeed, as did letters sent 1 min ago." in first.said
    assert "Expected: not known. Letters sent " in again.said
    assert " succeeded, but 1 of these was sent since, " in again.said


def test_a_plan_for_a_whole_dlq_says_on_how_many_letters_it_rests(desk: Desk) -> None:
    desk.dead_letters(*"abcdef")

    first, again = plans_before_and_after_letters_come_back(desk)

    assert "as did letters sent 1 min ago. This rests on 3 of these letters." in first.said
    assert " succeeded, but 3 of the 3 looked at were sent since, the last " in again.said


@pytest.mark.parametrize(
    ("sent_at", "expected"),
    [
        (
            NOW - minutes(1),
            "Expected: not known. Letters sent 2 min ago succeeded, but 1 of these was sent since, 1 min ago, and came "
            "back.",
        ),
        (NOW - minutes(3), "Expected: they succeed, as did letters sent 2 min ago."),
    ],
)
def test_letters_that_came_back_before_others_succeeded_may_succeed(
    sent_at: datetime, expected: str
) -> None:
    assert list(forecast({SOURCE: FLOWING}, [CIRCUIT], Basis(came_back={SOURCE: [sent_at]}))) == [
        expected
    ]


def test_letters_of_a_cause_that_is_down_are_expected_to_fail() -> None:
    seen = replace(FLOWING, kinds_down=(DECLINED,))

    told = list(forecast({SOURCE: seen}, [CIRCUIT], Basis(groups={DECLINED.name: 12, "other": 3})))

    assert told == [
        "Expected of the others: they succeed, as did letters sent 2 min ago.",
        "Expected: the 12 letters of PaymentDeclined fail again, as that is down since 01:12.",
    ]


def test_where_all_are_of_a_cause_that_is_down_none_is_expected_to_succeed() -> None:
    seen = replace(FLOWING, kinds_down=(DECLINED,))

    told = list(forecast({SOURCE: seen}, [CIRCUIT], Basis(groups={DECLINED.name: 1})))

    assert told == [
        "Expected: the 1 letter of PaymentDeclined fails again, as that is down since 01:12."
    ]


def test_letters_of_a_cause_that_is_held_are_expected_to_fail_after_the_last_was_parked() -> None:
    """Others that had succeeded, or one that somebody edited, let it expect that these succeed, too."""
    held = CauseCircuit(cause="KeyError", held_since=NOW - minutes(90), is_empty=True)
    circuit = replace(CIRCUIT, causes=(held,))

    parked = list(forecast({SOURCE: FLOWING}, [circuit], Basis(groups={"KeyError": 3, "other": 1})))
    dead = list(forecast({SOURCE: FLOWING}, [circuit], Basis()))

    assert parked == [
        "Expected of the others: they succeed, as did letters sent 2 min ago.",
        "Expected: the 3 letters of KeyError fail again, unless that was mended: "
        "no canary of it has succeeded since 01:00.",
    ]
    assert dead == ["Expected: they succeed, as did letters sent 2 min ago."]


@pytest.mark.parametrize(
    ("backlog", "others"), [(212, []), (300, ["Expected of the others: they succeed, "])]
)
def test_of_a_whole_dlq_the_letters_count_that_passes_saw(backlog: int, others: list[str]) -> None:
    """With all letters of a cause that is down, it expected them to succeed."""
    seen = replace(FLOWING, backlog=backlog, kinds_down=(DECLINED,))

    told = list(forecast({SOURCE: seen}, [CIRCUIT], Basis()))

    assert told[-1] == (
        "Expected: the 212 letters of PaymentDeclined fail again, as that is down since 01:12."
    )
    assert [one[: len(other)] for one, other in zip(told[:-1], others, strict=True)] == others


def test_it_says_when_a_cause_last_succeeded() -> None:
    cause = CauseCircuit(cause="KeyError", succeeded=4, counted_at=NOW - minutes(20))
    circuit = replace(CIRCUIT, causes=(cause,))

    told = list(forecast({SOURCE: FLOWING}, [circuit], Basis(groups={"KeyError": 1})))

    assert told[1:] == [
        "Letters of KeyError that succeeded after they had failed: 4, counted 20 min ago."
    ]
    assert len(list(forecast({SOURCE: FLOWING}, [circuit], Basis(groups={"other": 1})))) == 1


def test_of_what_was_sent_it_says_what_became() -> None:
    judged = a_judged(sent_at=NOW, size=10, returned=2)
    before = replace(judged, sent_at=NOW - minutes(9), size=100)
    pending = a_batch(sent_at=NOW, size=5, heard=Heard(succeeded=1))
    circuit = replace(CIRCUIT, judged=(before, judged), pending=(pending,))

    assert became_of([circuit], NOW) == (
        "15 letters sent back: 9 succeeded, 2 failed again, of 4 nothing is known yet."
    )
    assert became_of([CIRCUIT], NOW) == ""


def test_one_is_sent_first_and_the_others_stay(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay was all or nothing."""
    ids = desk.park("a", "b", "c")
    told: list[str] = []

    def succeed(seconds: float) -> None:
        """As a pass that reads the consumer's report of it would write."""
        desk.world.clock.advance(seconds)
        (sent,) = (one for one in map(desk.entry, ids) if one.status is Status.REPLAYED)
        told.append(sent.original_id)
        done = replace(sent, status=Status.SUCCEEDED)
        desk.store.write_ledger([done], [], desk.world.clock.now())

    monkeypatch.setattr(desk, "sleep", succeed)
    ran = desk("replay", "--all", answer="one")

    assert "Type yes to go on, one to try one first:" in ran.err
    assert "1 letter: succeeded." in ran.out
    assert "2 letters of the plan stay where they are." in ran.out
    assert ran.code == 0
    assert len(told) == 1
    assert len(desk.bodies(PARKING_LOT)) == 2


def test_following_ends_where_nothing_becomes_known(desk: Desk) -> None:
    desk.park("a")
    began = desk.world.clock.now()

    ran = desk("replay", "--all", "--follow", "--yes")

    assert "1 letter: nothing is known yet" in ran.out
    assert desk.world.clock.now() - began < minutes(6)
    assert ran.code == 0


def test_a_drain_says_what_became_of_what_it_sent() -> None:
    """It said only that letters were sent."""
    desk = Desk(consumer=Consumer())
    desk.is_consumer_up = True
    desk.dead_letters(*(f"letter {number}" for number in range(5)))

    ran = desk("drain", "--yes")

    assert "letters sent back: " in ran.out
