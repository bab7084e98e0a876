"""Letters that their consumers parked: the copy that lies there names them from page to fix."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from simulator.consumers import Consumer, Reports
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.reports.outcomes import Result
from smart_redriver.engine.triage.ledger import Status
from tests.faults.scenes import SOME, TEN
from tests.oncall.desk import Desk
from tests.oncall.reported import declined, report

BAD_ORDER = "simulator.failures.BadOrder"
CAUSE = "BadOrder: an order without items: *"


@pytest.fixture(params=[SOME, TEN], ids=["with its metadata", "without room for redrive metadata"])
def attributes(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # where originals are kept
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")


@pytest.fixture
def desk() -> Desk:
    """A deployment whose consumer parks what is permanent."""
    return Desk(consumer=Consumer(reports=Reports(permanent=True)))


def parked_by_consumer(desk: Desk, attributes: Any, *bodies: str) -> list[str]:
    """Let the consumer meet poison and park it, and a pass hear of it; the original ids."""
    ids = []
    for body in bodies:
        sent = desk.world.sqs.send_message(
            QueueUrl=desk.world.url(SOURCE), MessageBody=body, MessageAttributes=attributes
        )
        ids.append(sent["MessageId"])
        desk.world.sent.add(body)
        desk.world.poison.add(body)
    desk.is_consumer_up = True
    desk.sleep(60)
    desk.is_consumer_up = False
    assert desk("run", "--yes").code == 0
    desk.world.clock.advance(300)  # the pass has looked through the parking lot, too
    assert desk.bodies(PARKING_LOT) == sorted(bodies)
    return ids


def test_they_are_listed_with_their_reason_and_cause(desk: Desk, attributes: Any) -> None:
    ids = parked_by_consumer(desk, attributes, "order 1", "order 2")

    told = desk("parked", "--json", "--list").json
    (group,) = desk("causes", "--json").json["queues"][0]["groups"]

    assert sorted(one["original_id"] for one in told["letters"]) == sorted(ids)
    (row,) = told["groups"]
    assert (row["reason"], row["cause"], row["count"]) == ("PERMANENT", CAUSE, 2)
    assert (group["cause"], group["parked"], group["state"]) == (CAUSE, 2, "parked")


def test_each_is_shown_by_its_original_id_with_how_it_failed(desk: Desk, attributes: Any) -> None:
    first, _ = parked_by_consumer(desk, attributes, "a long body", "another")

    ran = desk("show", first)

    assert f"{first} is in the parking lot." in ran.out
    assert f"Failed:      {BAD_ORDER}: an order without items: [body]" in ran.out
    assert "Why:         it can never succeed, as its consumer reported" in ran.out
    assert "a long body" in ran.out


@pytest.mark.parametrize("how", ["ID", "--cause"])
def test_one_is_replayed_under_its_own_name(desk: Desk, attributes: Any, how: str) -> None:
    (message_id,) = parked_by_consumer(desk, attributes, "a")

    ran = desk("replay", *([message_id] if how == "ID" else ["--cause", "badorder"]), "--yes")

    assert ran.code == 0, ran.said
    assert (desk.bodies(SOURCE), desk.bodies(PARKING_LOT)) == (["a"], [])
    entry = desk.entry(message_id)
    assert (entry.status, entry.redrive_count, entry.strikes) == (Status.REPLAYED, 1, 0)
    assert (entry.cause, entry.is_permanent) == (None, False)
    assert desk("parked", "--json").json["count"] == 0


def test_one_that_was_replayed_and_fails_again_is_the_same_letter(
    desk: Desk, attributes: Any
) -> None:
    (message_id,) = parked_by_consumer(desk, attributes, "a")
    desk("replay", "--all", "--yes")
    while desk.world.depth(SOURCE):
        desk.consumer_fails()

    told = desk("letters", "--json").json

    assert [one["original_id"] for one in told["letters"]] == [message_id]
    assert desk.bodies(DLQ) == ["a"]


def test_one_is_edited(desk: Desk, attributes: Any) -> None:
    message_id, _ = parked_by_consumer(desk, attributes, "broken", "another")

    ran = desk("edit", message_id, "--yes")

    assert ran.code == 0, ran.said
    assert (desk.bodies(SOURCE), desk.bodies(PARKING_LOT)) == (["mended"], ["another"])
    assert desk.entry(message_id).status is Status.REPLAYED


def test_one_is_deleted_and_brought_back(desk: Desk, attributes: Any, tmp_path: Path) -> None:
    message_id, _ = parked_by_consumer(desk, attributes, "a", "b")
    file = tmp_path / "gone.jsonl"

    gone = desk("delete", message_id, "--yes", "--export", str(file))

    assert gone.code == 0, gone.said
    assert desk.bodies(PARKING_LOT) == ["b"]
    assert desk.entry(message_id).status is Status.DELETED
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["original_id"], line["queue"], line["reason"]) == (message_id, SOURCE, "PERMANENT")
    assert desk("import", str(file), "--to", "source", "--yes").code == 0
    assert desk.bodies(SOURCE) == ["a"]


def test_all_of_many_are_replayed_side_by_side(desk: Desk) -> None:
    ids = parked_by_consumer(desk, TEN, *(f"m{number:02}" for number in range(35)))

    ran = desk("replay", "--all", "--yes", "--rate", "0")

    assert ran.code == 0, ran.said
    assert len(desk.bodies(SOURCE)) == 35
    assert {desk.entry(one).status for one in ids} == {Status.REPLAYED}


def test_a_report_that_names_another_letters_copy_changes_nothing_of_that(desk: Desk) -> None:
    """A forged report can't make one letter of another: the copy's own metadata, or entry, says what it is."""
    (honest,) = parked_by_consumer(desk, SOME, "honest")
    copy = desk.entry(honest).current_id
    report(desk, declined("forged", result=Result.PERMANENT, parked_id=copy))
    report(desk, declined("forged too", result=Result.PERMANENT, parked_id=honest))

    ran = desk("replay", honest, "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(SOURCE) == ["honest"]
    assert desk.entry(honest).status is Status.REPLAYED
    assert desk.entry("forged").status is Status.PARKED


def test_of_two_that_claim_a_copy_the_first_report_counts(desk: Desk) -> None:
    (honest,) = parked_by_consumer(desk, TEN, "honest")
    copy = desk.entry(honest).current_id
    for forged in ("0-forged", "z-forged"):
        report(desk, declined(forged, result=Result.PERMANENT, parked_id=copy))

    ran = desk("replay", honest, "--yes")

    assert ran.code == 0, ran.said
    assert desk.entry(honest).status is Status.REPLAYED
    assert desk.bodies(SOURCE) == ["honest"]


def test_a_letter_that_nobody_reported_is_still_sent_back_and_none_of_it_is_lost(
    desk: Desk,
) -> None:
    """Its report was lost, and its copy had no room for redrive metadata: to the ledger it is a letter of its own."""
    lot = desk.world.url(PARKING_LOT)
    desk.world.sqs.send_message(QueueUrl=lot, MessageBody="unheard", MessageAttributes=TEN)
    desk.world.clock.advance(timedelta(minutes=1).total_seconds())

    ran = desk("replay", "--all", "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(SOURCE) == ["unheard"]
