"""The pictures of the docs, of an incident in the simulated world: payments are down, and some letters are poison.

With `PICTURES=1` in the environment, a picture that differs from the stored one replaces it, and its test fails once:
look at it, then commit it. Fonts differ from machine to machine, so that elsewhere only the page is looked at.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, expect

from emulator.chromium import PATIENCE_MS
from emulator.environments import ROOT
from fakes.faults import Wire
from simulator.consumers import Consumer, Downstream, Reports, down_between
from simulator.world import SOURCE, hours, minutes
from smart_redriver.oncall.console.cache import Notepad
from tests.browser.served import served
from tests.oncall.desk import Desk, PassesInTheLog
from tests.oncall.fakes import STACK
from tests.oncall.reported import declined, report

_PLACE = ROOT / "docs" / "images"
#: Of 255. Edges of letters may differ by as much.
_NOTICEABLE = 48
#: Of all pixels.
_MOST_DIFFERENT = 0.002


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The console, forty minutes after payments went down."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("kept"))
        down = Downstream(health=down_between(minutes(20), hours(2)), share=0.5, live_share=0.1)
        desk = Desk(consumer=Consumer(reports=Reports(), downstream=down))
        bodies = (f'{{"order": {n}, "price": null, "currency": "EUR"}}' for n in range(40, 52))
        broken = desk.dead_letters(*bodies)
        said = {"error_class": "TypeError", "first_line": "price is null"}
        report(desk, *(declined(one, **said) for one in broken))
        desk.park()
        policy = PassesInTheLog(desk)
        desk.world.run(policy, until=minutes(25))
        desk.world.dead_letters(160, poison=12)
        desk.world.run(policy, until=minutes(40))
        desk("pause", "--reason", "is it the provider?", "--for", "5m", "--yes")
        desk.world.run(policy, until=minutes(60))
        with served(desk.session(Wire(), Notepad(spared_stack=STACK))) as found:
            yield found


def _tab(browser: Browser, address: str, width: int, height: int, *, dark: bool = False) -> Page:
    scheme = "dark" if dark else "light"
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    expect(page.get_by_role("link", name=SOURCE, exact=True)).to_be_visible()
    return page


def _go(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()


def _queue(page: Page) -> None:
    page.get_by_role("link", name=SOURCE, exact=True).click()
    expect(page.get_by_label("Figures", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Top causes")).to_be_visible()
    expect(page.get_by_role("region", name="Events")).to_be_visible()


def _take(page: Page, name: str) -> None:
    if not os.environ.get("PICTURES"):
        return
    place = _PLACE / f"console-{name}.png"
    page.mouse.move(0, 0)
    shot = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    if place.exists() and _is_like(shot, place):
        return
    shot.quantize(128).save(place, optimize=True)
    pytest.fail(f"{name} looks different: look at {place.relative_to(ROOT)}, and commit it")


def _is_like(shot: Image.Image, place: Path) -> bool:
    stored = Image.open(place).convert("RGB")
    if stored.size != shot.size:
        return False
    parted = ImageChops.difference(stored, shot).convert("L")
    noticed = sum(parted.histogram()[_NOTICEABLE:])
    return noticed <= _MOST_DIFFERENT * shot.width * shot.height


def test_all_queues(browser: Browser, address: str) -> None:
    page = _tab(browser, address, 1440, 560)

    expect(page.get_by_role("region", name="Top causes")).to_be_visible()
    expect(page.locator(".sparkline")).to_have_count(3)

    _take(page, "queues")


def test_one_queue(browser: Browser, address: str) -> None:
    page = _tab(browser, address, 1440, 1150)

    _queue(page)
    share = page.get_by_role("img", name=re.compile(r"Share that succeeded.*circuit: CLOSED"))
    expect(share).to_be_visible()
    box = share.bounding_box()

    assert box is not None
    assert box["width"] > 1300  # the other charts share a row
    _take(page, "queue")


def test_letters_in_the_dark(browser: Browser, address: str) -> None:
    page = _tab(browser, address, 1440, 760, dark=True)

    page.get_by_role("link", name=SOURCE, exact=True).click()
    _go(page, "Letters")
    page.get_by_label("Where", exact=True).select_option("dlq")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("td.waits").first).to_contain_text("a canary of its cause")

    _take(page, "letters")


def test_the_plan_of_an_edit(browser: Browser, address: str) -> None:
    page = _tab(browser, address, 1440, 760, dark=True)

    page.get_by_role("link", name=SOURCE, exact=True).click()
    _go(page, "Letters")
    page.get_by_role("region", name="Letters", exact=True).locator("[data-row]").first.click()
    page.get_by_role("button", name="Edit", exact=True).click()
    body = page.get_by_role("textbox", name="Body")
    body.fill(body.input_value().replace("null", "12.50"))
    page.get_by_role("button", name="Send the edited copy…").click()
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("button", name="Yes", exact=True)).to_be_visible()

    _take(page, "plan")


@pytest.mark.parametrize(("name", "dark"), [("phone", True), ("phone-by-day", False)])
def test_on_a_phone(browser: Browser, address: str, name: str, dark: bool) -> None:
    page = _tab(browser, address, 390, 844, dark=dark)

    _queue(page)

    _take(page, name)
