"""Many queues at a glance: two hundred in seven stacks by a bounded number of calls, several homes,
and what can't be reached.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ProfileNotFound

from fakes.faults import Call, Mishap, refuse
from simulator.world import TABLE
from smart_redriver.engine.aws.items import circuit_key
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import Orders, State
from smart_redriver.oncall.deployment.aws import Aws, Caller, connect_as
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.exits import Misused
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.verbs.status import MOST_PAGES, overview
from tests.oncall.desk import Desk
from tests.oncall.fakes import FUNCTION, STACK
from tests.oncall.ran import Ran

QUEUES, PER_STACK = 200, 30


def fill(desk: Desk, count: int = QUEUES, **more: str) -> list[str]:
    """Give the desk's account so many queues in as many stacks as they need, as today's app deploys them;
    their names.
    """
    names = [f"queue-{index:03}" for index in range(count)]
    stacks = [STACK, *(f"{STACK}-team-{number}" for number in range(1, -(-count // PER_STACK)))]
    formation = desk.clients["cloudformation"].stacks
    for number, stack in enumerate(stacks):
        some = names[number * PER_STACK : (number + 1) * PER_STACK]
        formation[stack] = {"StateTableName": TABLE} | {
            f"Queue{name[-3:]}Redriver": json.dumps(places(desk, name, **more)) for name in some
        }
    if len(stacks) > 1:
        formation[STACK]["RedriverStacks"] = " ".join(stacks)
    return names


def places(desk: Desk, name: str, **more: str) -> dict[str, str]:
    """What a stack publishes of one queue, which is made."""
    urls = {
        key: desk.world.sqs.create_queue(QueueName=queue)["QueueUrl"]
        for key, queue in (
            ("SourceQueueUrl", name),
            ("DeadLetterQueueUrl", f"{name}-dlq"),
            ("ParkingLotQueueUrl", f"{name}-lot"),
        )
    }
    return {**urls, "RedriveFunctionName": FUNCTION, "RedriveMode": "automatic", **more}


def put(desk: Desk, queue: str, count: int) -> None:
    url = desk.world.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    for _ in range(count):
        desk.world.sqs.send_message(QueueUrl=url, MessageBody="a")


def open_circuit(desk: Desk, queue: str, **orders: Any) -> None:
    now = desk.world.clock.now()
    store = StateStore(desk.world.dynamodb, TABLE, queue)
    circuit = force(new_circuit(queue, Settings(), now), State.OPEN, "3 failed batches", now)
    store.save_circuit(replace(circuit, orders=Orders(**orders)))


@pytest.fixture
def crowd(desk: Desk) -> Desk:
    """Two hundred queues, some of which are not well."""
    fill(desk)
    put(desk, "queue-042-dlq", 3)
    put(desk, "queue-199-lot", 2)
    open_circuit(desk, "queue-150")
    open_circuit(desk, "queue-042", is_paused=True)
    desk.alarms.in_alarm = ["queue-007 CircuitOpen", "somebody else's", "queue-00 Odd"]
    desk.world.clock.advance(90)
    return desk


def test_of_many_queues_people_see_those_that_are_not_quiet_the_worst_first(crowd: Desk) -> None:
    ran = crowd("status")

    assert ran.code == 0, ran.said
    title, heads, *rows = ran.out.splitlines()
    assert title == (
        "200 queues, 1 with an alarm, 2 not CLOSED, 1 paused, 3 dead letters, 2 parked letters"
    )
    assert heads.split() == ["Queue", "Circuit", "DLQ", "Parked", "Alarms", "and", "more"]
    assert [row.split("  ")[0] for row in rows[:4]] == [
        "queue-007",
        "queue-042",
        "queue-150",
        "queue-199",
    ]
    assert "CircuitOpen" in rows[0]
    assert "OPEN for 1 min 30 s" in rows[1]
    assert "paused" in rows[1]
    assert rows[4] == "196 are quiet: CLOSED, no letters, no alarm."
    assert rows[-1] == "One queue's page: `redrive status --queue NAME`."


def test_two_hundred_queues_take_so_many_calls_and_none_that_aws_rations(crowd: Desk) -> None:
    assert crowd("status").code == 0

    assert Counter(crowd.calls) == {
        "DescribeStacks": 7,
        "DescribeAlarms": 1,
        "BatchGetItem": 2,  # a hundred circuits each
        "GetQueueAttributes": 2 * QUEUES + 1,  # the source that letters wait for
    }


def test_a_source_queue_that_is_gone_is_told_of_letters_that_wait_for_it(crowd: Desk) -> None:
    """Its line was bare, as if the next pass would send its letters."""
    gone = ClientError({"Error": {"Code": "NonExistentQueue"}}, "GetQueueAttributes")

    def script(call: Call) -> Mishap | None:
        return refuse(gone) if call.request.get("QueueUrl", "").endswith("/queue-043") else None

    put(crowd, "queue-043-dlq", 5)
    ran, told = (
        crowd("status", script=script),
        crowd("status", "--json", "--overview", script=script),
    )

    (row,) = [one for one in ran.out.splitlines() if one.startswith("queue-043")]
    assert ", 1 not read in full, 8 dead letters" in ran.out
    *cells, note = row.split(maxsplit=4)
    assert cells == ["queue-043", "CLOSED", "5", "0"]
    assert note.startswith("queue queue-043 not read (GetQueueAttributes: NonExistent")
    (home,) = told.json["homes"]
    (queue,) = [one for one in home["queues"] if one["queue"] == "queue-043"]
    assert queue["headline"]["topic"] == "source queue that can't be read"


def test_programs_get_every_queue_where_they_ask_for_the_overview(crowd: Desk) -> None:
    (home,) = crowd("status", "--overview", "--json").json["homes"]

    assert len(home["queues"]) == QUEUES
    assert sum(one["quiet"] for one in home["queues"]) == 196
    (told,) = [one for one in home["queues"] if one["queue"] == "queue-042"]
    assert told["depths"] == {"dead_letters": 3, "parked": 0}
    assert (told["circuits"][0]["state"], told["paused"], told["mode"]) == (
        "OPEN",
        True,
        "automatic",
    )


def test_watch_shows_the_same_again(crowd: Desk) -> None:
    ran = crowd("watch", "--times", "2")

    assert ran.out.count("196 are quiet") == 2


def test_one_of_many_has_its_page_whatever_stack_it_is_in(crowd: Desk) -> None:
    ran = crowd("status", "--queue", "queue-150")

    assert ran.code == 0, ran.said
    assert "Circuit:" in ran.out
    assert "queue-150" in ran.out


@pytest.mark.parametrize(("count", "is_short"), [(MOST_PAGES, False), (MOST_PAGES + 1, True)])
def test_a_few_queues_have_a_page_each(desk: Desk, count: int, is_short: bool) -> None:
    fill(desk, count)

    ran = desk("status")

    assert ("are quiet" in ran.out) is is_short
    assert ran.out.count("Last pass:") == (0 if is_short else count)


def test_one_letter_is_told_in_the_singular(desk: Desk) -> None:
    fill(desk, 8)
    put(desk, "queue-004-dlq", 1)
    put(desk, "queue-005-lot", 1)

    title = desk("status").out.splitlines()[0]

    assert title == "8 queues, 1 dead letter, 1 parked letter"


def test_a_queue_in_a_dry_run_is_not_quiet(desk: Desk) -> None:
    fill(desk, 6, RedriveMode="dry_run")

    assert desk("status").out.count("mode dry_run") == 6


def test_a_stack_that_is_not_there_yet_is_told_and_the_others_are_shown(crowd: Desk) -> None:
    del crowd.clients["cloudformation"].stacks[f"{STACK}-team-3"]

    ran = crowd("status")

    assert ran.code == 0
    assert f"The queues of stack '{STACK}-team-3' are left out." in ran.err
    assert ran.out.startswith("170 queues")


def test_what_cannot_be_read_is_told_of_each_queue_and_keeps_nothing_else_from_being_shown(
    crowd: Desk,
) -> None:
    item = circuit_key("queue-150") | {"State": {"S": "AJAR"}}
    crowd.world.dynamodb.put_item(TableName=TABLE, Item=item)
    real = crowd.clients["cloudwatch"].describe_alarms

    def denied(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeAlarms")

    crowd.alarms.describe_alarms = denied  # type: ignore[assignment,method-assign]
    without_alarms = crowd("status")
    crowd.alarms.describe_alarms = real  # type: ignore[method-assign]
    without_one = crowd("status")

    assert "200 not read in full" in without_alarms.out
    assert "alarms not read (DescribeAlarms: AccessDenied)" in without_alarms.out
    assert "1 not read in full" in without_one.out
    (row,) = [one for one in without_one.out.splitlines() if one.startswith("queue-150")]
    assert "not known" in row
    assert "circuit of queue-150 not read (UnreadableCircuit)" in row


def test_alarms_are_read_to_their_last_page(desk: Desk) -> None:
    fill(desk, 6)
    pages = [
        {
            "MetricAlarms": [{"AlarmName": "queue-001 CircuitOpen SmartRedriver-1A"}],
            "NextToken": "more",
        },
        {"CompositeAlarms": [{"AlarmName": "queue-002 LettersPileUp SmartRedriver-2B"}]},
    ]
    desk.alarms.describe_alarms = lambda **asked: pages["NextToken" in asked]  # type: ignore[assignment,method-assign]

    (home,) = desk("status", "--overview", "--json").json["homes"]

    alarms = {one["queue"]: one["alarms"] for one in home["queues"] if one["alarms"]}
    assert alarms == {"queue-001": ["CircuitOpen"], "queue-002": ["LettersPileUp"]}


@dataclass
class Homes:
    """Accounts by the names of their homes; one whose profile is not there."""

    desks: dict[str, Desk] = field(default_factory=dict)
    here: str = "eu"

    def elsewhere(self, home: str) -> Homes:
        return Homes(self.desks, home)

    def __call__(self, service: str) -> Any:
        if self.here not in self.desks:
            raise ProfileNotFound(profile=self.here)
        return self.desks[self.here].clients[service]


def around(homes: Homes, *names: str, is_json: bool = False) -> Ran:
    terminal = Terminal(is_json=is_json, out=io.StringIO(), err=io.StringIO())
    any_desk = next(iter(homes.desks.values()))
    session = Session(
        aws=Aws(homes), terminal=terminal, stack=STACK, clock=any_desk.world.clock.now
    )
    code = overview(session, names)
    return Ran(code=int(code), out=terminal.out.getvalue(), err=terminal.err.getvalue())  # type: ignore[attr-defined]


@pytest.fixture
def two(desk: Desk) -> Homes:
    other = Desk()
    fill(desk, 6)
    fill(other, 7)
    put(other, "queue-006-dlq", 5)
    return Homes({"eu": desk, "us": other})


def test_homes_are_shown_one_after_another(two: Homes) -> None:
    ran = around(two, "eu", "us")

    assert ran.code == 0
    assert ran.out.index("eu: 6 queues") < ran.out.index("us: 7 queues, 5 dead letters")


def test_a_home_that_cannot_be_reached_is_one_line_and_the_others_are_shown(two: Homes) -> None:
    """The exit code differed from the documented one."""
    del two.desks["us"].clients["cloudformation"].stacks[STACK]

    ran = around(two, "eu", "us", "ap")
    told = around(two, "eu", "us", "ap", is_json=True).json["homes"]

    assert ran.code == 3
    assert "eu: 6 queues" in ran.out
    assert "us: not reached. There is no stack 'SmartRedriver'" in ran.out
    assert "ap: not reached. That profile does not exist." in ran.out
    assert [(one["home"], bool(one["fault"]), len(one["queues"])) for one in told] == [
        ("eu", False, 6),
        ("us", True, 0),
        ("ap", True, 0),
    ]


def test_where_no_home_can_be_reached_it_fails(two: Homes) -> None:
    assert around(two, "ap").code == 1


def test_a_home_is_a_profile_a_region_or_both() -> None:
    here = connect_as(Caller(profile="dev", region="eu-west-1", endpoint_url="http://localhost:1"))

    callers = [
        here.elsewhere(one).caller  # type: ignore[attr-defined]
        for one in ("shop", "shop/us-east-1", "/us-east-1", "sso/shop")
    ]

    assert [(one.profile, one.region) for one in callers] == [
        ("shop", None),
        ("shop", "us-east-1"),
        ("dev", "us-east-1"),
        ("sso/shop", None),
    ]
    assert {one.endpoint_url for one in callers} == {"http://localhost:1"}
    with pytest.raises(Misused, match="is not a home"):
        here.elsewhere("")  # type: ignore[attr-defined]


def test_a_profiles_own_region_goes_before_that_of_the_environment(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile shop]\nregion = ap-southeast-2\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    here = connect_as(Caller())

    regions = [
        one("sts").meta.region_name
        for one in (here, here.elsewhere("shop"), here.elsewhere("/us-east-1"))  # type: ignore[attr-defined]
    ]

    assert regions == ["eu-west-1", "ap-southeast-2", "us-east-1"]


def test_outputs_of_the_edition_before_are_read_beside_todays(desk: Desk) -> None:
    fill(desk, 6)
    desk.clients["cloudformation"].stacks[STACK] |= {
        f"Mails{name}": value for name, value in places(desk, "mails").items()
    }

    (home,) = desk("status", "--overview", "--json").json["homes"]

    assert {"mails", "queue-005"} <= {one["queue"] for one in home["queues"]}
