"""The record of order sees what a redrive may have done to it: else to be in order in it would prove nothing."""

from __future__ import annotations

from datetime import timedelta

from simulator.order import OrderRecord, Overtaking

SENT = ("1", "2", "3", "4")


def recorded(*tries: str, died: str = "", group: str = "a") -> OrderRecord:
    """Four messages of one group; each try a minute after the one before, a `-` behind it when it failed."""
    order = OrderRecord()
    order.sent[group] = list(SENT)
    order.died_at = dict.fromkeys(died, timedelta())
    for number, told in enumerate(tries):
        at = timedelta(minutes=number)
        one = order.tried(group, told.rstrip("-"), at)
        one.done_at = None if told.endswith("-") else at
    return order


def overtaken(order: OrderRecord, among: str = "1234") -> list[tuple[str, str]]:
    return [(one.body, one.overtaken) for one in order.overtakings(set(among))]


def tried_past(order: OrderRecord, among: str = "1234") -> list[tuple[str, str]]:
    return [(one.body, one.overtaken) for one in order.tried_past(set(among))]


def test_messages_in_their_order_overtake_nobody() -> None:
    order = recorded("1-", "1", "2", "3-", "3", "4", died="1234")
    assert order.done("a") == ["1", "2", "3", "4"]
    assert overtaken(order) == tried_past(order) == []


def test_a_message_that_succeeds_before_an_earlier_one_overtakes_it() -> None:
    order = recorded("2", "1", "4", "3")
    assert order.overtakings(SENT) == [
        Overtaking(group="a", body="2", overtaken="1"),
        Overtaking(group="a", body="4", overtaken="3"),
    ]


def test_only_the_messages_in_question_count() -> None:
    """A letter that was overtaken by messages that never were letters: that can't be helped."""
    order = recorded("3", "4", "1", "2")
    assert overtaken(order, among="12") == []
    assert overtaken(order, among="123") == [("3", "1"), ("3", "2")]


def test_what_never_succeeds_is_not_overtaken() -> None:
    order = recorded("1-", "2", "3", "4", died="1234")
    assert overtaken(order) == tried_past(order) == []


def test_the_first_success_counts() -> None:
    order = recorded("1", "2", "1", "3", "4")
    assert overtaken(order) == []


def test_a_letter_that_is_only_tried_too_early_is_told_by_the_stricter_measure() -> None:
    order = recorded("1-", "2-", "1", "2", died="12")
    assert overtaken(order) == []
    assert tried_past(order) == [("2", "1")]


def test_tries_before_a_message_became_a_letter_are_not_the_redrivers() -> None:
    order = recorded("1-", "2-", "1", "2", died="12")
    order.died_at["2"] = timedelta(minutes=1, seconds=1)
    assert tried_past(order) == []


def test_of_many_that_are_overtaken_the_last_one_is_told() -> None:
    order = recorded("4-", "2", "1", "3", "4", died="1234")
    assert tried_past(order) == [("4", "3"), ("2", "1")]


def test_what_succeeds_again_within_the_window_is_a_repeat() -> None:
    order = recorded("1", "2", "1", "3", "1")
    assert order.repeats(timedelta(minutes=3)) == ["1", "1"]
    assert order.repeats(timedelta(minutes=2)) == []  # when the window has passed


def test_groups_have_nothing_to_do_with_each_other() -> None:
    order = recorded("1", "2")
    order.sent["b"] = ["5"]
    order.tried("b", "5", timedelta()).done_at = timedelta()
    assert order.done("b") == ["5"]
    assert overtaken(order, among="125") == []
