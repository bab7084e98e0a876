"""`status`, `watch`, `letters`, `parked`, `show`, `history`: they tell what is, and change nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import Call, Crash, Mishap, Wire, die_before, on, refuse
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.triage.decision import ParkReason
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.audit.trail import LINES_PER_ITEM, Line, trail_of
from smart_redriver.oncall.letters.choice import shape_of
from smart_redriver.oncall.letters.presentation import PARKED
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.faults.errors import refusal
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK, outputs_of
from tests.oncall.reported import declined, report

VALUE_ERROR = {"ErrorType": {"DataType": "String", "StringValue": "ValueError"}}

LOOKS = (
    ("status",),
    ("status", "--overview"),
    ("causes",),
    ("watch", "--times", "2"),
    ("letters", "--body"),
    ("letters", "--held"),
    ("parked", "--list"),
    ("parked", "--contains", "a"),
    ("show", "ID"),
    ("history",),
    ("audit",),
    ("run", "--dry-run"),
    ("replay", "--all", "--dry-run"),
)
CHANGING_CALLS = {
    "SendMessage",
    "SendMessageBatch",
    "DeleteMessage",
    "DeleteMessageBatch",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "BatchWriteItem",
    "Invoke",
}


@pytest.mark.parametrize("arguments", LOOKS, ids=" ".join)
def test_looking_changes_nothing_and_leaves_every_letter_visible(
    desk: Desk, arguments: tuple[str, ...]
) -> None:
    (message_id, *_) = desk.park("a", "b")
    desk.dead_letters("c", "d")
    before = {queue: desk.bodies(queue) for queue in (SOURCE, DLQ, PARKING_LOT)}

    ran = desk(*(message_id if one == "ID" else one for one in arguments))

    assert ran.code == 0, ran.said
    assert not CHANGING_CALLS & set(desk.calls)
    assert before == {queue: desk.bodies(queue) for queue in (SOURCE, DLQ, PARKING_LOT)}
    assert desk.visible(DLQ) == 2
    assert desk.visible(PARKING_LOT) == 2


def test_status_tells_the_circuit_why_it_is_so_and_what_comes_next(desk: Desk) -> None:
    desk.dead_letters("a")
    circuit = new_circuit(SOURCE, desk.redriver.settings, desk.world.clock.now())
    desk.store.save_circuit(
        force(circuit, State.OPEN, "3 failed batches in a row", desk.world.clock.now())
    )
    desk.alarms.in_alarm = [f"{STACK} CircuitOpen", f"{STACK}2 CircuitOpen", "Another"]
    desk.world.clock.advance(20)

    ran = desk("status")

    assert "OPEN, nothing is redriven" in ran.out
    assert "since 20 s ago: 3 failed batches in a row" in ran.out
    assert "a canary, once live messages succeed or the cool-down is over, in 40 s" in ran.out
    assert "Next look:   within 1 min" in ran.out
    assert "Alarms:      CircuitOpen\n" in ran.out


def test_status_tells_of_the_last_pass(desk: Desk) -> None:
    desk.dead_letters("a", "b")
    desk("run", "--yes")
    desk.world.clock.advance(90)

    ran = desk("status")

    assert "1 min 30 s ago, DONE: 2 redriven" in ran.out


def test_status_as_json_has_one_shape_for_one_queue_and_for_many(desk: Desk) -> None:
    desk.park("a")
    desk.dead_letters("b", "c")

    (told,) = desk("status", "--json").json["queues"]

    assert told["queue"] == SOURCE
    assert told["circuit"]["state"] == "CLOSED"
    assert told["depths"] == {"source": 0, "dead_letters": 2, "parked": 1}
    assert told["unknown"] == {}


def test_status_shows_every_queue_of_a_stack_unless_one_is_named(desk: Desk) -> None:
    mails = replace(
        desk.deployment,
        queue_name="mails",
        source_queue_url=desk.world.sqs.create_queue(QueueName="mails")["QueueUrl"],
    )
    desk.clients["cloudformation"].stacks[STACK] = {
        **outputs_of(desk.deployment, "MyOrders"),
        **outputs_of(mails, "Mails"),
    }

    both = desk("status", "--json").json["queues"]
    by_source_name = desk("status", "--json", "--queue", "mails").json["queues"]
    by_list_name = desk("status", "--json", "--queue", "my-orders").json["queues"]

    assert [one["queue"] for one in both] == ["mails", "orders"]
    assert [one["queue"] for one in by_source_name] == ["mails"]
    assert [one["queue"] for one in by_list_name] == ["orders"]


def test_a_command_about_one_queue_asks_which_where_there_are_several(desk: Desk) -> None:
    desk.clients["cloudformation"].stacks[STACK] = {
        **outputs_of(desk.deployment, "Orders"),
        **outputs_of(desk.deployment, "Mails"),
    }

    ran = desk("parked")

    assert ran.code == 1
    assert "Choose one with --queue: Mails, Orders." in ran.err


@pytest.mark.parametrize("arguments", [("status",), ("status", "--overview")])
@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (("DescribeAlarms",), 0),
        (("GetQueueAttributes",), 3),
        (("GetItem", "BatchGetItem"), 3),
        (("GetQueueAttributes", "GetItem", "BatchGetItem"), 1),
    ],
)
def test_the_exit_code_says_whether_letters_and_circuits_were_read(
    desk: Desk, arguments: tuple[str, ...], denied: tuple[str, ...], code: int
) -> None:
    desk.dead_letters("a")
    refused = {one: refuse(refusal(one, "AccessDeniedException")) for one in denied}

    ran = desk(*arguments, script=lambda call: refused.get(call.operation))

    assert ran.code == code, ran.said


def test_status_tells_what_it_could_not_read_and_shows_the_rest(desk: Desk) -> None:
    denied = on("GetItem", refuse(refusal("GetItem", "AccessDeniedException")))
    desk.dead_letters("a")

    ran = desk("status", script=denied)

    assert ran.code == 3
    assert "Not read:    circuit of orders (GetItem: AccessDeniedException)" in ran.out
    assert "DLQ:         1 message" in ran.out


def test_watch_shows_status_again_and_again(desk: Desk) -> None:
    ran = desk("watch", "--times", "3", "--every", "7")

    assert ran.out.count("Circuit:") == 3
    assert "2026-01-01T00:00:14Z" in ran.out


def test_letters_groups_by_the_error_on_the_message_else_by_the_body(desk: Desk) -> None:
    desk.dead_letters('{"id": 1, "price": 2}', '{"price": 3, "id": 4}', "plain")
    desk.dead_letters('{"id": 5}', MessageAttributes=VALUE_ERROR)

    ran = desk("letters")

    assert "2 letters: JSON {id, price}" in ran.out
    assert "1 letter: text, no JSON" in ran.out
    assert "1 letter: ValueError" in ran.out


def test_letters_tells_what_looking_cost(desk: Desk) -> None:
    desk.dead_letters("a", "b")

    text, told = desk("letters"), desk("letters", "--json").json

    assert "This look cost 1 receive; the receive count of 2 letters rose by one." in text.out
    assert (told["seen"], told["receives"], told["depth"]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--contains", "DE", ['{"country": "DE"}']),
        ("--where", "country == 'FR'", ['{"country": "FR"}']),
        ("--since", "5m", ['{"country": "FR"}']),
        ("--limit", "1", None),
    ],
)
def test_letters_shows_only_what_is_asked_for(
    desk: Desk, option: str, value: str, expected: list[str] | None
) -> None:
    desk.dead_letters('{"country": "DE"}')
    desk.world.clock.advance(600)
    desk.dead_letters('{"country": "FR"}')

    told = desk("letters", "--json", "--body", option, value).json

    bodies = [one["body"] for one in told["letters"]]
    assert bodies == expected if expected else len(bodies) == 1


def test_bodies_are_shown_only_when_asked_for(desk: Desk) -> None:
    desk.dead_letters("secret")

    assert "secret" not in desk("letters").said
    assert "secret" not in desk("letters", "--json").said
    assert "secret" in desk("letters", "--body").out


def test_what_a_stranger_wrote_can_not_command_the_terminal(desk: Desk) -> None:
    desk.dead_letters("\u009b2Jhidden\r\tafter")

    ran = desk("letters", "--body")

    assert "hidden" in ran.out
    assert not {"\u009b", "\r"} & set(ran.out)


def test_parked_counts_by_reason_and_error_without_receiving_anything(desk: Desk) -> None:
    desk.park("a", "b")
    desk.world.clock.advance(60)
    desk.park("c", MessageAttributes=VALUE_ERROR)

    told = desk("parked", "--json").json

    assert "ReceiveMessage" not in desk.calls
    assert told["count"] == 3
    groups = [(one["reason"], one["error"], one["count"]) for one in told["groups"]]
    assert groups == [("MAX_ATTEMPTS", None, 2), ("MAX_ATTEMPTS", "ValueError", 1)]


def test_every_command_says_in_the_same_words_that_no_cause_is_known(desk: Desk) -> None:
    (letter,) = desk.park("a")

    for command in (
        ("causes",),
        ("parked",),
        ("parked", "--list"),
        ("show", letter),
        ("replay", "--all", "--dry-run"),
    ):
        assert "no cause reported" in desk(*command).out, command


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--error", "valueerror"), ["c"]),
        (("--parked-as", "max_attempts"), ["a", "b", "c"]),
        (("--parked-as", "EXPIRING"), []),
        (("--contains", "b"), ["b"]),
        (("--since", "4m"), ["c"]),
    ],
)
def test_parked_lists_only_what_is_asked_for(
    desk: Desk, arguments: tuple[str, ...], expected: list[str]
) -> None:
    ids = dict(zip(desk.park("a", "b"), ("a", "b"), strict=True))
    desk.world.clock.advance(300)
    ids |= dict(zip(desk.park("c", MessageAttributes=VALUE_ERROR), ("c",), strict=True))

    told = desk("parked", "--list", "--json", *arguments).json

    assert sorted(ids[one["original_id"]] for one in told["letters"]) == expected


def test_a_reason_that_no_parked_letter_has_is_told_with_those_they_have(desk: Desk) -> None:
    desk.park("a", "b")
    desk.park("c", reason=ParkReason.EXPIRING)

    ran = desk("parked", "--parked-as", "too_old", "--json")

    assert (ran.code, ran.json["count"]) == (0, 0)
    assert (
        ran.err
        == "No letter is parked as TOO_OLD. Letters are parked as EXPIRING and MAX_ATTEMPTS.\n"
    )


def test_a_reason_is_told_with_all_there_can_be_if_nothing_is_parked(desk: Desk) -> None:
    ran = desk("parked", "--parked-as", "too_old")

    assert ran.out == "No parked letters match.\n"
    assert "No letter is parked as TOO_OLD. Reasons are MAX_ATTEMPTS, PERMANENT, " in ran.err


def test_nothing_is_said_of_reasons_if_another_filter_lets_nothing_through(desk: Desk) -> None:
    desk.park("a")

    assert desk("parked", "--parked-as", "max_attempts", "--error", "KeyError").err == ""


@pytest.mark.parametrize("reason", list(ParkReason))
def test_why_letters_were_parked_is_said_in_words(desk: Desk, reason: ParkReason) -> None:
    (message_id,) = desk.park("a", reason=reason)

    assert f"{reason.value}: {PARKED[reason]}." in desk("parked").out
    assert f"Why:         it {PARKED[reason]}" in desk("show", message_id).out


def test_letters_that_are_held_are_listed_from_the_ledger_alone(desk: Desk) -> None:
    now = desk.world.clock.now()
    suspect = replace(
        desk.suspect("suspect"),
        not_before=now + timedelta(seconds=desk.redriver.settings.last_chance_seconds),
    )
    backing_off = replace(
        suspect, original_id="slow", strikes=1, not_before=now + timedelta(minutes=30)
    )
    due = replace(suspect, original_id="due", not_before=now)
    desk.store.write_ledger([suspect, backing_off, due], [], now)

    ran = desk("letters", "--held")

    assert "ReceiveMessage" not in desk.calls
    assert "2 letters held in the DLQ" in ran.out
    rows = [line.split() for line in ran.out.splitlines()[-2:]]
    assert [(row[0], " ".join(row[-2:])) for row in rows] == [
        ("slow", "its backoff"),
        ("suspect", "last chance"),
    ]
    assert (
        "Waits for:   its last chance, until 2026-01-01T06:00:00Z at the latest (in 6 h)"
        in desk("show", "suspect").out
    )


def test_what_is_held_can_not_be_chosen_by_its_body(desk: Desk) -> None:
    ran = desk("letters", "--held", "--contains", "x")

    assert ran.code == 2
    assert "leave --contains and --where out" in ran.err


def test_the_beginning_of_an_id_is_enough_where_only_the_dlq_knows_the_letter(desk: Desk) -> None:
    """`letters` printed ids whose beginning `show` did not find."""
    first, second = desk.dead_letters('{"order": 1}', '{"order": 2}')

    shown = desk("show", first[:8])
    ran = desk("replay", second[:6], "--from-dlq", "--yes")

    assert f"{first} is in the DLQ, on its first visit." in shown.out
    assert '{"order": 1}' in shown.out
    assert "Replayed 1 letter." in ran.out
    assert desk.bodies(SOURCE) == ['{"order": 2}']


def test_the_beginning_of_two_ids_is_refused(desk: Desk) -> None:
    now = desk.world.clock.now()
    two = [desk.suspect(f"abcdef12-{n}") for n in range(2)]
    desk.store.write_ledger(two, [], now)

    ran = desk("show", "abcdef")

    assert ran.code == 2
    assert "abcdef is the beginning of 2 ids: abcdef12-0, abcdef12-1" in ran.err


def test_show_finds_a_letter_by_any_id_it_ever_had(desk: Desk) -> None:
    (original_id,) = desk.park("a body", MessageAttributes=VALUE_ERROR)
    current_id = desk.entry(original_id).current_id

    by_original, by_current = desk("show", original_id), desk("show", current_id)

    for ran in (by_original, by_current):
        assert f"{original_id} is in the parking lot." in ran.out
        assert "parked MAX_ATTEMPTS" in ran.out
        assert "ErrorType (String): ValueError" in ran.out
        assert "a body" in ran.out


def test_show_tells_what_became_of_a_letter_that_is_gone(desk: Desk) -> None:
    (original_id,) = desk.park("a body")
    desk("replay", original_id, "--yes", "--reason", "fixed")

    ran = desk("show", original_id)

    assert "sent back to its source queue by a person" in ran.out
    assert "replayed by arn:aws:iam::123456789012:user/kim: fixed" in ran.out
    assert "a body" not in ran.out


def test_show_looks_for_a_replayed_letter_that_came_back(desk: Desk) -> None:
    """It advised `--look N`, and looked for nothing."""
    (message_id,) = desk.dead_letters("a body")
    desk("replay", message_id, "--from-dlq", "--yes")
    desk.fail_again()

    unlooked, ran = desk("show", message_id, "--look", "0"), desk("show", message_id)

    assert f"{message_id} is sent back to its source queue by a person" in unlooked.out
    assert "Its body is not available: --look N looks for it in the DLQ." in unlooked.out
    assert f"{message_id} is in the DLQ.\n" in ran.out
    assert "a body" in ran.out


@pytest.mark.parametrize(
    ("look", "why"),
    [
        ("1", "a look at 1 letter of the DLQ did not find it. --look N looks further"),
        ("9", "it is not among the letters of the DLQ that can be seen now"),
    ],
)
def test_show_advises_a_longer_look_only_where_that_sees_more(
    desk: Desk, look: str, why: str
) -> None:
    (message_id,) = desk.dead_letters("a")
    desk("replay", message_id, "--from-dlq", "--yes")
    desk.purge(SOURCE)
    desk.dead_letters("b", "c")

    ran = desk("show", message_id, "--look", look)

    assert f"Its body is not available: {why}." in ran.out


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.DELETED])
def test_show_advises_no_look_for_a_letter_that_is_gone(desk: Desk, status: Status) -> None:
    desk.store.write_ledger([replace(desk.suspect("x"), status=status)], [], desk.world.clock.now())

    ran = desk("show", "x", "--look", "9")

    assert "Its body is not available: it has left for good, as far as is known." in ran.out
    assert "--look" not in ran.out
    assert "ReceiveMessage" not in desk.calls


def test_show_knows_a_letter_on_its_first_visit_to_the_dlq(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a body")

    told = desk("show", message_id, "--json").json

    assert told["where"] == "in the DLQ, on its first visit"
    assert told["message"]["body"] == "a body"


def test_show_says_so_when_nobody_knows_the_id(desk: Desk) -> None:
    ran = desk("show", "no-such-id")

    assert ran.code == 1
    assert "no-such-id was not found" in ran.err


def test_show_says_how_much_of_an_id_it_needs(desk: Desk) -> None:
    (message_id,) = desk.park("a")
    desk("replay", "--all", "--yes")

    short, enough = desk("show", message_id[:5]), desk("show", message_id[:6])

    assert (short.code, enough.code) == (1, 0)
    assert "the beginning of an id needs six characters at least" in short.err
    assert f"{message_id} is sent back" in enough.out


def test_history_is_empty_until_somebody_changes_something(desk: Desk) -> None:
    assert "No change by hand in the last 30 days." in desk("history").out


def test_history_prints_each_change_on_one_line(desk: Desk) -> None:
    desk.park("a", "b")
    desk("pause", "--reason", "migration", "--yes")
    desk.world.clock.advance(60)
    desk("resume", "--yes")
    desk("replay", "--all", "--yes", "--reason", "fixed")

    lines = desk("history").out.splitlines()

    pauses_at = desk("history", "--json").json["changes"][0]["at"]
    assert lines == [
        f"{pauses_at} kim pause until `redrive resume`: done (migration)",
        lines[1],
        lines[2],
    ]
    assert lines[1].endswith("kim resume: done")
    assert lines[2].endswith("kim replay all: replayed 2 letters (fixed)")


def test_history_tells_of_a_change_whose_command_died(desk: Desk) -> None:
    desk.park("a")
    with pytest.raises(Crash):
        desk("replay", "--all", "--yes", script=on("SendMessageBatch", die_before))
    desk.world.clock.advance(600)
    desk("replay", "--all", "--yes")

    first, second = desk("history").out.splitlines()

    assert first.endswith("kim replay all: begun, no end recorded")
    assert second.endswith("kim replay all: replayed 1 letter")


def test_history_tells_the_end_of_a_change_that_names_many_letters(desk: Desk) -> None:
    ids = desk.park(*map(str, range(40)))
    desk("delete", *ids, "--yes", "--export", "gone.jsonl")

    (line,) = desk("history").out.splitlines()

    assert f"kim delete named {min(ids)}, " in line
    assert line.endswith("…: deleted 40 letters; kept in gone.jsonl")


def test_begin_and_end_that_an_older_version_wrote_are_one_change(desk: Desk) -> None:
    trail, now = trail_of(desk.session(Wire(), Terminal())), desk.world.clock.now()
    trail.write(Line(at=now, who="kim", what="replay all: begun"))
    trail.write(Line(at=now + timedelta(seconds=9), who="kim", what="replay all: replayed 1"))

    (line,) = desk("history").out.splitlines()

    assert line.endswith("kim replay all: replayed 1")


def test_history_goes_back_as_far_as_asked(desk: Desk) -> None:
    for _ in range(3):
        desk("pause", "--reason", "again", "--yes")
        desk.world.clock.advance(86_400)

    two_days = desk("history", "--days", "2", "--json").json["changes"]
    all_days = desk("history", "--json").json["changes"]

    assert len(two_days) == 2
    assert len(all_days) == 6


def test_a_day_with_more_changes_than_an_item_holds_is_told_whole(desk: Desk) -> None:
    trail = trail_of(desk.session(Wire(), Terminal()))
    now = desk.world.clock.now()
    for number in range(2 * LINES_PER_ITEM + 5):
        trail.write(Line(at=now + timedelta(seconds=number), who="kim", what=f"change {number}"))

    changes = desk("history", "--json").json["changes"]

    assert [one["what"] for one in changes] == [f"change {n}" for n in range(205)]


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ('{"b": 1, "a": [2]}', "JSON {a, b}"),
        ("[1, 2]", "JSON array"),
        ("true", "JSON yes/no"),
        ("null", "JSON null"),
        ("plain", "text, no JSON"),
        ("[" * 100_000, "text, no JSON"),
    ],
)
def test_a_body_has_a_shape(body: str, shape: str) -> None:
    assert shape_of(body) == shape


def test_a_body_comes_before_its_traceback_and_a_screen_of_each_is_enough(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback came first, and both filled many screens."""
    (message_id,) = desk.dead_letters("\n".join(f"line {number}" for number in range(50)))
    left_out = sum(len(f"line {number}\n") for number in range(10, 50)) - 1
    frames = "\n".join(f"frame {number}" for number in range(50))
    report(desk, declined(message_id, traceback=frames))
    desk.park()
    monkeypatch.setattr(Terminal, "rows", 10)

    cut, whole = desk("show", message_id).out, desk("show", message_id, "--whole").out

    assert (
        cut.index("line 9")
        < cut.index(f"... {left_out} more bytes: --whole")
        < cut.index("Traceback:")
    )
    assert cut.index("... 40 lines before: --whole") < cut.index("frame 40")
    assert "line 10" not in cut
    assert "frame 39" not in cut
    assert "line 49" in whole
    assert "frame 0" in whole


def test_a_large_body_is_shown_as_far_as_people_read_and_says_what_is_left_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte on one line went to the terminal, or through the pipe to a pager."""
    body = "é" * 400_000
    (message_id,) = desk.dead_letters(body)

    piped, whole = desk("show", message_id).out, desk("show", message_id, "--whole").out
    as_json = desk("show", message_id, "--json").json
    monkeypatch.setattr(Terminal, "rows", 10)
    monkeypatch.setattr(Terminal, "columns", 80)
    screen = desk("show", message_id).out

    assert f"{'é' * 8_192}\n... 783,616 more bytes: --whole\n" in piped
    assert f"{'é' * 400}\n... 799,200 more bytes: --whole\n" in screen
    assert len(screen) < 2_000
    assert body in whole
    assert as_json["message"]["body"] == body


def test_the_doctor_shows_what_is_wrong_first_and_counts_the_rest(desk: Desk) -> None:
    """Faults stood between checks that passed."""
    few, every = desk("doctor").out, desk("doctor", "--all").out

    assert few.splitlines()[1].startswith("  WRONG")
    assert "  ok " not in few
    assert f"{every.count('  ok ')} checks are well: --all lists them." in few


def test_an_import_can_be_rehearsed_and_export_takes_all(desk: Desk, tmp_path: Path) -> None:
    desk.park("a", "b")
    file = tmp_path / "all.jsonl"

    exported = desk("export", str(file), "--all")
    ran = desk("import", str(file), "--dry-run", "--json")

    assert exported.code == 0
    assert ran.json == {"plan": {"count": 2}}
    assert desk.history() == []


def test_a_letter_that_is_met_in_the_dlq_is_there_whatever_the_ledger_says(desk: Desk) -> None:
    """It was told to be at its source queue, and to wait for a canary of its cause."""
    (message_id,) = desk.dead_letters("a")
    sent = replace(desk.suspect(message_id), status=Status.REDRIVEN)
    desk.store.write_ledger([sent], [], desk.world.clock.now())

    shown, (listed,) = desk("show", message_id), desk("letters", "--json").json["letters"]

    assert f"{message_id} is in the DLQ.\n" in shown.out
    assert "Waits for:   its turn" in shown.out
    assert listed["waits"]["for"] == "its turn"


@pytest.mark.parametrize("status", [Status.REDRIVEN, Status.REPLAYED])
def test_a_letter_that_its_consumer_gave_up_on_is_not_on_its_way_to_it(
    desk: Desk, status: Status
) -> None:
    (message_id,) = desk.dead_letters("a")
    sent = replace(desk.suspect(message_id), status=status, is_settled=True)
    desk.store.write_ledger([sent], [], desk.world.clock.now())

    ran = desk("show", message_id, "--look", "0")

    assert f"{message_id} is in the DLQ, or on its way there: its consumer reported" in ran.out


def test_a_copy_that_was_left_behind_does_not_say_where_its_letter_is(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    sent = replace(
        desk.suspect(message_id),
        status=Status.REDRIVEN,
        current_id="copy",
        replaced_ids=(message_id,),
    )
    desk.store.write_ledger([sent], [], desk.world.clock.now())

    assert f"{message_id} is sent back to its source queue" in desk("show", message_id).out


@pytest.mark.parametrize(
    ("code", "headline"),
    [
        (
            "NonExistentQueue",
            "The source queue can't be read: GetQueueAttributes: NonExistentQueue.",
        ),
        # The re-driver may read it nevertheless.
        ("AccessDeniedException", "1 letter waits. The next pass looks at it."),
    ],
)
def test_the_headline_tells_of_a_source_queue_that_is_gone_and_not_of_a_right_that_a_person_lacks(
    desk: Desk, code: str, headline: str
) -> None:
    desk.dead_letters("a")
    refused = refuse(refusal("GetQueueAttributes", code))

    def script(call: Call) -> Mishap | None:
        asks_source = call.request.get("QueueUrl", "").endswith(f"/{SOURCE}")
        return refused if call.operation == "GetQueueAttributes" and asks_source else None

    ran = desk("status", script=script)

    assert f"Now:         {headline}" in ran.out
    assert f"(GetQueueAttributes: {code})" in ran.out
