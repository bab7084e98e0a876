"""A pass that gives letters to targets dies, or is refused, at any of its calls: every letter is with the one target
that failed it, or in the parking lot for a reason, and nobody else is called.

Each story is played from its letters to its end: what went wrong may show only when a letter is back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest
from botocore.exceptions import ClientError

from fakes.faults import (
    Call,
    Mishap,
    Script,
    at,
    die_after,
    die_before,
    fail_entries,
    lose_answer,
    nothing,
    refuse,
)
from simulator.smart_policy import PASS_TIME
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.passes.redrive_pass import STOPPING_TIME
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.targets.target_calls import Bounced
from tests.faults.cases import Cases
from tests.faults.errors import UNANSWERED, UNREACHED
from tests.faults.stage import DLQ, LOT, SOON, WEB, Stage
from tests.faults.stories import (
    STORIES,
    a_function_that_is_down_at_first,
    an_endpoint_that_is_down_at_first,
)

Build = Callable[[], Stage]

#: The calls that give a letter to a target; a queue gets up to ten with one.
GIVES = frozenset({"Invoke", "PutRecord", "StartExecution", "Publish", "Post"})
WRITES = GIVES | {
    "SendMessageBatch",
    "DeleteMessageBatch",
    "ChangeMessageVisibilityBatch",
    "BatchWriteItem",
    "PutItem",
    "DeleteItem",
}
MOST_PASSES = 400


def is_to_lot(call: Call) -> bool:
    return call.operation == "SendMessageBatch" and call.request["QueueUrl"].endswith(LOT)


def gives(call: Call) -> int:
    """Letters that the call gives to somebody, so that a repeat of it repeats them."""
    if call.operation == "SendMessageBatch":
        return len(call.request["Entries"])
    # An execution goes by the name of its delivery, and starts once.
    return int(call.operation in GIVES and call.operation != "StartExecution")


class Story:
    """One story played, with what it did pass by pass; the pass of this number goes over a bad wire."""

    def __init__(self, build: Build, struck: int = -1, script: Script = nothing) -> None:
        self.stage = build()
        self.calls: list[list[Call]] = []
        self.reports: list[Report | None] = []
        self.lost_on_the_way: set[str] = set()
        while len(self.calls) < MOST_PASSES:
            wire, report = self.stage.run_pass(script if len(self.calls) == struck else nothing)
            self.calls.append(wire.calls)
            self.reports.append(report)
            self.lost_on_the_way.update(self.stage.nowhere())
            if self.stage.is_over and len(self.calls) > struck + 1:
                return

    def complaints(
        self, *, repeats_allowed: int = 0, parked_too: str = "", ledger_missed_a_write: bool = False
    ) -> list[str]:
        """What went wrong. `parked_too`: one letter may be parked for this reason,
        since it was refused for its content.
        """
        stage, taken, parked = self.stage, self.stage.taken(), self.stage.parked_for()
        unknown = ("None",) if ledger_missed_a_write and not stage.of.keys() & parked.keys() else ()
        wrongly = {
            name: why
            for name, why in parked.items()
            if why not in (*stage.doomed.get(name, "").split(" or "), *unknown)
        }
        if parked_too and list(wrongly.values()) == [parked_too]:
            wrongly = {}
        repeats = [name for (_, name), times in taken.items() for _ in range(times - 1)]
        repeats += [name for name, times in stage.resting(LOT).items() for _ in range(times - 1)]
        repeats += [name for _, name in taken if name in parked]
        told = [
            ("left in the DLQ", dict(stage.resting(DLQ))),
            ("lost", sorted(stage.nowhere())),
            ("lost on the way", sorted(self.lost_on_the_way)),
            ("called wrongly", stage.called_wrongly()),
            ("parked wrongly", wrongly),
            ("not parked", sorted(stage.doomed.keys() - parked.keys())),
            (f"{len(repeats)} repeated", len(repeats) > repeats_allowed and repeats),
            ("repeated more than once", [one for one, n in Counter(repeats).items() if n > 1]),
        ]
        return [f"{what}: {seen}" for what, seen in told if seen]


@cache
def reference(build: Build) -> Story:
    return Story(build)


def telling_passes(build: Build) -> list[int]:
    """One pass of each kind: the first that makes these calls."""
    kinds: dict[str, int] = {}
    for number, calls in enumerate(reference(build).calls):
        kinds.setdefault(" ".join(dict.fromkeys(call.operation for call in calls)), number)
    return sorted(kinds.values())


def telling_calls(build: Build) -> Iterator[tuple[int, Call]]:
    for number in telling_passes(build):
        for call in reference(build).calls[number]:
            yield number, call


def unrecorded(calls: list[Call], number: int) -> int:
    """Letters given away before the process died at this call, of which the ledger had not been told."""
    letters = 0
    for call in calls[: number + 1]:
        if call.operation == "BatchWriteItem":
            letters = 0 if call.number < number else letters
        else:
            letters += gives(call)
    return letters


@pytest.mark.parametrize("build", STORIES, ids=lambda build: build.__name__)
def test_a_story_without_mishaps_ends_well(build: Build) -> None:
    story = reference(build)

    assert story.complaints() == []
    assert sum(sum(report.faults.values()) for report in story.reports if report) == sum(
        why == "UNDELIVERABLE" for why in story.stage.doomed.values()
    )


def test_the_stories_make_every_call_that_gives_a_letter_to_a_target() -> None:
    made = {call.operation for build in STORIES for _, call in telling_calls(build)}

    assert made >= WRITES


@pytest.mark.parametrize("build", STORIES, ids=lambda build: build.__name__)
def test_a_pass_that_dies_at_any_call_repeats_what_it_could_not_record_at_most(
    build: Build, cases: Cases
) -> None:
    for number, call in telling_calls(build):
        if call.operation not in WRITES:
            continue  # to die there leaves the world as to die after the write before it
        for side in (die_before, die_after):
            story = Story(build, number, at({call.number: side}))
            allowed = unrecorded(story.calls[number], call.number)
            if side is die_before:
                allowed -= gives(call)

            assert story.reports[number] is None
            cases.add(
                "targets: crash points",
                f"pass {number}, {side.__name__} {call}",
                story.complaints(repeats_allowed=allowed),
            )

    assert not cases.wrong, str(cases)


def is_given(call: Call) -> bool:
    """Whether the call gives letters to a target, and not to the parking lot."""
    return bool(call.operation in GIVES or call.operation == "SendMessageBatch") and not is_to_lot(
        call
    )


#: Code, whether it is the letter's fault: what AWS or an endpoint may answer where a letter is given.
ANSWERS = {
    "of its content": "InvalidRequestContentException",
    "throttled": "ThrottlingException",
    "refused": "AccessDeniedException",
    "unheard of": "SomethingNewException",
}


def mishaps(call: Call) -> Iterator[tuple[str, Mishap, str]]:
    """What can befall the call that gives a letter, and the reason for which that letter may be parked then."""
    for what, code in ANSWERS.items():
        is_content = what == "of its content"
        reason = "UNDELIVERABLE" if is_content else ""
        if call.operation == "Post":
            if not is_content:
                yield what, refuse(CallFailed("POST", code, "as scripted")), ""
        elif call.operation == "SendMessageBatch":
            code = "InvalidMessageContents" if is_content else code
            yield what, fail_entries([0], code), reason
        else:
            error = ClientError({"Error": {"Code": code, "Message": "no"}}, call.operation)
            yield what, refuse(error), reason
    if call.operation == "Post":
        yield "HTTP 500", refuse(Bounced("HTTP 500")), ""
        yield "no connection", refuse(CallFailed("POST", "NoConnection", "as scripted")), ""
        return
    for unreached in UNREACHED:
        yield type(unreached).__name__, refuse(unreached), ""


@pytest.mark.parametrize("build", STORIES, ids=lambda build: build.__name__)
def test_whatever_a_target_answers_no_letter_is_lost_or_given_to_anybody_else(
    build: Build, cases: Cases
) -> None:
    for number, call in telling_calls(build):
        if not is_given(call):
            continue
        for what, mishap, reason in mishaps(call):
            story = Story(build, number, at({call.number: mishap}))

            cases.add(
                "targets: faults",
                f"pass {number}, {call}: {what}",
                story.complaints(parked_too=reason),
            )

    assert not cases.wrong, str(cases)


@pytest.mark.parametrize("build", STORIES, ids=lambda build: build.__name__)
def test_an_answer_that_is_lost_repeats_one_call_at_most(build: Build, cases: Cases) -> None:
    for number, call in telling_calls(build):
        if call.operation not in WRITES:
            continue
        lost = Bounced("no answer") if call.operation == "Post" else UNANSWERED[0]
        story = Story(build, number, at({call.number: lose_answer(lost)}))

        cases.add(
            "targets: faults",
            f"pass {number}, answer lost of {call}",
            story.complaints(repeats_allowed=gives(call)),
        )

    assert not cases.wrong, str(cases)


@pytest.mark.parametrize("build", STORIES, ids=lambda build: build.__name__)
def test_a_refusal_of_anything_else_repeats_nothing(build: Build, cases: Cases) -> None:
    for number, call in telling_calls(build):
        # What is read is read alike in every pass.
        if is_given(call) or (call.operation not in WRITES and number):
            continue
        error = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, call.operation)
        story = Story(build, number, at({call.number: refuse(error)}))

        is_ledger = call.operation == "BatchWriteItem"

        cases.add(
            "targets: faults",
            f"pass {number}, {call} refused",
            story.complaints(ledger_missed_a_write=is_ledger),
        )

    assert not cases.wrong, str(cases)


def test_bounced_letters_stay_where_they_are() -> None:
    """While an endpoint fails with letters nothing is deleted, and nobody's copy taken for a second one."""
    story = reference(an_endpoint_that_is_down_at_first)
    down = story.calls[:3]

    posts = sum(call.operation == "Post" for calls in down for call in calls)
    deletes = sum(call.operation == "DeleteMessageBatch" for calls in down for call in calls)
    assert (posts >= 3, deletes) == (True, 0)
    assert sum(report.discarded for report in story.reports if report) == 0


def test_a_pass_ends_in_time_however_slow_a_target_is() -> None:
    """Of the letters that it decided about it leaves those that it does not come to, and the next one takes them."""
    stage = Stage(
        origin=Origin.SNS,
        targets=(Target.parse(WEB),),
        settings=replace(SOON, initial_window=1000),
    )
    for number in range(300):
        name = f"letter-https-{number}"
        stage.of[name] = WEB
        stage.put(name, json.dumps({"name": name}))
    # Two rounds of a hundred take 190 seconds, five short of the deadline, and a third would take 95 more.
    stage.web.answers = lambda _: stage.clock.advance(0.95)
    began, minute = stage.clock.now(), timedelta(minutes=1)

    _, report = stage.run_pass()

    assert report is not None
    assert stage.clock.now() - began - minute < PASS_TIME + STOPPING_TIME
    assert report.outcome is Outcome.OUT_OF_TIME
    assert 200 < report.redriven == len(stage.web.taken) < 300
    stage.run_pass()
    assert stage.taken() == dict.fromkeys([(WEB, name) for name in stage.of], 1)
    assert stage.is_over


@pytest.mark.parametrize(
    ("build", "pill"),
    [
        (an_endpoint_that_is_down_at_first, "letter-https-1"),
        (a_function_that_is_down_at_first, "letter-lambda-1"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_fails_for_ever_is_parked_and_nothing_else(
    build: Callable[[str], Stage], pill: str
) -> None:
    story = Story(lambda: build(pill))

    assert story.complaints() == []
    assert story.stage.parked_for().keys() == {pill}
