"""One letter's entry in the ledger, through a life of redrives, returns and a parking."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from smart_redriver.engine.triage.ledger import HISTORY_KEPT, REPLACED_IDS_KEPT, Entry, Status
from tests.unit.examples import NOW, ago, ahead, an_entry

DELAY = timedelta(minutes=10)


def redriven(entry: Entry, *, new_id: str = "third", batch: int = 9, strikes: int = 0) -> Entry:
    return entry.redriven(
        replaced_id=entry.current_id,
        new_id=new_id,
        batch=batch,
        generation=3,
        strikes=strikes,
        delay=DELAY,
        now=NOW,
        note=f"redriven in batch {batch}",
    )


def test_a_redrive_counts_and_remembers_which_copy_it_replaced() -> None:
    entry = redriven(an_entry(redrive_count=1, status=Status.RETURNED), strikes=1)

    assert entry.status is Status.REDRIVEN
    assert (entry.redrive_count, entry.strikes) == (2, 1)
    assert entry.current_id == "third"
    assert entry.has_replaced("second")
    assert not entry.has_replaced("third")
    assert (entry.batch, entry.generation, entry.last_redrive) == (9, 3, NOW + DELAY)


def test_a_redrive_settles_the_batch_before_it_and_forgets_the_deferral() -> None:
    entry = redriven(an_entry(batch=7, not_before=ahead(hours=1), seen_in_version=4))

    assert entry.counted_batch == 7
    assert entry.not_before is None
    assert entry.seen_in_version is None


def test_a_return_changes_where_the_letter_is_and_counts_nothing() -> None:
    entry = an_entry().returned(message_id="second", version=20, now=NOW)

    assert entry.status is Status.RETURNED
    assert (entry.redrive_count, entry.strikes, entry.batch) == (1, 0, 7)
    assert entry.history[-1] == "2026-01-10T12:00:00Z returned from batch 7"


def test_a_letter_that_its_target_failed_with_has_never_left_and_is_no_copy_to_discard() -> None:
    entry = an_entry(current_id="second").redriven(
        replaced_id="second",
        new_id="second",
        batch=9,
        generation=3,
        strikes=0,
        delay=timedelta(),
        now=NOW,
        note="redriven in batch 9",
        keeps=True,
    )

    bounced = entry.bounced(answer="HTTP 503", version=20, now=NOW)

    assert bounced.status is Status.RETURNED
    assert (bounced.batch, bounced.redrive_count, bounced.error) == (9, 2, "HTTP 503")
    assert not bounced.has_replaced("second")
    assert [bounced.counts_as_evidence(version) for version in (20, 21)] == [True, False]


@pytest.mark.parametrize(
    ("seen_in_version", "circuit_version", "counts"),
    [
        (None, 20, True),
        (20, 20, True),
        (20, 21, False),
        (21, 20, True),
    ],
    ids=[
        "never marked",
        "marked, but the circuit was not written: a crash came between",
        "marked and charged",
        "marked by a pass that read a newer circuit",
    ],
)
def test_a_return_counts_as_evidence_until_a_write_of_the_circuit_has_charged_it(
    seen_in_version: int | None, circuit_version: int, counts: bool
) -> None:
    entry = an_entry(status=Status.RETURNED, seen_in_version=seen_in_version)

    assert entry.counts_as_evidence(circuit_version) is counts


def test_a_deferral_keeps_the_strikes_and_settles_the_batch_that_gave_them() -> None:
    entry = an_entry().deferred(not_before=ahead(hours=2), strikes=1, batch=7, now=NOW)

    assert (entry.not_before, entry.strikes, entry.counted_batch) == (ahead(hours=2), 1, 7)
    assert entry.redrive_count == 1


def test_a_parked_letter_keeps_its_reason_its_time_and_its_redrive_count() -> None:
    entry = an_entry(redrive_count=5).parked(
        replaced_id="second", new_id="in the lot", reason="MAX_ATTEMPTS", strikes=5, now=NOW
    )

    assert entry.status is Status.PARKED
    assert (entry.park_reason, entry.parked_at) == ("MAX_ATTEMPTS", NOW)
    assert (entry.redrive_count, entry.strikes, entry.counted_batch) == (5, 5, 7)
    assert entry.current_id == "in the lot"
    assert entry.has_replaced("second")


def test_a_renewed_letter_is_what_it_was_under_another_id() -> None:
    before = replace(
        an_entry(redrive_count=5, strikes=2, current_id="second").returned(
            message_id="second", version=3, now=NOW
        ),
        failed_tries=2,
        is_settled=True,
    )

    after = before.renewed(replaced_id="second", new_id="third", now=NOW)

    assert after.current_id == "third"
    assert after.has_replaced("second")
    assert after.history[-1] == "2026-01-10T12:00:00Z renewed"
    assert before == replace(
        after,
        current_id="second",
        replaced_ids=before.replaced_ids,
        history=before.history,
    )


@pytest.mark.parametrize("status", Status)
def test_a_renewed_letter_lies_where_it_was_sent(status: Status) -> None:
    """A success that was reported is contradicted by the pass that decides, which has to know of it."""
    stays = status in (Status.PARKED, Status.SUCCEEDED)

    after = replace(an_entry(), status=status).renewed(replaced_id="a", new_id="b", now=NOW)

    assert after.status is (status if stays else Status.RETURNED)
    assert after.counts_as_evidence(circuit_version=99)


@pytest.mark.parametrize(
    ("note", "told"), [("", "parked EXPIRING"), ("parked by anna", "parked by anna")]
)
def test_the_history_says_why_a_letter_was_parked_or_who_did_it(note: str, told: str) -> None:
    entry = an_entry().parked(
        replaced_id="second", new_id="there", reason="EXPIRING", strikes=0, now=NOW, note=note
    )

    assert entry.history[-1] == f"2026-01-10T12:00:00Z {told}"


SENDS: dict[str, Callable[[Entry], Entry]] = {
    "a redrive": redriven,
    "a parking": lambda entry: entry.parked(
        replaced_id="second", new_id="third", reason="EXPIRING", strikes=0, now=NOW
    ),
    "a replay": lambda entry: entry.replayed(
        replaced_id="second", new_id="third", redrive_count=2, now=NOW, note="replayed"
    ),
    "a delete": lambda entry: entry.deleted(message_id="second", now=NOW, note="deleted"),
}


@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS.keys())
def test_of_a_new_copy_nothing_is_known_that_was_reported_of_the_one_before(
    send: Callable[[Entry], Entry],
) -> None:
    reported = an_entry(
        is_settled=True, failed_tries=3, heard_in_version=20, tries_counted=2, left_id="second"
    )

    sent = send(reported)

    assert (sent.is_settled, sent.failed_tries, sent.left_id) == (False, 0, None)
    assert (sent.heard_in_version, sent.tries_counted) == (None, 0)


# The clocks of giving up and of the last chance.


def test_giving_up_is_counted_from_the_first_redrive_and_no_later_one() -> None:
    first = redriven(an_entry(first_redrive=None))
    later = redriven(an_entry(first_redrive=ago(hours=5)))

    assert first.first_redrive == NOW
    assert later.first_redrive == ago(hours=5)


STRIKING: dict[str, Callable[[Entry, int], Entry]] = {
    "a redrive": lambda entry, strikes: redriven(entry, strikes=strikes),
    "a deferral": lambda entry, strikes: entry.deferred(
        not_before=ahead(hours=2), strikes=strikes, batch=7, now=NOW
    ),
}


@pytest.mark.parametrize("settle", STRIKING.values(), ids=STRIKING.keys())
def test_the_last_chance_is_counted_from_the_first_strike_and_no_later_one(
    settle: Callable[[Entry, int], Entry],
) -> None:
    assert settle(an_entry(), 0).first_strike is None
    assert settle(an_entry(), 1).first_strike == NOW
    assert settle(an_entry(strikes=1, first_strike=ago(hours=3)), 2).first_strike == ago(hours=3)


def test_a_persons_replay_is_a_fresh_start_that_forgets_strikes_batch_and_clocks() -> None:
    entry = an_entry(
        strikes=4,
        counted_batch=6,
        first_strike=ago(hours=9),
        first_redrive=ago(days=2),
        not_before=ahead(hours=1),
        cause="Boom",
        is_permanent=True,
        is_doubtful=True,
    )

    fresh = entry.replayed(
        replaced_id="second", new_id="third", redrive_count=2, now=NOW, note="replayed"
    )

    assert fresh.status is Status.REPLAYED
    assert (fresh.strikes, fresh.first_strike, fresh.first_redrive) == (0, None, None)
    assert (fresh.batch, fresh.counted_batch, fresh.not_before) == (None, None, None)
    assert (fresh.cause, fresh.is_permanent, fresh.is_doubtful) == (None, False, False)
    assert (fresh.redrive_count, fresh.current_id) == (2, "third")
    assert fresh.has_replaced("second")


def test_a_return_after_a_replay_is_told_as_one() -> None:
    entry = an_entry(batch=None).returned(message_id="second", version=20, now=NOW)

    assert entry.history[-1].endswith("returned after a replay")


def test_a_copy_that_outlives_its_delete_by_a_person_is_one_to_discard() -> None:
    entry = an_entry().deleted(message_id="second", now=NOW, note="deleted")

    assert entry.status is Status.DELETED
    assert entry.has_replaced("second")


def test_a_letter_is_a_suspect_from_its_first_strike_on() -> None:
    assert not an_entry(strikes=0).is_suspect
    assert an_entry(strikes=1).is_suspect


def test_an_entry_of_a_letter_that_came_back_often_stays_small() -> None:
    entry = an_entry(last_redrive=ago(days=1))
    for n in range(100):
        entry = redriven(entry, new_id=f"copy {n}", batch=n)

    assert entry.redrive_count == 101
    assert len(entry.history) == HISTORY_KEPT
    assert entry.replaced_ids == tuple(f"copy {n}" for n in range(99 - REPLACED_IDS_KEPT, 99))


def ended(entry: Entry, how: str) -> Entry:
    if how == "succeeded":
        return entry.succeeded(NOW)
    if how == "parked":
        return entry.parked_by_consumer(parked_id="there", reason="PERMANENT", now=NOW)
    return entry.failed(tries=3, is_last=True, cause="Boom", error="Boom", permanent=False)


@pytest.mark.parametrize("how", ["succeeded", "parked", "failed"])
def test_a_report_that_the_circuit_does_not_count_can_be_taken_in_again_and_counts_once(
    how: str,
) -> None:
    tried = replace(an_entry(), failed_tries=1, history=("sent", "sent again"))

    heard = ended(tried, how).heard(tried, version=20)

    again = heard.uncounted(20)
    assert (again.status, again.current_id) == (tried.status, tried.current_id)
    assert (again.is_settled, again.failed_tries) == (False, 1)
    assert again.history == tried.history
    assert ended(again, how).heard(again, version=20).uncounted(20) == again
    assert heard.uncounted(21) == heard


@pytest.mark.parametrize(
    "moved_on",
    [
        an_entry(status=Status.PARKED, current_id="there"),
        an_entry(status=Status.RETURNED, current_id="back", left_id="second"),
    ],
    ids=["parked by a pass", "back from where its consumer parked it"],
)
def test_a_letter_that_has_moved_on_since_a_report_is_left_as_it_is(moved_on: Entry) -> None:
    heard = replace(moved_on, is_settled=True, failed_tries=3).heard(an_entry(), version=20)

    assert heard.heard_in_version == 20
    assert heard.uncounted(20) == heard


def test_a_letter_that_came_back_meanwhile_is_counted_as_a_return() -> None:
    heard = ended(an_entry(), "failed").heard(an_entry(), version=20)

    back = heard.returned(message_id="again", version=20, now=NOW)

    assert back.uncounted(20) == back


@pytest.mark.parametrize(("version", "counted"), [(19, 0), (20, 0), (21, 1)])
def test_of_several_reports_that_no_write_of_the_circuit_counted_the_first_says_what_it_counts(
    version: int, counted: int
) -> None:
    """A second report before that write would pass the tries of the first off as counted."""
    nobody = an_entry(failed_tries=0)
    once = replace(nobody, failed_tries=1).heard(nobody, version=20)

    twice = replace(once, failed_tries=2).heard(once, version=version)

    assert twice.uncounted(version).failed_tries == counted
