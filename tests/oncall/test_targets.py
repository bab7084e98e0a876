"""The command for DLQs that SQS does not fill: what it shows, whom it gives letters, and what it never does."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import Wire, nothing
from simulator.world import DLQ, PARKING_LOT
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.messages.letter import Unfit
from smart_redriver.engine.model.batch import Batch, Heard
from smart_redriver.engine.model.breaker import new_circuit, refused
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.console.cache import Notepad
from smart_redriver.oncall.deployment.places import Place, read_places
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.widget.page import page_of
from tests.oncall.browsing import Browsing
from tests.oncall.fakes import STACK, outputs_of
from tests.oncall.target_desk import FUNCTION, OF_SNS, WEB, TargetDesk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TargetDesk:
    """Of a topic's two subscriptions."""
    monkeypatch.chdir(tmp_path)
    return TargetDesk(monkeypatch)


@pytest.fixture
def of_lambda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TargetDesk:
    """Of a function's failed invocations."""
    monkeypatch.chdir(tmp_path)
    return TargetDesk(monkeypatch, Origin.LAMBDA, [FUNCTION])


def deployment(**more: object) -> Deployment:
    fields = {
        "queue_name": "lambda:billing",
        "table_name": "table",
        "dlq_url": "https://sqs.us-east-1.amazonaws.com/123456789012/dlq",
        "source_queue_url": "",
        "parking_lot_url": "https://sqs.us-east-1.amazonaws.com/123456789012/lot",
        "origin": Origin.SNS,
        "targets": tuple(map(Target.parse, OF_SNS)),
        "private_hosts": ("example.com",),
    }
    return Deployment(**{**fields, **more})  # type: ignore[arg-type]  # as a test says


@pytest.mark.parametrize("prefix", ["", "News"])
def test_a_deployment_is_read_back_from_its_outputs(prefix: str) -> None:
    told = deployment()

    [place] = read_places("SmartRedriver", outputs_of(told, prefix))

    assert place.deployment == told
    assert place.sources == ("lambda:billing", WEB)
    assert place.alarms_known_as == (("lambda:billing" if prefix else "SmartRedriver"), WEB)
    assert place.target(WEB) == Target.parse(OF_SNS[1])
    assert place.target("orders") is None


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        ({"RedriveOrigin": "rabbitmq"}, "'SmartRedriver' says that rabbitmq fills a DLQ"),
        ({"RedriveOrigin": "kafka"}, "a DLQ topic of Kafka has a construct of its own"),
        ({"RedriveOrigin": "sqs"}, "with origin sqs: none"),
        ({"RedriveTargets": ""}, "one at least"),
        ({"RedriveTargets": "file:///etc/passwd"}, "or a URL"),
        ({"RedriveOrigin": "lambda"}, "with origin lambda: lambda"),
    ],
)
def test_outputs_that_this_version_does_not_know_are_refused(outputs: dict, sentence: str) -> None:
    with pytest.raises(Refused, match="SmartRedriver") as refused:
        read_places("SmartRedriver", outputs_of(deployment()) | outputs)

    assert sentence in str(refused.value)


def test_status_shows_the_origin_and_each_target_and_asks_no_target_for_a_depth(
    desk: TargetDesk,
) -> None:
    desk.letters_of(FUNCTION, "one")

    ran = desk("status")
    [told] = desk("status", "--json").json["queues"]

    assert "Filled by:   SNS, with notifications that a subscriber did not take" in ran.out
    assert "Target:      lambda:billing, a Lambda function" in ran.out
    assert f"Target:      {WEB}, an HTTP endpoint" in ran.out
    assert "Source:" not in ran.out
    assert "Not read" not in ran.out.replace("Not read:    last pass", "")
    assert told["origin"] == "sns"
    assert [(one["queue"], one["target"], one["depth"]) for one in told["sources"]] == [
        ("lambda:billing", FUNCTION, None),
        (WEB, WEB, None),
    ]
    assert told["depths"]["source"] is None


def test_a_queues_name_is_a_targets_and_each_target_has_a_circuit(desk: TargetDesk) -> None:
    ran = desk("open", "--queue", WEB, "--reason", "down", "--yes")
    which = desk("open", "--reason", "down", "--yes")

    assert ran.code == 0
    assert desk.store.of(WEB).load_circuit().state.value == "OPEN"
    assert "Several targets share this DLQ" in which.err
    assert f"lambda:billing, {WEB}" in which.err


def test_letters_are_given_to_the_target_that_failed_them_and_to_no_other(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, "one", "two")
    desk.letters_of(WEB, "three")

    ran = desk("replay", "--from-dlq", "--all", "--yes")

    assert ran.code == 0, ran.out + ran.err
    assert sorted(desk.targets["lambda:billing"].given) == ["one", "two"]
    assert desk.targets[WEB].given == ["three"]
    assert desk.bodies(DLQ) == []


@pytest.mark.parametrize("told", [*Unfit.__members__, ""])
@pytest.mark.parametrize("origin", [Origin.SNS, Origin.LAMBDA])
def test_what_does_not_tell_its_target_or_is_not_whole_is_given_to_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: Origin, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    targets = OF_SNS if origin is Origin.SNS else [FUNCTION]
    desk = TargetDesk(monkeypatch, origin, targets)
    desk.letters_of(told, "stranger")

    replayed = desk("replay", "--from-dlq", "--all", "--yes")
    desk("park", "--all", "--yes")
    again = desk("replay", "--all", "--yes")

    assert (replayed.code, again.code) != (0, 0)
    assert not [one.given for one in desk.targets.values() if one.given]
    assert desk.bodies(PARKING_LOT) == ["stranger"]
    assert ("names no listed target or topic as its origin" in replayed.err) is (
        told != "INCOMPLETE"
    )


def test_a_letter_that_is_not_whole_stays_so_through_a_file(desk: TargetDesk) -> None:
    desk.letters_of("INCOMPLETE", "half")
    desk("park", "--all", "--yes")
    deleted = desk("delete", "--all", "--export", "gone.jsonl", "--yes")

    ran = desk("import", "gone.jsonl", "--to", "source", "--yes")

    assert deleted.code == 0, deleted.out + deleted.err
    assert json.loads(Path("gone.jsonl").read_text())["unfit"] == "INCOMPLETE"
    assert "does not hold what its target was given" in ran.out + ran.err
    assert not [one.given for one in desk.targets.values() if one.given]


def test_a_file_brings_letters_back_to_their_target(desk: TargetDesk) -> None:
    desk.letters_of(WEB, "one")
    desk("park", "--all", "--yes")
    desk("delete", "--all", "--export", "gone.jsonl", "--yes")

    ran = desk("import", "gone.jsonl", "--to", "source", "--yes")

    assert ran.code == 0, ran.out + ran.err
    assert (
        f"Plan: send 1 letter of gone.jsonl to lambda:billing and {WEB}, each to its own" in ran.out
    )
    assert desk.targets[WEB].given == ["one"]


def test_a_letter_that_its_target_fails_again_stays_and_is_told_with_the_answer(
    desk: TargetDesk,
) -> None:
    desk.letters_of(WEB, "good", "bad")
    desk.targets[WEB].bounces["bad"] = "HTTP 503"

    ran = desk("replay", "--from-dlq", "--all", "--yes")

    assert ran.code != 0
    assert f"{WEB}: HTTP 503" in ran.out + ran.err
    assert desk.bodies(DLQ) == ["bad"]
    assert desk.targets[WEB].given == ["good"]


def test_a_letter_that_was_named_and_failed_again_is_not_said_to_be_gone(desk: TargetDesk) -> None:
    [bad] = desk.letters_of(WEB, "bad")
    desk.targets[WEB].bounces["bad"] = "HTTP 400"

    ran = desk("replay", "--from-dlq", bad, "--yes")

    assert ran.code != 0
    assert f"Refused 1: {WEB}: HTTP 400." in ran.out + ran.err
    assert "Not among them" not in ran.out + ran.err
    assert desk.targets[WEB].given == []


def test_show_says_which_target_a_letter_is_of(desk: TargetDesk) -> None:
    [one] = desk.letters_of(WEB, "one")
    [other] = desk.letters_of("INCOMPLETE", "half")

    ran, unfit = desk("show", one), desk("show", other)

    assert f"Target:      {WEB}, an HTTP endpoint" in ran.out
    assert desk("show", one, "--json").json["target"] == WEB
    assert "Unfit:       it does not hold what its target was given" in unfit.out
    assert "Target:" not in unfit.out
    assert desk("show", other, "--json").json["unfit"] == "INCOMPLETE"


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("desk", Status.SUCCEEDED, "given back to lambda:billing, which accepted it"),
        (
            "of_lambda",
            Status.REPLAYED,
            "given back to lambda:billing by a person: processed, waiting there",
        ),
    ],
)
def test_show_says_what_is_known_of_a_letter_that_was_given_back(
    request: pytest.FixtureRequest, name: str, status: Status, words: str
) -> None:
    desk: TargetDesk = request.getfixturevalue(name)
    [one] = desk.letters_of(FUNCTION, "one")
    desk("replay", "--from-dlq", "--all", "--yes")

    ran = desk("show", one)

    assert desk.entry(one).status is status
    assert f"{one} is {words}" in ran.out
    assert f"Target:      {FUNCTION}, a Lambda function" in ran.out


def test_a_functions_own_log_is_searched_where_no_report_names_another(
    of_lambda: TargetDesk,
) -> None:
    [one] = of_lambda.letters_of(FUNCTION, "one")
    of_lambda.logs.write("/aws/lambda/billing", f"Invoice of {one} has no country")
    of_lambda.world.clock.advance(5)

    ran = of_lambda("show", one, "--logs")

    assert "has no country" in ran.out


def test_what_was_edited_goes_to_the_same_target(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, '{"a": 1}')
    desk("park", "--all", "--yes")

    ran = desk("edit", "--all", "--with", "sed s/1/2/", "--yes")

    assert ran.code == 0, ran.out + ran.err
    assert desk.targets["lambda:billing"].given == ['{"a": 2}']


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("replay", ()),
        ("replay", ("--contains", "9")),
        ("replay", ("--from-dlq", "--contains", "9")),
        ("edit", ("--with", "sed s/9/8/")),
        ("edit", ("--from-dlq", "--with", "sed s/9/8/")),
    ],
)
@pytest.mark.parametrize("told", [FUNCTION, WEB])
def test_only_the_circuits_of_the_letters_own_targets_speak_against_sending_them(
    desk: TargetDesk, verb: str, more: tuple[str, ...], told: str
) -> None:
    """A target whose circuit was OPEN held up the letters of every other target of its DLQ."""
    [one] = desk.letters_of(told, "9")
    desk.letters_of(FUNCTION, "1")
    if "--from-dlq" not in more:
        desk("park", "--all", "--yes")
    desk("open", "--queue", "lambda:billing", "--reason", "it is down", "--yes")

    which = () if "--contains" in more else (one,) if verb == "replay" else ("--contains", "9")
    ran = desk(verb, *which, *more, "--yes")

    is_refused = told == FUNCTION
    assert (ran.code == 1) is is_refused, ran.said
    assert ("The circuit of lambda:billing is OPEN: its" in ran.err) is is_refused
    assert len(desk.targets[WEB].given) == (not is_refused)
    assert desk.targets["lambda:billing"].given == []


@pytest.mark.parametrize("of", [FUNCTION, WEB])
def test_only_the_circuits_of_a_files_own_targets_speak_against_its_import(
    desk: TargetDesk, of: str
) -> None:
    desk.letters_of(of, "9")
    desk("park", "--all", "--yes")
    desk("delete", "--all", "--export", "gone.jsonl", "--yes")
    desk("open", "--queue", "lambda:billing", "--reason", "it is down", "--yes")

    ran = desk("import", "gone.jsonl", "--to", "source", "--yes")

    is_refused = of == FUNCTION
    assert (ran.code == 1) is is_refused, ran.said
    assert ("The circuit of lambda:billing is OPEN: its" in ran.err) is is_refused
    assert len(desk.targets[WEB].given) == (not is_refused)
    assert desk.targets["lambda:billing"].given == []


def test_letters_that_nobody_looked_at_may_belong_to_any_target(desk: TargetDesk) -> None:
    desk.letters_of(WEB, "1")
    desk("open", "--queue", "lambda:billing", "--reason", "it is down", "--yes")

    ran = desk("replay", "--from-dlq", "--all", "--yes")

    assert ran.code == 1
    assert "The circuit of lambda:billing is OPEN: its" in ran.err


def test_an_edit_that_its_target_accepted_is_not_said_to_be_undone(desk: TargetDesk) -> None:
    """It was looked for in the DLQ, where it never comes back, and said to be hidden or on its way."""
    desk.letters_of(FUNCTION, '{"a": 1}')
    desk.letters_of(WEB, '{"a": 1}')
    desk("park", "--all", "--yes")
    desk.targets[WEB].refuses['{"a": 2}'] = "NotTried"
    desk("edit", "--all", "--with", "sed s/1/2/", "--export", "both.jsonl", "--yes")
    Path("one.jsonl").write_text(Path("both.jsonl").read_text().splitlines(keepends=True)[0])

    both, alone = desk("undo", "both.jsonl", "--yes"), desk("undo", "one.jsonl", "--yes")

    assert "Sent, and put back if they have returned to the DLQ since: 0." in both.said
    assert "Accepted by their target, so not put back: 1 letter." in both.said
    assert "Skipped 1: its target accepted its copy, which does not come back." in both.err
    assert alone.code == 1
    assert "Accepted by their target: 1 letter, all of one.jsonl. That can't be undone" in alone.err


@pytest.mark.parametrize(("name", "comes_back"), [("desk", False), ("of_lambda", True)])
def test_an_edit_promises_undo_only_where_letters_come_back(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, name: str, comes_back: bool
) -> None:
    desk: TargetDesk = request.getfixturevalue(name)
    [one] = desk.letters_of(FUNCTION, '{"a": 1}')
    monkeypatch.setenv("EDITOR", "sed -i s/1/2/")

    ran = desk("edit", one, "--from-dlq", answer="yes")

    assert ran.code == 0, ran.said
    assert ("`redrive undo` takes it." in ran.said) is comes_back
    assert ("what its target accepts can't be undone." in ran.said) is not comes_back


def test_a_refusal_names_the_target_that_a_letter_was_for(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, "one")
    desk.letters_of(WEB, "two", "three")
    desk.targets["lambda:billing"].refuses["one"] = "AccessDenied"
    desk.targets[WEB].refuses["two"] = "HostNotFound"
    desk.targets[WEB].bounces["three"] = "HTTP 503"
    desk("park", "--all", "--yes")

    told = [desk("replay", "--all", "--yes").err]
    desk("delete", "--all", "--export", "gone.jsonl", "--yes")
    told.append(desk("import", "gone.jsonl", "--to", "source", "--yes").err)

    for err in told:
        assert "Refused 1: Invoke for lambda:billing: AccessDenied." in err
        assert f"Refused 1: Invoke for {WEB}: HostNotFound." in err
        assert f"Refused 1: {WEB}: HTTP 503." in err


def test_the_plan_of_a_replay_counts_no_letter_that_fits_no_target(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, "one")
    [nobodys] = desk.letters_of("UNKNOWN_ORIGIN", "two")
    desk("park", "--all", "--yes")

    both = desk("replay", "--all", "--dry-run")
    alone = desk("replay", nobodys, "--dry-run")

    assert "replay 1 letter" in both.err + both.out
    assert "left out: it names no listed target or topic" in both.err + both.out
    assert alone.code != 0
    assert "it names no listed target or topic" in alone.err + alone.out


def test_the_plan_of_an_edit_counts_no_letter_that_fits_no_target(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, '{"a": 1}')
    desk.letters_of("UNKNOWN_ORIGIN", '{"a": 1}')
    desk("park", "--all", "--yes")

    planned = desk("edit", "--all", "--with", "sed s/1/2/", "--dry-run")

    assert "pipe 1 letter through" in planned.err + planned.out
    assert (
        "Left unchanged: 1 letter, it names no listed target or topic" in planned.err + planned.out
    )


def test_status_says_of_a_target_that_it_accepted_letters_and_not_that_they_were_reported(
    desk: TargetDesk,
) -> None:
    now = desk.world.clock.now()
    circuit = new_circuit("lambda:billing", desk.redriver.settings, now)
    batch = Batch(
        id=4, generation=0, sent_at=now, first_try_at=now, due_at=now, size=10, returned=1,
        heard=Heard(succeeded=3),
    )  # fmt: skip
    desk.store.of("lambda:billing").save_circuit(replace(circuit, pending=(batch,)))

    assert "batch 4: 10 letters, 1 returned, 3 accepted" in desk("status").out


def test_a_replay_that_a_target_accepted_is_waited_for_no_longer(desk: TargetDesk) -> None:
    """Nothing comes back from it: `--follow` waited five minutes, and `audit` said that it may yet return."""
    [one] = desk.letters_of(FUNCTION, "one")

    ran = desk("replay", "--from-dlq", "--all", "--yes", "--follow")

    assert "1 letter: succeeded." in ran.out
    assert desk("audit", "--json").json["fates"]["DONE"] == 1
    shown = desk("show", one).out
    assert "which accepted it" in shown
    assert "reported" not in shown


def test_doctor_names_each_target_that_refused_letters_with_its_answer(desk: TargetDesk) -> None:
    """A missing state machine was found by no check, although `status` sends people to the doctor."""
    now = desk.world.clock.now()
    for name, reason in (
        ("lambda:billing", refused("lambda:billing", "AccessDenied")),
        (WEB, "4 of 5 returned"),
    ):
        circuit = new_circuit(name, desk.redriver.settings, now)
        desk.store.of(name).save_circuit(replace(circuit, state=State.OPEN, reason=reason))

    ran = desk("doctor")

    assert "WRONG  lambda:billing refused letters 0 s ago: AccessDenied." in ran.out
    assert "refused letters" not in ran.out.replace("lambda:billing refused letters", "")


def test_doctor_says_how_a_refusal_ends_that_was_mended_while_no_letter_is_left(
    desk: TargetDesk,
) -> None:
    """No canary ever closed the circuit, and the doctor named the refusal for ever."""
    refuse(desk, "lambda:billing", "AccessDenied")

    ran = desk("doctor")
    closed = desk("close", "--queue", "lambda:billing", "--reason", "mended", "--yes")

    assert "Its next letter, as a canary, shows whether it is mended, and closes" in ran.out
    assert "if none is left or to skip the wait: `redrive close --queue lambda:billing" in ran.out
    assert closed.code == 0
    assert "refused letters" not in desk("doctor").out


def refuse(desk: TargetDesk, name: str, code: str) -> None:
    """Let passes have seen that a target refuses letters."""
    now = desk.world.clock.now()
    circuit = new_circuit(name, desk.redriver.settings, now)
    cools = now + timedelta(minutes=5)
    opened = replace(circuit, state=State.OPEN, reason=refused(name, code), cools_until=cools)
    desk.store.of(name).save_circuit(opened)


@pytest.mark.parametrize(("name", "is_heard"), [("desk", False), ("of_lambda", True)])
def test_live_messages_are_promised_to_help_only_where_passes_count_them(
    request: pytest.FixtureRequest, name: str, is_heard: bool
) -> None:
    """A target that accepts at once has no live messages that passes know of."""
    desk: TargetDesk = request.getfixturevalue(name)
    desk.letters_of(FUNCTION, "one")
    refuse(desk, "lambda:billing", "AccessDenied")

    told = [desk("status").out, desk("status", "--overview", "--json").out, desk("letters").out]
    told += [desk("causes").out, desk("replay", "--from-dlq", "--all", "--dry-run").out]

    assert "lambda:billing refuses letters: AccessDenied. 1 letter waits." in told[0]
    assert any("live message" in one for one in told) is is_heard
    assert "Next:        a canary, once" in told[0]


def test_the_list_name_is_said_of_all_targets_and_not_the_first_ones(desk: TargetDesk) -> None:
    outputs = outputs_of(desk.deployment, "News")
    desk.clients["cloudformation"].stacks[STACK] = outputs
    desk.letters_of(WEB, "one")

    heads = [desk(verb).out for verb in ("status", "causes", "doctor", "audit")]
    rows = desk("status", "--overview").out.splitlines()
    plans = [desk("delete", "--from-dlq", "--all", "--dry-run").said, desk("run", "--yes").said]
    (listed,) = Browsing(desk.session(Wire(), Notepad())).get("/api/status")["queues"]

    assert [one.startswith(("News, ", "News:")) for one in heads] == [True] * 4
    assert any(one.startswith("News  ") for one in rows)
    assert "1 letter of News (all)" in plans[0]
    assert "Plan: one pass over the DLQ of News, as the schedule does it." in plans[1]
    assert desk("status", "--json").json["queues"][0]["queue"] == "lambda:billing"
    assert (listed["queue"], listed["spoken"]) == ("lambda:billing", "News")


@pytest.mark.parametrize(("name", "comes_back"), [("desk", False), ("of_lambda", True)])
def test_a_replay_to_targets_says_what_is_true_of_them(
    request: pytest.FixtureRequest, name: str, comes_back: bool
) -> None:
    """It promised metadata, which no target gets, and returns, which do not come if acceptance is the outcome."""
    desk: TargetDesk = request.getfixturevalue(name)
    desk.letters_of(FUNCTION, "one")

    ran = desk("replay", "--from-dlq", "--all", "--yes")

    assert "Each starts without strikes." in ran.said
    assert "metadata" not in ran.said
    assert ("Sent is not done" in ran.said) is comes_back
    accepted = "Accepted is done: what fails at its target later does not come back to this DLQ."
    assert (accepted in ran.said) is not comes_back


def test_parked_tells_of_letters_whose_target_was_removed_beside_those_of_the_others(
    desk: TargetDesk,
) -> None:
    """It listed the others alone, as if these were all."""
    desk.letters_of(FUNCTION, "stays")
    removed = [desk.letters_of(WEB, body)[0] for body in ("one", "two")]
    desk("park", "--all", "--yes")
    for one in removed:
        desk.store.write_ledger(
            [replace(desk.entry(one), queue="sqs:old")], [], desk.world.clock.now()
        )

    ran, as_json = desk("parked"), desk("parked", "--json").json
    audited = desk("audit")

    assert "1 letter parked, as the ledger has it" in ran.out
    assert (
        "2 messages in the parking lot are not in the ledger as parked, or of a target that was removed"
        in ran.out
    )
    assert (as_json["count"], as_json["not_in_ledger"]) == (1, 2)
    assert (audited.code, "3 in the parking lot" in audited.out) == (0, True), audited.said


def test_the_plan_of_a_replay_counts_no_letter_whose_target_was_removed(desk: TargetDesk) -> None:
    """The plan counted it as not in the ledger, and the replay then skipped it."""
    [stays] = desk.letters_of(FUNCTION, "stays")
    [gone] = desk.letters_of("UNKNOWN_ORIGIN", "gone")
    desk("park", "--all", "--yes")
    as_poison = [replace(desk.entry(one), park_reason="MAX_ATTEMPTS") for one in (stays, gone)]
    entries = [as_poison[0], replace(as_poison[1], queue="sqs:old")]
    desk.store.write_ledger(entries, [], desk.world.clock.now())

    plan = desk("replay", "--all", "--dry-run")

    assert "replay 1 letter" in plan.said
    assert "left out: it names no listed target or topic" in plan.said


def test_no_canary_is_said_to_be_out_after_a_target_accepted_the_last_letter(
    desk: TargetDesk,
) -> None:
    """With one canary of two accepted and no letter left, it said so beside "0 letters await a verdict"."""
    circuit = new_circuit("lambda:billing", desk.redriver.settings, desk.world.clock.now())
    desk.store.of("lambda:billing").save_circuit(replace(circuit, state=State.HALF_OPEN))

    ran = desk("status")

    assert "Circuit:     HALF_OPEN, the next letter goes as a canary" in ran.out
    assert "is out" not in ran.out


def test_looks_that_know_of_no_source_queue_go_on(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, "one")
    desk.letters_of("UNKNOWN_ORIGIN", "two")

    for look in (
        ["letters"],
        ["causes"],
        ["parked"],
        ["history"],
        ["logs"],
        ["status", "--overview"],
    ):
        ran = desk(*look)
        assert ran.code == 0, (look, ran.out, ran.err)
        assert "Traceback" not in ran.out + ran.err


def test_the_widget_shows_the_targets_and_asks_them_nothing(desk: TargetDesk) -> None:
    desk.letters_of(FUNCTION, "one")
    place = Place(stack="SmartRedriver", deployment=desk.deployment)
    session = desk.session(Wire(nothing), Terminal())
    session.known_place = place

    shown = page_of(session, desk.redriver.settings)

    assert "<th>Target</th><td>lambda:billing, a Lambda function</td>" in shown
    assert "Not read" not in shown
