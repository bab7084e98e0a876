"""The dashboard's widget: what `status` and `causes` say, as HTML in which no letter can do anything."""

from __future__ import annotations

import io
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from aws_cdk.assertions import Template
from botocore.exceptions import ClientError

from fakes.faults import Wire, nothing, on, refuse
from simulator.sources import Source
from simulator.world import SOURCE
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.oncall.deployment.places import Place
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.widget import page
from tests.infrastructure.conftest import synthesize
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK
from tests.oncall.reported import declined, failed, report
from tests.oncall.test_policies import ACTIONS, PLACES

#: All that the page is made of.
_TAGS = {"table", "tr", "th", "td", "p", "b"}


class Read(HTMLParser):
    """What a browser takes the page for: tags, attributes, and rows of text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[Any] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag in ("tr", "p"):
            self.rows.append([])
        if tag in ("td", "th", "p"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.rows[-1][-1] += data


def look(desk: Desk, script: Any = nothing) -> list[list[str]]:
    """The rows of the page."""
    read = Read(page.page_of(session(desk, script), desk.redriver.settings))
    assert read.tags <= _TAGS
    assert read.attributes == []
    return read.rows


def session(desk: Desk, script: Any = nothing) -> Session:
    """As the function opens it: the place is known, and nobody is asked for it."""
    opened = desk.session(Wire(script), Terminal(out=io.StringIO(), spared_stack=STACK))
    opened.known_place = Place(stack=STACK, deployment=desk.deployment)
    return opened


def test_it_says_of_circuit_queues_and_last_change_what_status_says(desk: Desk) -> None:
    desk.dead_letters("a")
    desk("run", "--yes")
    desk("pause", "--reason", "migration", "--for", "1h", "--yes")
    left_out = ("Last pass:", "Alarms:", "DLQ:")

    said = [line.split(maxsplit=1) for line in desk("status").out.splitlines()[2:]]
    rows = look(desk)

    told = dict(row for row in rows if len(row) == 2 and row[0])
    assert told["Circuit"] == "CLOSED, but paused: nothing is redriven"
    assert told["Last redrive"] == "0 s ago"
    for name, text in (one for one in said if one[0].endswith(":") and one[0] not in left_out):
        if " " not in name and name.removesuffix(":") in told:
            assert told[name.removesuffix(":")] == text
    assert {"Now", "Source", "Circuit", "Out", "Paused", "DLQ"} <= set(told)


def test_letters_are_counted_by_cause_in_the_dlq_and_parked(desk: Desk) -> None:
    desk.park("x")
    failed(desk, "a")
    failed(desk, "b", error_class="KeyError", first_line="'price'")

    rows = look(desk)

    at = rows.index(["Letters", "Cause", "In the DLQ", "Parked", "State"])
    assert sorted(rows[at + 1 :]) == [
        ["1", "KeyError", "1", "0", "flowing"],
        ["1", "no cause reported", "0", "1", "parked since 00:02"],
        ["1", "shop.PaymentDeclined", "1", "0", "flowing"],
    ]


def test_it_makes_no_call_that_its_function_is_not_granted_and_is_granted_no_other(
    desk: Desk,
) -> None:
    desk.dead_letters("a")
    desk.asked.clear()
    look(desk)
    template = Template.to_json(synthesize(alarms="all", dashboard_widget="true"))

    [policy] = [
        one["Properties"]["PolicyDocument"]["Statement"]
        for name, one in template["Resources"].items()
        if "WidgetRoleDefaultPolicy" in name
    ]
    granted = {
        (action, place_of(resource))
        for statement in policy
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
        if not action.startswith("logs:")
    }
    assert granted == {(ACTIONS.get(action, action), place) for action, place in desk.asked}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def place_of(resource: dict[str, Any]) -> str:
    return PLACES[resource["Fn::GetAtt"][0][:-8]]


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></table><cwdb-action action='call' endpoint='arn:aws:lambda:x'></cwdb-action>",
    "&lt;b&gt;&#60;script&#62;",
    "\u202eevil\u202c \x1b[2J\x00",
    "[a](javascript:alert(1)) {{7*7}} `" + "x" * 5_000,
)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_consumer_calls_its_error_is_text_and_nothing_else(desk: Desk, text: str) -> None:
    failed(desk, "a", error_class=text, first_line=text)

    rows = look(desk)

    (cause,) = [row[1] for row in rows if len(row) == 5 and row[0] == "1"]
    assert len(cause) <= 200
    assert cause.isprintable()
    assert set(cause) <= {*text, "�", "…"}
    assert len(cause) > 9


@pytest.mark.parametrize("text", HOSTILE)
def test_so_is_what_a_person_gives_as_a_reason(desk: Desk, text: str) -> None:
    circuit = new_circuit(SOURCE, desk.redriver.settings, desk.world.clock.now())
    desk.store.save_circuit(force(circuit, State.OPEN, text, desk.world.clock.now()))

    assert [row for row in look(desk) if row[0] == "Circuit"] == [
        ["Circuit", "OPEN, nothing is redriven"]
    ]


def test_each_source_of_a_shared_dlq_has_its_circuit_and_its_causes() -> None:
    desk = Desk(neighbours=[Source(name="refunds")])
    (first,) = desk.dead_letters("a")
    (second,) = desk.dead_letters("b", of="refunds")
    report(desk, declined(first), declined(second, queue="refunds"))

    rows = look(desk)

    assert [row[1].split(",")[0] for row in rows if row[0] == "Source"] == [SOURCE, "refunds"]
    assert sorted(row[1] for row in rows if len(row) == 5 and row[0] == "1") == [
        "shop.PaymentDeclined (orders)",
        "shop.PaymentDeclined (refunds)",
    ]


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        ("GetItem", "circuit of orders (GetItem: AccessDenied)"),
        ("GetQueueAttributes", "DLQ (GetQueueAttributes: AccessDenied)"),
        ("Scan", "Causes were not read (Scan: AccessDenied)."),
    ],
)
def test_what_may_not_be_read_is_told_and_the_rest_is_shown(
    desk: Desk, operation: str, told: str
) -> None:
    error = ClientError({"Error": {"Code": "AccessDenied"}}, operation)

    rows = look(desk, on(operation, refuse(error)))

    assert told in [text for row in rows for text in row]
    assert ["As of", "2026-01-01T00:00:00Z"] in rows


def test_a_ledger_of_any_size_is_read_to_a_bound_and_the_page_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MOST_PAGES", 2)
    failed(desk, "a", "b", "c")
    bare = desk.clients["dynamodb"]
    desk.clients["dynamodb"] = pages = Pages(bare)

    rows = look(desk)

    assert pages.read == 2
    assert ["Of a large ledger 2 letters were counted; `redrive causes` counts all."] in rows
    assert ["2", "shop.PaymentDeclined", "2", "0", "flowing"] in rows


class Pages:
    """A table whose scan gives one item a page."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def scan(self, **request: Any) -> dict[str, Any]:
        start = request.pop("ExclusiveStartKey", 0)
        found = self._table.scan(**request)["Items"]
        self.read += 1
        rest = {"LastEvaluatedKey": start + 1} if start + 1 < len(found) else {}
        return {"Items": found[start : start + 1], **rest}


def test_more_causes_than_fit_are_counted(desk: Desk) -> None:
    ids = desk.dead_letters(*map(str, range(12)))
    report(desk, *(declined(one, error_class=f"Error{n}") for n, one in enumerate(ids)))

    rows = look(desk)

    assert len([row for row in rows if len(row) == 5]) == 1 + page.MOST_CAUSES
    assert rows[-1] == ["2 more: `redrive causes`."]


def test_with_nothing_stuck_it_says_so(desk: Desk) -> None:
    desk.world.clock.advance(timedelta(days=1).total_seconds())

    assert look(desk)[-1] == ["No letter is stuck."]
