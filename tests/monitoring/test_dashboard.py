"""The dashboard: valid, complete, and in the order in which a person asks."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bench.synthesized import of_cloudwatch
from tests.monitoring.reach import ADOPTED, synthesize

Widget = dict[str, Any]


@pytest.fixture
def widgets(resources: dict[str, Any]) -> list[Widget]:
    [body] = [
        one["Properties"]["DashboardBody"]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Dashboard"
    ]
    return json.loads(body)["widgets"]


def test_it_reads_top_to_bottom_as_a_person_asks(widgets: list[Widget]) -> None:
    headings = [w["properties"]["markdown"] for w in widgets if w["type"] == "text"][1:]

    assert headings == [
        "## Is it healthy?",
        "## Is it draining?",
        "## What is stuck?",
        "## Is the re-driver well?",
    ]


def test_the_first_thing_on_it_is_where_the_runbook_is(
    synth: Callable[..., dict[str, Any]],
) -> None:
    url = "https://wiki.example.com/redriver"
    resources = of_cloudwatch(synth(runbook_url=url))
    [body] = [
        one["Properties"]["DashboardBody"]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Dashboard"
    ]

    first = json.loads(body)["widgets"][0]

    assert (first["type"], first["x"], first["y"]) == ("text", 0, 0)
    assert f"[runbook]({url})" in first["properties"]["markdown"]


def test_it_shows_the_state_of_every_alarm(
    resources: dict[str, Any], widgets: list[Widget]
) -> None:
    [shown] = [w["properties"]["alarms"] for w in widgets if w["type"] == "alarm"]

    # The composites are all queues' of the stack.
    of_queue = {name for name, one in resources.items() if one["Type"].endswith("::Alarm")}
    assert set(shown) == of_queue


def test_no_widget_lies_on_another_or_off_the_page(widgets: list[Widget]) -> None:
    taken: set[tuple[int, int]] = set()
    for widget in widgets:
        assert widget["x"] + widget["width"] <= 24
        cells = {
            (x, y)
            for x in range(widget["x"], widget["x"] + widget["width"])
            for y in range(widget["y"], widget["y"] + widget["height"])
        }
        assert not taken & cells
        taken |= cells


def test_every_graph_has_a_title_and_a_name_for_each_line_that_is_not_aws_own(
    widgets: list[Widget],
) -> None:
    graphs = [w["properties"] for w in widgets if w["type"] == "metric"]

    assert len(graphs) == len({graph["title"] for graph in graphs}) == 11
    for graph in graphs:
        for row in graph["metrics"]:
            options = row[-1] if isinstance(row[-1], dict) else {}
            is_shown = options.get("visible", True)
            assert not is_shown or "label" in options or row[0] == "AWS/Lambda"


@pytest.mark.parametrize(
    "word",
    ["circuit", "waiting", "flow", "success", "window", "age", "life", "reason", "duration"],
)
def test_it_has_what_a_person_looks_for(widgets: list[Widget], word: str) -> None:
    titles = [w["properties"]["title"].lower() for w in widgets if w["type"] == "metric"]

    assert any(word in title for title in titles)


def test_adopted_queues_have_a_dashboard_each() -> None:
    resources = synthesize(queues=ADOPTED, alarms="all")

    bodies = [
        one["Properties"]["DashboardBody"]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Dashboard"
    ]
    assert [[q["name"] for q in ADOPTED if f'"{q["name"]}"' in body] for body in bodies] == [
        ["orders"],
        ["refunds"],
    ]
