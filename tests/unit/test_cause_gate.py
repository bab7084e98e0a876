"""Which letters of a held cause go in a pass: one canary, and the others wait without strikes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.causes import FORGOTTEN_AFTER, LOOK_AGAIN, CauseCircuit
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.permit import Permit, cause_cool_down
from smart_redriver.engine.triage.admission import Admission
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.cause_gate import CauseGate
from smart_redriver.engine.triage.decision import (
    CAUSE_CANARY,
    Decision,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Redrive,
)
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.unit.examples import NOW, a_circuit, a_letter, ago, ahead, an_entry
from tests.unit.situations import EXPIRING, TERMS, TIME_TO_FAIL

SETTINGS = Settings(max_rate=0)
WINDOW = Permit(limit=1_000, reason="window")
TRIAL = Permit(limit=1, reason="a canary", is_canary=True)
ROLL = 0.5
SENT = 40  # the batch of the pass


def a_cause(cause: str = "Declined", **changes: Any) -> CauseCircuit:
    """A cause that has been held for an hour, and may have a canary now."""
    usual: dict[str, Any] = {
        "cause": cause,
        "held_since": ago(hours=1),
        "cools_until": NOW,
        "seen_at": ago(minutes=1),
    }
    return CauseCircuit(**usual | changes)


def a_letter_of(cause: str | None, name: str, *, redrives: int = 0, **letter: Any) -> Case:
    """A letter that failed long enough ago of this cause."""
    entry: Entry = an_entry(
        original_id=name,
        current_id=name,
        replaced_ids=(),
        status=Status.RETURNED if redrives else Status.FAILED,
        batch=None,
        redrive_count=redrives,
        cause=cause,
    )
    return Case(
        letter=a_letter(**{"message_id": name, "first_received_at": ago(hours=2)} | letter),
        entry=entry,
    )


#: A letter that died before that has its last chance when a canary of now fails.
PATIENT = timedelta(seconds=SETTINGS.last_chance_seconds)
LONG_DEAD: dict[str, Any] = {"first_received_at": NOW - 2 * PATIENT}


def letters(count: int, cause: str = "Declined", **changes: Any) -> list[Case]:
    return [a_letter_of(cause, f"{cause}-{n}", **changes) for n in range(count)]


class Pass:
    """One pass over letters in hand: what is decided, and the circuits by cause that it leaves."""

    def __init__(
        self,
        cases: list[Case],
        *causes: CauseCircuit,
        permit: Permit = WINDOW,
        now: datetime = NOW,
        settings: Settings = SETTINGS,
    ) -> None:
        circuit: Circuit = a_circuit(causes=causes)
        gate = CauseGate(circuit, settings, ROLL)
        admission = Admission(circuit, permit, settings, now, gate, awaits_suspects=False)
        decided = admission.decide(cases, [0.0] * len(cases), circuit, TERMS, now)
        self.decisions: dict[str, Decision] = {case.message_id: what for case, what in decided}
        assert len(self.decisions) == len(decided), "a letter has two decisions"
        self.left = {one.cause: one for one in gate.circuits(SENT, now)}

    @property
    def went(self) -> list[str]:
        return [name for name, what in self.decisions.items() if isinstance(what, Redrive)]

    @property
    def canaries(self) -> list[str]:
        return [name for name in self.went if self.decisions[name].reason == CAUSE_CANARY]

    @property
    def held(self) -> list[str]:
        return [
            name
            for name, what in self.decisions.items()
            if isinstance(what, Hold) and what.reason is HoldReason.CAUSE
        ]

    @property
    def parked(self) -> list[str]:
        return [name for name, what in self.decisions.items() if isinstance(what, Park)]


def test_of_a_held_cause_one_goes_and_the_others_wait_beside_letters_of_no_cause() -> None:
    others = [*letters(3, "Timeout"), a_letter_of(None, "plain")]

    one = Pass(letters(5) + others, a_cause())

    assert one.canaries == ["Declined-0"]
    assert len(one.held) == 4
    assert sorted(one.went) == ["Declined-0", "Timeout-0", "Timeout-1", "Timeout-2", "plain"]


def test_the_canary_is_known_by_its_id_and_batch() -> None:
    left = Pass(letters(5), a_cause()).left["Declined"]

    assert (left.canary_id, left.canary_batch, left.canary_sent_at) == ("Declined-0", SENT, NOW)
    assert (left.letters, left.seen_at) == (5, NOW)


@pytest.mark.parametrize(("cools_until", "counted"), [(ahead(minutes=2), 9), (NOW, 1), (None, 1)])
def test_while_its_letters_are_hidden_a_pass_that_meets_one_does_not_count_it_as_all(
    cools_until: datetime | None, counted: int
) -> None:
    """People were told that one of ten waits, while a pass had met the canary alone that was back."""
    left = Pass(letters(1), a_cause(letters=9, cools_until=cools_until)).left["Declined"]

    assert left.letters == counted


def test_the_canary_is_the_least_tried() -> None:
    tried = letters(2, redrives=3)
    cases = [*tried, a_letter_of("Declined", "fresh", redrives=1)]

    assert Pass(cases, a_cause()).canaries == ["fresh"]


def test_of_those_tried_as_often_the_canary_is_the_one_that_failed_last() -> None:
    later = a_letter_of("Declined", "later", first_received_at=ago(minutes=90))

    assert Pass([*letters(2), later, *letters(2, "Timeout")], a_cause()).canaries == ["later"]


def test_each_held_cause_has_a_canary_of_its_own() -> None:
    one = Pass(letters(3) + letters(3, "Timeout"), a_cause(), a_cause("Timeout"))

    assert sorted(one.canaries) == ["Declined-0", "Timeout-0"]
    assert sorted(one.went) == sorted(one.canaries)


@pytest.mark.parametrize(
    "waits",
    [
        a_cause(cools_until=NOW + timedelta(minutes=7)),
        a_cause(canary_id="out", canary_batch=30, canary_sent_at=ago(seconds=10)),
    ],
    ids=["cooling down", "a canary out"],
)
def test_no_second_canary_goes(waits: CauseCircuit) -> None:
    one = Pass(letters(3), waits)

    assert one.went == []
    assert len(one.held) == 3


def test_who_waits_is_hidden_until_the_next_canary_may_go() -> None:
    cools_until = NOW + timedelta(minutes=7)

    cooling = Pass(letters(1), a_cause(cools_until=cools_until)).decisions["Declined-0"]
    beside = Pass(letters(2), a_cause()).decisions["Declined-1"]

    assert isinstance(cooling, Hold)
    assert isinstance(beside, Hold)
    assert (cooling.until, beside.until) == (cools_until, NOW + LOOK_AGAIN)


def test_a_letter_that_could_expire_while_its_cause_is_held_is_parked() -> None:
    one = Pass(letters(1, sent_at=EXPIRING), a_cause(cools_until=NOW + timedelta(minutes=7)))

    assert one.decisions["Declined-0"] == Park(reason=ParkReason.EXPIRING, strikes=0)


def test_a_trial_goes_with_a_letter_of_another_kind_where_there_is_one() -> None:
    cases = [*letters(3), a_letter_of(None, "plain", redrives=9)]

    assert Pass(cases, a_cause(), permit=TRIAL).went == ["plain"]


def test_a_trial_goes_with_a_letter_of_a_held_cause_where_there_is_no_other() -> None:
    assert Pass(letters(3), a_cause(), permit=TRIAL).canaries == ["Declined-0"]


def test_letters_of_a_cause_that_is_counted_and_not_held_go_and_none_is_a_canary() -> None:
    flows = CauseCircuit(cause="Declined", failed=2, counted_at=NOW)

    one = Pass(letters(3), flows)

    assert len(one.went) == 3
    assert one.left["Declined"].canary_id is None


# A canary that is back.


def canary_back(cause: str | None = "Declined", first_redrive: datetime | None = None) -> Case:
    """The canary of batch 30 in the DLQ again."""
    back = a_letter_of(cause, "canary")
    assert back.entry is not None
    return replace(back, entry=replace(back.entry, batch=30, first_redrive=first_redrive))


OUT = a_cause(canary_id="canary", canary_batch=30, canary_sent_at=ago(minutes=3), canaries_failed=2)


def test_a_canary_that_failed_of_its_cause_doubles_the_cool_down() -> None:
    left = Pass([canary_back()], OUT).left["Declined"]

    assert (left.canaries_failed, left.canary_id) == (3, None)
    assert left.cools_until == NOW + cause_cool_down(4, SETTINGS, ROLL)


@pytest.mark.parametrize("cause", ["Timeout", None])
def test_a_canary_that_failed_of_something_else_says_nothing(cause: str | None) -> None:
    left = Pass([canary_back(cause)], OUT).left["Declined"]

    assert (left.canaries_failed, left.cools_until, left.canary_id) == (2, NOW, None)


def test_a_letter_that_was_the_canary_of_an_earlier_batch_is_none() -> None:
    left = Pass([canary_back()], replace(OUT, canary_batch=29)).left["Declined"]

    assert left.canaries_failed == 2
    assert left.canary_id == "canary"


# The end of a cause that never heals.

LAST = replace(
    OUT,
    held_since=ago(minutes=3) - PATIENT,
    canaries_failed=SETTINGS.max_attempts - 1,
)


def test_a_cause_whose_last_canary_failed_is_parked_as_a_whole() -> None:
    one = Pass([canary_back(first_redrive=ago(days=1)), *letters(20, **LONG_DEAD)], LAST)

    assert len(one.parked) == 21
    assert {what.reason for what in one.decisions.values()} == {ParkReason.MAX_ATTEMPTS}
    assert one.left["Declined"].convicted_at == LAST.canary_sent_at


def test_of_a_cause_that_is_parked_as_a_whole_no_letter_is_left() -> None:
    cases = [canary_back(first_redrive=ago(days=1)), *letters(20, **LONG_DEAD)]
    left = Pass(cases, replace(LAST, letters=21)).left["Declined"]

    assert (left.letters, left.is_held, left.holds_letters) == (0, True, False)


@pytest.mark.parametrize(
    ("known", "cools_until", "stay", "left"),
    [
        (1, ahead(minutes=2), 0, 0),
        (9, ahead(minutes=2), 0, 8),
        (9, ahead(minutes=2), 3, 8),
        (9, NOW, 3, 3),
        (9, NOW, 0, 0),
    ],
)
def test_a_letter_that_is_parked_waits_for_no_canary(
    known: int, cools_until: datetime, stay: int, left: int
) -> None:
    held = a_cause(letters=known, cools_until=cools_until)
    hopeless = a_letter_of("Declined", "hopeless")
    assert hopeless.entry is not None
    hopeless = replace(hopeless, entry=replace(hopeless.entry, is_permanent=True))

    one = Pass([hopeless, *letters(stay)], held)

    assert one.parked == ["hopeless"]
    assert one.left["Declined"].letters == left
    assert one.left["Declined"].holds_letters is (left > 0)


def test_a_cause_of_which_none_was_left_holds_the_next_letter_that_fails_of_it() -> None:
    left = Pass(letters(2), a_cause(is_empty=True, cools_until=ahead(minutes=2))).left["Declined"]

    assert (left.letters, left.holds_letters) == (2, True)


@pytest.mark.parametrize(
    "earlier",
    [
        replace(LAST, canaries_failed=SETTINGS.max_attempts - 2),
        replace(LAST, held_since=ago(minutes=2) - PATIENT),
    ],
    ids=["too few canaries", "too early"],
)
def test_nobody_is_parked_before_that(earlier: CauseCircuit) -> None:
    assert Pass([canary_back(), *letters(20, **LONG_DEAD)], earlier).parked == []


def test_letters_have_a_last_chance_of_their_own_each() -> None:
    """Hundreds of letters were parked that had died minutes before the canary that convicted their cause."""
    convicted = a_cause(convicted_at=ago(hours=1))
    begin = ago(hours=1) - PATIENT - TIME_TO_FAIL
    second = timedelta(seconds=1)

    later = [
        a_letter_of("Declined", f"later-{n}", first_received_at=begin + second) for n in range(3)
    ]
    just_then = a_letter_of("Declined", "just then", first_received_at=begin)
    one = Pass([*letters(2, **LONG_DEAD), just_then, *later], convicted)

    assert one.parked == ["Declined-0", "Declined-1", "just then"]
    assert one.canaries == ["later-0"]


@pytest.mark.parametrize(("too_late", "parked"), [(0, ["canary"]), (1, [])])
def test_of_a_letter_that_was_redriven_the_first_redrive_counts(
    too_late: int, parked: list[str]
) -> None:
    assert LAST.canary_sent_at is not None
    first = LAST.canary_sent_at - PATIENT + timedelta(seconds=too_late)

    assert Pass([canary_back(first_redrive=first)], LAST).parked == parked


def test_letters_of_other_causes_are_not_parked_with_it() -> None:
    canary = canary_back(first_redrive=ago(days=1))
    one = Pass([canary, *letters(2, "Timeout"), a_letter_of(None, "plain")], LAST)

    assert one.parked == ["canary"]


def test_a_held_cause_of_which_no_letter_is_left_is_forgotten_after_a_day() -> None:
    gone = a_cause(seen_at=NOW - FORGOTTEN_AFTER - timedelta(seconds=1))

    assert Pass([a_letter_of(None, "plain")], gone).left == {}
    assert Pass(letters(1), replace(gone, seen_at=NOW)).left != {}
