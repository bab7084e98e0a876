"""What became of the copy of a letter that is kept at its place, and which letters of a group wait for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import FifoPoison, Settings
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.fifo_counts import BatchCounts
from smart_redriver.engine.passes.pass_state import FIFO_AHEAD
from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.decision import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    ParkReason,
    Redrive,
)
from smart_redriver.engine.triage.ledger import COPIES_KEPT, REPLACED_IDS_KEPT, Entry, Status
from smart_redriver.engine.triage.ordered import (
    CUT_PATIENCE,
    DEDUPLICATION_WINDOW,
    LONGEST_OUT,
    LONGEST_OUT_UNSEEN,
    Fate,
    copies_among,
    fate,
    in_order,
    without_copies,
)
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, a_letter, an_entry, some_metadata
from tests.unit.situations import EXPIRING, TERMS, park, redrive

FIFO = replace(
    TERMS, is_fifo=True, is_source_empty=True, longest_delay=timedelta(), ahead=FIFO_AHEAD
)
BUSY = replace(FIFO, is_source_empty=False)
SETTINGS = Settings()
#: So long after it could be received first a copy has failed, and is seen in the DLQ, if it ever will.
SETTLED = FIFO.time_to_fail + timedelta(seconds=SETTINGS.verdict_grace_seconds)


def kept(
    *,
    sent_before: timedelta = timedelta(),
    view: GroupView = GroupView.WHOLE,
    has_left: bool = False,
    **entry: Any,
) -> Case:
    """A letter whose copy was sent in batch 7, so long ago."""
    known = {
        "status": Status.REDRIVEN,
        "kept_id": "m1",
        "current_id": "copy",
        "replaced_ids": (),
        "batch": 7,
        "strikes": 0,
        "last_redrive": NOW - sent_before,
    } | entry
    letter = a_letter(message_id="m1", copy_has_left=has_left)
    return Case(letter=letter, entry=an_entry(**known), group_view=view)


def of_batch_7(verdict: Verdict = Verdict.SUCCESS, **changes: Any) -> Circuit:
    return a_circuit(judged=(a_judged(id=7, verdict=verdict, **changes),))


UNJUDGED = a_circuit(judged=())
WHOLE = of_batch_7(is_whole=True)
UNSHOWN = of_batch_7(Verdict.NO_EVIDENCE)

PAST_REPEATING = FIFO.time_to_fail + DEDUPLICATION_WINDOW
JUST_BEFORE = PAST_REPEATING - timedelta(seconds=1)
PAST_CUT = SETTLED + CUT_PATIENCE


def counted(**changes: Any) -> Circuit:
    """Batch 7 of three letters, two of which succeeded."""
    known: dict[str, Any] = {"known_until": NOW, "succeeded": 2, **changes}
    batch_counts = BatchCounts(
        batch=7, sent_at=NOW, sent_by=NOW, due_at=NOW, size=3, unseen=3, **known
    )
    return replace(of_batch_7(), counted_batches=(batch_counts,))


def idle(circuit: Circuit) -> Circuit:
    """Nothing has shown that the consumer was at work."""
    return replace(circuit, judged=(a_judged(id=7, verdict=Verdict.NO_EVIDENCE),))


UNEXPLAINED = counted(is_gone=True)
UNREAD = replace(counted(known_until=None, succeeded=0), judged=UNSHOWN.judged)


@pytest.mark.parametrize(
    ("case", "circuit", "terms", "expected"),
    [
        (kept(status=Status.RETURNED), UNJUDGED, BUSY, Fate.BACK),
        (kept(is_settled=True), UNJUDGED, BUSY, Fate.BACK),
        (kept(status=Status.SUCCEEDED), UNJUDGED, BUSY, Fate.DONE),
        (kept(status=Status.PARKED), UNJUDGED, BUSY, Fate.DONE),
        (kept(sent_before=SETTLED), a_circuit(pending=(a_batch(id=7),)), FIFO, Fate.OUT),
        (kept(has_left=True), a_circuit(pending=(a_batch(id=7),)), BUSY, Fate.DONE),
        (kept(has_left=True, status=Status.RETURNED), UNJUDGED, BUSY, Fate.BACK),
        (kept(), WHOLE, BUSY, Fate.DONE),
        (kept(), of_batch_7(is_whole=True, returned=1), FIFO, Fate.OUT),
        (kept(), of_batch_7(), FIFO, Fate.OUT),
        (kept(sent_before=SETTLED - timedelta(seconds=1)), of_batch_7(), FIFO, Fate.OUT),
        (kept(sent_before=SETTLED), of_batch_7(), BUSY, Fate.OUT),
        (kept(sent_before=SETTLED), of_batch_7(), FIFO, Fate.DONE),
        (kept(sent_before=SETTLED), of_batch_7(Verdict.FAILURE), FIFO, Fate.DONE),
        (kept(sent_before=SETTLED), UNJUDGED, FIFO, Fate.DONE),
        (kept(sent_before=SETTLED + LONGEST_OUT), of_batch_7(), BUSY, Fate.DONE),
        (kept(sent_before=SETTLED, view=GroupView.CUT), of_batch_7(), FIFO, Fate.OUT),
        (kept(sent_before=SETTLED, view=GroupView.FULL), of_batch_7(), FIFO, Fate.OUT),
        (kept(sent_before=PAST_REPEATING, view=GroupView.FULL), UNEXPLAINED, FIFO, Fate.BACK),
        (kept(sent_before=PAST_REPEATING, view=GroupView.CUT), UNEXPLAINED, FIFO, Fate.OUT),
        (kept(sent_before=PAST_CUT, view=GroupView.CUT), UNEXPLAINED, FIFO, Fate.BACK),
        (kept(sent_before=JUST_BEFORE, view=GroupView.FULL), UNEXPLAINED, FIFO, Fate.OUT),
        (kept(sent_before=SETTLED), UNEXPLAINED, FIFO, Fate.DONE),
        (kept(view=GroupView.FULL), counted(succeeded=2, came_back=1), BUSY, Fate.DONE),
        (kept(view=GroupView.FULL), counted(reported=3), BUSY, Fate.DONE),
        (kept(sent_before=PAST_REPEATING, view=GroupView.FULL), counted(), FIFO, Fate.OUT),
        (kept(sent_before=SETTLED), counted(is_gone=True), BUSY, Fate.DONE),
        (kept(sent_before=SETTLED + LONGEST_OUT), counted(), BUSY, Fate.OUT),
        (kept(sent_before=SETTLED + timedelta(days=9)), idle(counted()), BUSY, Fate.OUT),
        (
            kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL),
            of_batch_7(Verdict.FAILURE),
            FIFO,
            Fate.BACK,
        ),
        (
            kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL),
            replace(UNREAD, failed_at=NOW),
            FIFO,
            Fate.BACK,
        ),
        (
            kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL),
            replace(UNREAD, failed_at=NOW - SETTLED - LONGEST_OUT),
            FIFO,
            Fate.BACK,
        ),
        (
            kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL),
            replace(UNREAD, failed_at=NOW - SETTLED - LONGEST_OUT - timedelta(seconds=1)),
            FIFO,
            Fate.DONE,
        ),
        (
            kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL),
            replace(UNREAD, judged=of_batch_7(Verdict.FAILURE).judged),
            FIFO,
            Fate.BACK,
        ),
        (kept(sent_before=SETTLED, view=GroupView.FULL), UNREAD, FIFO, Fate.OUT),
        (kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL), UNREAD, FIFO, Fate.DONE),
        (kept(sent_before=SETTLED + LONGEST_OUT, view=GroupView.FULL), UNSHOWN, FIFO, Fate.BACK),
        (kept(sent_before=SETTLED + LONGEST_OUT), UNSHOWN, BUSY, Fate.OUT),
        (kept(sent_before=SETTLED + LONGEST_OUT_UNSEEN), UNSHOWN, BUSY, Fate.DONE),
    ],
    ids=[
        "it was met again",
        "its last failure was reported",
        "its success was reported",
        "its consumer parked it",
        "its batch awaits the verdict",
        "likewise, and its copy is known to have left",
        "its copy is known to have left, and came back",
        "its batch succeeded as a whole",
        "one of a whole batch came back after all",
        "it may still fail",
        "it may fail until this second",
        "the source queue may still have it",
        "it is neither in the source queue nor with its group",
        "likewise, whatever its batch showed",
        "likewise, if nobody remembers its batch",
        "it has been in the source queue for hours",
        "the next look may show the end of its group",
        "the end of its group is out of sight, and some of its batch succeeded",
        "likewise, and one of the batch can't be explained: it may be this",
        "likewise, and the next look may show the end",
        "likewise, and it has not for long",
        "one can't be explained, and a repetition would come within five minutes",
        "one can't be explained, and it is not this: all of its group was seen",
        "those that were not met again are as many as were deleted",
        "the end of each was reported",
        "the metrics don't tell yet",
        "messages are in the source queue, and none as old as its batch",
        "messages as old are in the source queue for hours",
        "likewise, for days, with nobody at work",
        "nothing was counted, and its batch failed",
        "the metrics can't be read, and something has failed since it was sent",
        "likewise, just when it was sent",
        "likewise, and something has failed just before",
        "likewise, and its batch has failed",
        "likewise, and nothing has",
        "likewise, for hours",
        "nothing was counted, for hours",
        "the source queue is not empty, and nobody was seen at work",
        "likewise, for a day",
    ],
)
def test_a_copy_is_done_when_that_is_shown_or_nowhere_else_it_could_be(
    case: Case, circuit: Circuit, terms: Any, expected: Fate
) -> None:
    assert fate(case, circuit, terms, SETTINGS, NOW) is expected


def of_group(group: str, name: str, **changes: Any) -> Case:
    return Case(letter=a_letter(message_id=name, group_id=group, **changes))


def ordered(
    decided: Sequence[tuple[Case, Decision]], settings: Settings = SETTINGS
) -> dict[str, object]:
    """By letter, the reason to hold it, or the decision that stands."""
    return {
        case.message_id: what.reason if isinstance(what, Hold) else what
        for case, what in in_order(decided, FIFO, settings, NOW)
    }


GO, POISON, DONE = redrive(0), park(ParkReason.MAX_ATTEMPTS), Discard(reason="SUCCEEDED")
BACKS_OFF = Hold(reason=HoldReason.BACKOFF, until=NOW + timedelta(minutes=5), strikes=0)


def in_two_groups(*first: Decision) -> list[tuple[Case, Decision]]:
    some = [(of_group("a", f"a{n}"), what) for n, what in enumerate(first)]
    return [some[0], (of_group("b", "b0"), GO), *some[1:]]


@pytest.mark.parametrize("ahead", [GO, BACKS_OFF], ids=["goes", "backs off"])
def test_of_a_group_one_letter_goes_and_the_others_wait_for_it(ahead: Redrive | Hold) -> None:
    told = ordered(in_two_groups(ahead, GO, GO))

    assert told["a1"] is told["a2"] is HoldReason.GROUP
    assert told["b0"] == GO


@pytest.mark.parametrize("ahead", [DONE, POISON], ids=["done", "poison"])
def test_what_leaves_its_group_lets_the_next_one_go(ahead: Decision) -> None:
    assert ordered(in_two_groups(ahead, GO, GO)) == {
        "a0": ahead,
        "b0": GO,
        "a1": GO,
        "a2": HoldReason.GROUP,
    }


def test_poison_blocks_its_group_where_that_is_wanted() -> None:
    blocks = Settings(fifo_poison=FifoPoison.BLOCK)
    too_large = park(ParkReason.UNDELIVERABLE)

    assert ordered(in_two_groups(POISON, GO), blocks) == {
        "a0": HoldReason.BLOCKED,
        "b0": GO,
        "a1": HoldReason.GROUP,
    }
    assert ordered(in_two_groups(too_large, GO), blocks)["a1"] == GO


def test_what_is_near_its_expiry_is_parked_also_while_its_group_waits() -> None:
    decided = [(of_group("a", "a0"), GO), (of_group("a", "a1", sent_at=EXPIRING), GO)]

    assert ordered(decided)["a1"] == park(ParkReason.EXPIRING)


def expiring(message_id: str, view: GroupView) -> tuple[Case, Decision]:
    return replace(of_group("a", message_id, sent_at=EXPIRING), group_view=view), GO


def test_near_its_expiry_none_goes_that_would_bar_the_way_to_those_behind_it() -> None:
    """Of a group SQS shows ten, and none while one of them is out: nine a pass would be parked,
    and the others expire.
    """
    whole = [expiring("a0", GroupView.WHOLE), expiring("a1", GroupView.WHOLE)]
    one_of_many = [expiring("a0", GroupView.FULL)]
    parked = park(ParkReason.EXPIRING)

    assert ordered(whole) == {"a0": parked, "a1": GO}
    assert ordered(one_of_many) == {"a0": parked}
    assert ordered(whole[:1]) == {"a0": GO}


def a_copy(count: int = 1, *, of: str = "m1", name: str = "copy", **entry: Any) -> Case:
    metadata = some_metadata(original_id=of, redrive_count=count)
    known = an_entry(original_id=of, **entry) if entry else None
    return Case(letter=a_letter(message_id=name, metadata=metadata), entry=known)


def test_what_came_back_behind_the_letter_that_it_is_a_copy_of_is_told_from_it() -> None:
    original, alone = kept(), a_copy(of="gone", name="copy-of-gone")

    assert copies_among([original, alone, a_copy(kept_id="m1")]) == [a_copy(kept_id="m1")]
    assert copies_among([original]) == copies_among([alone]) == []


def test_a_copy_is_known_where_its_record_was_lost() -> None:
    first_visit = Case(letter=a_letter(message_id="m1"))

    assert copies_among([first_visit, a_copy()]) == [a_copy()]


@pytest.mark.parametrize(
    ("known", "is_copy"),
    [
        ({"current_id": "copy"}, True),
        ({"current_id": "another", "replaced_ids": ("copy",)}, True),
        ({"current_id": "another", "replaced_ids": ()}, False),
    ],
)
def test_a_copy_that_the_ledger_knows_is_one_whatever_became_of_its_body(
    known: dict[str, Any], is_copy: bool
) -> None:
    copy = a_copy(**known)
    changed = replace(copy, letter=replace(copy.letter, body="other"))

    assert copies_among([Case(letter=a_letter(message_id="m1")), changed]) == [changed] * is_copy


def test_what_a_person_has_sent_again_is_no_copy_of_what_was_left_behind() -> None:
    """The delete of the old one failed: it is what is to be discarded."""
    left_behind = Case(letter=a_letter(message_id="m1"), entry=an_entry(replaced_ids=("m1",)))
    replayed = a_copy(of="m1", name="replayed", current_id="replayed", replaced_ids=("m1",))

    assert left_behind.is_replaced
    assert copies_among([left_behind, replayed]) == []


def test_a_consumers_own_message_that_carries_the_metadata_is_no_copy() -> None:
    first_visit = Case(letter=a_letter(message_id="m1"))
    of_its_own = a_copy(name="follow-up")

    assert (
        copies_among(
            [first_visit, replace(of_its_own, letter=replace(of_its_own.letter, body="other"))]
        )
        == []
    )


def test_a_letter_whose_copy_is_discarded_has_come_back() -> None:
    original, copy = kept(), a_copy(kept_id="m1", status=Status.RETURNED)

    (left,) = without_copies([original, copy], [copy])

    assert left.message_id == "m1"
    assert left.entry == copy.entry


def sent(entry: Entry, new_id: str, *, keeps: bool = True) -> Entry:
    return entry.redriven(
        replaced_id="m1",
        new_id=new_id,
        batch=8,
        generation=2,
        strikes=0,
        delay=timedelta(),
        now=NOW,
        note="redriven",
        keeps=keeps,
    )


def test_a_kept_letter_is_not_replaced_but_each_copy_is_by_the_next() -> None:
    first = sent(an_entry(original_id="m1", current_id="m1", replaced_ids=()), "copy-1")
    second = sent(first, "copy-2")

    assert (first.kept_id, first.replaced_ids) == ("m1", ())
    assert (second.kept_id, second.replaced_ids) == ("m1", ("copy-1",))
    assert second.redrive_count == first.redrive_count + 1


def test_what_becomes_of_a_kept_letter_becomes_of_its_copy() -> None:
    out = sent(an_entry(original_id="m1", current_id="m1", replaced_ids=()), "copy")

    parked = out.parked(replaced_id="m1", new_id="in-lot", reason="EXPIRING", strikes=0, now=NOW)

    assert parked.kept_id is None
    assert parked.replaced_ids == ("m1", "copy")


def test_every_copy_of_a_kept_letter_is_remembered_for_long() -> None:
    """Out of reach behind a large group they wait, and one that nobody knew would be taken for a letter of its own."""
    entry = an_entry(queue="a.fifo", original_id="m1", current_id="m1", replaced_ids=())
    for n in range(COPIES_KEPT):
        entry = sent(entry, f"copy-{n}")
    parked = entry.parked(replaced_id="m1", new_id="in-lot", reason="GAVE_UP", strikes=0, now=NOW)

    assert parked.has_replaced("copy-1")
    assert len(parked.replaced_ids) == COPIES_KEPT > REPLACED_IDS_KEPT


@pytest.mark.parametrize("tries", range(1, 2 * REPLACED_IDS_KEPT))
def test_a_kept_letter_that_leaves_takes_none_of_its_copies_for_forgotten(tries: int) -> None:
    """After four to six tries, the first copies were parked beside their letter, as letters of their own."""
    entry = an_entry(queue="a.fifo", original_id="m1", current_id="m1", replaced_ids=())
    for n in range(tries):
        entry = sent(entry, f"copy-{n}")
    parked = entry.parked(replaced_id="m1", new_id="in-lot", reason="GAVE_UP", strikes=0, now=NOW)
    replayed = parked.replayed(
        replaced_id="in-lot", new_id="at-source", redrive_count=tries, now=NOW, note="replayed"
    )

    assert all(replayed.has_replaced(f"copy-{n}") for n in range(tries))


@pytest.mark.parametrize(
    ("entry", "count", "expected"),
    [
        ({"status": Status.REDRIVEN, "redrive_count": 1}, 1, True),
        ({"status": Status.RETURNED, "redrive_count": 1, "seen_in_version": 3}, 1, False),
        ({"status": Status.RETURNED, "redrive_count": 1, "seen_in_version": 3}, 2, True),
    ],
    ids=["out", "counted", "of a redrive whose record was lost"],
)
def test_a_return_is_charged_before_what_came_back_may_be_discarded(
    entry: dict[str, Any], count: int, expected: bool
) -> None:
    assert a_copy(count, **entry).is_unseen_return(circuit_version=4) is expected


def test_a_kept_letter_is_charged_only_where_the_charge_of_its_copy_was_lost() -> None:
    back = kept(status=Status.RETURNED, seen_in_version=4)

    assert not kept().is_unseen_return(circuit_version=4)
    assert back.is_unseen_return(circuit_version=4)
    assert not back.is_unseen_return(circuit_version=5)
