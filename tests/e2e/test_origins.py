"""DLQs of every origin but SQS, on the deployed stack: an outage with poison, and what each target was given after it.

Lambda's letters are made by the local AWS, of invocations that fail;
the others are put into their DLQs in the shapes that were recorded on AWS (`tests.unit.origin_letters` names the
sources). Played once; then a person looks at what was left.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from demo.stack import Depths
from tests.e2e.checked_aws import checked_aws
from tests.e2e.oncall_command import OnCall
from tests.e2e.origins.endpoint import POISON, Endpoint
from tests.e2e.origins.letters import EACH, HOOKS
from tests.e2e.origins.places import TOPIC_ARN
from tests.e2e.origins.redriver import FUNCTIONS
from tests.e2e.origins.world import World

ENTRIES = (*FUNCTIONS, "order-events", "news", "parcels", "nightly")
each_entry = pytest.mark.parametrize("entry", ENTRIES)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """After the outage, drained. With IAM enforced, so that each re-driver may call its targets,
    and may do nothing else.
    """
    with Endpoint() as endpoint, checked_aws(enforce_iam=True) as aws:
        world = World(aws, endpoint)
        world.fail()
        world.recover()
        world.drain()
        yield world


def marks(name: str, count: int = EACH) -> Counter[str]:
    return Counter(f"{name}-{number}" for number in range(count))


# -- what became of the letters -------------------------------------------------------------------


def test_during_the_outage_every_letter_stays_but_those_that_go_back_to_nobody(
    world: World,
) -> None:
    at_once = ("UNKNOWN_ORIGIN", "INCOMPLETE")
    unfit = {name: sum(world.to_be_parked(name)[one] for one in at_once) for name in world.entries}

    for name in ("order-events", "news", "parcels"):
        depths = world.during_outage[name]
        put = sum(one.entry == name for one in world.put)
        assert (depths.dead_letters, depths.parked) == (put - unfit[name], unfit[name])
    # A schedule's call that can't be made is known as such without its target.
    assert world.during_outage["nightly"].parked == unfit["nightly"] + 1


@each_entry
def test_nothing_is_left_but_what_is_parked_for_its_reason(world: World, entry: str) -> None:
    expected = world.to_be_parked(entry)

    assert world.entries[entry].depths() == Depths(
        source=0, dead_letters=0, parked=expected.total()
    )
    parked = [one for one in world.log[entry] if one.name == "letter.parked"]
    assert Counter(one.fields["reason"] for one in parked) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_event_of_a_function_was_done_once_and_the_poison_never(
    world: World, function: str
) -> None:
    """The letters of one are what its DLQ got, those of the other are records of its on-failure destination."""
    invoked = Counter(world.requests[function].values())

    done = Counter(event["mark"] for event in world.places.events_of(function))

    assert done == invoked - Counter([POISON])
    assert done.total() > 2 * EACH


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_letter_that_failed_again_is_known_by_the_request_that_it_was_given_back_with(
    world: World, function: str
) -> None:
    redriven = Counter(
        one.fields["original_id"] for one in world.log[function] if one.name == "letter.redriven"
    )
    parked = next(one for one in world.log[function] if one.name == "letter.parked")
    entry = world.entries[function].state_item(f"MESSAGE#{parked.fields['original_id']}")

    assert entry is not None
    assert entry["RedriveCount"] == redriven[parked.fields["original_id"]] >= 1
    # Each letter that came back is one that was there before.
    assert len(redriven) <= len(world.requests[function])
    assert max(redriven.values()) > 1


def test_how_long_a_function_takes_to_fail_is_asked_of_it(world: World) -> None:
    """Three seconds once, or three times with two waits; and the grace. A batch whose pass is not over waits longer."""
    grace = 65

    assert min(world.waits["refunds"]) == 3 + grace
    assert min(world.waits["invoices"]) == 3 * 3 + 60 + 120 + grace


# -- what each target was given -------------------------------------------------------------------


def test_a_function_that_is_subscribed_gets_snss_event_of_each_letter_once(world: World) -> None:
    events = world.places.events_of("shipping")

    records = [record for event in events for record in event["Records"]]
    assert Counter(one["Sns"]["Message"] for one in records) == marks("shipping")
    for one in records:
        assert (one["EventSource"], one["EventVersion"]) == ("aws:sns", "1.0")
        assert one["EventSubscriptionArn"] == world.subscriptions["shipping"]
        assert one["Sns"]["SigningCertUrl"].startswith("https://sns.")
        assert one["Sns"]["MessageAttributes"] == {}


def test_queue_and_stream_get_the_envelope_as_it_is_in_the_letter(world: World) -> None:
    put = Counter(one.body for one in world.put if one.entry == "order-events")

    billed = Counter(one["Body"] for one in world.places.messages_in("billing"))
    archived = world.places.archived()

    assert billed + archived <= put
    assert Counter(json.loads(one)["Message"] for one in billed.elements()) == marks("billing")
    assert Counter(json.loads(one)["Message"] for one in archived.elements()) == marks("archive")


def test_the_endpoint_gets_snss_posts_and_is_left_alone_while_it_is_down(world: World) -> None:
    posts = world.endpoint.posts
    taken = [one for one in posts if one.status == 200]
    bounced = Counter(one.status for one in posts if one.status != 200)

    assert Counter(json.loads(one.body)["Message"] for one in taken) == marks("hook", HOOKS)
    assert {one.path for one in posts} == {"/orders?key=1"}
    for one in posts:
        assert one.headers["x-amz-sns-message-type"] == "Notification"
        assert one.headers["x-amz-sns-topic-arn"] == TOPIC_ARN
        assert one.headers["x-amz-sns-subscription-arn"] == world.subscriptions["hook"]
        assert one.headers["x-amz-sns-message-id"] == json.loads(one.body)["MessageId"]
        assert one.headers["content-type"] == "text/plain; charset=UTF-8"
    # A window, and then canaries: less than each letter once.
    assert 0 < bounced[503] < HOOKS
    poison = [json.loads(one.body)["Message"] for one in posts if one.status == 400]
    assert set(poison) == {POISON}


def test_raw_messages_arrive_with_the_publishers_attributes_and_nothing_else(
    world: World,
) -> None:
    sent = next(one for one in world.put if one.entry == "news")

    messages = world.places.messages_in("news")

    assert Counter(one["Body"] for one in messages) == marks("news")
    assert all(_plain(one["MessageAttributes"]) == sent.attributes for one in messages)


def test_each_target_of_a_rule_gets_the_events_that_it_failed_on(world: World) -> None:
    places = world.places

    routed = Counter(event["detail"] for event in places.events_of("routing"))
    started = Counter(json.loads(one)["detail"] for one in places.executions().values())
    returned = places.messages_in("returns")
    published = [json.loads(one["Body"])["Message"] for one in places.messages_in("heard")]

    assert (routed, started) == (marks("routing"), marks("parcels"))
    assert Counter(json.loads(one["Body"])["detail"] for one in returned) == marks("returns")
    assert Counter(json.loads(one)["detail"] for one in published) == marks("heard")
    # What tells of the failure stays behind.
    assert not any("MessageAttributes" in one for one in returned)


def test_a_schedules_targets_get_what_its_call_was_to_give_them(world: World) -> None:
    runs = Counter(event["run"] for event in world.places.events_of("report"))
    chores = world.places.messages_in("chores")

    assert runs == marks("report")
    assert Counter(one["Body"] for one in chores) == marks("chores")
    assert all(one["MessageAttributes"].keys() == {"Kind"} for one in chores)


def test_nobody_else_is_ever_called(world: World) -> None:
    """A healthy subscriber of the topic, and a function that forged letters name."""
    assert world.places.invocations_of("bystander") == 0
    assert world.places.messages_in("audit") == []
    # That a call of theirs would show: of those who were called it does.
    assert world.places.invocations_of("routing") == EACH


@each_entry
def test_no_pass_is_refused_anything_but_by_what_was_not_there(world: World, entry: str) -> None:
    """Nor was anything denied, with IAM enforced."""
    passes = [one.fields for one in world.log[entry] if one.name == "pass.finished"]
    said = {fault for one in passes for fault in one["faults"]}

    assert passes
    assert {one["outcome"] for one in passes} <= {
        "DONE", "IDLE", "WAITING", "LEASE_HELD", "REFUSED"
    }  # fmt: skip
    assert said <= {
        "Invoke:ResourceNotFoundException",
        "GetQueueUrl:NonExistentQueue",
        "PutRecord:ResourceNotFoundException",
        "StartExecution:StateMachineDoesNotExist",
        "Publish:NotFound",
        "Publish:NotFoundException",
        "StartExecution:LetterTooLarge",
        "SendMessage:InvalidLetter",
        "SendMessageBatch:InvalidParameterValue",
    }


# -- a person looks -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_call(world: World) -> OnCall:
    return OnCall(world.entries["order-events"])


def test_status_tells_of_every_entry_and_of_each_target_of_one(
    world: World, on_call: OnCall
) -> None:
    told = on_call("status", "--json")
    page = on_call("status", "--queue", "order-events")

    waiting = on_call("letters", "--queue", "order-events")

    assert (told.code, page.code) == (0, 0), told.said + page.said
    assert waiting.out.strip() == "The DLQ is empty.", waiting.said
    parked = {one["queue"]: one["depths"]["parked"] for one in told.json["queues"]}
    assert sorted(parked.values()) == sorted(
        world.to_be_parked(name).total() for name in world.entries
    )
    for target in ("lambda:shipping", "sqs:billing", "firehose:archive", hook_of(world)):
        assert target in page.out


@each_entry
def test_parked_letters_are_listed_by_the_entrys_name(
    world: World, on_call: OnCall, entry: str
) -> None:
    parked = on_call("parked", "--queue", entry, "--list", "--json")

    reasons = Counter(one["reason"] for one in parked.json["letters"])
    assert reasons == world.to_be_parked(entry)


def test_show_says_whose_a_letter_is_or_why_it_is_nobodys(world: World, on_call: OnCall) -> None:
    parked = on_call("parked", "--queue", "order-events", "--list", "--json").json["letters"]
    by_reason = {one["reason"]: one["original_id"] for one in parked}

    poison = on_call("show", by_reason["MAX_ATTEMPTS"], "--queue", "order-events")
    nobodys = on_call("show", by_reason["UNKNOWN_ORIGIN"], "--queue", "order-events")

    assert f"{world.endpoint.url}, an HTTP endpoint" in poison.out, poison.said
    assert "failed at its target: HTTP 400" in poison.out
    assert "names no listed target or topic as its origin" in nobodys.out, nobodys.said


def test_doctor_finds_nothing_wrong_but_what_this_world_lacks(on_call: OnCall) -> None:
    """Nobody is paged here, and SNS and EventBridge, whose letters the test puts there, are not let in."""
    found = on_call("doctor", "--json")

    assert found.code == 1, found.said
    told = {one["queue"]: one["findings"] for one in found.json["queues"]}
    wrong = {
        one["what"]
        for findings in told.values()
        for one in findings
        if one["level"] == "wrong" and not one["what"].startswith("Nobody is subscribed to")
    }
    lacks = {"order-events": "sns", "news": "sns", "parcels": "events"}
    assert len(told) == len(ENTRIES)
    assert wrong == {
        f"{service}.amazonaws.com may not send to {entry}-dlq: what fails is lost."
        for entry, service in lacks.items()
    }


def test_a_letter_that_is_replayed_goes_to_its_target_and_to_nobody_else(
    world: World, on_call: OnCall
) -> None:
    """Refused as long as the endpoint is as it was; then it is mended."""
    parked = on_call("parked", "--queue", "order-events", "--list", "--json").json["letters"]
    poison = next(one["original_id"] for one in parked if one["reason"] == "MAX_ATTEMPTS")
    others = [one["original_id"] for one in parked if one["original_id"] != poison]
    replay = ("replay", "--queue", "order-events", "--yes", "--reason", "mended")
    posts = len(world.endpoint.posts)

    refused = on_call(*replay, poison)
    left = on_call(*replay, *others)
    world.endpoint.takes_poison = True
    done = on_call(*replay, poison)

    assert f"Refused 1: {hook_of(world)}: HTTP 400." in refused.err, refused.said
    assert "Not among them" not in refused.said
    assert (left.code, "Nothing was changed." in left.err) == (1, True), left.said
    assert "names no listed target or topic as its origin" in left.err
    assert (done.code, "Replayed 1 letter." in done.out) == (0, True), done.said
    assert [one.status for one in world.endpoint.posts[posts:]] == [400, 200]
    assert world.entries["order-events"].depths().parked == len(others)
    assert len(world.places.events_of("shipping")) == EACH
    assert world.places.invocations_of("bystander") == 0


def hook_of(world: World) -> str:
    """The endpoint as a target is called."""
    return world.endpoint.url.partition("?")[0]


def _plain(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in one.items() if key in _VALUES}
        for name, one in attributes.items()
    }


_VALUES = ("DataType", "StringValue", "BinaryValue")
