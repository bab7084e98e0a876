"""Letters are stuck, and every view says so: payments are down, and nothing is live that could tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.faults import Call, Response, Wire, meanwhile, nth
from simulator.consumers import Consumer
from simulator.world import SOURCE
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.oncall.console.cache import Notepad
from tests.oncall.browsing import Browsing
from tests.oncall.desk import Desk

GREEN = "green"


@pytest.fixture
def down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The consumer has been down for long; 16 letters are in the DLQ, and producers send nothing."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(consumer=Consumer(health=lambda _elapsed: False))
    desk.dead_letters(*(f"payment {number}" for number in range(16)))
    desk.is_consumer_up = True  # it polls, and fails
    return desk


def run_for(desk: Desk, minutes: int) -> None:
    for _ in range(minutes):
        desk("run", "--yes")
        desk.sleep(60)


def headline(desk: Desk) -> dict[str, str]:
    (one,) = desk("status", "--json").json["queues"]
    told: dict[str, str] = one["headline"]
    return told


def test_status_is_never_green_and_says_sooner_or_later_that_nothing_succeeds(down: Desk) -> None:
    """It said "CLOSED, letters flow" in green for 19 minutes."""
    topics = []
    for _ in range(25):
        run_for(down, 1)
        told = headline(down)
        assert told["colour"] != GREEN, told
        topics.append(told["topic"])

    assert topics[0] == "starting"
    assert topics[6] in ("no outcome known", "consumer may be down")
    assert topics[-1] in ("consumer may be down", "consumer likely down", "a canary is out")


def test_a_drain_says_what_is_seen_of_the_consumer(down: Desk) -> None:
    """It said "16 left of 16; circuit CLOSED" for 19 minutes."""
    out = down("drain", "--window", "5", "--for", "30m", "--yes").out

    assert "16 letters wait. The next pass looks at them." in out
    assert "5 letters are out since" in out
    assert "Consumer may be down: 0 of " in out
    assert "circuit CLOSED" not in out


def test_a_drain_tells_a_headline_once_until_there_is_another(down: Desk) -> None:
    lines = down("drain", "--window", "5", "--for", "5m", "--yes").out.splitlines()

    progress = [one for one in lines if "left of 16" in one]
    assert len(progress) > 10
    assert sum("letters are out" in one for one in progress) <= 3


def test_ctrl_c_of_a_drain_says_that_the_order_stays(down: Desk) -> None:
    """It ended without a word, and the drain went on."""

    def press(_call: Call, _act: object) -> Response:
        raise KeyboardInterrupt

    ran = down("drain", "--window", "5", "--for", "1h", "--yes", script=nth("Invoke", 2, press))

    assert "The order stays in force until 2026-01-01T01:" in ran.err
    assert "`redrive pause` ends it" in ran.err


def test_causes_does_not_call_flowing_what_waits(down: Desk) -> None:
    """It called letters "flowing" while the circuit was OPEN."""
    run_for(down, 8)

    ran = down("causes")

    assert "Consumer may be down: 0 of " in ran.out
    assert "waiting with all others: consumer may be down" in ran.out
    assert "flowing" not in ran.out


@pytest.mark.parametrize(
    "verb", [("replay", "--from-dlq"), ("park",), ("delete", "--from-dlq")], ids=lambda one: one[0]
)
def test_the_plan_of_what_moves_letters_says_what_is_seen_of_the_consumer(
    down: Desk, verb: tuple[str, ...]
) -> None:
    """It said no more than that the circuit is CLOSED."""
    run_for(down, 8)

    ran = down(*verb, "--all", answer="no")

    assert "Consumer may be down: 0 of " in ran.said


def test_the_page_and_its_queue_begin_with_it(down: Desk) -> None:
    run_for(down, 8)

    (shown,) = Browsing(down.session(Wire(), Notepad())).get("/api/status")["queues"]

    assert shown["facts"][0]["name"] == "Now"
    assert shown["facts"][0]["tone"] == "bad"
    assert shown["headline"]["topic"] == "consumer may be down"


def test_the_report_of_a_pass_has_it_for_the_log(down: Desk) -> None:
    run_for(down, 8)

    assert "Consumer may be down" in down("run", "--yes", "--json").json["headline"]
    assert "Consumer may be down" in down("run", "--yes").out


# Dry runs.


@pytest.fixture
def dry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A deployment that decides and reports, and does nothing."""
    monkeypatch.chdir(tmp_path)
    return Desk(Settings(mode=Mode.DRY_RUN))


def test_passes_of_a_dry_run_are_told_as_what_they_would_do(dry: Desk) -> None:
    """They were shown as redrives."""
    dry.dead_letters("a", "b")

    ran = dry("run", "--yes")
    status = dry("status").out
    shown = Browsing(dry.session(Wire(), Notepad())).get(f"/api/queues/{SOURCE}/timeline")

    assert "2 examined, 2 would be redriven" in ran.out
    assert "DRY_RUN: 2 would be redriven" in status
    assert "Dry run: 2 would be redriven" in [one["text"] for one in shown["events"]]
    assert [one["redriven"] for one in shown["passes"]] == [0]


def test_status_of_a_dry_run_says_that_nothing_goes_and_when_it_looks_again(dry: Desk) -> None:
    dry.dead_letters("a", "b")

    out = dry("status").out

    assert "Dry run: letters are looked at, and none is redriven. 2 letters wait." in out
    assert "Next look:   within 5 min" in out


def test_looks_of_a_dry_run_do_not_hide_how_old_the_oldest_letter_is(dry: Desk) -> None:
    """SQS leaves out of its metric what was received three times and not deleted."""
    dry.dead_letters("a")
    dry.world.clock.advance(2 * 3600)
    dry("run", "--yes")
    dry.world.clock.advance(60)

    (one,) = dry("status", "--json").json["queues"]

    assert one["oldest_letter_seconds"] >= 2 * 3600


def test_causes_of_a_dry_run_do_not_blame_the_consumer(dry: Desk) -> None:
    """Nobody reads what it reports: the hint was to have it report."""
    dry.dead_letters("a")

    out = dry("causes").out

    assert "In a dry run reports of consumers stay unread" in out
    assert "docs/consumer.md" not in out


# Two people.


def test_whom_another_was_faster_than_is_told_so(desk: Desk) -> None:
    """It said "Replayed 0 letters", and that all was done."""
    desk.park("a", "b", "c")

    def take_them() -> None:
        url, sqs = desk.deployment.parking_lot_url, desk.world.sqs
        taken = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        handles = [
            {"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]}
            for number, one in enumerate(taken)
        ]
        sqs.delete_message_batch(QueueUrl=url, Entries=handles)

    ran = desk("replay", "--all", "--yes", script=nth("UpdateItem", 0, meanwhile(take_them)))

    assert "Replayed 0 letters." in ran.out
    assert "Gone: 3 letters of the plan, which somebody else took meanwhile" in ran.err
    assert ran.code == 1
