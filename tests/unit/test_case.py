"""Whose letter this is, and what counts against it: identity over copies, crashes and strangers."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.fifo_counts import BatchCounts
from smart_redriver.engine.triage.case import NO_BATCH, Case
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.unit.examples import (
    NOW,
    QUEUE,
    SOURCE_ARN,
    a_batch,
    a_circuit,
    a_judged,
    a_letter,
    a_returned_letter,
    ago,
    ahead,
    an_entry,
    some_metadata,
)
from tests.unit.situations import ACQUITTING, OTHER_ARN, STRIKING, of_batch

FIRST_VISIT = Case(letter=a_letter())
RETURN = Case(letter=a_returned_letter(), entry=an_entry())
LOST_BY_LEDGER = Case(letter=a_returned_letter(metadata=some_metadata(redrive_count=3)))
#: The send of the last redrive was accepted, its record was not: the metadata is ahead of the ledger.
LOST_WRITE = Case(
    letter=a_returned_letter(
        message_id="third", batch=9, metadata=some_metadata(redrive_count=2, batch=9)
    ),
    entry=an_entry(),
)
#: A message with ten attributes has no room for its metadata: the ledger kept it, under the copy's own id.
KEPT_METADATA = Case(
    letter=a_letter(message_id="second").with_metadata(some_metadata()), entry=an_entry()
)
STRIPPED = Case(letter=a_letter(), entry=an_entry(redrive_count=3, replaced_ids=()))


# Identity.


@pytest.mark.parametrize(
    "case", [FIRST_VISIT, RETURN, LOST_BY_LEDGER, LOST_WRITE, KEPT_METADATA, STRIPPED]
)
def test_every_copy_of_a_letter_goes_by_the_id_of_its_first_visit(case: Case) -> None:
    assert case.original_id == "first"
    assert case.known(QUEUE).original_id == "first"
    assert case.next_metadata(QUEUE, a_batch()).original_id == "first"


@pytest.mark.parametrize(
    ("case", "redrives"),
    [
        (FIRST_VISIT, 0),
        (RETURN, 1),
        (LOST_BY_LEDGER, 3),
        (LOST_WRITE, 2),
        (KEPT_METADATA, 1),
        (STRIPPED, 3),
    ],
    ids=[
        "first visit",
        "return",
        "ledger lost it",
        "lost write",
        "kept metadata",
        "stripped metadata",
    ],
)
def test_the_higher_of_metadata_and_ledger_counts_the_redrives(case: Case, redrives: int) -> None:
    assert case.redrives == redrives
    assert case.known(QUEUE).redrive_count == redrives
    assert case.next_metadata(QUEUE, a_batch()).redrive_count == redrives + 1


def test_a_copy_that_an_accepted_send_has_replaced_is_known_as_one() -> None:
    left_behind = Case(letter=a_letter(), entry=an_entry(replaced_ids=("first",)))

    assert left_behind.is_replaced
    assert not left_behind.is_strangers_copy
    assert not RETURN.is_replaced
    assert not FIRST_VISIT.is_replaced


@pytest.mark.parametrize(
    ("verdict", "was_alone", "was_doubtful", "is_doubtful"),
    [
        (Verdict.NO_EVIDENCE, True, False, True),
        (Verdict.NO_EVIDENCE, False, False, False),
        (Verdict.NO_EVIDENCE, False, True, True),
        (Verdict.FAILURE, False, True, False),
        (Verdict.SUCCESS, False, True, False),
        (None, False, True, True),
        (None, False, False, False),
    ],
)
def test_a_letter_is_doubted_from_its_return_with_suspects_until_others_came_back_or_succeeded(
    verdict: Verdict | None, was_alone: bool, was_doubtful: bool, is_doubtful: bool
) -> None:
    circuit = a_circuit()
    if verdict is not None:
        circuit = of_batch(is_strike=False, was_alone=was_alone, verdict=verdict)
    case = Case(letter=a_returned_letter(), entry=an_entry(is_doubtful=was_doubtful))

    assert case.is_doubtful(circuit) is is_doubtful
    assert case.was_suspect(circuit) is was_doubtful
    assert case.strikes(circuit) == 0


STRANGERS: dict[str, tuple[Letter, Entry | None, bool]] = {
    "a consumer copied the metadata on to a message of its own": (
        a_returned_letter(message_id="stranger"),
        an_entry(),
        True,
    ),
    "it did so some redrives ago": (
        a_returned_letter(message_id="stranger"),
        an_entry(redrive_count=5, current_id="sixth"),
        True,
    ),
    "ids tell the content, and this is another one's": (
        a_returned_letter(message_id="stranger", content_marks=("-abc", "-123")),
        an_entry(current_id="second-def"),
        True,
    ),
    "ids tell the content, and this is the last copy's": (
        a_returned_letter(message_id="unknown", content_marks=("-abc", "-123")),
        an_entry(current_id="second-abc"),
        False,
    ),
    "this is the copy that was sent last": (a_returned_letter(), an_entry(), False),
    "the answer to a send was lost, and the letter was sent again in another batch": (
        a_returned_letter(message_id="unknown", batch=6, metadata=some_metadata(batch=6)),
        an_entry(),
        False,
    ),
    "a write was lost: the metadata is ahead of the ledger": (
        LOST_WRITE.letter,
        LOST_WRITE.entry,
        False,
    ),
    "the ledger has lost all of it": (a_returned_letter(message_id="stranger"), None, False),
    "this copy was sent on already": (a_returned_letter(message_id="first"), an_entry(), False),
    "there is no metadata to be copied": (a_letter(message_id="stranger"), an_entry(), False),
}


@pytest.mark.parametrize(
    ("letter", "entry", "is_strangers"), STRANGERS.values(), ids=STRANGERS.keys()
)
def test_copied_metadata_is_known_by_a_message_id_that_was_never_sent(
    letter: Letter, entry: Entry | None, is_strangers: bool
) -> None:
    assert Case(letter=letter, entry=entry).is_strangers_copy is is_strangers


def test_a_strangers_copy_becomes_a_letter_of_its_own_and_inherits_no_strike() -> None:
    copied = a_returned_letter(message_id="stranger")
    suspect = Case(letter=copied, entry=an_entry(strikes=4, counted_batch=5))

    own = Case(letter=copied.without_metadata())

    assert suspect.is_strangers_copy
    assert (own.original_id, own.redrives, own.batch) == ("stranger", 0, None)
    assert own.strikes(STRIKING) == 0
    assert own.letter.metadata_fault is not None


@pytest.mark.parametrize(
    ("changes", "is_last"),
    [
        ({}, True),
        ({"content_marks": ("-def",)}, False),
        ({"content_marks": ()}, False),
        ({"metadata": some_metadata(batch=6)}, False),
        ({"metadata": some_metadata(redrive_count=0)}, False),
        ({"metadata": None}, False),
    ],
)
def test_the_last_copy_has_its_content_and_the_metadata_of_the_last_try(
    changes: dict[str, Any], is_last: bool
) -> None:
    letter = replace(a_returned_letter(message_id="unknown", content_marks=("-abc",)), **changes)

    assert Case(letter=letter, entry=an_entry(current_id="second-abc")).is_last_copy is is_last


@given(st.integers(0, 20), st.integers(0, 20))
def test_only_metadata_behind_the_ledger_can_be_a_strangers(metadata: int, ledger: int) -> None:
    case = Case(
        letter=a_returned_letter(message_id="x", metadata=some_metadata(redrive_count=metadata)),
        entry=an_entry(redrive_count=ledger),
    )

    assert case.is_strangers_copy is (metadata <= ledger)


# Where it belongs.


def test_the_metadata_names_the_batch_before_the_ledger_does() -> None:
    assert Case(letter=a_returned_letter(batch=8), entry=an_entry(batch=7)).batch == 8
    assert Case(letter=a_letter(), entry=an_entry(batch=7)).batch == 7
    assert FIRST_VISIT.batch is None


def test_sqs_names_the_source_before_the_ledger_does() -> None:
    unnamed = a_letter(source_arn=None)

    assert Case(letter=a_letter(), entry=an_entry(source_arn=OTHER_ARN)).source_arn == SOURCE_ARN
    assert Case(letter=unnamed, entry=an_entry(source_arn=OTHER_ARN)).source_arn == OTHER_ARN
    assert Case(letter=unnamed).source_arn is None


# Strikes.


def test_a_strike_needs_a_batch_that_says_so() -> None:
    assert RETURN.strikes(STRIKING) == 1
    assert RETURN.strikes(ACQUITTING) == 0
    assert RETURN.strikes(a_circuit()) == 0
    assert FIRST_VISIT.strikes(STRIKING) == 0
    assert LOST_BY_LEDGER.strikes(STRIKING) == 1


def test_a_strike_adds_to_those_before_it() -> None:
    suspect = replace(RETURN, entry=an_entry(strikes=2, counted_batch=5))

    assert suspect.strikes(STRIKING) == 3
    assert suspect.strikes(ACQUITTING) == 2


def test_a_verdict_gives_its_strike_once() -> None:
    strikes = RETURN.strikes(STRIKING)
    deferred = an_entry().deferred(not_before=ahead(hours=1), strikes=strikes, batch=7, now=NOW)

    assert replace(RETURN, entry=deferred).strikes(STRIKING) == strikes == 1


def test_a_strike_that_is_known_by_the_metadata_alone_is_counted_once_across_a_deferral() -> None:
    """The write of the last redrive was lost, so the entry names an older batch than the metadata."""
    circuit = a_circuit(judged=(a_judged(id=9),))
    stale = an_entry(batch=7, counted_batch=7)
    case = replace(LOST_WRITE, entry=stale)
    strikes = case.strikes(circuit)

    deferred = stale.deferred(not_before=ahead(hours=1), strikes=strikes, batch=9, now=NOW)

    assert strikes == 1
    assert replace(case, entry=deferred).strikes(circuit) == 1


def test_a_strike_is_taken_back_with_the_success_that_it_stood_on() -> None:
    fallen = a_circuit(judged=(a_judged(id=7, verdict=Verdict.FAILURE, is_strike=False),))

    assert RETURN.strikes(fallen) == 0


def test_a_return_without_a_verdict_yet_is_no_strike_yet() -> None:
    assert RETURN.strikes(a_circuit(pending=(a_batch(id=7),))) == 0


def test_a_letter_was_a_suspect_where_it_had_a_strike_when_it_was_sent() -> None:
    """The verdict on the batch that it returns from came later, if at all."""
    assert not RETURN.is_suspect
    assert not RETURN.was_suspect(STRIKING)
    assert replace(RETURN, entry=an_entry(strikes=1)).was_suspect(a_circuit())
    assert not LOST_BY_LEDGER.was_suspect(STRIKING)


def test_a_strike_is_not_lost_with_the_record_of_the_redrive_that_followed_it() -> None:
    """The entry does not hold the verdict on batch 7 yet, and the letter comes back from batch 9."""
    both = a_circuit(judged=(a_judged(id=7), a_judged(id=9)))

    assert LOST_WRITE.was_suspect(both)
    assert LOST_WRITE.strikes(both) == 2
    assert LOST_WRITE.strikes(STRIKING) == 1
    assert replace(LOST_WRITE, entry=an_entry(counted_batch=7)).strikes(both) == 1


# Returns, each charged to the circuit once.

RETURNED = an_entry(status=Status.RETURNED)


@pytest.mark.parametrize(
    ("case", "is_unseen"),
    [
        (FIRST_VISIT, False),
        (
            Case(letter=a_returned_letter(metadata=some_metadata(redrive_count=0, batch=NO_BATCH))),
            False,
        ),
        (Case(letter=a_returned_letter(message_id="first"), entry=an_entry()), False),
        (Case(letter=a_returned_letter()), True),
        (RETURN, True),
        (replace(RETURN, entry=an_entry(status=Status.PARKED)), True),
        (replace(RETURN, entry=replace(RETURNED, seen_in_version=20)), True),
        (replace(RETURN, entry=replace(RETURNED, seen_in_version=19)), False),
    ],
    ids=[
        "a first visit is no return",
        "nor is a letter that was parked on its first visit and put back",
        "nor a copy that a crash left behind: the letter itself has gone on",
        "the metadata alone shows it",
        "the ledger knows of the redrive",
        "a person put a parked letter back",
        "marked by a pass that died before it wrote the circuit",
        "marked and charged",
    ],
)
def test_a_return_is_charged_to_the_circuit_once(case: Case, is_unseen: bool) -> None:
    assert case.is_unseen_return(20) is is_unseen


# Whether it failed alone.


def some_counts(**changes: Any) -> BatchCounts:
    """The numbers of batch 7, whose two suspects have left their queue, and one is unaccounted for."""
    usual: dict[str, Any] = {
        "batch": 7,
        "sent_at": ago(hours=1),
        "sent_by": ago(hours=1),
        "due_at": ago(minutes=50),
        "size": 2,
        "suspects": 2,
        "succeeded": 1,
        "known_until": NOW,
        "is_gone": True,
    }
    return BatchCounts(**usual | changes)


#: A letter that stays at its place, and whose copy may have come back where nobody sees it.
PRESUMED = Case(letter=a_letter(), entry=an_entry(kept_id="first", replaced_ids=()))
JUDGED_ALONE = of_batch(is_strike=False, was_alone=True, verdict=Verdict.NO_EVIDENCE)


@pytest.mark.parametrize(
    ("batch_counts", "was_alone"),
    [
        (some_counts(), True),
        (some_counts(suspects=1), False),  # one beside it was expected to succeed
        (some_counts(succeeded=2), False),  # all are done
        (some_counts(suspects=1, succeeded=2), False),
        (some_counts(is_gone=False), False),
    ],
)
def test_a_letter_that_nobody_saw_fail_was_alone_where_numbers_say_so(
    batch_counts: BatchCounts, was_alone: bool
) -> None:
    """Of a batch that numbers tell of, its verdict says nothing of those out of sight."""
    assert PRESUMED.is_presumed
    assert PRESUMED.was_alone(a_circuit(counted_batches=(batch_counts,))) == was_alone
    assert PRESUMED.was_alone(replace(JUDGED_ALONE, counted_batches=(batch_counts,))) == was_alone


@pytest.mark.parametrize("case", [PRESUMED, RETURN], ids=["presumed", "met"])
def test_without_numbers_a_letter_was_alone_where_the_verdict_says_so(case: Case) -> None:
    assert case.was_alone(JUDGED_ALONE)
    assert not case.was_alone(ACQUITTING)
    assert not case.was_alone(a_circuit())


def test_what_was_met_was_alone_by_the_verdict_whatever_the_numbers_say() -> None:
    assert RETURN.was_alone(replace(JUDGED_ALONE, counted_batches=(some_counts(suspects=1),)))
    assert not RETURN.was_alone(replace(ACQUITTING, counted_batches=(some_counts(),)))


# What is written next.


def test_a_first_visits_entry_begins_with_what_the_letter_says() -> None:
    entry = FIRST_VISIT.known(QUEUE)

    assert (entry.original_id, entry.current_id, entry.queue) == ("first", "first", QUEUE)
    assert entry.first_seen == a_letter().sent_at
    assert (entry.redrive_count, entry.strikes, entry.batch) == (0, 0, None)
    assert entry.generation == 0
    assert entry.source_arn == SOURCE_ARN


def test_an_entry_that_the_ledger_lost_is_made_again_from_the_metadata() -> None:
    entry = LOST_BY_LEDGER.known(QUEUE)

    assert (entry.redrive_count, entry.batch, entry.generation) == (3, 7, 2)
    assert entry.first_seen == ago(hours=1)


def test_a_redrive_that_the_ledger_never_recorded_is_made_good() -> None:
    assert LOST_WRITE.known(QUEUE).redrive_count == 2


def test_the_next_copy_carries_its_batch_and_generation() -> None:
    metadata = RETURN.next_metadata(QUEUE, a_batch(id=12, generation=5))

    assert (metadata.batch, metadata.generation, metadata.redrive_count) == (12, 5, 2)
    assert metadata.first_seen == an_entry().first_seen


def test_a_parked_copy_keeps_its_metadata_as_it_was() -> None:
    assert RETURN.next_metadata(QUEUE, None) == RETURN.letter.metadata
    assert FIRST_VISIT.next_metadata(QUEUE, None).batch == NO_BATCH


def test_a_copy_that_a_person_sends_is_one_redrive_on_and_in_no_batch() -> None:
    metadata = RETURN.replay_metadata(QUEUE)

    assert (metadata.redrive_count, metadata.batch) == (2, NO_BATCH)
    assert a_circuit(judged=(a_judged(id=1),)).judged_batch(NO_BATCH) is None
