"""Moments just before a pass, one for each kind of pass there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fakes.faults import die_before, nth
from simulator.consumers import Consumer, Reports
from simulator.sources import Source
from simulator.world import SOURCE, hours, minutes
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, metadata_attribute
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.reports.outcomes import Result
from tests.faults.scene import (
    BATCH,
    EARLIER_BATCH,
    ONE_CALL,
    SOME,
    STRANGER,
    TEN,
    UNRECORDED,
    Scene,
    a_scene,
)
from tests.faults.watched import WatchedRedriver

__all__ = [
    "BATCH",
    "EARLIER_BATCH",
    "ONE_CALL",
    "SCENES",
    "SOME",
    "STRANGER",
    "TEN",
    "UNRECORDED",
    "Scene",
    "WatchedRedriver",
    "a_scene",
]

#: A second source queue that the re-driver serves.
NEIGHBOUR = "refunds"

#: A consumer with the kit.
REPORTING = Consumer(reports=Reports())

#: With these a letter with two strikes backs off for half an hour at least, which SQS can't delay.
LONG_BACKOFF = Settings(base_delay_seconds=900, max_delay_seconds=3600)


def fresh_letters() -> Scene:
    scene = a_scene()
    scene.post_fresh(12)
    scene.bury()
    scene.set_circuit()
    return scene


def a_good_batch_and_its_returns() -> Scene:
    scene = a_scene()
    scene.post_fresh(2)
    scene.bury()
    scene.begin_batch(successes=8)
    scene.post_returning("returned")
    scene.post_returning("returned often", count=3, strikes=2)
    scene.bury()
    scene.set_circuit(pending=(scene.batch(10),))
    scene.verdicts = {SOURCE: Verdict.SUCCESS}
    return scene


def a_failed_batch() -> Scene:
    scene = a_scene()
    scene.post_fresh(1)
    scene.bury()
    scene.begin_batch()
    scene.post_returning("returned")
    scene.post_returning("returned, too")
    scene.bury()
    scene.let_live_messages_speak()
    scene.set_circuit(pending=(scene.batch(2),))
    scene.verdicts = {SOURCE: Verdict.FAILURE}
    return scene


def a_batch_awaiting_its_verdict() -> Scene:
    """Its letters are out; the window is full, and more letters wait."""
    scene = a_scene()
    scene.post_fresh(3)
    scene.bury()
    scene.begin_batch()
    for n in range(4):
        scene.post_returning(f"out-{n}", DelaySeconds=900)
    scene.set_circuit(window=4, pending=(scene.batch(4, is_due=False),))
    return scene


def the_first_canary() -> Scene:
    scene = a_scene()
    scene.post_returning("returned")
    scene.post_fresh(2)
    scene.bury()
    scene.set_circuit(state=State.OPEN, consecutive_opens=1, window=1, is_shaken=True)
    return scene


def a_canary_out() -> Scene:
    scene = a_scene()
    scene.post_fresh(2)
    scene.bury()
    scene.begin_batch()
    scene.post_returning("the canary", DelaySeconds=600)
    scene.set_circuit(state=State.HALF_OPEN, window=1, pending=(scene.batch(1, is_due=False),))
    return scene


def the_next_canary() -> Scene:
    scene = a_scene()
    scene.post_fresh(3)
    scene.bury()
    scene.begin_batch(successes=1)
    scene.bury()
    scene.set_circuit(state=State.HALF_OPEN, window=1, pending=(scene.batch(1),))
    scene.verdicts = {SOURCE: Verdict.SUCCESS}
    return scene


def a_canary_that_came_back() -> Scene:
    scene = a_scene()
    scene.post_fresh(1)
    scene.bury()
    scene.begin_batch()
    scene.post_returning("returned")
    scene.bury()
    scene.let_live_messages_speak()
    scene.set_circuit(state=State.HALF_OPEN, window=1, pending=(scene.batch(1),))
    scene.verdicts = {SOURCE: Verdict.FAILURE}
    return scene


def letters_to_park() -> Scene:
    scene = a_scene()
    scene.begin_batch(successes=1)
    scene.post_returning("five strikes", strikes=5, count=6)
    scene.post_returning("tried for days", count=15, batch=EARLIER_BATCH, tried_for=hours(73))
    scene.post("stranger's", queue=STRANGER)
    scene.post("too large" + "." * 2000)
    scene.doomed = set(scene.world.sent)
    scene.post_fresh(1)
    scene.bury()
    scene.world.sqs.set_queue_attributes(
        QueueUrl=scene.world.url(SOURCE), Attributes={"MaximumMessageSize": "1024"}
    )
    # Room for one, so that the fresh letter goes and does not stay as a control.
    scene.set_circuit(window=11, pending=(scene.batch(10, is_due=False),))
    return scene


def letters_to_hold() -> Scene:
    scene = a_scene(LONG_BACKOFF)
    scene.begin_batch(successes=1)
    scene.post_returning("awaits its verdict")
    scene.post_returning("backs off for half an hour", count=3, strikes=2, batch=EARLIER_BATCH)
    scene.post_fresh(3)
    scene.bury()
    for n in range(11):
        scene.post_returning(f"out-{n}", DelaySeconds=900)
    scene.set_circuit(pending=(scene.batch(13, is_due=False),))
    return scene


def suspects_waiting_for_their_last_chance() -> Scene:
    scene = a_scene()
    for n in range(3):
        scene.post_returning(
            f"suspect-{n}", count=4, strikes=4, batch=EARLIER_BATCH, tried_for=minutes(10)
        )
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit()
    return scene


def letters_without_room_for_metadata() -> Scene:
    scene = a_scene()
    scene.begin_batch(successes=9)
    scene.post("ten attributes", MessageAttributes=TEN)
    scene.post_returning("ten attributes, returned", attributes=TEN)
    scene.post_returning(
        "ten attributes, poison", attributes=TEN, strikes=5, count=5, batch=EARLIER_BATCH
    )
    scene.doomed = {"ten attributes, poison"}
    scene.bury()
    scene.set_circuit(pending=(scene.batch(10),))
    return scene


def a_strangers_copy() -> Scene:
    """The consumer copied a redriven letter on its own queue, attributes included, and both came back."""
    scene = a_scene()
    scene.begin_batch(successes=9)
    metadata = scene.post_returning("returned")
    copied = SOME | {METADATA_ATTRIBUTE: metadata_attribute(metadata)}
    scene.post("copy of returned", MessageAttributes=copied)
    scene.post("another copy", MessageAttributes=copied)
    scene.bury()
    scene.set_circuit(pending=(scene.batch(10),))
    return scene


def copies_left_behind() -> Scene:
    """The pass before died when it had sent and recorded three letters of five, and not deleted them."""
    scene = a_scene()
    scene.post_fresh(5)
    scene.bury()
    scene.set_circuit(window=3)
    scene.run_pass(nth("DeleteMessageBatch", 0, die_before))
    scene.world.clock.advance(300)
    return scene


def letters_near_expiry_in_an_outage() -> Scene:
    scene = a_scene()
    scene.post("sent thirteen days ago")
    scene.undecided = {"sent thirteen days ago"}  # a canary may be quicker than the next sweep
    scene.bury()
    scene.world.clock.advance(12.5 * 86_400)
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit(state=State.OPEN, consecutive_opens=9, changed_at=scene.now - minutes(1))
    return scene


def letters_near_expiry_while_letters_flow() -> Scene:
    """The window lets one go; the others have half an hour to live."""
    scene = a_scene()
    for n in range(4):
        scene.post(f"sent a fortnight ago-{n}")
    scene.undecided = set(scene.world.sent)
    scene.bury()
    scene.world.clock.advance(14 * 86_400 - 1800 - 900)
    scene.post_fresh(2)
    scene.bury()
    scene.set_circuit(window=1)
    return scene


def parked_letters_to_renew() -> Scene:
    scene = a_scene()
    scene.post_returning("five strikes", strikes=5, count=6, batch=EARLIER_BATCH)
    scene.post("ten attributes, stranger's", queue=STRANGER, MessageAttributes=TEN)
    scene.doomed = set(scene.world.sent)
    scene.bury()
    scene.set_circuit()
    scene.run_pass()
    scene.world.clock.advance(8 * 86_400)
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit(version=40)
    scene.days_after = 9
    return scene


def two_sources_of_one_dlq() -> Scene:
    """One source's batch failed, the other's succeeded; each has a circuit of its own."""
    scene = a_scene(neighbours=(Source(name=NEIGHBOUR),))
    scene.post_fresh(2)
    scene.post_fresh(2, queue=NEIGHBOUR)
    scene.bury()
    scene.begin_batch(successes=8)
    scene.post_returning("returned")
    scene.post_returning("refund returned", queue=NEIGHBOUR)
    scene.post_returning("refund returned, too", queue=NEIGHBOUR)
    scene.bury()
    scene.let_live_messages_speak()
    scene.set_circuit(pending=(scene.batch(9),))
    scene.set_circuit(NEIGHBOUR, failure_count=2, pending=(scene.batch(2),))
    scene.verdicts = {SOURCE: Verdict.SUCCESS, NEIGHBOUR: Verdict.FAILURE}
    return scene


def more_than_a_round() -> Scene:
    scene = a_scene()
    for n in range(12):
        scene.post_returning(f"poison-{n}", strikes=5, count=6, batch=EARLIER_BATCH)
    scene.doomed = set(scene.world.sent)
    scene.post_fresh(120)
    scene.bury()
    scene.set_circuit(window=200)
    scene.repeats_allowed = UNRECORDED
    return scene


def suspects_beside_controls() -> Scene:
    """More suspects than the window lets through go with some of the last good letters."""
    scene = a_scene()
    for n in range(30):
        scene.post_returning(f"one strike-{n}", strikes=1, count=2, batch=EARLIER_BATCH)
    scene.post_fresh(6)
    scene.bury()
    scene.world.clock.advance(1800)
    scene.set_circuit(window=8, judged=(scene.judged_earlier(returned=19),))
    return scene


def three_of_each() -> Scene:
    """Every batch call of the pass has three entries."""
    scene = a_scene(LONG_BACKOFF)
    for n in range(3):
        scene.post_returning(f"five strikes-{n}", strikes=5, count=6, batch=EARLIER_BATCH)
    scene.doomed = set(scene.world.sent)
    for n in range(3):
        scene.post_returning(
            f"backs off for half an hour-{n}", count=3, strikes=2, batch=EARLIER_BATCH
        )
    scene.post_fresh(3)
    scene.bury()
    scene.set_circuit(window=12)
    return scene


def a_bit_of_everything() -> Scene:
    """Small, and with every call that a pass can make: sends, parks, discards, holds, a verdict, CloudWatch."""
    scene = a_scene(LONG_BACKOFF)
    scene.begin_batch(successes=2)
    scene.post_returning("five strikes", strikes=5, count=6, batch=EARLIER_BATCH)
    scene.doomed = set(scene.world.sent)
    scene.post_returning("backs off for half an hour", count=3, strikes=2, batch=EARLIER_BATCH)
    scene.post("ten attributes", MessageAttributes=TEN)
    scene.post_fresh(3)
    scene.bury()
    scene.set_circuit(window=12, pending=(scene.batch(2),))
    return scene


def a_batch_of_which_its_consumer_reports() -> Scene:
    """Of its five letters four succeeded and one is back; a letter on its first visit was reported, too,
    and garbage came.
    """
    scene = a_scene(consumer=REPORTING)
    scene.post_fresh(2)
    scene.bury()
    scene.do_and_report("done-0", "done-1", "done-2", "done-3")
    scene.post_returning("returned")
    scene.bury()
    scene.report(Result.FAILED, "returned", "fresh-0", receive=3)
    scene.send_report("garbage")
    scene.set_circuit(pending=(scene.batch(5),))
    scene.verdicts = {SOURCE: Verdict.SUCCESS}
    return scene


def a_full_window_that_its_consumer_is_done_with() -> Scene:
    """More letters wait, and without the reports they would wait until the batch is due."""
    scene = a_scene(consumer=REPORTING)
    scene.post_fresh(12)
    scene.bury()
    scene.do_and_report("done-0", "done-1", "done-2", "done-3", "done-4")
    scene.set_circuit(window=5, heard_at=scene.now, pending=(scene.batch(5, is_due=False),))
    scene.verdicts = {SOURCE: Verdict.SUCCESS}
    return scene


def letters_of_a_held_cause() -> Scene:
    """The last canary of the cause is back, and the others wait for the next one."""
    scene = a_scene(consumer=REPORTING)
    scene.post_fresh(2)
    for n in range(3):
        scene.post_returning(f"declined-{n}", batch=EARLIER_BATCH, cause="Declined")
    scene.bury()
    scene.begin_batch(successes=4)
    scene.post_returning("the canary", cause="Declined")
    scene.bury()
    scene.report(Result.FAILED, "the canary", receive=3)
    canary = next(one for one in scene.redriver.witness.ledger() if "canary" in one)
    held = CauseCircuit(
        cause="Declined",
        held_since=scene.now - hours(1),
        cools_until=scene.now - minutes(1),
        seen_at=scene.now - minutes(10),
        canary_id=canary,
        canary_batch=BATCH,
        canary_sent_at=scene.now - minutes(4),
    )
    scene.set_circuit(pending=(scene.batch(5),), causes=(held,))
    scene.verdicts = {SOURCE: Verdict.SUCCESS}
    return scene


def a_letter_that_its_consumer_claims_to_have_parked() -> Scene:
    """It has not, or not left it at that: the letter is back."""
    scene = a_scene(consumer=REPORTING)
    scene.begin_batch(successes=4)
    scene.post_returning("back")
    scene.bury()
    claim = scene.outcomes(Result.PERMANENT, "back")[0]
    scene.send_outcomes(replace(claim, permanent=True, parked_id="nowhere"))
    scene.set_circuit(pending=(scene.batch(5),))
    scene.verdicts = {SOURCE: Verdict.SUCCESS}
    return scene


SCENES: tuple[Callable[[], Scene], ...] = (
    fresh_letters,
    a_good_batch_and_its_returns,
    a_failed_batch,
    a_batch_awaiting_its_verdict,
    the_first_canary,
    a_canary_out,
    the_next_canary,
    a_canary_that_came_back,
    letters_to_park,
    letters_to_hold,
    suspects_waiting_for_their_last_chance,
    suspects_beside_controls,
    letters_without_room_for_metadata,
    a_strangers_copy,
    copies_left_behind,
    letters_near_expiry_in_an_outage,
    letters_near_expiry_while_letters_flow,
    parked_letters_to_renew,
    two_sources_of_one_dlq,
    more_than_a_round,
    a_bit_of_everything,
    a_batch_of_which_its_consumer_reports,
    a_full_window_that_its_consumer_is_done_with,
    letters_of_a_held_cause,
    a_letter_that_its_consumer_claims_to_have_parked,
)
