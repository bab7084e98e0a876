"""What a letter waits for, and until when at the latest."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from simulator.world import SOURCE
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.headline import KindDown, Seen
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Orders
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.status.waiting import Wait, Waits
from tests.oncall.desk import Desk
from tests.oncall.test_headline import DECLINED, DOWN, FLOWING, NOW, SILENT, minutes
from tests.unit.examples import a_batch, a_judged

ENTRY = Entry(
    original_id="id", queue=SOURCE, first_seen=NOW, status=Status.RETURNED, current_id="id"
)
SOON, LATER = NOW + minutes(20), NOW + timedelta(hours=3)
SUSPECT = replace(
    ENTRY, strikes=4, first_strike=NOW - timedelta(hours=3), not_before=NOW + timedelta(hours=3)
)
BACKING_OFF = replace(ENTRY, strikes=1, not_before=SOON)
CIRCUIT = replace(
    breaker.new_circuit(SOURCE, Settings(), NOW),
    pending=(a_batch(id=33, due_at=SOON), a_batch(id=34, due_at=LATER)),
    judged=(a_judged(id=11),),
)


def waits(entry: Entry | None, seen: Seen, *more: Seen) -> Wait | None:
    by_source = {SOURCE: seen} | {f"more {n}": one for n, one in enumerate(more)}
    return Waits(by_source, {SOURCE: CIRCUIT}, Settings()).letter(entry)


@pytest.mark.parametrize(
    ("entry", "seen", "what", "until"),
    [
        (ENTRY, DOWN, "the next canary, or a live message", DOWN.next_canary_at),
        (None, DOWN, "the next canary, or a live message", DOWN.next_canary_at),
        (ENTRY, SILENT, "the outcome of the letters that are out", SILENT.out_until),
        (replace(ENTRY, status=Status.FAILED), FLOWING, "its turn", None),
        (ENTRY, replace(FLOWING, drained_by=LATER), "its turn", LATER),
        (BACKING_OFF, FLOWING, "its backoff", SOON),
        (SUSPECT, FLOWING, "its last chance", SUSPECT.not_before),
        # What keeps it longest is told.
        (BACKING_OFF, DOWN, "its backoff", SOON),
        (replace(ENTRY, not_before=NOW + minutes(5)), DOWN, "the next canary", DOWN.next_canary_at),
        (replace(BACKING_OFF, not_before=NOW), FLOWING, "its turn", None),
        (
            replace(ENTRY, cause=DECLINED.name),
            replace(FLOWING, kinds_down=(DECLINED, KindDown(name="x", letters=1))),
            "a canary of its cause",
            DECLINED.next_canary_at,
        ),
        (
            ENTRY,
            replace(FLOWING, orders=Orders(is_paused=True, paused_until=LATER)),
            "the end of the pause",
            LATER,
        ),
        (replace(ENTRY, status=Status.PARKED), DOWN, "a person's decision", None),
        # The deadline of its own batch counts, not that of the last one.
        (replace(ENTRY, status=Status.REDRIVEN, batch=33), SILENT, "its outcome", SOON),
        (replace(ENTRY, status=Status.REDRIVEN, batch=34), SILENT, "its outcome", LATER),
        (
            replace(ENTRY, status=Status.REDRIVEN, batch=11),
            SILENT,
            "its return, if it failed: batch 11 is judged",
            None,
        ),
        (replace(ENTRY, status=Status.REDRIVEN, batch=5), SILENT, "its outcome", None),
    ],
)
def test_a_letter_says_what_it_waits_for_and_until_when(
    entry: Entry | None, seen: Seen, what: str, until: object
) -> None:
    """Lists showed letters without a reason to wait."""
    wait = waits(entry, seen)

    assert wait is not None
    assert wait.what.startswith(what)
    assert wait.until == until


def test_where_live_messages_move_no_canary_none_of_them_is_waited_for() -> None:
    wait = waits(None, replace(DOWN, heeds_live=False))

    assert wait == Wait("the next canary", DOWN.next_canary_at)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.REPLAYED, Status.DELETED])
def test_one_that_is_done_with_waits_for_nothing(status: Status) -> None:
    assert waits(replace(ENTRY, status=status), DOWN) is None


def test_one_that_may_be_of_several_sources_is_promised_nothing() -> None:
    wait = waits(None, DOWN, FLOWING)

    assert wait == Wait("its turn")


def test_in_words_a_moment_that_is_past_is_the_next_pass() -> None:
    assert Wait("its turn", NOW - minutes(1)).in_words(NOW) == "its turn, with the next pass"
    assert Wait("x", SOON).in_words(NOW) == (
        "x, until 2026-11-24T02:50:00Z at the latest (in 20 min)"
    )


def test_after_the_cool_down_it_waits_for_as_long_as_live_messages_may_keep_the_canary_back() -> (
    None
):
    """It said until a moment that was past."""
    spared = replace(DOWN, next_canary_at=NOW - minutes(2), canary_at_latest=NOW + minutes(26))

    wait = waits(ENTRY, spared)

    assert wait is not None
    assert wait.until == NOW + minutes(26)


def test_in_a_column_a_moment_that_is_past_is_the_next_pass() -> None:
    told = [Wait("x", until).until_in_words(NOW) for until in (NOW - minutes(1), SOON, None)]

    assert told == ["the next pass", "2026-11-24T02:50:00Z", "-"]


def test_show_and_letters_tell_it(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("waiting")
    desk("open", "--reason", "the provider is down", "--yes")

    shown, listed = desk("show", message_id), desk("letters")

    told = "the next canary, or a live message that succeeds"
    assert f"Waits for:   {told}, until 2026-01-01T00:0" in shown.out
    assert f"{told}  2026-01-01T00:0" in listed.out
    assert desk("show", message_id, "--json").json["waits"]["for"] == told
    (letter,) = desk("letters", "--json").json["letters"]
    assert letter["waits"] == desk("show", message_id, "--json").json["waits"]
