"""Why letters fail, wherever they are shown or chosen: `status`, `letters`, `parked`, `show`, and `--cause`."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import Wire
from simulator.world import DLQ, PARKING_LOT, SOURCE, TABLE
from smart_redriver.engine.aws import items
from smart_redriver.engine.reports.outcomes import Consumer, Result
from smart_redriver.oncall.letters.failures import log_command
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.verbs.status import Shown, watch
from tests.oncall.desk import Desk
from tests.oncall.reported import BILLING, DECLINED, declined, failed, held_by_cause, hold, report


def test_status_names_the_causes_that_are_held_and_those_that_mostly_fail(desk: Desk) -> None:
    desk.world.dead_letters(1)
    now = desk.world.clock.now()
    hold(desk, cools_until=now + timedelta(minutes=4), canaries_failed=6)
    hold(desk, cause="KeyError", held_since=None, failed=2, succeeded=1, counted_at=now)
    hold(desk, cause="Heals", held_since=None, failed=2, succeeded=2, counted_at=now)
    hold(desk, cause="Old", held_since=None, failed=9, counted_at=now - timedelta(hours=1))

    ran = desk("status")

    assert (
        f"Causes:      {DECLINED} held since 00:04, next canary in 4 min, 6 failed; "
        "KeyError flowing, 2 letters failed while others succeeded\n"
    ) in ran.out
    (told,) = desk("status", "--json").json["queues"]
    causes = [one["cause"] for one in told["sources"][0]["causes"]]
    assert causes == [DECLINED, "KeyError", "Heals", "Old"]


def test_status_promises_no_canary_of_an_empty_dlq(desk: Desk) -> None:
    """All letters of the cause are parked: the circuit stays held, and nobody is left to show that it has healed."""
    hold(desk, cools_until=desk.world.clock.now() + timedelta(minutes=4))

    assert f"{DECLINED} held since 00:00, no letter of it is in the DLQ\n" in desk("status").out


def test_status_names_three_causes_and_counts_the_rest(desk: Desk) -> None:
    for number in range(5):
        hold(desk, cause=f"E{number}")

    assert "; 2 more: `redrive causes`\n" in desk("status").out


def test_status_says_nothing_of_causes_where_there_are_none(desk: Desk) -> None:
    assert "Causes:" not in desk("status").out


def test_watch_takes_a_cause_for_no_markup_on_a_real_terminal_either(desk: Desk) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    hold(desk, cause="[red]Bad[/red]")
    screen = Screen()

    watch(desk.session(Wire(), Terminal(out=screen)), Shown(), every_seconds=1, times=1)

    assert "[red]Bad[/red] held since 00:00" in screen.getvalue()


def test_letters_are_grouped_by_what_was_reported_of_them(desk: Desk) -> None:
    failed(desk, '{"id": 1}', '{"other": 2}')
    desk.dead_letters('{"id": 3}')

    ran = desk("letters")

    assert f"2 letters: {DECLINED}" in ran.out
    assert "1 letter: JSON {id}" in ran.out


def test_parked_letters_are_grouped_by_cause_whatever_their_errors_say(desk: Desk) -> None:
    failed(desk, "a")
    failed(desk, "b", first_line="no funds")
    desk.park()

    told = desk("parked", "--json").json
    listed = desk("parked", "--list").out

    (group,) = told["groups"]
    assert (group["reason"], group["cause"], group["count"]) == ("MAX_ATTEMPTS", DECLINED, 2)
    assert f"{DECLINED}: card expired" in listed
    assert f"{DECLINED}: no funds" in listed


def test_a_cause_is_in_every_ledger_entry_that_is_shown(desk: Desk) -> None:
    (message_id,) = failed(desk, "a", permanent=True)

    entry = desk("show", message_id, "--json").json["ledger"]

    assert (entry["cause"], entry["is_permanent"]) == (DECLINED, True)
    assert entry["error"] == f"{DECLINED}: card expired"


def test_show_tells_how_a_letter_failed_and_opens_its_consumers_log(desk: Desk) -> None:
    (message_id,) = failed(desk, "a body")
    desk.world.clock.advance(60)

    ran = desk("show", message_id)

    assert f"{message_id} is in the DLQ.\n" in ran.out
    assert f"  Failed:      {DECLINED}: card expired\n" in ran.out
    assert "(1 min ago), by billing 4.2, at receive 3\n" in ran.out
    assert "  Request:     c6af9ac6-7b61\n" in ran.out
    assert (
        "  Log:         aws logs get-log-events --log-group-name /aws/lambda/billing "
        "--log-stream-name '2026/01/01/[$LATEST]c6af9ac67b61'\n"
    ) in ran.out
    assert '  Traceback:\n      File "billing.py", line 7, in charge\n' in ran.out
    assert "a body" in ran.out


def test_show_as_json_has_the_failure_whole(desk: Desk) -> None:
    (message_id,) = failed(desk, "a", first_line="x" * 300)

    told = desk("show", message_id, "--json").json["failure"]

    assert (told["error_class"], told["first_line"]) == (DECLINED, "x" * 300)
    assert told["consumer"]["log_stream"] == BILLING.log_stream
    assert told["log_command"] == log_command(BILLING)
    assert desk("show", desk.dead_letters("b")[0], "--json").json["failure"] is None


@pytest.mark.parametrize(
    ("result", "words"),
    [(Result.SUCCEEDED, "is done, as its consumer reported."), (Result.PERMANENT, "parking lot")],
)
def test_show_knows_where_a_letter_is_of_which_its_consumer_reported(
    desk: Desk, result: Result, words: str
) -> None:
    now = desk.world.clock.now()
    out = desk.suspect("x").redriven(
        replaced_id="x", new_id="y", batch=1, generation=0, strikes=0, delay=timedelta(),
        now=now, note="",
    )  # fmt: skip
    desk.store.write_ledger([out], [], now)
    parked_id = "z" if result is Result.PERMANENT else None
    report(
        desk,
        declined("y", original_id="x", batch=1, generation=0, result=result, parked_id=parked_id),
    )

    assert words in desk("show", "x").out


def test_a_failure_that_can_not_be_read_keeps_nobody_from_the_letter(desk: Desk) -> None:
    (message_id,) = failed(desk, "a body")
    broken = items.failure_key(message_id) | {"ReportedTimestamp": {"S": "yesterday"}}
    desk.world.dynamodb.put_item(TableName=TABLE, Item=broken)

    ran = desk("show", message_id)

    assert ran.code == 0
    assert "How it failed could not be read (GetItem: UnreadableFailure)." in ran.err
    assert "a body" in ran.out


@pytest.mark.parametrize(
    ("group", "stream"),
    [
        (None, "stream"),
        ("group", None),
        ("file:///etc/passwd", "stream"),
        ("group", "file:///etc/passwd"),
        ("--profile", "stream"),
        ("group", "--endpoint-url"),
        ("group; rm -rf ~", "stream"),
        ("group\nrm", "stream"),
    ],
)
def test_no_command_is_offered_for_what_cloudwatch_would_not_take(
    group: str | None, stream: str | None
) -> None:
    assert log_command(Consumer(log_group=group, log_stream=stream)) is None


def test_a_shell_takes_what_was_reported_for_one_word() -> None:
    stream = "x'; rm -rf ~ #$(id)`id`"

    command = log_command(Consumer(log_group="/aws/lambda/a", log_stream=stream))

    assert command is not None
    assert shlex.split(command)[-1] == stream


def test_what_was_reported_is_neither_markup_nor_a_command_to_the_terminal(desk: Desk) -> None:
    (message_id,) = failed(
        desk,
        "a",
        first_line="[red]x[/]",
        traceback="at \u009b2J\n\tat [bold]y",
        consumer=Consumer(),
    )

    ran = desk("show", message_id)

    assert f"{DECLINED}: [red]x[/]" in ran.out
    assert "at [bold]y" in ran.out
    assert "Log:" not in ran.out
    assert "\u009b" not in ran.out


def chosen_among(desk: Desk) -> None:
    """Two of each kind: declined, another error reported, nothing reported; all in the DLQ."""
    failed(desk, "declined 1", "declined 2")
    failed(desk, "key 1", "key 2", error_class="KeyError")
    desk.dead_letters("silent 1", "silent 2")


@pytest.mark.parametrize("cause", [DECLINED, "paymentdeclined"])
def test_letters_of_a_cause_are_chosen_in_the_dlq(desk: Desk, cause: str) -> None:
    chosen_among(desk)

    told = desk("letters", "--json", "--body", "--cause", cause).json

    assert sorted(one["body"] for one in told["letters"]) == ["declined 1", "declined 2"]


def test_letters_of_a_cause_are_chosen_by_every_command_that_takes_filters(
    desk: Desk, tmp_path: Path
) -> None:
    chosen_among(desk)
    desk.park()
    file, gone = tmp_path / "a.jsonl", tmp_path / "b.jsonl"

    parked = desk("parked", "--json", "--cause", "declined").json
    exported = desk("export", str(file), "--cause", "declined", "--json").json
    replayed = desk("replay", "--cause", "declined", "--yes")
    deleted = desk("delete", "--cause", "KeyError", "--yes", "--export", str(gone))

    assert (parked["count"], exported["count"]) == (2, 2)
    assert replayed.code == deleted.code == 0
    assert desk.bodies(SOURCE) == ["declined 1", "declined 2"]
    assert desk.bodies(PARKING_LOT) == ["silent 1", "silent 2"]
    assert "Only those of cause 'declined'." in replayed.out


def test_what_a_message_says_of_its_error_is_a_cause_where_nothing_was_reported(desk: Desk) -> None:
    attribute = {"ErrorType": {"DataType": "String", "StringValue": "ValueError"}}
    desk.dead_letters("a", MessageAttributes=attribute)
    desk.dead_letters("b")

    told = desk("letters", "--json", "--body", "--cause", "ValueError").json

    assert [one["body"] for one in told["letters"]] == ["a"]
    assert desk.visible(DLQ) == 2


def test_letters_that_are_held_for_their_cause_say_until_when_wherever_they_are_looked_for(
    desk: Desk,
) -> None:
    """The list that a refusal points to said that no letter is held, and `show` that a pass is at work."""
    first, second = held_by_cause(desk, "a", "b")
    at = f"{desk.world.clock.now() + timedelta(minutes=5):%Y-%m-%dT%H:%M}"

    held, peek = desk("letters", "--held").out, desk("letters").out
    named = desk("replay", first[:8], "--from-dlq", "--yes")

    assert "2 letters held in the DLQ" in held
    assert all(f"{one} " in held for one in (first, second))
    assert held.count(f"{at}") == held.count("a canary of its cause") == 2
    assert "2 letters in the DLQ (2 hidden: `redrive letters --held`)" in peek
    assert f"{first} is in the DLQ, or on its way there" in desk("show", first).out
    assert f"hidden until {at}" in desk("show", first).out
    assert f"{first} is in the DLQ, hidden until {at}" in named.err


def test_held_letters_are_chosen_by_cause_from_the_ledger_alone(desk: Desk) -> None:
    now = desk.world.clock.now()
    later = now + timedelta(hours=1)
    one = replace(desk.suspect("one"), not_before=later, cause=DECLINED)
    other = replace(desk.suspect("other"), not_before=later)
    desk.store.write_ledger([one, other], [], now)

    ran = desk("letters", "--held", "--cause", "declined")

    assert "1 letter held in the DLQ" in ran.out
    assert DECLINED in ran.out
