"""`redrive console` by its API: what it shows, who may ask, and that its changes are the command's."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from botocore.exceptions import ClientError
from openapi_spec_validator import validate

from fakes.faults import Wire
from simulator.consumers import Consumer, Reports, down_between
from simulator.world import DLQ, PARKING_LOT, SOURCE, hours, minutes
from smart_redriver.engine.model.circuit import Lease
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.console.app import names
from smart_redriver.oncall.console.cache import LedgerCache, Notepad, Sessions
from smart_redriver.oncall.console.tasks import AT_ONCE, Task
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.ledger_scan import stuck_entries
from smart_redriver.oncall.terminal.exits import Misused
from smart_redriver.oncall.verbs.declarations import ORDERS
from smart_redriver.oncall.verbs.options import Kind, Option, Side
from smart_redriver.oncall.verbs.replay import ReplayRequest, replay
from tests.oncall.browsing import HOST, Browsing, told
from tests.oncall.desk import Desk, PassesInTheLog
from tests.oncall.fakes import STACK, outputs_of
from tests.oncall.reported import BILLING, DECLINED, declined, failed, report


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)  # where letters are kept
    return Desk()


@pytest.fixture
def wire() -> Wire:
    """What the console asks of AWS."""
    return Wire()


@pytest.fixture
def page(desk: Desk, wire: Wire) -> Iterator[Browsing]:
    browsing = Browsing(desk.session(wire, Notepad()))
    yield browsing
    browsing.console.tasks.close()


NOW = datetime(2026, 11, 23, tzinfo=UTC)
LETTERS = f"/api/queues/{SOURCE}/letters"

# What is shown.


def test_queues_are_shown_as_status_has_them(desk: Desk, page: Browsing) -> None:
    desk.park("a", "b")

    (shown,) = page.get("/api/status")["queues"]

    (told_by_command,) = desk("status", "--json").json["queues"]
    facts = {one["name"]: one for one in shown["facts"] if one["name"]}
    assert {name: shown[name] for name in told_by_command} == told_by_command
    assert facts["Circuit"] == {"name": "Circuit", "text": "CLOSED", "tone": None}
    assert (facts["Now"]["text"], facts["Now"]["tone"]) == (
        "The DLQ is empty; 2 parked letters wait for a person.",
        None,
    )
    assert facts["Parking lot"]["text"].startswith("2 messages")


def test_a_source_queue_is_meant_though_another_queue_is_listed_under_its_name(desk: Desk) -> None:
    """The page names source queues. With the name in the list, an order would go to the other queue."""
    other = replace(desk.deployment, queue_name="mails", source_queue_url="x/mails")
    desk.clients["cloudformation"].stacks[STACK] = {
        **outputs_of(desk.deployment, "Mails"),
        **outputs_of(other, "Orders"),
    }
    sessions = Sessions(desk.session(Wire(), Notepad()))

    assert sessions.of("mails", Notepad()).place.queue == "mails"
    assert sessions.of("orders", Notepad()).place.queue == "orders"


def test_letters_come_in_pages_that_have_each_of_them_once(desk: Desk, page: Browsing) -> None:
    ids = desk.park(*(f"letter {number}" for number in range(25)))

    pages: list[Any] = []
    after: dict[str, Any] = {}
    while True:
        shown = page.get(LETTERS, limit=10, **after)
        pages.append([one["original_id"] for one in shown["letters"]])
        if shown["next"] is None:
            break
        after = {"after": shown["next"]}

    assert [len(one) for one in pages] == [10, 10, 5]
    assert sorted(one for shown in pages for one in shown) == sorted(ids)
    assert shown["count"] == 25
    assert [(one["reason"], one["count"]) for one in shown["groups"]] == [("MAX_ATTEMPTS", 25)]


def test_letters_are_found_by_id_time_reason_and_content(desk: Desk, page: Browsing) -> None:
    german, french = desk.park('{"country": "DE"}', '{"country": "FR"}')

    def found(**given: str) -> set[str]:
        return {one["original_id"] for one in page.get(LETTERS, **given)["letters"]}

    assert found(id=german) == {german}
    assert found(contains="DE") == {german}
    assert found(where="country == 'FR'") == {french}
    assert found(since="1h", parked_as="max_attempts") == {german, french}
    assert found(until="1h") == set()


def test_a_search_of_bodies_says_what_it_cost_and_pays_once_for_its_pages(
    desk: Desk, page: Browsing, wire: Wire
) -> None:
    desk.park("one", "two", "three")

    first = page.get(LETTERS, contains="t", limit=1)
    receives = count(wire, "ReceiveMessage")
    second = page.get(LETTERS, contains="t", limit=1, after=first["next"])

    assert "The ledger keeps no bodies." in first["warnings"][0]
    assert [len(one["letters"]) for one in (first, second)] == [1, 1]
    assert (receives > 0, count(wire, "ReceiveMessage")) == (True, receives)


def count(wire: Wire, operation: str) -> int:
    return sum(call.operation == operation for call in wire.calls)


def test_a_ledger_that_was_read_serves_all_who_look_until_something_is_changed(
    desk: Desk, page: Browsing, wire: Wire
) -> None:
    (kept, _) = desk.park("a", "b")

    page.get(LETTERS)
    page.get(f"/api/queues/{SOURCE}/causes")
    scans = count(wire, "Scan")
    page.done(SOURCE, "replay", ids=[kept])
    shown = page.get(LETTERS)

    assert scans == 1
    assert shown["count"] == 1


def test_what_was_read_while_something_changed_is_not_shown_again(
    desk: Desk, page: Browsing, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.park("a", "b")
    cache, session = LedgerCache(), page.console.sessions.of(SOURCE, Notepad())

    def read_slowly(session: Session) -> list[Entry]:
        entries = list(stuck_entries(session))
        desk("delete", "--all", "--export", "gone.jsonl", "--yes")
        cache.forget(SOURCE)
        return entries

    with monkeypatch.context() as slow:
        slow.setattr("smart_redriver.oncall.console.cache.stuck_entries", read_slowly)
        before = cache.of(session)

    assert len(before.parked()) == 2
    assert cache.of(session).parked() == []


def test_causes_have_counts_and_their_trend(desk: Desk, page: Browsing) -> None:
    early, late = desk.dead_letters("a", "b")
    report(desk, declined(early))
    desk.world.clock.advance(3600)
    report(desk, declined(late))

    (group,) = page.get(f"/api/queues/{SOURCE}/causes")["groups"]

    assert (group["cause"], group["letters"], group["in_dlq"]) == (DECLINED, 2, 2)
    assert (sum(group["trend"]), group["trend"][-1], group["trend"][-5]) == (2, 1, 1)


def test_a_letter_is_shown_with_its_failure_the_log_and_its_fingerprint(
    desk: Desk, page: Browsing
) -> None:
    (message_id,) = desk.dead_letters('{"price": null}')
    report(desk, declined(message_id))

    shown = page.get(f"{LETTERS}/{message_id}")

    by_command = desk("show", message_id, "--json").json
    assert {name: shown[name] for name in ("where", "ledger")} == {
        name: by_command[name] for name in ("where", "ledger")
    }
    assert shown["failure"]["traceback"].startswith('  File "billing.py"')
    assert BILLING.log_group in shown["failure"]["log_command"]
    assert shown["message"]["body"] == '{"price": null}'
    assert len(shown["message"]["fingerprint"]) == 64


def test_letters_of_the_dlq_are_peeked_at_with_their_bodies_and_their_cost(
    desk: Desk, page: Browsing
) -> None:
    desk.dead_letters("fresh")

    shown = page.get(f"/api/queues/{SOURCE}/peek")

    assert [one["body"] for one in shown["letters"]] == ["fresh"]
    assert "receive count of 1 letter rose by one" in shown["cost"][0]


def test_the_timeline_has_passes_verdicts_changes_and_courses(desk: Desk, page: Browsing) -> None:
    desk.dead_letters("a")
    page.done(SOURCE, "pause", reason="migration")
    page.done(SOURCE, "resume")
    page.done(SOURCE, "run")

    shown = page.get(f"/api/queues/{SOURCE}/timeline")

    kinds = [one["kind"] for one in shown["events"]]
    assert kinds.count("change") == 3
    assert "Pass: 1 redriven" in [one["text"] for one in shown["events"]]
    assert any(
        "pause until" in one["text"] and "migration" in one["text"] for one in shown["events"]
    )
    assert [one["redriven"] for one in shown["passes"]] == [1]
    assert set(shown["courses"]) == {"dead_letters", "parked", "delivered", "deleted"}
    assert shown["unknown"] == {}


def test_the_timeline_has_the_share_that_succeeded_and_the_spans_of_the_circuits_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down for half an hour: the share falls to nothing, the circuit opens, and both come back."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(consumer=Consumer(health=down_between(minutes(10), minutes(40)), reports=Reports()))
    policy = PassesInTheLog(desk)
    for minute in range(90):
        for number in range(3):
            desk.world.send(f"live {minute} {number}", to=SOURCE)
        desk.world.run(policy, until=minutes(minute + 1))
    page = Browsing(desk.session(Wire(), Notepad()))

    shown = page.get(f"/api/queues/{SOURCE}/timeline")

    def at(minute: int) -> float:
        return (desk.world.started + minutes(minute)).timestamp()

    def between(name: str, first: int, last: int) -> list[float | None]:
        return [share for when, share in shown["shares"][name] if at(first) <= when < at(last)]

    states = [one["state"] for one in shown["states"]]
    page.console.tasks.close()
    assert between("deliveries", 3, 10) == [1.0] * 7
    assert set(between("deliveries", 16, 40)) == {0.0}
    assert between("deliveries", 80, 85) == [1.0] * 5
    assert between("reported letters", 0, 10) == []
    assert (states[0], states[-1], "OPEN" in states) == ("CLOSED", "CLOSED", True)
    assert shown["states"][0]["since"] == int((desk.world.clock.now() - hours(3)).timestamp())
    assert [one["until"] for one in shown["states"][:-1]] == [
        one["since"] for one in shown["states"][1:]
    ]


def test_the_timeline_has_the_rate_that_the_consumer_is_given_beside_live_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(consumer=Consumer(health=down_between(minutes(10), minutes(12))))
    policy = PassesInTheLog(desk)
    for minute in range(20):
        for number in range(120):
            desk.world.send(f"live {minute} {number}", to=SOURCE)
        desk.world.run(policy, until=minutes(minute + 1))
    page = Browsing(desk.session(Wire(), Notepad()))

    passes = page.get(f"/api/queues/{SOURCE}/timeline")["passes"]

    page.console.tasks.close()
    rates = [one["letters_per_second"] for one in passes]
    reported = [one.circuits[0]["letters_per_second"] for one in desk.redriver.reports]
    assert rates == reported[-len(rates) :]
    assert rates[0] is None
    assert rates[-1] > 0


def test_before_the_first_pass_the_timeline_has_neither(page: Browsing) -> None:
    shown = page.get(f"/api/queues/{SOURCE}/timeline")

    assert (shown["shares"], shown["states"]) == ({"deliveries": []}, [])


def test_a_share_ends_where_nothing_was_counted_for_long(desk: Desk, page: Browsing) -> None:
    page.done(SOURCE, "run")
    desk.world.clock.advance(1800)
    shares = page.get(f"/api/queues/{SOURCE}/timeline")["shares"]

    assert shares == {"deliveries": []}


def test_the_doctor_and_the_history_are_the_commands(desk: Desk, page: Browsing) -> None:
    page.done(SOURCE, "pause", reason="migration")

    findings = page.get(f"/api/queues/{SOURCE}/doctor")["findings"]
    history = page.get(f"/api/queues/{SOURCE}/history")["changes"]

    assert findings == desk("doctor", "--json").json["queues"][0]["findings"]
    assert history == desk("history", "--json").json["changes"]
    assert len(history) == 2


# What is changed.


def test_a_replay_shows_the_commands_plan_and_asks_before_anything_moves(
    desk: Desk, page: Browsing
) -> None:
    desk.park("a", "b")

    task = page.order(SOURCE, "replay", all=True, reason="orders 2.4.1")
    before = desk.bodies(PARKING_LOT)
    by_command = desk("replay", "--all", "--dry-run").out
    ended = page.answer(task)

    assert (task["state"], task["question"], task["expected"]) == (
        "asking",
        "Send them back?",
        "yes",
    )
    assert set(told(task).splitlines()) <= set(by_command.splitlines())
    assert before == ["a", "b"]
    assert (ended["exit_code"], ended["result"]["done"], ended["fault"]) == (0, 2, None)
    assert desk.bodies(SOURCE) == ["a", "b"]
    assert desk.history()[-1] == "replay all: replayed 2 letters"


def test_any_other_answer_is_a_no(desk: Desk, page: Browsing) -> None:
    desk.park("a")

    ended = page.answer(page.order(SOURCE, "replay", all=True), "perhaps")

    assert (ended["exit_code"], ended["fault"]) == (1, "Nothing was changed.")
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_a_stop_while_it_asks_is_a_no(desk: Desk, page: Browsing) -> None:
    desk.park("a")
    task = page.order(SOURCE, "replay", all=True)

    ended = page.stop(task)

    assert (ended["state"], ended["fault"]) == ("ended", "Nothing was changed.")
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_what_goes_against_a_pause_is_asked_for_twice(desk: Desk, page: Browsing) -> None:
    desk.park("a")
    desk("pause", "--reason", "migration", "--yes")

    first = page.order(SOURCE, "replay", all=True)
    second = page.answer(first)
    ended = page.answer(second, "no")

    assert first["question"] == "Send them back?"
    assert (
        'Paused by kim until somebody resumes it: "migration". All the same?' in second["question"]
    )
    assert ended["fault"] == "Nothing was changed."


def test_two_clicks_are_no_answer_to_the_next_question(desk: Desk, page: Browsing) -> None:
    desk.park("a")
    page.done(SOURCE, "pause", reason="a fix is coming")
    first = page.order(SOURCE, "replay", all=True)

    second = page.answer(first)
    again = page.web.post(
        f"/api/tasks/{first['id']}/answer", json={"question": first["question"], "answer": "yes"}
    )

    assert second["question"] != first["question"]
    assert again.status_code == 409
    assert page.stop(second)["exit_code"] == 1
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_what_is_stopped_before_it_asks_does_not_ask(desk: Desk, page: Browsing) -> None:
    desk.park("a")
    task = Task(queue=SOURCE, verb="replay", given={}, began_at=NOW)
    session = page.console.sessions.of(SOURCE, task)

    task.stop()
    task.begin(lambda: replay(session, ReplayRequest(choice=Choice())), lambda _: None)

    assert task.wait_for_end(60)
    assert (task.code, desk.bodies(PARKING_LOT)) == (1, ["a"])


def test_a_replay_by_filter_takes_only_what_it_says(desk: Desk, page: Browsing) -> None:
    desk.park('{"country": "DE"}', '{"country": "FR"}')

    page.done(SOURCE, "replay", where="country == 'DE'")

    assert desk.bodies(SOURCE) == ['{"country": "DE"}']
    assert desk.bodies(PARKING_LOT) == ['{"country": "FR"}']


def test_a_letter_is_edited_as_it_was_opened_and_undone(desk: Desk, page: Browsing) -> None:
    (message_id,) = desk.park("broken")
    opened = page.get(f"{LETTERS}/{message_id}")["message"]
    mended = {
        "id": message_id,
        "was": opened["fingerprint"],
        "body": "mended",
        "attributes": opened["attributes"],
    }

    task = page.order(SOURCE, "edit", **mended)
    ended = page.answer(task)
    (kept,) = page.get("/api/files")
    desk.fail_again()
    undone = page.done(SOURCE, "undo", file=kept["name"])

    assert "-broken\n+mended" in told(task)
    assert ended["exit_code"] == 0
    assert kept["name"].startswith("edited-")
    assert (undone["exit_code"], undone["fault"]) == (0, None)
    assert desk.bodies(PARKING_LOT) == ["broken"]


def test_a_letter_that_was_changed_meanwhile_is_not_edited(desk: Desk, page: Browsing) -> None:
    (message_id,) = desk.park("broken")

    task = page.order(SOURCE, "edit", id=message_id, was="0" * 64, body="mended", attributes={})

    assert task["state"] == "ended"
    assert "not as it was when you opened it" in task["fault"]
    assert desk.bodies(PARKING_LOT) == ["broken"]


def test_a_delete_wants_the_count_and_keeps_a_file_that_undo_takes(
    desk: Desk, page: Browsing
) -> None:
    desk.park("a", "b")

    task = page.order(SOURCE, "delete", all=True)
    refused = page.answer(task, "yes")
    deleted = page.done(SOURCE, "delete", all=True)
    (kept,) = page.get("/api/files")
    gone = desk.bodies(PARKING_LOT)
    page.done(SOURCE, "undo", file=kept["name"])

    assert task["expected"] == "2"
    assert refused["fault"] == "Nothing was changed."
    assert (deleted["result"]["done"], gone) == (2, [])
    assert desk.bodies(PARKING_LOT) == ["a", "b"]


def test_two_orders_of_one_moment_keep_their_letters_in_two_files(
    desk: Desk, page: Browsing
) -> None:
    first, second = desk.park("a", "b")

    asking = [page.order(SOURCE, "delete", ids=[one]) for one in (first, second)]
    ended = [page.answer(one) for one in asking]

    assert [one["fault"] for one in ended] == [None, None]
    assert len({one["file"] for one in ended}) == 2


def test_a_kept_file_that_is_gone_hides_no_other(desk: Desk, page: Browsing) -> None:
    """A command that finds nothing to keep removes its file, as likely as not while the page lists them."""
    desk.park("a")
    page.done(SOURCE, "export", all=True)
    Path("deleted-20260101T000000Z.jsonl").symlink_to("gone.jsonl")

    assert [one["name"][:8] for one in page.get("/api/files")] == ["exported"]


def test_letters_are_parked_exported_and_imported(desk: Desk, page: Browsing) -> None:
    desk.dead_letters("a")

    page.done(SOURCE, "park", all=True)
    exported = page.done(SOURCE, "export", all=True)
    page.done(SOURCE, "delete", all=True)
    imported = page.done(SOURCE, "import", file=exported["result"]["file"], to_source=True)

    assert (exported["result"]["count"], imported["result"]["done"]) == (1, 1)
    assert desk.bodies(SOURCE) == ["a"]


def test_the_redriver_itself_is_steered(desk: Desk, page: Browsing) -> None:
    desk.dead_letters("a")

    opened = page.done(SOURCE, "open", reason="the provider is down")
    closed = page.done(SOURCE, "close", reason="it is back")
    tried = page.done(SOURCE, "run", dry_run=True)
    drained = page.done(SOURCE, "drain", **{"for": "30m"})

    assert (opened["result"]["circuit"], closed["result"]["circuit"]) == ("OPEN", "CLOSED")
    assert tried["result"]["decisions"][0]["decision"] == "redrive"
    assert drained["result"]["end"].startswith("The DLQ is empty")


def test_a_second_person_at_work_is_seen_in_the_plan_and_waited_for(desk: Desk, wire: Wire) -> None:
    desk.park("a", "b")
    desk.clients["sts"].arn = "arn:aws:iam::123456789012:user/robin"
    desk("pause", "--reason", "mine", "--yes")
    desk("resume", "--yes")
    desk.clients["sts"].arn = "arn:aws:iam::123456789012:user/kim"
    now = desk.world.clock.now()
    lease = Lease(owner="robin", expires_at=now.replace(year=now.year + 1))
    assert desk.store.acquire_lease(lease, now)

    def end_robins(seconds: float) -> None:
        desk.store.release_lease(lease)
        desk.world.clock.advance(seconds)

    page = Browsing(replace(desk.session(wire, Notepad()), sleep=end_robins))

    task = page.order(SOURCE, "replay", all=True)
    ended = page.answer(task)

    assert "Within the last hour:" in told(task)
    assert "robin: pause" in told(task)
    assert "waiting up to five minutes for it to end" in told(ended, "warn")
    assert ended["result"]["done"] == 2


def test_a_drain_that_only_waits_ends_at_a_stop(desk: Desk, wire: Wire) -> None:
    desk.dead_letters(*(f"letter {number}" for number in range(80)))
    browsing: list[Browsing] = []

    def stop(seconds: float) -> None:
        for task in browsing[0].console.tasks.all():
            task.stop()

    browsing.append(Browsing(replace(desk.session(wire, Notepad()), sleep=stop)))

    ended = browsing[0].done(SOURCE, "drain")

    assert ended["fault"] == "Stopped. What was done stays done: the history tells."


def test_work_that_is_stopped_ends_after_the_letters_in_hand(desk: Desk, page: Browsing) -> None:
    desk.park(*(f"letter {number}" for number in range(30)))
    task = page.order(SOURCE, "replay", all=True, rate=0)

    page.console.tasks.get(task["id"]).stop_button.press()
    ended = page.answer(task)

    assert ended["result"]["interrupted"]
    assert ended["exit_code"] in (1, 3)
    assert len(desk.bodies(SOURCE)) + len(desk.bodies(PARKING_LOT)) == 30


# Who may ask.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer guessed"}, 401),
        ({"Authorization": "Basic secret"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8700"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/api/status", "/api/queues/orders/replay", "/api/openapi.json"])
def test_nobody_else_may_ask(
    page: Browsing, headers: dict[str, str], status: int, path: str
) -> None:
    looked = page.web.get(path, headers=headers)
    ordered = page.web.post(path, headers=headers, json={"all": True})

    assert (looked.status_code, ordered.status_code) == (status, status)
    assert page.console.tasks.all() == []


def test_the_page_itself_has_no_secret_and_may_load_nothing_from_elsewhere(page: Browsing) -> None:
    shown = page.web.get("/", headers={"Authorization": "", "Sec-Fetch-Site": "none"})

    policy = shown.headers["content-security-policy"]
    assert shown.status_code == 200
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "kind", ["Application/JSON", "application/json ; charset=utf-8", "application/json;charset=x"]
)
def test_json_is_known_by_every_way_its_name_may_be_written(page: Browsing, kind: str) -> None:
    """By RFC 9110, 8.3.1: in any case, and with blanks before a parameter."""
    path, headers = f"/api/queues/{SOURCE}/pause", {"Content-Type": kind}

    assert (
        page.web.post(path, content="{}", headers=headers).json()["error"] == "reason is missing."
    )


def test_a_form_of_another_page_can_not_be_taken_for_a_request(page: Browsing) -> None:
    sent = page.web.post(
        f"/api/queues/{SOURCE}/replay",
        content=json.dumps({"all": True}),
        headers={"Content-Type": "text/plain", "Origin": f"http://{HOST}"},
    )

    assert (sent.status_code, sent.json()["kind"]) == (400, "usage")
    assert page.console.tasks.all() == []


def test_a_console_for_looking_changes_nothing(desk: Desk, wire: Wire) -> None:
    desk.park("a")
    page = Browsing(desk.session(wire, Notepad()), is_read_only=True)

    refused = page.web.post(f"/api/queues/{SOURCE}/replay", json={"all": True})

    assert (refused.status_code, refused.json()["kind"]) == (409, "refused")
    assert "--read-only" in refused.json()["error"]
    about = page.get("/api/about")
    assert about["read_only"]
    assert about["names"] == {SOURCE: SOURCE}
    assert page.get(LETTERS)["count"] == 1
    assert page.console.tasks.all() == []


# What goes wrong.


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        (LETTERS, {"sinse": "2h"}, "'sinse' is not known here"),
        (LETTERS, {"since": "yesterday"}, "is not a point in time"),
        (LETTERS, {"limit": "lots"}, "is no integer"),
        (LETTERS, {"limit": "100000"}, "out of range"),
        (LETTERS, {"after": "here"}, "not the `next` of a page"),
        (LETTERS, {"place": "attic"}, "neither parked nor dlq"),
        (LETTERS, {"where": 'a == "b"'}, "names a field"),
        (LETTERS, {"where": f"a[{'9' * 5000}]"}, "is not a JMESPath expression"),
        (LETTERS, {"place": "dlq", "contains": "a"}, "peek at the DLQ"),
        (f"/api/queues/{SOURCE}/timeline", {"hours": "0"}, "out of range"),
    ],
)
def test_a_look_that_makes_no_sense_is_refused_with_a_sentence(
    page: Browsing, path: str, query: dict[str, str], words: str
) -> None:
    answer = page.web.get(path, params=query)

    assert (answer.status_code, answer.json()["kind"]) == (400, "usage")
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("verb", "given", "words"),
    [
        ("replay", {"al": True}, "'al' is not known here"),
        ("replay", {"all": "yes"}, "is no boolean"),
        ("replay", {"rate": -1, "all": True}, "out of range"),
        ("replay", {"rate": 1e308, "all": True}, "out of range"),
        ("drain", {"rate": 1e308}, "out of range"),
        ("replay", {"ids": "one"}, "is no array"),
        ("replay", [], "one JSON object"),
        ("pause", {}, "reason is missing"),
        ("pause", {"reason": "  "}, "reason is empty"),
        ("edit", {"id": "a"}, "was is missing"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_before_it_begins(
    page: Browsing, verb: str, given: object, words: str
) -> None:
    answer = page.web.post(f"/api/queues/{SOURCE}/{verb}", json=given)

    assert (answer.status_code, answer.json()["kind"]) == (400, "usage")
    assert words in answer.json()["error"]
    assert page.console.tasks.all() == []


@pytest.mark.parametrize(
    ("verb", "given", "words"),
    [
        ("replay", {}, "Say which letters"),
        ("replay", {"ids": ["a"], "all": True}, "not both"),
        ("replay", {"contains": " "}, "is empty"),
        ("pause", {"reason": "a", "for": "soon"}, "is not a duration"),
        ("undo", {"file": "../secrets.jsonl"}, "There is no file"),
        ("undo", {"file": "/etc/passwd"}, "There is no file"),
        ("import", {"file": ".hidden.jsonl"}, "There is no file"),
    ],
)
def test_an_order_that_the_verb_refuses_ends_with_its_sentence(
    desk: Desk, page: Browsing, verb: str, given: dict[str, object], words: str
) -> None:
    desk.park("a")

    task = page.order(SOURCE, verb, **given)

    assert (task["state"], task["exit_code"]) == ("ended", 2)
    assert words in task["fault"]


def test_no_more_plans_are_open_at_once_than_anybody_reads(desk: Desk, page: Browsing) -> None:
    desk.park("a")
    for _ in range(AT_ONCE):
        page.order(SOURCE, "replay", all=True)

    answer = page.web.post(f"/api/queues/{SOURCE}/replay", json={"all": True})

    assert answer.status_code == 409
    assert "are under way" in answer.json()["error"]


def test_an_unknown_queue_order_or_answer_is_refused(desk: Desk, page: Browsing) -> None:
    desk.park("a")
    task = page.done(SOURCE, "replay", all=True)

    queue = page.web.get("/api/queues/nobodys/status")
    order = page.web.get("/api/tasks/none")
    late = page.web.post(
        f"/api/tasks/{task['id']}/answer", json={"question": "Replay?", "answer": "yes"}
    )

    assert [one.status_code for one in (queue, order, late)] == [409, 409, 409]
    assert "nobodys" in queue.json()["error"]
    assert "That is not asked" in late.json()["error"]


class Expired:
    """What AWS answers when a login is over."""

    def __getattr__(self, method: str) -> object:
        def call(**_: object) -> None:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, method)

        return call


def test_expired_credentials_are_told_and_mended_by_another_login(
    desk: Desk, page: Browsing
) -> None:
    desk.park("a")
    working = dict(desk.clients)
    desk.clients |= dict.fromkeys(("sqs", "dynamodb", "cloudformation"), Expired())

    refused = [page.web.get(path) for path in (LETTERS, "/api/status", "/api/about")]
    desk.clients |= working
    shown = page.get(LETTERS)

    assert [one.status_code for one in refused] == [503] * 3
    assert {one.json()["kind"] for one in refused} == {"credentials"}
    assert refused[0].json()["error"] == "These credentials have expired. Log in again."
    assert shown["count"] == 1


def test_half_a_character_in_what_aws_says_is_told(desk: Desk, page: Browsing) -> None:
    """The sentence could not be written, and the answer was a fault of the server without one."""

    class Strange:
        def get_queue_attributes(self, **_: object) -> None:
            raise ClientError(
                {"Error": {"Code": "Strange", "Message": "\ud800"}}, "GetQueueAttributes"
            )

    desk.clients["sqs"] = Strange()

    refused = page.web.get(f"/api/queues/{SOURCE}/headline")

    assert (refused.status_code, refused.json()["kind"]) == (503, "aws")
    assert "GetQueueAttributes failed: Strange: \ud800" in refused.json()["error"]


def test_a_stack_that_vanished_is_told(desk: Desk, page: Browsing) -> None:
    desk.clients["cloudformation"].stacks.clear()

    refused = page.web.get("/api/status")

    assert (refused.status_code, refused.json()["kind"]) == (409, "refused")
    assert "There is no stack" in refused.json()["error"]


def test_hostile_content_is_data_in_every_answer(desk: Desk, page: Browsing) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    (message_id,) = desk.park(hostile)

    shown = page.web.get(f"{LETTERS}/{message_id}")

    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert shown.json()["message"]["body"] == hostile


def test_the_api_is_described_by_openapi(desk: Desk, page: Browsing) -> None:
    document = page.get("/api/openapi.json")

    validate(document)
    verbs = {one["name"] for one in page.get("/api/about")["verbs"]}
    assert {f"/api/queues/{{queue}}/{verb}" for verb in verbs} <= set(document["paths"])
    replay = document["paths"]["/api/queues/{queue}/replay"]["post"]["requestBody"]
    assert "from_dlq" in replay["content"]["application/json"]["schema"]["properties"]


def test_dead_letters_known_to_the_ledger_are_a_list_of_their_own(
    desk: Desk, page: Browsing
) -> None:
    (message_id,) = desk.dead_letters("a")
    report(desk, declined(message_id))

    shown = page.get(LETTERS, place="dlq", cause="declined")

    assert [one["original_id"] for one in shown["letters"]] == [message_id]
    assert desk.visible(DLQ) == 1


@pytest.fixture
def started(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The `Host`s of the servers that were started, each of which is ended at once, as by Ctrl-C."""
    hosts: list[str] = []

    def run(_: object, sockets: list[socket.socket]) -> None:
        address = sockets[0].getsockname()[:2]
        hosts.append(":".join(map(str, address)))
        # The address was told: whoever asks now was refused before the server had started.
        socket.create_connection(address).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(uvicorn.Server, "run", run)
    return hosts


def test_the_command_prints_an_address_of_loopback_with_a_token_of_its_own(
    desk: Desk, started: list[str]
) -> None:
    first, second = desk("console"), desk("console", "--json", "--read-only")

    assert (first.code, second.code) == (0, 0)
    assert f"http://{started[0]}/#token=" in first.out
    assert second.json["url"].startswith(f"http://{started[1]}/#token=")
    assert second.json["read_only"]
    assert all(one.startswith("127.0.0.1:") for one in started)
    assert first.out.split("#token=")[1].split()[0] not in second.out


@pytest.mark.parametrize(
    ("host", "bound", "port", "asked"),
    [
        ("127.0.0.1", "127.0.0.1", 8700, ["127.0.0.1:8700", "localhost:8700"]),
        ("LOCALHOST", "127.0.0.1", 8700, ["localhost:8700", "127.0.0.1:8700"]),
        ("127.1", "127.0.0.1", 8700, ["127.0.0.1:8700"]),
        ("0:0:0:0:0:0:0:1", "::1", 8700, ["[::1]:8700", "localhost:8700"]),
        ("localhost", "127.0.0.1", 80, ["localhost", "127.0.0.1"]),
        ("Desk.Example", "192.0.2.1", 80, ["desk.example", "192.0.2.1"]),
    ],
)
def test_a_browser_is_known_by_every_way_it_writes_the_address_that_was_printed(
    host: str, bound: str, port: int, asked: list[str]
) -> None:
    assert set(asked) <= set(names(host, bound, port))
    assert ("localhost" in "".join(names(host, bound, port))) == (bound != "192.0.2.1")


def test_an_address_that_is_more_than_loopback_is_warned_of_or_refused(
    desk: Desk, started: list[str]
) -> None:
    own = socket.gethostbyname(socket.gethostname())
    everywhere = desk("console", "--host", "0.0.0.0")
    nowhere = desk("console", "--host", "192.0.2.1")
    named = desk("console", "--host", own)

    assert everywhere.code == 2
    assert "would listen everywhere" in everywhere.err
    assert nowhere.code == 1
    assert "can't be listened at" in nowhere.err
    assert ("letters travel there unencrypted" in named.err) == (not own.startswith("127."))
    assert len(started) == 1


def test_a_port_that_is_taken_is_told(desk: Desk, started: list[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = desk("console", "--port", str(taken.getsockname()[1]))

    assert ran.code == 1
    assert "Choose another --port" in ran.err
    assert started == []


def test_a_stack_that_is_not_there_is_told_before_anything_is_served(
    desk: Desk, started: list[str]
) -> None:
    ran = desk("console", "--stack", "Other")

    assert ran.code == 1
    assert "There is no stack 'Other'" in ran.err
    assert started == []


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 10**400])
def test_a_number_that_json_has_not_is_refused(number: float) -> None:
    """`1e999` is read as infinity, and the answer that repeats it could not be written: the list of orders with it.

    A whole number that is too large for the arithmetic of others was answered with OverflowError.
    """
    with pytest.raises(Misused, match="is no number"):
        Option(name="rate", about="Letters a second.", kind=Kind.NUMBER).check(number)


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("GET", "/api/nothing", 404, "There is no address /api/nothing"),
        ("GET", f"{LETTERS}/a/b/c", 404, "There is no address"),
        ("GET", "/static/nothing.js", 404, "There is no address /static/nothing.js"),
        ("POST", "/api/status", 405, "/api/status takes no POST."),
        ("DELETE", LETTERS, 405, "takes no DELETE."),
    ],
)
def test_what_is_no_address_is_told_as_every_other_fault(
    page: Browsing, method: str, path: str, status: int, sentence: str
) -> None:
    answer = page.web.request(method, path)

    assert answer.status_code == status
    assert answer.json()["kind"] == "usage"
    assert sentence in answer.json()["error"]
    assert (status == 405) == ("allow" in answer.headers)


@pytest.mark.parametrize(
    "said", ['{"a": NaN}', '{"a": [1e999]}', '"\\ud800"', '{"\\udfff": 1}'], ids=ascii
)
def test_what_json_has_not_is_refused_before_an_order_of_it_begins(
    page: Browsing, said: str
) -> None:
    """Each answer that told of such an order was a fault of the server, the list of all orders with it."""
    given = f'{{"id": "x", "was": "x", "body": "x", "attributes": {said}}}'
    headers = {"content-type": "application/json"}

    answer = page.web.post(f"/api/queues/{SOURCE}/edit", content=given, headers=headers)

    assert (answer.status_code, answer.json()["kind"]) == (400, "usage")
    assert "That is not JSON" in answer.json()["error"]
    assert page.get("/api/tasks") == []


def test_a_reason_too_long_for_the_command_is_too_long_for_the_page(page: Browsing) -> None:
    answer = page.web.post(f"/api/queues/{SOURCE}/pause", json={"reason": "x" * 501})

    assert answer.status_code == 400
    assert answer.json()["error"] == "reason has 501 characters, at most 500."


def test_what_a_letters_consumer_logged_is_shown_and_nothing_is_received_for_it(
    desk: Desk, page: Browsing, wire: Wire
) -> None:
    (message_id,) = failed(desk, "a body")
    assert BILLING.log_group is not None
    assert BILLING.log_stream is not None
    for number in range(60):
        text = f"{number} of {message_id} " + "x" * 10_000
        desk.logs.write(BILLING.log_group, text, stream=BILLING.log_stream)

    shown = page.get(f"{LETTERS}/{message_id}/log")

    told_by_command = desk("show", message_id, "--logs", "--json").json["log"]
    lines = shown["log"]["lines"]
    assert (len(lines), shown["log"]["left_off"]) == (50, True)
    assert [one["text"][:20] for one in lines] == [
        one["text"][:20] for one in told_by_command["lines"]
    ]
    assert {len(one["text"]) for one in lines} == {4_000}
    assert shown["log"]["command"] == told_by_command["command"]
    assert count(wire, "ReceiveMessage") == 0


def test_a_letter_whose_consumer_never_said_where_it_logs_is_searched_for_where_a_person_says(
    desk: Desk, page: Browsing
) -> None:
    (message_id,) = desk.park("a body")
    desk.logs.write("/ecs/orders", f"gave up on {message_id}")
    desk.world.clock.advance(60)

    unknown = page.get(f"{LETTERS}/{message_id}/log")
    shown = page.get(f"{LETTERS}/{message_id}/log", log_group="/ecs/orders")

    assert unknown["log"] is None
    assert "No report says where its consumer logs" in unknown["warnings"][0]
    assert [one["text"] for one in shown["log"]["lines"]] == [f"gave up on {message_id}"]


def test_no_order_of_the_page_runs_a_program_and_each_has_the_options_of_the_command() -> None:
    """With a token, a leak of an address would be a leak of a shell."""
    on_page = {one.name: {each.name for each in one.options_on(Side.PAGE)} for one in ORDERS}
    typed = {one.name: {each.name for each in one.options_on(Side.COMMAND)} for one in ORDERS}

    runs_a_program = {"validate", "command"}
    assert {name for name in on_page if on_page[name] & runs_a_program} == set()
    assert {name for name in typed if typed[name] & runs_a_program} == {"replay", "edit"}
    only_here = {
        name: on_page[name] - typed[name] for name in on_page if on_page[name] - typed[name]
    }
    assert only_here == {
        "edit": {"id", "was", "body", "attributes"},
        "export": {"ids"},
        "import": {"to_source"},
    }
