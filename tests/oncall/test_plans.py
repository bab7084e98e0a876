"""Before anybody is asked: exactly how many letters are meant, and what they look like."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.triage.decision import ParkReason
from tests.oncall.desk import Desk

GERMAN, FRENCH, NOBODYS = (
    '{"customer": {"country": "DE"}}',
    '{"customer": {"country": "FR"}}',
    '{"no": "customer"}',
)


# What an expression means.


@pytest.mark.parametrize(
    "where",
    [
        'customer.country == "DE"',
        '"DE" == customer.country',
        'customer.country != "DE"',
        'customer.name && customer.country == "DE"',
        'contains(customer.country, "DE")',
        'starts_with(customer.country, "D")',
    ],
)
def test_a_name_in_quotes_is_not_taken_for_text(desk: Desk, where: str) -> None:
    """It compared two fields, so that letters without a customer matched: eight of them were deleted."""
    desk.park(GERMAN, NOBODYS, NOBODYS)

    codes = [desk(verb, "--where", where, "--yes").code for verb in ("replay", "delete")]
    told = desk("letters", "--where", where)

    assert (codes, told.code) == ([2, 2], 2)
    assert "names a field" in told.err
    assert "For text write 'D" in told.err
    assert desk.visible(PARKING_LOT) == 3


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("customer.country == 'DE'", [GERMAN]),
        ('"customer"."country" == \'DE\'', [GERMAN]),
        ("\"no\" == 'customer'", [NOBODYS]),
        ("'customer' == \"no\"", [NOBODYS]),
        ("contains(customer.country || '', 'F')", [FRENCH]),
        ('"no"', [NOBODYS]),
    ],
)
def test_a_name_in_quotes_is_a_name_where_a_name_belongs(
    desk: Desk, where: str, expected: list[str]
) -> None:
    desk.park(GERMAN, FRENCH, NOBODYS)

    assert desk("replay", "--where", where, "--yes").code == 0
    assert desk.bodies(SOURCE) == expected


def test_that_two_fields_are_compared_is_said_before_the_question(desk: Desk) -> None:
    desk.park(GERMAN, NOBODYS)

    ran = desk("replay", "--where", "customer.country == DE", answer="no")

    assert "Plan: replay 1 letter to orders" in ran.out
    assert NOBODYS in ran.out
    assert "Mind: two fields of the body are compared; letters that have neither match." in ran.out


# Counts and samples.


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        (("--all",), 7),
        (("--contains", "big"), 4),
        (("--where", "size == 'small'"), 3),
        (("--parked-as", "EXPIRING"), 3),
        (("--cause", "json {size}"), 7),
        (("--since", "1h"), 7),
    ],
)
def test_a_plan_counts_exactly_the_letters_that_would_go(
    desk: Desk, chosen: tuple[str, ...], count: int
) -> None:
    desk.park(*['{"size": "big"}'] * 4)
    desk.park(*['{"size": "small"}'] * 3, reason=ParkReason.EXPIRING)

    dry = desk("replay", *chosen, "--dry-run", "--json")
    before = desk.visible(PARKING_LOT)
    done = desk("replay", *chosen, "--yes", "--json")

    plan = dry.json["plan"]
    assert (plan["count"], plan["is_exact"], before) == (count, True, 7)
    assert len(plan["samples"]) == 3
    assert done.json["done"] == count


def test_the_ids_that_are_there_are_counted_and_no_others(desk: Desk) -> None:
    first, second, _ = desk.park("a", "b", "c")

    plan = desk("replay", first, second, "gone", "--dry-run", "--json").json["plan"]

    assert plan["count"] == 2
    assert {one["body"] for one in plan["samples"]} == {"a", "b"}


def test_samples_have_the_beginning_of_a_long_body(desk: Desk) -> None:
    desk.park("x" * 100_000)

    (sample,) = desk("replay", "--all", "--dry-run", "--json").json["plan"]["samples"]

    assert sample["body"] == "x" * 199 + "…"


def test_letters_that_the_ledger_does_not_know_are_counted_too(desk: Desk) -> None:
    desk.park("a")
    url = desk.world.url(PARKING_LOT)
    desk.world.sqs.send_message(QueueUrl=url, MessageBody="put there by somebody")

    by_body = desk("replay", "--contains", "somebody", "--dry-run", "--json").json["plan"]
    by_time = desk("replay", "--since", "1h", "--dry-run", "--json").json["plan"]

    assert (by_body["count"], by_body["groups"]) == (1, {"not in the ledger as parked": 1})
    assert by_time["count"] == 2


def test_a_letter_that_its_consumer_parked_again_after_a_replay_is_not_called_unknown(
    desk: Desk,
) -> None:
    (parked,) = desk.park("a")
    desk("replay", parked, "--yes")
    url = desk.world.url(PARKING_LOT)
    desk.world.sqs.send_message(QueueUrl=url, MessageBody="a")

    plan = desk("replay", "--all", "--dry-run", "--json").json["plan"]

    assert plan["groups"] == {"not in the ledger as parked": 1}


@pytest.mark.parametrize("chosen", [("--all",), ("--parked-as", "MAX_ATTEMPTS")], ids=" ".join)
def test_letters_that_somebody_took_out_are_not_counted(
    desk: Desk, chosen: tuple[str, ...]
) -> None:
    desk.park("a", "b", "c")
    url = desk.world.url(PARKING_LOT)
    (taken,) = desk.world.sqs.receive_message(QueueUrl=url)["Messages"]
    desk.world.sqs.delete_message(QueueUrl=url, ReceiptHandle=taken["ReceiptHandle"])

    assert desk("replay", *chosen, "--dry-run", "--json").json["plan"]["count"] == 2


def test_an_error_that_only_the_letter_tells_is_counted_too(desk: Desk) -> None:
    error = {"ErrorType": {"DataType": "String", "StringValue": "KeyError"}}
    desk.park("a", MessageAttributes=error)
    url = desk.world.url(PARKING_LOT)
    desk.world.sqs.send_message(QueueUrl=url, MessageBody="by somebody", MessageAttributes=error)

    plan = desk("replay", "--error", "KeyError", "--dry-run", "--json").json["plan"]
    done = desk("replay", "--error", "KeyError", "--yes", "--json").json["done"]

    assert plan["count"] == done == 2


def test_letters_of_the_dlq_are_counted_by_cause_and_hidden_ones_not_at_all(desk: Desk) -> None:
    desk.dead_letters("held")
    desk.world.sqs.receive_message(QueueUrl=desk.world.url(DLQ), VisibilityTimeout=600)
    alone = desk("replay", "--all", "--from-dlq", "--yes")
    desk.dead_letters('{"id": 1}', '{"id": 2}', "plain")

    plan = desk("replay", "--contains", "i", "--from-dlq", "--dry-run", "--json").json["plan"]

    assert (alone.code, desk.bodies(SOURCE)) == (1, [])
    assert "1 is hidden: `redrive letters --held` says until when" in alone.err
    assert plan["groups"] == {"JSON {id}": 2, "text, no JSON": 1}


@pytest.mark.parametrize("verb", ["replay", "delete"])
def test_a_plan_shows_up_to_three_bodies_and_leaves_all_visible(desk: Desk, verb: str) -> None:
    desk.park(*(f"body {n}" for n in range(5)))

    ran = desk(verb, "--all", answer="no")

    assert ran.out.count("such as ") == 3
    assert ran.out.count("      body ") == 3
    assert "This look cost 1 receive; the receive count of 3 letters rose by one." in ran.out
    assert desk.visible(PARKING_LOT) == 5


def test_a_long_body_is_cut_and_commands_no_terminal(desk: Desk) -> None:
    desk.park("\u009b2J" + "x" * 500)

    ran = desk("replay", "--all", answer="no")

    (line,) = (one.strip() for one in ran.out.splitlines() if "xxx" in one)
    assert len(line) == 200
    assert "\u009b" not in ran.out


def test_a_dry_run_of_a_delete_deletes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.park("a", "b")
    file = tmp_path / "gone.jsonl"

    ran = desk("delete", "--all", "--dry-run", "--json", "--export", str(file))

    assert (ran.code, ran.json["plan"]["count"]) == (0, 2)
    assert not file.exists()
    assert desk.visible(PARKING_LOT) == 2


@pytest.mark.parametrize(
    "chosen",
    [("--contains", "zzz"), ("--where", "zzz"), ("--parked-as", "EXPIRING"), ("--until", "9d")],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "verb",
    [("replay", "--yes"), ("delete", "--yes"), ("edit", "--with", "cat", "--yes"), ("export", "f")],
    ids=lambda verb: verb[0],
)
def test_a_choice_that_nothing_matches_ends_alike_everywhere(
    desk: Desk,
    verb: tuple[str, ...],
    chosen: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    desk.park("a")

    ran = desk(*verb, *chosen)

    assert ran.code == 1
    assert "No letter matches: nothing to do." in ran.err
    assert desk.history() == []
    assert list(tmp_path.iterdir()) == []
    assert desk.visible(PARKING_LOT) == 1


@pytest.mark.parametrize(
    "option", ["--contains", "--since", "--until", "--parked-as", "--error", "--cause"]
)
@pytest.mark.parametrize("verb", ["replay", "delete"])
def test_a_filter_that_says_nothing_is_taken_neither_for_all_nor_for_none(
    desk: Desk, verb: str, option: str
) -> None:
    """What `--contains "$ORDER"` is where a shell does not know `ORDER`."""
    first, _ = desk.park("a", "b")

    for named in ((), (first,), ("--all",)):
        ran = desk(verb, *named, option, "", "--yes")
        assert ran.code == 2
        assert f"{option} '' is empty" in ran.err

    assert desk.bodies(PARKING_LOT) == ["a", "b"]
    assert desk.calls == []


def test_parked_letters_that_a_pass_has_in_hand_are_said_to_be_hidden(desk: Desk) -> None:
    desk.park("a", "b")
    url = desk.world.url(PARKING_LOT)  # a pass or a person at work has them in hand
    desk.world.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=300)
    assert desk.visible(PARKING_LOT) == 0

    during = desk("edit", "--all", "--with", "tr a c", "--yes")
    desk.world.clock.advance(300)
    after = desk("edit", "--all", "--with", "tr a c", "--dry-run")

    assert during.code == 1
    assert "2 are in use by a pass or a person" in during.err
    assert after.code == 0


# When.


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (("--until", "2026-01-01T00:30:00Z"), ["old"]),
        (("--since", "30m"), ["young"]),
        (("--since", "2h", "--until", "30m"), ["old"]),
    ],
)
def test_letters_are_chosen_by_when_they_were_parked(
    desk: Desk, when: tuple[str, ...], expected: list[str]
) -> None:
    desk.park("old")
    desk.world.clock.advance(3600)
    desk.park("young")

    desk("replay", *when, "--yes")

    assert desk.bodies(SOURCE) == expected


def test_an_end_before_the_begin_is_misuse(desk: Desk) -> None:
    ran = desk("replay", "--since", "1h", "--until", "2h", "--yes")

    assert ran.code == 2
    assert "--until is before --since" in ran.err


@pytest.mark.parametrize(
    ("where", "odd"),
    [
        ("price > `1`", "[" * 100_000),
        ("price > limit", '{"price": 1, "limit": "none"}'),
        ("ceil(price) > `1`", '{"price": 1e999}'),
        ("price > `1`", "no JSON"),
    ],
)
def test_a_letter_that_an_expression_does_not_fit_is_no_match_and_keeps_no_other_back(
    desk: Desk, where: str, odd: str
) -> None:
    desk.park('{"price": 2, "limit": 1}', odd)

    ran = desk("replay", "--where", where, "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(SOURCE) == ['{"price": 2, "limit": 1}']
    assert desk.bodies(PARKING_LOT) == [odd]
    assert desk.visible(PARKING_LOT) == 1


# Letters that are named.


@pytest.mark.parametrize("verb", [("replay",), ("delete",)], ids=lambda one: one[0])
def test_a_plan_says_which_of_the_ids_is_not_there(desk: Desk, verb: tuple[str, ...]) -> None:
    (good,) = desk.park("a")
    said = "Not among them: nosuch. `redrive show nosuch` looks for it."

    tried = desk(*verb, good, "nosuch", answer="no")
    done = desk(*verb, good, "nosuch", "--yes")

    assert said in tried.out
    assert good in tried.out
    assert "nosuch" in done.out
    assert said in done.err
    assert done.code == 3


def test_a_dry_run_says_it_too(desk: Desk) -> None:
    (good,) = desk.park("a")

    told = desk("replay", good, "nosuch", "--dry-run", "--json").json
    whole = desk("replay", good, "--dry-run", "--json").json

    assert told["plan"]["missing"] == ["nosuch"]
    assert "missing" not in whole["plan"]


def test_a_letter_that_the_filter_leaves_out_is_not_among_those_named(desk: Desk) -> None:
    kept, left = desk.park(GERMAN, FRENCH)

    ran = desk("replay", kept, left, "--where", "customer.country == 'DE'", "--dry-run")

    assert f"Not among them: {left}." in ran.out
    assert f"Not among them: {kept}." not in ran.out
