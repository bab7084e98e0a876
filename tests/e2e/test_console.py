"""An incident on the deployed stack, worked from the console's page and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from demo.console import console
from demo.orders import Order
from emulator.chromium import PATIENCE_MS, chromium
from tests.browser.axe import violations
from tests.e2e.oncall_command import OnCall

_MINUTE = 60.0
_PILLS = 3
_WAITING = 6


@pytest.fixture
def page(on_call: OnCall, tmp_path: Path) -> Iterator[Page]:
    expect.set_options(timeout=PATIENCE_MS)
    with console(on_call.environment(), tmp_path) as address, chromium(tmp_path) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.clock.install()
        page.goto(address)
        page.get_by_role("link", name="Source", exact=True).click()
        expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
        yield page


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()


def confirm(page: Page, ending: str) -> None:
    """Read the plan, say yes, and see it end like this."""
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text(ending)
    page.get_by_role("button", name="Close", exact=True).click()


def tell(page: Page, verb: str, why: str) -> None:
    go(page, "Timeline")
    page.get_by_role("button", name=f"{verb}…").click()
    page.get_by_label("reason").fill(why)


def test_an_incident_is_worked_from_the_page_alone(on_call: OnCall, page: Page) -> None:
    stack = on_call.stack
    pills = on_call.park_poison(_PILLS)

    # A dependency fails. Nothing is to be tried until that is understood.
    stack.set_dependency(is_down=True)
    tell(page, "pause", "the dependency is down")
    confirm(page, "Paused until")
    waiting = stack.send([Order(number=number) for number in range(1, _WAITING + 1)])
    while stack.depths().dead_letters < _WAITING:
        stack.aws.pass_time(_MINUTE)
    tell(page, "run", "to hear what consumers said")
    confirm(page, "PAUSED")

    # The cause, and a letter of it with what its consumer said.
    go(page, "Causes")
    row = page.get_by_role("row").filter(has_text="Park those in the DLQ")
    expect(row).to_contain_text(f"{_WAITING}")
    row.get_by_role("link", name="open one").click()
    expect(page.get_by_role("region", name="Traceback")).to_contain_text("Error")
    assert violations(page) == []

    # Set aside together, then, with the dependency back, replayed together.
    go(page, "Causes")
    row.get_by_role("button", name="Park those in the DLQ…").click()
    confirm(page, f"Parked {_WAITING} letters.")
    assert stack.depths().parked == _WAITING + _PILLS
    stack.set_dependency(is_down=False)
    tell(page, "resume", "it is back")
    confirm(page, "Resumed")
    go(page, "Causes")
    cause = page.get_by_role("row").filter(has_text="Replay parked").filter(has_text="down")
    cause.get_by_role("button", name="Replay parked…").click()
    confirm(page, f"Replayed {_WAITING} letters.")

    # It drains, and the page shows it by itself.
    page.get_by_role("link", name="All queues").click()
    expect(page.get_by_label(f"{_PILLS} parked letters of Source")).to_be_visible()
    stack.aws.pass_time(3 * _MINUTE)
    assert set(waiting) <= stack.processed()

    # One pill is mended by hand.
    page.get_by_label(f"{_PILLS} parked letters of Source").click()
    page.get_by_role("link", name=pills[0]).click()
    page.get_by_role("button", name="Edit", exact=True).click()
    body = page.get_by_role("textbox", name="Body")
    body.fill(body.input_value().replace('"poison": true', '"poison": false'))
    page.get_by_role("button", name="Send the edited copy…").click()
    confirm(page, "Sent the edited copy of 1 letter.")
    stack.aws.pass_time(3 * _MINUTE)
    assert pills[0] in stack.processed()

    # The others are deleted, which was rash, and put back.
    go(page, "Letters")
    expect(page.locator("[data-row]")).to_have_count(_PILLS - 1)
    page.get_by_role("button", name=f"Delete {_PILLS - 1}…").click()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_label(f"Type {_PILLS - 1} to go on").fill(f"{_PILLS - 1}")
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text(f"Deleted {_PILLS - 1} letters.")
    assert stack.depths().parked == 0
    page.get_by_role("button", name="Undo…").click()
    confirm(page, f"Put back {_PILLS - 1} letters.")
    assert stack.depths().parked == _PILLS - 1

    # The next on call finds all of it, whichever way they look.
    go(page, "History")
    expect(page.get_by_text("the dependency is down").first).to_be_visible()
    changes = " ".join(one["what"] for one in on_call("history", "--json").json["changes"])
    for what in ("pause", "run a pass", "park", "resume", "replay", "edit", "delete", "undo"):
        assert f"{what}" in changes
