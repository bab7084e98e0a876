"""The console over topics: it stands on the command's verbs, and shows and does the same."""

import io
from collections import Counter

import pytest

from smart_redriver.oncall.terminal.terminal import Terminal
from tests.kafka.bench import Bench
from tests.kafka.desk import KafkaDesk
from tests.oncall.browsing import Browsing, told


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return KafkaDesk(Bench(), tmp_path)


@pytest.fixture
def page(desk):
    terminal = Terminal(out=io.StringIO(), err=io.StringIO())
    return Browsing(desk.session(terminal))


def test_the_page_shows_status_causes_letters_and_one_of_them(page, desk):
    desk.bench.die("a")

    (status,) = page.get("/api/status")["queues"]
    causes = page.get("/api/queues/orders/causes")
    (peeked,) = page.get("/api/queues/orders/peek")["letters"]
    letter = page.get(f"/api/queues/orders/letters/{peeked['message_id']}")

    assert (status["depths"]["dead_letters"], status["unknown"]) == (1, {})
    assert [(one["cause"], one["letters"]) for one in causes["groups"]] == [("Boom", 1)]
    assert letter["message"]["body"] == "a"


@pytest.mark.parametrize("path", ["", "/log"])
def test_the_page_finds_a_letter_by_its_place_as_the_command_does(page, desk, path):
    """It refused the place, and said that the digest may be left out."""
    desk.bench.die("a", keys=["k"])
    (peeked,) = page.get("/api/queues/orders/peek")["letters"]
    place, _, _ = peeked["message_id"].rpartition("-")

    found = page.get(f"/api/queues/orders/letters/{place}{path}")

    assert found == page.get(f"/api/queues/orders/letters/{peeked['message_id']}{path}")


def test_letters_are_sent_back_from_the_page_after_a_question(page, desk):
    desk.bench.die("a", "b")
    ids = {one["body"]: one["message_id"] for one in page.get("/api/queues/orders/peek")["letters"]}

    asked = page.order("orders", "replay", ids=[ids["b"]], from_dlq=True)
    ended = page.answer(asked)
    desk.bench.work()

    assert "Plan: replay 1 letter to orders" in told(asked)
    assert ended["state"] == "ended"
    assert desk.bench.done == [b"b"]
    assert [one["body"] for one in page.get("/api/queues/orders/peek")["letters"]] == ["a"]


@pytest.mark.parametrize("verb", ["park", "pause", "resume"])
def test_other_orders_of_the_page_end_well(page, desk, verb):
    desk.bench.die("a")
    given = {"park": {"all": True}, "pause": {"reason": "deploying"}}.get(verb, {})
    if verb == "resume":
        page.done("orders", "pause", reason="deploying")

    ended = page.done("orders", verb, **given)  # type: ignore[arg-type]

    assert ended["exit_code"] == 0, ended
    assert desk.bench.waiting + Counter(desk.bench.parked) == Counter([b"a"])


def test_what_only_a_function_has_is_told_and_the_page_stands(page, desk):
    desk.bench.die("a")

    timeline = page.get("/api/queues/orders/timeline")

    assert timeline["unknown"]
    assert all("NotOnAws" in why or "process" in why for why in timeline["unknown"].values())
