"""The console on a worker queue: it stands on the command's verbs, and shows and does the same."""

import io
from urllib.parse import quote

import pytest

from fakes.faults import Wire, nothing
from smart_redriver.oncall.cli import Asked
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.oncall.browsing import Browsing, told
from tests.postgres.desk import PostgresDesk


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench)


@pytest.fixture
def page(desk):
    terminal = Terminal(out=io.StringIO(), err=io.StringIO())
    return Browsing(desk.session(Wire(nothing), terminal, Asked()))


def test_the_page_shows_status_causes_letters_and_one_of_them(page, bench):
    bench.die({"order": 7}, error="Boom")

    (status,) = page.get("/api/status")["queues"]
    causes = page.get("/api/queues/orders/causes")
    peeked = page.get("/api/queues/orders/peek")
    letter = page.get(f"/api/queues/orders/letters/{quote('dlq-1')}")

    assert (status["queue"], status["depths"]["dead_letters"], status["unknown"]) == (
        "orders",
        1,
        {},
    )
    assert [(one["cause"], one["letters"]) for one in causes["groups"]] == [("Boom", 1)]
    assert [one["message_id"] for one in peeked["letters"]] == ["dlq-1"]
    assert letter["message"]["body"] == '{"order": 7}'
    assert letter["message"]["attributes"]["StackTrace"]["StringValue"] == "a\nb"


def test_the_page_shows_how_depths_went_by_the_figures_that_passes_write(page, desk):
    assert page.get("/api/queues/orders/depths") == {"dead_letters": [], "parked": []}
    assert page.get("/api/queues/orders/timeline")["unknown"] == {}

    asked = [
        (one["MetricStat"]["Metric"]["Namespace"], one["MetricStat"]["Metric"]["MetricName"])
        for one in desk.metrics.asked[0]["MetricDataQueries"]
    ]
    assert asked == [("SmartRedriver", "DeadLetters"), ("SmartRedriver", "ParkedLetters")]


def test_letters_are_sent_back_from_the_page_after_a_question(page, bench):
    bench.die("a", "b", error="Boom")

    asked = page.order("orders", "replay", ids=["dlq-2"], from_dlq=True)
    ended = page.answer(asked)

    assert "Plan: replay 1 letter to orders" in told(asked)
    assert (ended["state"], bench.payloads("jobs"), bench.payloads("jobs_dlq")) == (
        "ended",
        ["b"],
        ["a"],
    )


@pytest.mark.parametrize("verb", ["park", "pause", "resume", "run"])
def test_other_orders_of_the_page_end_well(page, bench, verb):
    bench.die("a")
    given = {"park": {"all": True}, "pause": {"reason": "deploying"}}.get(verb, {})
    if verb == "resume":
        page.done("orders", "pause", reason="deploying")

    ended = page.done("orders", verb, **given)  # type: ignore[arg-type]

    assert ended["exit_code"] == 0, ended
    assert bench.everywhere() == {"a": 1}


def edited(page, bench, body, attributes=None):
    """What became of the edit of a dead job, as the page orders it; with the attributes it has, or others."""
    bench.die({"order": 7})
    letter = page.get("/api/queues/orders/letters/dlq-1")["message"]
    return page.done(
        "orders",
        "edit",
        id="dlq-1",
        was=letter["fingerprint"],
        body=body,
        attributes=letter["attributes"] if attributes is None else attributes,
        from_dlq=True,
    )


def test_a_payload_is_edited_from_the_page(page, bench):
    ended = edited(page, bench, '{"order": 8}')

    assert ended["exit_code"] == 0, ended
    assert bench.everywhere() == {'{"order": 8}': 1}
    assert bench.payloads("jobs") == [{"order": 8}]


def test_what_a_row_says_of_its_end_is_not_edited_from_the_page(page, bench):
    ended = edited(page, bench, "{}", attributes={})

    assert ended["exit_code"] == 1
    assert bench.payloads("jobs_dlq") == [{"order": 7}]
