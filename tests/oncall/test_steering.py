"""`pause`, `resume`, `open`, `close`, `drain`, `run`: what people order is what passes do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import meanwhile, nth
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.aws.queues import DeadLetters
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.triage.decision import HoldReason
from smart_redriver.oncall.letters.presentation import HELD
from tests.oncall.desk import Desk


def test_a_paused_queue_is_left_alone_and_the_report_says_by_whom(desk: Desk) -> None:
    desk.dead_letters("a")

    ran = desk("pause", "--reason", "migration", "--yes")
    report = desk("run", "--yes", "--json").json

    assert ran.code == 0
    assert report["outcome"] == "PAUSED"
    assert report["reason"] == 'paused by kim until somebody resumes it: "migration"'
    assert 'Paused:      by kim until somebody resumes it: "migration"' in desk("status").out
    assert desk.bodies(DLQ) == ["a"]


def test_a_pause_with_an_end_ends_by_itself(desk: Desk) -> None:
    desk.dead_letters("a")

    until = desk.world.clock.now() + timedelta(minutes=90)
    ran = desk("pause", "--reason", "migration", "--for", "1h30m", "--yes", "--json")
    before = desk("run", "--yes", "--json").json["outcome"]
    desk.world.clock.advance(5400)
    after = desk("run", "--yes", "--json").json["outcome"]

    assert ran.json["paused_until"] == f"{until:%Y-%m-%dT%H:%M:%SZ}"
    assert (before, after) == ("PAUSED", "DONE")


@pytest.mark.parametrize(
    ("more", "before", "code", "left"),
    [
        ((), (), 3, 4),
        (("--even-though-paused",), (), 0, 0),
        # Its plan told of that pause.
        (("--even-though-paused",), ("pause", "--reason", "migration", "--yes"), 0, 0),
    ],
)
def test_a_pause_stops_a_replay_that_is_at_work(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    before: tuple[str, ...],
    code: int,
    left: int,
) -> None:
    """It went on to its end, although a pause promises to stop all redrives."""
    desk.park(*(f"letter {number}" for number in range(7)))
    if before:
        desk(*before)
    is_told: list[bool] = []

    def pause_and_wait(seconds: float) -> None:
        if not is_told:
            is_told.append(True)
            paused = desk("pause", "--reason", "the database moves", "--yes", *more)
            assert "A replay at work stops within two minutes" in paused.said
        desk.world.clock.advance(seconds)

    monkeypatch.setattr(desk, "sleep", pause_and_wait)
    ran = desk("replay", "--all", "--rate", "0.05", "--yes", *more)

    assert ran.code == code, ran.said
    assert len(desk.bodies(PARKING_LOT)) == left
    assert desk.visible(PARKING_LOT) == left
    assert ("Stopped, as kim paused the queue; run it again to go on." in ran.err) is bool(left)


@pytest.mark.parametrize(("again", "code", "left"), [((), 0, 0), (("pause",), 3, 4)])
def test_a_replay_that_was_confirmed_during_a_pause_goes_on_until_another(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, again: tuple[str, ...], code: int, left: int
) -> None:
    desk.park(*(f"letter {number}" for number in range(7)))
    desk("pause", "--reason", "migration", "--yes")
    due = list(again)

    def wait(seconds: float) -> None:
        if due:
            assert desk(due.pop(), "--reason", "the disk is full", "--yes").code == 0
        desk.world.clock.advance(seconds)

    monkeypatch.setattr(desk, "sleep", wait)
    ran = desk("replay", "--all", "--rate", "0.05", answer="yes\nyes")

    assert ran.code == code, ran.said
    assert len(desk.bodies(PARKING_LOT)) == left


@pytest.mark.parametrize(
    ("to", "more", "code", "imported"),
    [
        ("source", (), 3, 10),
        ("source", ("--even-though-paused",), 0, 12),
        ("parking-lot", (), 0, 12),
    ],
)
def test_a_pause_stops_an_import_to_the_source(
    desk: Desk, tmp_path: Path, to: str, more: tuple[str, ...], code: int, imported: int
) -> None:
    desk.park(*(f"letter {number}" for number in range(12)))
    file = str(tmp_path / "letters.jsonl")
    assert desk("delete", "--all", "--export", file, "--yes").code == 0

    def pause() -> None:
        assert desk("pause", "--reason", "the database moves", "--yes").code == 0

    script = nth("SendMessageBatch", 0, meanwhile(pause))
    ran = desk("import", file, "--to", to, "--yes", *more, script=script)

    assert ran.code == code, ran.said
    assert len(desk.bodies(SOURCE) + desk.bodies(PARKING_LOT)) == imported
    assert ("Stopped, as kim paused the queue; run it again to go on." in ran.err) is bool(code)


def test_resume_ends_a_pause(desk: Desk) -> None:
    desk.dead_letters("a")
    desk("pause", "--reason", "migration", "--yes")

    assert desk("resume", "--yes").code == 0
    assert desk("run", "--yes", "--json").json["redriven"] == 1


@pytest.mark.parametrize("before", [(), ("pause", "--reason", "migration", "--for", "1h", "--yes")])
def test_resume_says_that_nothing_is_paused_and_records_nothing(
    desk: Desk, before: tuple[str, ...]
) -> None:
    if before:
        desk(*before)
    desk.world.clock.advance(3600)
    circuit, history = desk.store.load_circuit(), desk.history()

    ran, told = desk("resume"), desk("resume", "--json").json

    assert ran.code == 0, ran.said
    assert ran.out.endswith("\norders is not paused by anybody: nothing was changed.\n")
    assert told == {"queue": "orders", "circuit": "CLOSED", "paused": False, "paused_until": None}
    assert (desk.store.load_circuit(), desk.history()) == (circuit, history)


def test_a_queue_that_does_not_answer_can_be_paused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_: DeadLetters) -> QueueFacts:
        raise CallFailed("GetQueueAttributes", "ServiceUnavailable")

    monkeypatch.setattr(DeadLetters, "facts", unreachable)

    ran = desk("pause", "--reason", "SQS is down", "--yes", "--json")

    assert ran.code == 0
    assert ran.json["paused"] is True
    assert "Not known: the DLQ could not be read." in ran.err


@pytest.mark.parametrize(("verb", "state"), [("open", "OPEN"), ("close", "CLOSED")])
def test_the_circuit_can_be_forced_and_tells_by_whom(desk: Desk, verb: str, state: str) -> None:
    other = "close" if verb == "open" else "open"
    desk(other, "--reason", "before", "--yes")

    ran = desk(verb, "--reason", "I checked", "--yes", "--json")

    assert ran.json["circuit"] == state
    told = desk("status", "--json").json["queues"][0]["circuit"]
    assert told["state"] == state
    assert told["reason"] == "forced by kim: I checked"


@pytest.mark.parametrize("verb", ["pause", "open", "close"])
def test_whoever_stops_or_forces_anything_has_to_say_why(desk: Desk, verb: str) -> None:
    assert desk(verb, "--yes").code == 2
    assert desk.store.load_circuit() is None


@pytest.mark.parametrize("verb", ["pause", "open", "close", "drain", "run"])
def test_an_order_shows_its_plan_and_takes_no_for_an_answer(desk: Desk, verb: str) -> None:
    reason = () if verb in ("drain", "run") else ("--reason", "x")
    desk.dead_letters("a")

    ran = desk(verb, *reason, answer="no")

    assert ran.code == 1
    assert ran.out.startswith("Plan: ")
    assert desk.store.load_circuit() is None
    assert desk.history() == []


def test_resume_shows_its_plan_and_takes_no_for_an_answer(desk: Desk) -> None:
    desk("pause", "--reason", "migration", "--yes")
    circuit, history = desk.store.load_circuit(), desk.history()

    ran = desk("resume", answer="no")

    assert ran.code == 1
    assert ran.out.startswith("Plan: resume orders.")
    assert (desk.store.load_circuit(), desk.history()) == (circuit, history)


def test_an_order_is_not_lost_when_a_pass_writes_the_circuit_at_the_same_time(desk: Desk) -> None:
    desk.dead_letters("a")
    another_pass = nth("PutItem", 0, meanwhile(desk.redriver.tick))

    ran = desk("pause", "--reason", "migration", "--yes", script=another_pass)

    circuit = desk.store.load_circuit()
    assert ran.code == 0
    assert circuit is not None
    assert circuit.orders.is_paused
    assert circuit.pending  # what the pass wrote


def test_a_drain_runs_passes_until_the_dlq_is_empty(desk: Desk) -> None:
    desk.dead_letters(*(f"letter {n}" for n in range(60)))
    desk.is_consumer_up = True

    ran = desk("drain", "--for", "2h", "--yes", "--reason", "fixed")

    assert ran.code == 0, ran.said
    assert (
        "let 50 letters of orders (now 5) await a verdict at once, at up to 200 a second" in ran.out
    )
    assert "60 letters are in the DLQ" in ran.out
    assert "10 left of 60" in ran.out
    assert "The DLQ is empty" in ran.out
    assert desk.bodies(DLQ) == []


def test_a_drain_says_how_many_letters_came_meanwhile(desk: Desk) -> None:
    """It said "74 left of 70"."""
    desk.dead_letters(*(f"letter {n}" for n in range(20)))
    more = nth("Invoke", 0, meanwhile(lambda: desk.dead_letters("x", "y", "z")))

    ran = desk("drain", "--window", "5", "--for", "1m", "--yes", script=more)

    assert "18 left of 23 (3 came, or came back, meanwhile)" in ran.out


def test_a_drain_counts_what_passes_sent_while_it_asked(desk: Desk) -> None:
    """It said "0 left of 20", and that 15 letters were sent back."""
    desk.dead_letters(*(f"letter {n}" for n in range(20)))
    desk.is_consumer_up = True

    def send_some() -> None:
        desk.redriver.tick()
        desk.sleep(30)

    meanwhile_five = nth("UpdateItem", 0, meanwhile(send_some))
    ran = desk("drain", "--for", "2h", "--yes", script=meanwhile_five)

    assert "0 left of 20" in ran.out
    assert "20 letters sent back: " in ran.out


def test_a_drain_stops_when_the_circuit_opens(desk: Desk) -> None:
    desk.dead_letters(*(f"letter {n}" for n in range(60)))
    desk("drain", "--for", "1h", "--yes", "--no-follow")
    desk("run", "--yes")

    def open_it() -> None:
        desk("open", "--reason", "not again", "--yes")

    ran = desk(
        "drain", "--window", "50", "--yes", "--json", script=nth("Invoke", 1, meanwhile(open_it))
    )

    assert ran.json["circuit"] == "OPEN"
    assert "the consumer is not well" in ran.json["end"]
    assert ran.code == 1  # this drain sent nothing


def test_a_drain_can_be_ordered_without_waiting_for_it(desk: Desk) -> None:
    desk.dead_letters("a")

    ran = desk("drain", "--window", "40", "--rate", "7", "--no-follow", "--yes", "--json")

    assert ran.json == {"window": 40, "windows": {"orders": 40}, "rate": 7.0, "depth": 1}
    circuit = desk.store.load_circuit()
    assert circuit is not None
    assert (circuit.window, circuit.orders.drain_rate) == (40, 7.0)
    assert desk.bodies(DLQ) == ["a"]


def test_a_run_prints_the_report_of_its_pass(desk: Desk) -> None:
    desk.dead_letters("a", "b")

    ran = desk("run", "--yes")

    assert ran.code == 0
    assert (
        "DONE (window 5): circuit of orders CLOSED, 2 letters await a verdict; "
        "2 examined, 2 redriven; 2 letters were in the DLQ."
    ) in ran.out
    assert "2 letters await a verdict" in desk("status").out
    assert desk.bodies(SOURCE) == ["a", "b"]


def test_a_run_that_stands_aside_for_a_native_redrive_did_not_do_its_work(desk: Desk) -> None:
    desk.dead_letters("a", "b")
    sqs = desk.world.sqs
    asked = sqs.get_queue_attributes(QueueUrl=desk.world.url(DLQ), AttributeNames=["QueueArn"])
    arn = asked["Attributes"]["QueueArn"]
    sqs.start_message_move_task(SourceArn=arn, MaxNumberOfMessagesPerSecond=1)

    ran = desk("run", "--yes", "--json")

    assert (ran.json["outcome"], ran.code) == ("MOVE_TASK_RUNNING", 1)


def test_a_dry_run_prints_each_decision_and_its_reason(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")

    ran = desk("run", "--dry-run")

    assert any(line.split() == [message_id, "redrive", "DUE"] for line in ran.out.splitlines())
    assert desk.visible(DLQ) == 1


def test_a_dry_run_judges_as_the_next_pass_does(desk: Desk) -> None:
    desk.dead_letters("a", "b", "c")
    desk("run", "--yes")
    desk.is_consumer_up = True
    desk.sleep(600)

    foreseen, done = desk("run", "--dry-run"), desk("run", "--yes")

    (verdict,) = (line for line in done.out.splitlines() if line.startswith("Verdict on batch"))
    assert "of orders (3 letters): SUCCESS" in verdict
    assert verdict in foreseen.out.splitlines()


def test_a_dry_run_knows_of_a_drain(desk: Desk) -> None:
    desk.dead_letters(*(f"letter {n}" for n in range(60)))
    desk("drain", "--no-follow", "--yes")

    foreseen = desk("run", "--dry-run", "--json").json
    done = desk("run", "--yes", "--json").json

    assert foreseen["would"]["redriven"] == done["redriven"] == 50
    assert foreseen["redriven"] == 0


def test_a_dry_run_of_a_redriver_that_is_set_to_pause_says_so() -> None:
    desk = Desk(Settings(mode=Mode.PAUSED))
    desk.dead_letters("a")

    ran = desk("run", "--dry-run")

    assert "The setting `mode` is paused. Otherwise the next pass would:" in ran.out
    assert "1 would be redriven" in ran.out


def test_a_dry_run_leaves_visible_what_it_would_renew_before_it_expires(desk: Desk) -> None:
    desk.dead_letters("a", "b")
    desk.world.clock.advance(13.5 * 86_400)
    desk("open", "--reason", "not now", "--yes")

    ran = desk("run", "--dry-run")

    assert "2 would be renewed" in ran.out
    assert (desk.visible(DLQ), desk.bodies(PARKING_LOT)) == (2, [])


def test_a_run_says_what_keeps_a_letter_for_its_last_chance(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    desk.store.write_ledger([desk.suspect(message_id)], [], desk.world.clock.now())

    ran = desk("run", "--dry-run")

    assert "1 held as LAST_CHANCE" in ran.out
    assert f"LAST_CHANCE: {HELD[HoldReason.LAST_CHANCE]}." in ran.out


def test_a_duration_that_is_none_is_misuse(desk: Desk) -> None:
    ran = desk("pause", "--reason", "x", "--for", "two hours", "--yes")

    assert ran.code == 2
    assert "'two hours' is not a duration. Write for example 90s, 20m, 2h, 1d or 1h30m." in ran.err


def test_a_reason_longer_than_anybody_reads_is_refused_before_anything_is_asked(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = desk("pause", "--reason", "x" * 20_000, "--yes")
    longest = desk("pause", "--reason", "x" * 500, "--yes")

    assert ran.code == 2
    assert "It has 20,000 characters, at most 500." in capsys.readouterr().err
    assert longest.code == 0
