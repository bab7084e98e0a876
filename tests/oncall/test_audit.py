"""`redrive audit`: every letter of a span of time is accounted for, or named."""

from dataclasses import replace

from simulator.world import DLQ
from tests.oncall.desk import Desk
from tests.oncall.reported import held_by_cause


def test_every_letter_is_accounted_for(desk: Desk) -> None:
    desk.park("a", "b")
    (gone,) = desk.park("d")
    desk("delete", gone, "--reason", "a test", "--yes")
    desk.dead_letters("c")

    ran = desk("audit")

    assert ran.code == 0, ran.said
    assert "4 letters first seen since" in ran.out
    assert "2 in the parking lot" in ran.out
    assert "1 in the DLQ" in ran.out
    assert "1 deleted by hand" in ran.out
    assert "Every letter is accounted for." in ran.out
    assert desk.visible(DLQ) == 1


def test_a_letter_that_somebody_else_took_is_named(desk: Desk) -> None:
    (message_id,) = desk.park("a")
    url = desk.deployment.parking_lot_url
    (message,) = desk.world.sqs.receive_message(QueueUrl=url)["Messages"]
    entry = {"Id": "0", "ReceiptHandle": message["ReceiptHandle"]}
    desk.world.sqs.delete_message_batch(QueueUrl=url, Entries=[entry])

    ran = desk("audit", "--json")

    assert ran.code == 3
    assert ran.json["fates"]["UNEXPLAINED"] == 1
    assert ran.json["unexplained"] == [
        {"original_id": message_id, "why": "parked, and not in the parking lot"}
    ]


def test_the_beginning_of_an_id_is_enough(desk: Desk) -> None:
    first, second = desk.park("a", "b")

    assert f"{first} is in the parking lot." in desk("show", first[:8]).out
    ran = desk("replay", second[:13], "--yes")

    assert ran.code == 0, ran.said
    assert desk("parked", "--list", "--json").json["count"] == 1


def test_letters_of_before_are_left_out(desk: Desk) -> None:
    desk.park("old")
    desk.world.clock.advance(3 * 3600)
    desk.park("young")

    assert desk("audit", "--since", "1h", "--json").json["letters"] == 1


def test_letters_that_wait_for_a_known_moment_are_there_though_nobody_sees_them(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    desk.store.write_ledger([desk.suspect(message_id)], [], desk.world.clock.now())
    desk("run", "--yes")  # hides it until its last chance
    assert desk.visible(DLQ) == 0

    told = desk("audit", "--json").json

    assert told["fates"]["STILL_THERE"] == 1
    assert told["unexplained"] == []


def test_letters_that_a_pass_has_in_its_hands_are_not_called_lost(desk: Desk) -> None:
    """They were "NOT ACCOUNTED FOR"."""
    (message_id,) = desk.dead_letters("a")
    desk.store.write_ledger(
        [replace(desk.suspect(message_id), not_before=None)], [], desk.world.clock.now()
    )
    desk.world.sqs.receive_message(QueueUrl=desk.world.url(DLQ), VisibilityTimeout=600)

    ran = desk("audit")

    assert ran.code == 3
    assert "1 hidden in the DLQ or the parking lot, which hide as many" in ran.out
    assert "1 letter is hidden or was not come to: run it again" in ran.out
    assert "NOT ACCOUNTED FOR" not in ran.out
    assert "1 letter is hidden: a pass or a person is at work" in desk("letters", "--held").out
    assert "Every letter is accounted for." not in ran.out


def test_letters_that_wait_for_a_canary_of_their_cause_are_there_as_long_as_as_many_are_hidden(
    desk: Desk,
) -> None:
    held_by_cause(desk, "a", "b")
    assert desk("audit", "--json").json["fates"]["STILL_THERE"] == 2

    desk.sleep(3600)
    url = desk.world.url(DLQ)
    for one in desk.world.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]:
        desk.world.sqs.delete_message_batch(
            QueueUrl=url, Entries=[{"Id": "0", "ReceiptHandle": one["ReceiptHandle"]}]
        )
    told = desk("audit", "--json").json

    assert told["fates"]["STILL_THERE"] == 0
    assert len(told["unexplained"]) == 2
