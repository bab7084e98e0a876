"""Letters that come back although their consumer reported that it is done with them: it reports before it deletes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Heard, Verdict
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.model.evidence import Evidence, gather_evidence
from smart_redriver.engine.model.judging import judge
from smart_redriver.engine.model.permit import DISBELIEF, believes_successes
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.unit.examples import (
    NOW,
    a_batch,
    a_circuit,
    a_judged,
    a_letter,
    a_returned_letter,
    ago,
    an_entry,
)

SAID_TO_BE_DONE = an_entry().succeeded(ago(minutes=5))
STRIKING = a_circuit(judged=(a_judged(id=7, is_strike=True),))


def met_again(entry: Entry) -> Entry:
    return entry.returned(message_id="second", version=20, now=NOW)


def test_such_a_return_is_no_strike_whatever_its_batch_showed() -> None:
    believed, other = (
        Case(letter=a_returned_letter(), entry=met_again(SAID_TO_BE_DONE)),
        Case(letter=a_returned_letter(), entry=met_again(an_entry())),
    )

    assert (believed.strikes(STRIKING), other.strikes(STRIKING)) == (0, 1)


def test_it_is_charged_to_its_batch_like_any_return() -> None:
    assert Case(letter=a_returned_letter(), entry=SAID_TO_BE_DONE).is_unseen_return(20)


@pytest.mark.parametrize(
    ("case", "contradicts"),
    [
        (Case(letter=a_returned_letter(), entry=SAID_TO_BE_DONE), True),
        (Case(letter=a_returned_letter(), entry=met_again(SAID_TO_BE_DONE)), False),
        (Case(letter=a_returned_letter(), entry=an_entry()), False),
        (Case(letter=a_returned_letter(message_id="third"), entry=SAID_TO_BE_DONE), False),
        (Case(letter=a_letter()), False),
        (
            Case(
                letter=a_returned_letter(),
                entry=replace(SAID_TO_BE_DONE, replaced_ids=("second",)),
            ),
            False,
        ),
    ],
    ids=["reported", "seen before", "not reported", "another copy", "not known", "left behind"],
)
def test_a_report_is_contradicted_by_the_copy_that_it_was_about(
    case: Case, contradicts: bool
) -> None:
    assert case.contradicts_a_report is contradicts


def test_reported_successes_count_for_nothing_for_a_while_afterwards() -> None:
    assert believes_successes(a_circuit(), NOW)
    assert not believes_successes(a_circuit(contradicted_at=NOW - DISBELIEF), NOW)
    assert believes_successes(
        a_circuit(contradicted_at=NOW - DISBELIEF - timedelta(seconds=1)), NOW
    )


def test_what_failed_still_counts_where_successes_are_not_believed() -> None:
    batch = a_batch(heard=Heard(succeeded=3, failed=1, tries=3))

    believed = gather_evidence(batch, (), None, max_receives=3)
    doubted = gather_evidence(batch, (), None, max_receives=3, believes_successes=False)

    assert (believed.succeeded, believed.failed) == (3, 1)
    assert (doubted.succeeded, doubted.failed, doubted.deleted) == (0, 1, 0)


def test_the_status_of_a_return_tells_that_it_is_back() -> None:
    assert met_again(SAID_TO_BE_DONE).status is Status.RETURNED


@pytest.mark.parametrize(("succeeded", "is_freed"), [(4, True), (3, False)])
def test_a_batch_that_succeeded_as_a_whole_frees_the_cause_of_its_canary_without_a_report(
    succeeded: int, is_freed: bool
) -> None:
    """A copy without room for its metadata is reported by nobody when it succeeds."""
    held = CauseCircuit(
        cause="PaymentDeclined",
        held_since=ago(hours=1),
        canary_id="first",
        canary_batch=7,
        canary_sent_at=ago(minutes=10),
        seen_at=NOW,
    )
    circuit = a_circuit(state=State.CLOSED, causes=(held,), pending=(a_batch(id=7),))
    known = Evidence(succeeded=succeeded, has_metrics=True, were_tried=True)

    after, (ruling,) = judge(circuit, {7: known}, Settings(), NOW, roll=0.5)

    assert ruling.judgement.verdict is Verdict.SUCCESS
    assert after.causes[0].is_held is not is_freed
