"""The demo's story, looked at closely: an outage of two virtual hours on a deployed stack. `test_reports` goes on."""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from demo.event_log import Event
from demo.stack import DeployedStack, deployment_of
from demo.story import DEPLOYED_WITH, LAST_CHANCE_SECONDS, Played
from demo.summary import Summary
from smart_redriver.engine.config.settings import Settings
from tests.e2e.by_hand import assert_intact
from tests.e2e.synthesized import synthesize

#: Its cause: the error, the consumer's own code that raised it, and what it says without the message's id.
POISON = "PoisonMessageError in work.work: Message * is poison and can never succeed"
_MINUTE = 60
_DEFAULTS = Settings()
_LAST_CHANCE = timedelta(seconds=LAST_CHANCE_SECONDS)
_A_MINUTE = timedelta(minutes=1)
_STEP_SECONDS = 30  # virtual time passes in steps: nothing is later than one
#: By default settings a queue is looked at this often when there is nothing to look for, and sooner otherwise.
_LONGEST_LOOK_AWAY = 5 * _MINUTE
#: The schedule may ask whether anything is due only once a minute.
_SCHEDULE_SECONDS = _MINUTE
#: The longest delay, three receives and grace, and the next tick of the schedule.
_LONGEST_VERDICT = timedelta(minutes=15 + 2 + 5)


def test_the_stack_publishes_its_outputs_under_their_promised_names(stack: DeployedStack) -> None:
    promised = {
        "SourceQueueUrl",
        "DeadLetterQueueUrl",
        "ParkingLotQueueUrl",
        "OutcomeQueueUrl",
        "ReportPolicyArn",
        "StateTableName",
        "RedriveFunctionName",
        "WarningTopicArn",
        "PagingTopicArn",
    }

    assert promised <= set(stack.outputs)


def test_what_other_tests_deploy_is_what_the_app_in_a_process_of_its_own_makes(
    stack: DeployedStack, tmp_path: Path
) -> None:
    """Templates, with the hashes of the code, and what the command line is told of them."""
    synthesize(tmp_path, DEPLOYED_WITH)

    deployed = deployment_of(stack.aws) / "cdk.out"
    files = [one.name for one in tmp_path.glob("*.json") if one.is_file()]
    assert {"manifest.json", "SmartRedriver.template.json"} <= set(files)
    for name in files:
        assert (tmp_path / name).read_text() == (deployed / name).read_text(), name


def test_every_order_is_processed_or_parked_and_none_is_lost(summary: Summary) -> None:
    assert summary.problems == ()
    assert summary.lost == 0
    assert summary.sent == summary.processed + summary.parked


def test_no_order_is_delivered_again_after_it_was_processed(summary: Summary) -> None:
    assert summary.repeated == 0


def test_the_deployed_schedule_alone_keeps_passes_coming(played: Played) -> None:
    """Nobody else invokes the function while the story is played."""
    passes = played.events("pass.finished")
    moments = [played.snapshots[0].at, *(one.at for one in passes), played.snapshots[-1].at]

    gaps = [(after - before).total_seconds() for before, after in pairwise(moments)]

    assert passes
    assert max(gaps) <= _LONGEST_LOOK_AWAY + _SCHEDULE_SECONDS + _STEP_SECONDS


def test_no_pass_fails_or_is_refused_anything(played: Played) -> None:
    reports = [event.fields for event in played.events("pass.finished")]

    # A tick that meets an invocation leaves it alone.
    assert {report["outcome"] for report in reports} <= {"DONE", "IDLE", "WAITING", "LEASE_HELD"}
    assert not any(report["faults"] for report in reports)


def test_the_circuit_opens_during_the_outage(played: Played) -> None:
    assert played.during_outage("circuit.open")
    assert not played.during_outage("circuit.closed")


def test_the_circuit_never_opens_but_for_the_outage(played: Played) -> None:
    assert played.outage_began is not None
    assert played.outage_ended is not None
    last_verdict = played.outage_ended + _LONGEST_VERDICT

    opened = [event.at for event in played.events("circuit.open")]

    assert all(played.outage_began < at < last_verdict for at in opened)


def test_hardly_any_letter_is_redriven_during_the_outage(played: Played, summary: Summary) -> None:
    assert played.during_outage("letter.redriven")  # it did try
    assert summary.redriven_in_outage <= 30


def test_no_letter_is_parked_during_the_outage(played: Played) -> None:
    assert not played.during_outage("letter.parked")


def test_the_first_two_canaries_after_the_recovery_close_the_circuit(played: Played) -> None:
    assert played.outage_ended is not None
    (closed,) = played.events("circuit.closed")
    half_opened = [one for one in played.events("circuit.half_open") if one.at < closed.at]

    # A pass tells of its verdicts after the circuit that they moved, and a busy machine stamps what it reads late.
    told = played.events("circuit.closed", "batch.judged", "pass.finished")
    end_of_pass = next(
        index
        for index in range(told.index(closed), len(told))
        if told[index].name == "pass.finished" and _invocation(told[index]) == _invocation(closed)
    )
    verdicts = [one.fields["verdict"] for one in told[:end_of_pass] if one.name == "batch.judged"]
    # The last one that failed opened the circuit, and may be told in the same second as the next canary.
    since_failure = verdicts[len(verdicts) - verdicts[::-1].index("FAILURE") :]

    # None was tried in vain: what half-opened after the recovery closed. A canary that was sent in the last minutes
    # of the outage may be delivered after it, and then it is the first. A poison pill fails then, too: it is a canary
    # if no other letter is in hand, and live messages may speak too late for it.
    before = [one for one in half_opened[:-1] if one.at > played.outage_ended]
    assert [one for one in before if not _redriven_beside(one, played) <= played.hopeless] == []
    # A suspect that was chosen as a canary shows nothing; it neither counts nor fails.
    assert [one for one in since_failure if one != "NO_EVIDENCE"] == ["SUCCESS", "SUCCESS"]


def _redriven_beside(event: Event, played: Played) -> set[str]:
    """The letters that its invocation redrove."""
    return {
        str(one.fields["original_id"])
        for one in played.events("letter.redriven")
        if _invocation(one) == _invocation(event)
    }


def _invocation(event: Event) -> str:
    return str(event.fields["function_request_id"])


def test_exactly_the_poison_pills_are_parked_and_none_before_their_last_chance(
    stack: DeployedStack, played: Played, summary: Summary
) -> None:
    """They fail of one cause: one of them is the last chance of all, and what it took was shared among them."""
    parked = {
        str(event.fields["original_id"]): event.at for event in played.events("letter.parked")
    }
    entries = {one: stack.state_item(f"MESSAGE#{one}") or {} for one in played.poison}
    held_from, tries = _held_from(played, POISON), played.redrives_of(played.poison)
    last_chances = [at for at in tries if at > held_from + _LAST_CHANCE - _A_MINUTE]

    assert set(parked) == played.poison
    assert summary.parked_for == {
        "MAX_ATTEMPTS": len(played.poison),
        "PERMANENT": len(played.permanent),
    }
    assert {(one["Status"], one["ParkReason"]) for one in entries.values()} == {
        ("PARKED", "MAX_ATTEMPTS")
    }
    assert {one["Cause"] for one in entries.values()} == {POISON}
    assert min(last_chances) < min(parked.values())
    assert len([at for at in tries if at > held_from]) >= _DEFAULTS.max_attempts


def _held_from(played: Played, cause: str) -> datetime:
    """The end of the first minute in which letters of this cause were held."""
    return next(seen.at for seen in played.snapshots if cause in seen.circuit.held_causes)


def test_parked_letters_have_their_body_and_attributes_intact(
    stack: DeployedStack, played: Played, summary: Summary
) -> None:
    stack.aws.pass_time(2 * _MINUTE)  # the summary looked at them, which hides them for a while

    parked = stack.parked()

    assert set(parked) == played.hopeless
    for original_id, message in parked.items():
        assert_intact(message, played.sent[original_id])
