"""What one report changes, and that no claim loses a letter or counts twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.model.batch import CauseCount, Heard
from smart_redriver.engine.reports.outcomes import (
    CAUSE_LENGTH,
    ERROR_LENGTH,
    DeliveryOutcome,
    Result,
)
from smart_redriver.engine.reports.processing import (
    ANOTHER_COPY,
    ANOTHER_QUEUE,
    HEARD_BEFORE,
    INTERRUPTED,
    NO_LONGER_OUT,
    UNKNOWN_LETTER,
    ProcessedReports,
    ReceivedOutcome,
    process_reports,
    with_kept_metadata,
)
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.unit.examples import NOW, QUEUE, a_returned_letter, ago, an_entry, some_metadata
from tests.unit.outcomes import (
    MAX_RECEIVES,
    a_failure,
    a_first_failure,
    a_parking,
    an_outcome,
    heard,
    ledger,
)

BATCH = (QUEUE, 7)
DECLINED = (CauseCount(cause="Declined", letters=1),)
RETURNED = an_entry(status=Status.RETURNED)


def of_batch(processed: ProcessedReports) -> Heard:
    """What was heard of batch 7."""
    return processed.heard.get(BATCH, Heard())


def changed(processed: ProcessedReports, original_id: str = "first") -> Entry:
    return processed.entries[original_id]


# What an outcome of a letter that is out changes.


def test_a_success_settles_the_letter() -> None:
    processed = heard(an_outcome())

    entry = changed(processed)
    assert (entry.status, entry.is_settled) == (Status.SUCCEEDED, True)
    assert of_batch(processed) == Heard(succeeded=1)
    assert (processed.counts, processed.details) == (Counter(succeeded=1), {})


def test_a_failed_try_that_is_not_the_last_is_a_try_and_its_cause() -> None:
    processed = heard(a_failure(1))

    entry = changed(processed)
    assert (entry.status, entry.is_settled, entry.failed_tries) == (Status.REDRIVEN, False, 1)
    assert entry.cause == "Declined"
    assert of_batch(processed) == Heard(tries=1, causes=DECLINED)
    assert processed.details == {}


def test_the_last_failed_try_is_a_failed_letter_with_all_its_tries() -> None:
    processed = heard(a_failure())

    assert changed(processed).is_settled
    assert of_batch(processed) == Heard(failed=1, tries=3, causes=DECLINED)
    assert processed.details["first"].outcome == a_failure()


@pytest.mark.parametrize(
    ("entry", "canaries"),
    [(an_entry(strikes=1), frozenset()), (an_entry(), frozenset({"first"}))],
    ids=["suspect", "canary of its cause"],
)
def test_a_failure_of_which_nothing_else_was_expected_is_a_suspects(
    entry: Entry, canaries: frozenset[str]
) -> None:
    processed = heard(a_failure(), entries=ledger(entry), canaries=canaries)

    assert (of_batch(processed).failed, of_batch(processed).suspects_failed) == (0, 1)


def test_a_letter_that_the_consumer_parked_is_parked_with_its_reason() -> None:
    processed = heard(a_parking())

    entry = changed(processed)
    assert (entry.status, entry.current_id, entry.park_reason) == (
        Status.PARKED,
        "third",
        "PERMANENT",
    )
    assert (entry.cause, entry.error) == ("BadOrder", "BadOrder: no items")
    assert of_batch(processed) == Heard(parked=1)
    assert processed.details["first"].outcome == a_parking()


def test_the_causes_of_a_batch_are_counted_at_each_letters_first_failed_try() -> None:
    processed = heard(a_failure(1), a_failure(2, error_class="Timeout"), a_failure(3))

    assert of_batch(processed) == Heard(failed=1, tries=3, causes=DECLINED)
    assert changed(processed).cause == "Declined"


def test_a_letter_that_succeeds_after_a_failed_try_speaks_for_its_cause() -> None:
    processed = heard(a_failure(1), an_outcome(receive_count=2))

    assert processed.recovered == {(QUEUE, "Declined"): [NOW]}
    assert of_batch(processed) == Heard(succeeded=1, tries=1, causes=DECLINED)


def test_a_letter_that_a_person_sent_is_in_no_batch() -> None:
    entry = an_entry(status=Status.REPLAYED, batch=None)

    processed = heard(an_outcome(batch=0), entries=ledger(entry))

    assert changed(processed).status is Status.SUCCEEDED
    assert processed.heard == {}


def test_what_a_letter_failed_of_is_kept_as_short_as_the_ledger_wants_it() -> None:
    long = a_failure(error_class="a" * 50 + "b" * 150, first_line="c" * 300)

    entry = changed(heard(long))

    assert entry.cause == "b" * CAUSE_LENGTH
    assert entry.error is not None
    assert len(entry.error) == ERROR_LENGTH


# What does not count.


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (an_outcome(queue="invoices"), ANOTHER_QUEUE),
        (an_outcome(original_id="nobody's"), UNKNOWN_LETTER),
        (an_outcome(original_id="nobody's", batch=None, generation=None), UNKNOWN_LETTER),
        (an_outcome(message_id="first", batch=None, generation=None), ANOTHER_COPY),
        (an_outcome(message_id="forged"), ANOTHER_COPY),
        (an_outcome(batch=6), ANOTHER_COPY),
        (an_outcome(batch=None, generation=None), ANOTHER_COPY),
        (a_failure(batch=8), ANOTHER_COPY),
        (a_parking(message_id="third"), ANOTHER_COPY),
    ],
)
def test_a_claim_that_is_not_of_the_copy_that_is_out_is_left_out(
    outcome: DeliveryOutcome, why: str
) -> None:
    processed = heard(outcome)

    assert processed.counts == Counter({why: 1})
    assert (processed.entries, processed.details, processed.heard) == ({}, {}, {})


def test_a_letter_of_another_queue_that_is_served_is_not_this_ones() -> None:
    processed = heard(an_outcome(), entries=ledger(an_entry(queue="refunds")))

    assert processed.counts == Counter({ANOTHER_COPY: 1})


@pytest.mark.parametrize("outcome", [an_outcome(), a_failure(1), a_failure(), a_parking()])
def test_what_is_told_twice_counts_once(outcome: DeliveryOutcome) -> None:
    once, twice = heard(outcome), heard(outcome, outcome)

    assert twice.entries == once.entries
    assert twice.heard == once.heard
    assert twice.counts[HEARD_BEFORE] == 1


def test_tries_without_a_receive_count_are_one_however_often_they_are_told() -> None:
    processed = heard(*[a_failure(None)] * 10_000)

    assert (changed(processed).failed_tries, changed(processed).is_settled) == (1, False)
    assert of_batch(processed) == Heard(tries=1, causes=DECLINED)
    assert processed.counts == Counter({"failed": 1, HEARD_BEFORE: 9_999})


def test_a_receive_that_sqs_cannot_have_made_is_the_last() -> None:
    processed = heard(a_failure(10**12))

    assert changed(processed).failed_tries == MAX_RECEIVES
    assert of_batch(processed).tries == MAX_RECEIVES


@pytest.mark.parametrize("first", [an_outcome(receive_count=3), a_parking(receive_count=3)])
def test_a_failed_try_that_is_told_after_its_end_is_too_late(first: DeliveryOutcome) -> None:
    processed = heard(first, a_failure(1), a_failure(2))

    assert changed(processed) == changed(heard(first))
    assert processed.counts[HEARD_BEFORE] == 2


def test_a_failed_try_that_is_told_after_a_later_one_adds_nothing() -> None:
    processed = heard(a_failure(2), a_failure(1, error_class="Timeout"))

    assert changed(processed).failed_tries == 2
    assert changed(processed).cause == "Declined"
    assert of_batch(processed) == Heard(tries=2, causes=DECLINED)


@pytest.mark.parametrize("outcome", [an_outcome(), a_parking()])
def test_a_letter_that_is_back_has_neither_succeeded_nor_been_parked(
    outcome: DeliveryOutcome,
) -> None:
    processed = heard(outcome, entries=ledger(RETURNED))

    assert processed.counts == Counter({NO_LONGER_OUT: 1})
    assert processed.entries == {}


def test_why_a_letter_that_is_back_failed_is_learnt_late_and_counted_by_nobody() -> None:
    processed = heard(a_failure(), entries=ledger(RETURNED))

    assert (changed(processed).status, changed(processed).cause) == (Status.RETURNED, "Declined")
    assert (processed.heard, processed.recovered) == ({}, {})
    assert "first" in processed.details


@pytest.mark.parametrize("outcome", [an_outcome(), a_failure(), a_parking()])
def test_what_is_told_after_a_further_redrive_is_of_an_earlier_copy(
    outcome: DeliveryOutcome,
) -> None:
    again = an_entry(current_id="third", replaced_ids=("first", "second"), batch=9, redrive_count=2)

    processed = heard(outcome, entries=ledger(again))

    assert processed.counts == Counter({ANOTHER_COPY: 1})


@pytest.mark.parametrize("status", [Status.PARKED, Status.DELETED])
@pytest.mark.parametrize("outcome", [an_outcome(), a_failure(), a_parking()])
def test_a_letter_that_was_put_away_stays_where_it_is(
    outcome: DeliveryOutcome, status: Status
) -> None:
    processed = heard(outcome, entries=ledger(an_entry(status=status)))

    assert processed.entries == {}
    assert processed.counts == Counter({NO_LONGER_OUT: 1})


# First visits.


def test_how_a_message_failed_that_becomes_a_letter_is_there_when_it_does() -> None:
    processed = heard(a_first_failure())

    entry = changed(processed, "new")
    assert (entry.status, entry.cause, entry.batch) == (Status.FAILED, "Declined", None)
    assert (entry.first_seen, entry.redrive_count) == (NOW, 0)
    assert processed.details["new"].outcome == a_first_failure()
    assert processed.heard == {}


def test_a_message_that_will_be_tried_again_is_no_letter_yet() -> None:
    processed = heard(a_first_failure(1), a_first_failure(2))

    assert (processed.entries, processed.details) == ({}, {})
    assert processed.counts == Counter(failed=2)


def test_who_does_not_say_which_receive_it_was_may_mean_the_last() -> None:
    assert changed(heard(a_first_failure(None)), "new").status is Status.FAILED


def test_who_does_not_say_of_a_fifo_queue_which_receive_it_was_does_not_mean_the_last() -> None:
    name = f"{QUEUE}.fifo"

    def of_fifo(max_receives: int) -> ProcessedReports:
        told = ReceivedOutcome(outcome=a_first_failure(None, queue=name), at=NOW)
        return process_reports([told], {}, {name: max_receives})

    assert of_fifo(MAX_RECEIVES).entries == {}
    assert changed(of_fifo(1), "new").status is Status.FAILED, "there is no other"


def test_a_message_that_succeeded_at_its_first_visit_is_nobodys_letter() -> None:
    processed = heard(a_first_failure(1, result=Result.SUCCEEDED, error_class=None))

    assert (processed.entries, processed.counts) == ({}, Counter(succeeded=1))


def test_a_message_that_its_consumer_parked_at_once_is_known_as_parked() -> None:
    parking = a_parking(message_id="new", original_id="new", batch=None, generation=None)

    entry = changed(heard(parking), "new")

    assert (entry.status, entry.current_id, entry.parked_at) == (Status.PARKED, "third", NOW)


def test_the_last_failure_of_a_first_visit_is_told_twice_and_noted_once() -> None:
    processed = heard(a_first_failure(), a_first_failure())

    assert processed.counts == Counter({"failed": 1, HEARD_BEFORE: 1})


def test_a_permanent_error_that_was_not_parked_is_noted_for_triage() -> None:
    assert changed(heard(a_failure(1, permanent=True))).is_permanent


# A copy without room for its metadata.


def test_a_copy_whose_metadata_the_ledger_keeps_is_its_letter_all_the_same() -> None:
    bare = ReceivedOutcome(
        outcome=a_failure(original_id="second", batch=None, generation=None), at=NOW
    )

    outcome = with_kept_metadata(bare, {"second": some_metadata()}).outcome

    assert outcome == a_failure()


@pytest.mark.parametrize(
    ("outcome", "metadata"),
    [
        (a_first_failure(), {}),
        (a_first_failure(), {"second": some_metadata()}),
        (a_first_failure(message_id="second"), {"second": some_metadata(queue="invoices")}),
        (a_failure(), {"second": some_metadata(original_id="another's")}),
    ],
)
def test_no_other_outcome_is_given_metadata(
    outcome: DeliveryOutcome, metadata: dict[str, Any]
) -> None:
    told = ReceivedOutcome(outcome=outcome, at=NOW)

    assert with_kept_metadata(told, metadata) == told


# A claim that was not true.


@pytest.mark.parametrize("claim", [an_outcome(), a_parking(), a_failure(1)])
def test_a_letter_of_which_too_much_was_claimed_is_the_same_letter_when_it_is_back(
    claim: DeliveryOutcome,
) -> None:
    case = Case(letter=a_returned_letter(), entry=changed(heard(claim)))

    assert not case.is_strangers_copy
    assert not case.is_replaced
    assert case.is_unseen_return(20)
    assert (case.redrives, case.batch) == (1, 7)


def test_a_further_copy_of_a_letter_that_was_parked_is_still_a_strangers() -> None:
    copy = a_returned_letter(message_id="copied by its consumer")

    assert Case(letter=copy, entry=changed(heard(a_parking()))).is_strangers_copy


# Whatever comes, in whatever order.

LETTERS = ("first", "other", "suspect")
ENTRIES = ledger(
    an_entry(),
    an_entry(original_id="other", current_id="other's copy", last_redrive=ago(minutes=3)),
    an_entry(original_id="suspect", current_id="suspect's copy", strikes=2, failed_tries=0),
)
CLAIMS = st.builds(
    lambda letter, message_id, batch, result, receive, cause: an_outcome(
        original_id=letter,
        message_id=message_id,
        batch=batch,
        generation=None if batch is None else 2,
        result=result,
        receive_count=receive,
        error_class=cause,
        parked_id="somewhere" if result is Result.PERMANENT else None,
    ),
    st.sampled_from((*LETTERS, "nobody's")),
    st.sampled_from(("second", "other's copy", "suspect's copy", "nobody's")),
    st.sampled_from((7, 7, 7, 6, None)),
    st.sampled_from(list(Result)),
    st.sampled_from((None, 0, 1, 2, 3, 4)),
    st.sampled_from(("Declined", "Timeout", None, "")),
)


@given(st.lists(CLAIMS, max_size=40))
def test_no_more_letters_are_heard_of_than_the_batch_has(claims: list[DeliveryOutcome]) -> None:
    told = of_batch(heard(*claims, entries=ENTRIES))

    ended = told.succeeded + told.failed + told.suspects_failed + told.parked
    assert ended <= len(LETTERS)
    assert told.tries <= len(LETTERS) * MAX_RECEIVES
    assert sum(one.letters for one in told.causes) <= len(LETTERS)


@given(st.lists(CLAIMS, max_size=20))
def test_what_is_told_all_over_again_changes_nothing(claims: list[DeliveryOutcome]) -> None:
    first = heard(*claims, entries=ENTRIES)

    again = heard(*claims, entries=ENTRIES | first.entries)

    assert again.heard == {}
    assert again.recovered == {}
    assert again.entries == {}


@given(st.lists(CLAIMS, max_size=20), st.integers(0, 20))
def test_it_is_the_same_whether_outcomes_come_together_or_one_look_after_the_other(
    claims: list[DeliveryOutcome], cut: int
) -> None:
    together = heard(*claims, entries=ENTRIES)
    before = heard(*claims[:cut], entries=ENTRIES)
    after = heard(*claims[cut:], entries=ENTRIES | before.entries)

    assert before.entries | after.entries == together.entries
    assert before.counts + after.counts == together.counts
    assert of_batch(before) + of_batch(after) == of_batch(together)


@given(st.lists(CLAIMS, max_size=20))
def test_no_claim_makes_a_copy_one_to_discard(claims: list[DeliveryOutcome]) -> None:
    """What is discarded is lost where the claim was not true: only an accepted send of ours replaces a copy."""
    after = ENTRIES | heard(*claims, entries=ENTRIES).entries

    for original_id, entry in ENTRIES.items():
        assert after[original_id].replaced_ids == entry.replaced_ids
        assert after[original_id].redrive_count == entry.redrive_count
        assert after[original_id].strikes == entry.strikes


@given(st.permutations([a_failure(1), a_failure(2), an_outcome(receive_count=3)]))
def test_a_letter_that_succeeded_in_the_end_has_succeeded_in_whatever_order_it_is_told(
    outcomes: list[DeliveryOutcome],
) -> None:
    processed = heard(*outcomes)

    assert changed(processed).status is Status.SUCCEEDED
    assert replace(of_batch(processed), tries=0, causes=()) == Heard(succeeded=1)


# What a consumer says beside success and failure.


def test_a_cause_goes_by_the_name_that_the_consumer_gives_it() -> None:
    named = "Declined in charge.charge: card * expired"

    assert changed(heard(a_failure(cause=named))).cause == named


def test_a_letter_whose_error_names_a_time_rests_until_then_and_gets_no_strike() -> None:
    entry = changed(heard(a_failure(retry_after=7200)))

    assert entry.not_before == NOW + timedelta(hours=2)
    assert entry.counted_batch == entry.batch


def test_a_time_that_a_try_names_which_is_not_the_last_is_left_to_sqs() -> None:
    entry = changed(heard(a_failure(1, retry_after=7200), a_failure()))

    assert entry.not_before is None
    assert entry.counted_batch != entry.batch


def test_a_message_that_was_never_redriven_may_name_a_time_too() -> None:
    entry = changed(heard(a_first_failure(retry_after=60)), "new")

    assert entry.not_before == NOW + timedelta(minutes=1)


def test_work_that_was_interrupted_speaks_neither_for_nor_against_anybody() -> None:
    processed = heard(a_failure(interrupted=True), a_first_failure(interrupted=True))

    assert processed.counts == Counter({INTERRUPTED: 2})
    assert (processed.entries, processed.heard, processed.details) == ({}, {}, {})


def test_a_success_of_a_message_that_was_never_redriven_shows_that_its_consumer_works() -> None:
    stranger = {"message_id": "new", "original_id": "new", "batch": None, "generation": None}

    assert heard(an_outcome(**stranger)).live == {QUEUE: NOW}
    assert heard(an_outcome()).live == {}


@pytest.mark.parametrize("order", [1, -1])
def test_the_latest_of_such_successes_is_remembered_in_whichever_order_reports_come(
    order: int,
) -> None:
    stranger = an_outcome(message_id="new", original_id="new", batch=None, generation=None)
    told = [ReceivedOutcome(outcome=stranger, at=at) for at in (ago(minutes=1), NOW)][::order]

    assert process_reports(told, {}, {QUEUE: MAX_RECEIVES}).live == {QUEUE: NOW}
