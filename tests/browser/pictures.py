"""Takes the pictures of docs/console.md: `PYTHONPATH=lambdas:. python -m tests.browser.pictures`.

Half of the letters need a payment provider that was down, some are poison: an incident in the simulated world.
"""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Page, expect

from emulator.chromium import chromium
from emulator.environments import ROOT
from fakes.faults import Wire
from simulator.consumers import Consumer, Downstream, Reports, down_between
from simulator.world import SOURCE, hours, minutes
from smart_redriver.oncall.console.notepad import Notepad
from tests.browser.served import served
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK
from tests.oncall.reported import declined, report

_PLACE = ROOT / "docs" / "images"


class _Logged:
    """The re-driver's passes, with a line in the function's log for each."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.every: timedelta = timedelta(minutes=1)

    def tick(self) -> None:
        redriver = self._desk.redriver
        before = len(redriver.reports)
        redriver.tick()
        for told in redriver.reports[before:]:
            self._desk.clients["logs"].note(told.to_json())


def incident() -> Desk:
    """Two hours and a half after payments went down."""
    down = Downstream(health=down_between(minutes(20), hours(2)), share=0.5, live_share=0.1)
    desk = Desk(consumer=Consumer(reports=Reports(), downstream=down))
    bodies = (f'{{"order": {n}, "price": null, "currency": "EUR"}}' for n in range(40, 52))
    broken = desk.dead_letters(*bodies)
    said = {"error_class": "TypeError", "first_line": "price is null"}
    report(desk, *(declined(one, **said) for one in broken))
    desk.park()
    policy = _Logged(desk)
    desk.world.run(policy, until=minutes(25))
    desk.world.dead_letters(160, poison=12)
    desk.world.run(policy, until=minutes(60))
    desk("pause", "--reason", "provider says: back at two", "--for", "10m", "--yes")
    desk.world.run(policy, until=hours(1.75))
    return desk


def main() -> None:
    """Take them."""
    os.chdir(tempfile.mkdtemp())
    desk = incident()
    session = desk.session(Wire(), Notepad(spared_stack=STACK))
    with chromium(Path(tempfile.mkdtemp())) as browser, served(session) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(address)
        expect(page.get_by_role("link", name=SOURCE, exact=True)).to_be_visible()
        page.get_by_role("link", name=SOURCE, exact=True).click()
        expect(page.get_by_role("region", name="Events")).to_be_visible()
        expect(page.get_by_text("Next look")).to_be_visible()
        _take(page, "timeline", full_page=True)
        _go(page, "Causes")
        expect(page.locator("[data-row]").first).to_be_visible()
        _take(page, "causes")
        _go(page, "Letters")
        page.locator("[data-row]").first.click()
        page.get_by_role("button", name="Edit", exact=True).click()
        body = page.get_by_role("textbox", name="Body")
        body.fill(body.input_value().replace("null", "12.50"))
        page.get_by_role("button", name="Send the edited copy…").click()
        page.get_by_role("button", name="Show the plan").click()
        expect(page.get_by_role("button", name="Yes", exact=True)).to_be_visible()
        page.emulate_media(color_scheme="dark")
        _take(page, "plan")


def _go(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()


def _take(page: Page, name: str, *, full_page: bool = False) -> None:
    page.screenshot(path=_PLACE / f"console-{name}.png", full_page=full_page)


if __name__ == "__main__":
    main()
