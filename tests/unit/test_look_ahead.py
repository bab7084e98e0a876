"""How much of a group an answer shows, and how many go of letters that would come back out of sight."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from smart_redriver.engine.aws.state_table import Known
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.fifo_counts import BatchCounts
from smart_redriver.engine.model.permit import REPORTS_EXPECTED
from smart_redriver.engine.passes.read import read_letters
from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.decision import Redrive
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.engine.triage.ordered import LookAhead, is_out_of_sight
from tests.unit.examples import NOW, a_circuit, a_letter, an_entry
from tests.unit.situations import redrive


def batch_counts(unseen: int, *, suspects: int = 0, **known: Any) -> BatchCounts:
    at = NOW - timedelta(minutes=5)
    return BatchCounts(
        batch=7,
        sent_at=at,
        sent_by=at,
        due_at=NOW + timedelta(minutes=1),
        size=unseen,
        unseen=unseen,
        suspects=suspects,
        **known,
    )


def after(*counted_batches: BatchCounts, **changes: Any) -> Circuit:
    return a_circuit(counted_batches=counted_batches, **changes)


def due(
    *names: str, view: GroupView = GroupView.FULL, strikes: int = 0
) -> list[tuple[Case, Redrive]]:
    return [
        (Case(letter=a_letter(message_id=name), group_view=view), redrive(strikes=strikes))
        for name in names
    ]


def going(circuit: Circuit, letters: list[tuple[Case, Redrive]]) -> list[str]:
    some, waiting = LookAhead(circuit, NOW).let_through(letters)
    assert len(some) + len(waiting) == len(letters)
    return [case.message_id for case, _ in some]


GOOD = batch_counts(1, succeeded=1)


@pytest.mark.parametrize(
    ("groups", "views"),
    [
        ("aab", "a WHOLE, b WHOLE"),
        ("aba", "a WHOLE, b WHOLE"),
        ("aaaaaaabbb", "a WHOLE, b CUT"),
        ("aaaaaaaaaa", "a FULL"),
        # SQS fills an answer from one group first: this is of a queue that does not.
        ("abcabcabca", "a CUT, b CUT, c CUT"),
        ("abbbbbbbba", "a CUT, b CUT"),
    ],
)
def test_a_full_answer_may_have_cut_off_its_last_group_and_any_if_it_is_mixed(
    groups: str, views: str
) -> None:
    letters = [
        a_letter(message_id=str(place), group_id=group) for place, group in enumerate(groups)
    ]
    queue: Any = SimpleNamespace(is_fifo=True, receive=lambda _, hidden_for: letters)
    ledger: Any = SimpleNamespace(read_ledger=lambda _: Known())

    read = read_letters(queue, ledger, len(groups), hidden_for=timedelta(minutes=5))

    seen = {one.letter.group_id: one.group_view.value for one in read.cases}
    assert ", ".join(f"{group} {view}" for group, view in sorted(seen.items())) == views


def test_the_first_of_them_goes_alone_and_others_go_as_they_come() -> None:
    letters = [*due("a", "b"), *due("seen", "seen too", view=GroupView.WHOLE)]

    assert going(after(), letters) == ["a", "seen", "seen too"]


def test_four_times_as_many_go_as_were_accounted_for() -> None:
    assert going(after(GOOD), due(*"abcdef")) == list("abcd")


def test_those_that_are_out_take_the_places_of_others() -> None:
    assert going(after(GOOD, batch_counts(3)), due(*"abc")) == ["a"]


def test_where_the_consumer_reports_all_go() -> None:
    assert going(after(batch_counts(3), heard_at=NOW - timedelta(hours=1)), due(*"abc")) == list(
        "abc"
    )


def test_a_consumer_that_has_not_reported_for_a_day_is_not_expected_to() -> None:
    last = NOW - REPORTS_EXPECTED

    assert going(after(batch_counts(3), heard_at=last), due(*"abc")) == list("abc")
    assert going(after(batch_counts(3), heard_at=last - timedelta(seconds=1)), due(*"abc")) == []


def test_suspects_go_by_themselves_when_nothing_is_out() -> None:
    letters = [*due("a", "b"), *due("s", "t", strikes=2), *due("seen", view=GroupView.WHOLE)]

    assert going(after(GOOD), letters) == ["s", "t", "seen"]


def test_others_wait_for_a_suspect_until_nothing_is_out() -> None:
    assert going(after(GOOD, batch_counts(1)), [*due("a"), *due("suspect", strikes=2)]) == []


def test_after_a_suspect_it_is_the_others_turn() -> None:
    was_suspect = batch_counts(1, suspects=1, succeeded=1)

    assert going(after(was_suspect), [*due("a"), *due("suspect", strikes=2)]) == ["a"]
    assert going(after(was_suspect), due("suspect", strikes=2)) == ["suspect"]


def test_the_rounds_of_a_pass_share_what_may_go() -> None:
    look_ahead = LookAhead(after(GOOD), NOW)

    first, _ = look_ahead.let_through(due(*"abc"))
    second, waiting = look_ahead.let_through([*due("d", "e"), *due("suspect", strikes=1)])

    assert len(first) == 3
    assert second == []
    assert len(waiting) == 3


def test_after_a_suspect_nobody_out_of_sight_follows_in_its_pass() -> None:
    look_ahead = LookAhead(after(GOOD), NOW)

    first, _ = look_ahead.let_through(due("suspect", strikes=1))
    second, waiting = look_ahead.let_through(due(*"abc"))

    assert (len(first), len(second), len(waiting)) == (1, 0, 3)


def test_what_an_answer_cut_off_is_in_sight_unless_it_was_not_for_long() -> None:
    entry = an_entry(status=Status.REDRIVEN, kept_id="m1")
    letter = a_letter(message_id="m1")

    assert not is_out_of_sight(Case(letter=letter, group_view=GroupView.CUT))
    assert is_out_of_sight(Case(letter=letter, group_view=GroupView.CUT, entry=entry))
    assert not is_out_of_sight(Case(letter=letter, group_view=GroupView.WHOLE, entry=entry))
