"""`redrive causes`: why letters are stuck, in groups, from the ledger alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from simulator.consumers import Consumer, Downstream, Reports, down_until
from simulator.sources import Source
from simulator.world import DLQ, SOURCE, hours, minutes
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.reports.outcomes import Result
from tests.oncall.desk import Desk
from tests.oncall.reported import DECLINED, declined, hold, report


def test_groups_come_by_cause_and_the_most_frequent_first(desk: Desk) -> None:
    *some, other = desk.dead_letters("a", "b", "c")
    report(desk, *(declined(one) for one in some))
    report(desk, declined(other, error_class="KeyError", first_line="'price'"))

    (told,) = desk("causes", "--json").json["queues"]

    assert "ReceiveMessage" not in desk.calls
    assert (told["queue"], told["letters"]) == (SOURCE, 3)
    groups = [
        (one["cause"], one["letters"], one["in_dlq"], one["parked"]) for one in told["groups"]
    ]
    assert groups == [(DECLINED, 2, 2, 0), ("KeyError", 1, 1, 0)]
    assert told["groups"][1]["example"] == {"original_id": other, "first_line": "'price'"}


def test_a_group_is_one_line_for_whoever_is_on_call(desk: Desk) -> None:
    desk.world.clock.advance(3 * 3600 + 12 * 60)
    (first,) = desk.dead_letters("a")
    report(desk, declined(first))
    desk.world.clock.advance(1800)
    (second,) = desk.dead_letters("b")
    report(desk, declined(second, first_line="no funds"))

    ran = desk("causes")

    assert f"\n2 letters, {DECLINED}, since 03:14\n  2 in the DLQ\n  flowing\n" in ran.out
    assert f"  such as {second}: no funds" in ran.out


def test_a_group_of_another_day_says_which(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    report(desk, declined(message_id))
    desk.world.clock.advance(86_400)

    assert f"1 letter, {DECLINED}, since 2026-01-01 00:02" in desk("causes").out


def test_a_held_cause_says_when_its_next_canary_goes(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    report(desk, declined(message_id))
    hold(desk, cools_until=desk.world.clock.now() + timedelta(minutes=4), canaries_failed=6)

    ran = desk("causes")

    assert "  held since 00:02, next canary in 4 min, 6 failed" in ran.out
    (group,) = desk("causes", "--json").json["queues"][0]["groups"]
    assert (group["state"], group["canaries_failed"]) == ("held", 6)
    assert group["next_canary_at"] == "2026-01-01T00:06:04Z"


@pytest.mark.parametrize(
    ("minutes_ago", "words"), [(None, "a canary is out"), (1, "next canary with the next pass")]
)
def test_a_held_cause_whose_letters_are_all_out_is_told_too(
    desk: Desk, minutes_ago: int | None, words: str
) -> None:
    now = desk.world.clock.now()
    hold(desk, canary_sent_at=None if minutes_ago else now, cools_until=now)

    assert f"held since 00:00, {words}" in desk("causes").out


def test_letters_that_are_parked_together_say_since_when(desk: Desk) -> None:
    report(
        desk, *(declined(one, result=Result.PERMANENT, parked_id=f"parked-{one}") for one in "ab")
    )

    (group,) = desk("causes", "--json").json["queues"][0]["groups"]

    assert (group["state"], group["parked"], group["in_dlq"]) == ("parked", 2, 0)
    assert "  2 parked\n  parked since 00:00" in desk("causes").out


def test_letters_without_a_cause_are_a_group_with_a_hint(desk: Desk) -> None:
    desk.park("a", "b")
    desk.dead_letters("c")

    ran = desk("causes")

    (group,) = desk("causes", "--json").json["queues"][0]["groups"]
    assert (group["cause"], group["in_dlq"], group["parked"]) == (None, 1, 2)
    assert group["not_in_ledger"] == 1
    assert "3 letters, no cause reported, since 00:00" in ran.out
    assert "docs/consumer.md says how consumers report why they fail." in ran.out


def test_what_the_whole_circuit_stops_does_not_flow(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    report(desk, declined(message_id))
    now = desk.world.clock.now()
    desk.store.save_circuit(
        force(new_circuit(SOURCE, desk.redriver.settings, now), State.OPEN, "x", now)
    )

    assert "  waiting with all others: consumer likely down" in desk("causes").out


def test_letters_without_a_cause_do_not_flow_either_while_the_circuit_is_open(desk: Desk) -> None:
    desk.dead_letters("a")
    now = desk.world.clock.now()
    desk.store.save_circuit(
        force(new_circuit(SOURCE, desk.redriver.settings, now), State.OPEN, "x", now)
    )

    ran = desk("causes")

    assert "  waiting with all others: consumer likely down" in ran.out
    assert "flowing" not in ran.out


def test_a_letter_that_failed_for_good_is_stuck_before_a_pass_meets_it(desk: Desk) -> None:
    now = desk.world.clock.now()
    out = desk.suspect("x").redriven(
        replaced_id="x", new_id="y", batch=1, generation=0, strikes=0, delay=timedelta(),
        now=now, note="",
    )  # fmt: skip
    waiting = replace(out, original_id="z", current_id="z2")
    desk.store.write_ledger([out, waiting], [], now)
    report(desk, declined("y", original_id="x", batch=1, generation=0))

    (told,) = desk("causes", "--json").json["queues"]

    assert [(one["cause"], one["letters"]) for one in told["groups"]] == [(DECLINED, 1)]
    assert "The ledger knows 1 letter of the DLQ, which holds 0" in desk("causes").out


def test_where_queues_share_a_dlq_each_has_groups_of_its_own() -> None:
    desk = Desk(neighbours=[Source(name="refunds")])
    report(desk, declined("a"), declined("b", queue="refunds"))

    ran = desk("causes")

    assert ran.out.count(f"1 letter, {DECLINED}") == 2
    assert "1 in the DLQ, of refunds" in ran.out


def test_an_outage_of_what_some_letters_need_is_told_while_it_lasts_and_no_longer() -> None:
    """The whole way: the kit reports, passes hear and hold, and every letter of the DLQ is accounted for."""
    down = Downstream(health=down_until(hours(1)), share=0.3)
    desk = Desk(consumer=Consumer(reports=Reports(), downstream=down))
    desk.world.dead_letters(300)

    desk.world.run(desk.redriver, until=minutes(10))
    during, status = desk("causes", "--json").json["queues"][0], desk("status").out
    depth = desk.world.depth(DLQ)
    desk.world.run(desk.redriver, until=hours(3))
    after = desk("causes", "--json").json["queues"][0]

    (group,) = during["groups"]
    said = "PaymentDeclined: the payment provider does not answer"
    assert (group["cause"], group["state"]) == (said, "held")
    assert group["letters"] == depth > 50
    assert group["example"]["first_line"] == "the payment provider does not answer"
    assert f'Causes:      "{said}" held since 00:05, ' in status
    assert after["groups"] == []


def test_nothing_stuck_is_said_so(desk: Desk) -> None:
    assert "No letter is stuck" in desk("causes").out


def test_what_a_consumer_says_is_neither_markup_nor_a_command_to_the_terminal(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    report(desk, declined(message_id, error_class="[red]Bad", first_line="[bold]x[/] \u009b2J"))

    ran = desk("causes")

    assert "1 letter, [red]Bad, since" in ran.out
    assert "[bold]x[/]" in ran.out
    assert "\u009b" not in ran.out


def test_many_causes_are_cut_and_none_is_left_out_of_json(desk: Desk) -> None:
    report(desk, *(declined(f"m{n}", error_class=f"E{n}") for n in range(23)))

    ran = desk("causes")

    assert "... and 3 more: --json has them all." in ran.out
    assert len(desk("causes", "--json").json["queues"][0]["groups"]) == 23
