"""The function's promises, each as a moment and a few passes, over a wire that refuses one action on one resource.

The emulator's IAM would need a deployment for each action; a refusal is the same to a pass wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from fakes.faults import Act, Call, Mishap, Response, Script, Wire, nothing, refuse
from simulator.world import DLQ, OUTCOMES, PARKING_LOT, SOURCE
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.report import Outcome, Report
from tests.faults.errors import refusal
from tests.faults.scenes import (
    BATCH,
    Scene,
    a_batch_of_which_its_consumer_reports,
    a_good_batch_and_its_returns,
    fresh_letters,
    letters_near_expiry_in_an_outage,
    letters_to_hold,
    letters_to_park,
    letters_without_room_for_metadata,
    parked_letters_to_renew,
)

#: What IAM calls an action, and what it is done to.
Privilege = tuple[str, str]

QUEUES = {SOURCE: "source queue", DLQ: "DLQ", PARKING_LOT: "parking lot", OUTCOMES: "outcome queue"}
_BATCHES_OF_SQS = ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")


#: Seconds.
_COUNTS_ARE_LATE = 61


def privilege_of(call: Call) -> Privilege:
    """What a call needs."""
    if queue := call.request.get("QueueUrl") or call.request.get("SourceArn"):
        name = queue.replace("/", ":").rpartition(":")[2]
        is_batch = call.operation in _BATCHES_OF_SQS
        action = call.operation.removesuffix("Batch") if is_batch else call.operation
        return f"sqs:{action}", QUEUES[name]
    if call.operation == "GetMetricData":
        return "cloudwatch:GetMetricData", "CloudWatch"
    return f"dynamodb:{call.operation}", "state table"


class Role:
    """What the function may do: all but what was taken from it. `used` is what it asked for."""

    def __init__(self, without: Collection[Privilege] = ()) -> None:
        self.used: set[Privilege] = set()
        self._without = without

    def script(self, otherwise: Script = nothing) -> Script:
        """Refuse what is missing; what is allowed goes as `otherwise` has it."""

        def mishap_of(call: Call) -> Mishap | None:
            privilege = privilege_of(call)
            self.used.add(privilege)
            if privilege in self._without:
                return refuse(refusal(call.operation, "AccessDenied"))
            return otherwise(call)

        return mishap_of

    def passes(
        self, scene: Scene, count: int = 1, *, every: float = 360, otherwise: Script = nothing
    ) -> list[Report]:
        """So many passes, so many seconds apart."""
        reports = []
        for number in range(count):
            if number:
                scene.world.clock.advance(every)
            _, report = scene.run_pass(self.script(otherwise))
            assert report is not None
            reports.append(report)
        return reports


#: Whether a promise is kept by a function in this role.
Promise = Callable[[Role], bool]


#: The letters of the moment that most promises begin with.
_LETTERS = 12


def letters_go_back(role: Role) -> bool:
    scene = fresh_letters()
    role.passes(scene, 2)
    return _depth(scene, SOURCE) == _LETTERS


def what_went_back_is_gone_from_the_dlq(role: Role) -> bool:
    scene = fresh_letters()
    role.passes(scene, 2)
    return _depth(scene, DLQ) == 0


def nothing_is_lost_and_nothing_goes_back_twice(role: Role) -> bool:
    """What no missing action breaks: twelve letters are in the DLQ or at their source,
    and never twice at the source.
    """
    scene = fresh_letters()
    role.passes(scene, 4)
    at_source, dead = _depth(scene, SOURCE), _depth(scene, DLQ)
    return at_source <= _LETTERS <= at_source + dead


def a_letter_with_ten_attributes_is_known_again(role: Role) -> bool:
    """Only the ledger knows it: two of the three in the DLQ were there before, and one of those is poison."""
    scene = letters_without_room_for_metadata()
    (report,) = role.passes(scene)
    return report.returned == 2 or report.parked.total() == 1


def poison_is_parked(role: Role) -> bool:
    scene = letters_to_park()
    role.passes(scene, 2)
    return _depth(scene, PARKING_LOT) == len(scene.doomed)


def letters_that_wait_never_expire(role: Role) -> bool:
    (report,) = role.passes(letters_near_expiry_in_an_outage())
    return report.renewed == 1


def parked_letters_never_expire(role: Role) -> bool:
    scene = parked_letters_to_renew()
    reports = role.passes(scene, 2)
    return sum(one.renewed for one in reports) == 2 and _depth(scene, PARKING_LOT) == 2


def a_letter_that_backs_off_is_left_alone(role: Role) -> bool:
    """For half an hour: it is not received again by the next pass, which would count against it."""
    scene = letters_to_hold()
    first, second = role.passes(scene, 2)
    return first.held["BACKOFF"] == 1 and second.held["BACKOFF"] == 0


def success_is_shown(role: Role) -> bool:
    scene = a_good_batch_and_its_returns()
    role.passes(scene, 2)
    circuit = scene.redriver.store.of(SOURCE).load_circuit()
    return circuit is not None and circuit.judged_batch(BATCH) is not None


def reports_are_heard(role: Role) -> bool:
    scene = a_batch_of_which_its_consumer_reports()
    reports = role.passes(scene, 2)
    return sum(one.heard.total() for one in reports) > 0


def reports_are_heard_once(role: Role) -> bool:
    scene = a_batch_of_which_its_consumer_reports()
    role.passes(scene, 2)
    return _depth(scene, OUTCOMES) == 0


def a_dry_run_leaves_reports_to_the_next_pass(role: Role) -> bool:
    scene = a_batch_of_which_its_consumer_reports()
    settings = replace(scene.redriver.settings, mode=Mode.DRY_RUN)
    scene.redriver.pass_over(Wire(role.script()), settings)
    return _visible(scene, OUTCOMES) > 0


def the_next_pass_need_not_wait_for_a_lease(role: Role) -> bool:
    reports = role.passes(fresh_letters(), 2, every=1)
    return reports[0].outcome is Outcome.DONE and reports[1].outcome is not Outcome.LEASE_HELD


def it_stands_aside_while_a_native_redrive_runs(role: Role) -> bool:
    scene = fresh_letters()
    role.passes(scene, otherwise=_a_native_redrive_runs)
    return _depth(scene, SOURCE) == 0


def parked_letters_are_given_back_after_a_look(role: Role) -> bool:
    scene = fresh_letters()
    url = scene.world.url(PARKING_LOT)
    scene.world.sqs.send_message(QueueUrl=url, MessageBody="parked")
    scene.world.clock.advance(120)  # by then the count of it shows
    role.passes(scene)
    return _visible(scene, PARKING_LOT) == 1


PROMISES: tuple[Promise, ...] = (
    letters_go_back,
    what_went_back_is_gone_from_the_dlq,
    a_letter_with_ten_attributes_is_known_again,
    poison_is_parked,
    letters_that_wait_never_expire,
    parked_letters_never_expire,
    a_letter_that_backs_off_is_left_alone,
    success_is_shown,
    reports_are_heard,
    reports_are_heard_once,
    a_dry_run_leaves_reports_to_the_next_pass,
    the_next_pass_need_not_wait_for_a_lease,
    it_stands_aside_while_a_native_redrive_runs,
    parked_letters_are_given_back_after_a_look,
)


def said(promise: Promise) -> str:
    """A promise as the docs say it."""
    return promise.__name__.replace("_", " ").replace(" dlq", " DLQ")


def _a_native_redrive_runs(call: Call) -> Mishap | None:
    def answer(_: Call, __: Act) -> Response:
        return {"Results": [{"Status": "RUNNING"}]}

    return answer if call.operation == "ListMessageMoveTasks" else None


def _counts(scene: Scene, queue: str) -> list[int]:
    names = (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )
    url = scene.world.outcome_queue_url if queue == OUTCOMES else scene.world.url(queue)
    scene.world.clock.advance(_COUNTS_ARE_LATE)
    answer = scene.world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return [int(answer["Attributes"][name]) for name in names]


def _depth(scene: Scene, queue: str) -> int:
    return sum(_counts(scene, queue))


def _visible(scene: Scene, queue: str) -> int:
    return _counts(scene, queue)[0]
