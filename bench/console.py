"""How soon the console's page shows something, with many letters parked, in a real browser against the local AWS."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page

from bench.parked import park
from bench.request import Request
from bench.results import Results, Table
from demo.console import console
from demo.stack import DeployedStack, deploy
from emulator import cdk
from emulator.chromium import chromium
from emulator.environments import ROOT
from emulator.process import LocalAws

LETTERS, LETTERS_WHEN_QUICK = 10_000, 200
RUNS = 5
_CAUSES = ("shop.PaymentDeclined", "KeyError", "TypeError")


def bench(request: Request) -> None:
    """Deploy, park, measure, show, leave."""
    letters = LETTERS_WHEN_QUICK if request.is_quick else LETTERS
    results = Results(name="console", title="How soon the console shows something")
    with LocalAws() as aws, tempfile.TemporaryDirectory() as folder:
        cdk.bootstrap(aws)
        stack = deploy(aws, schedule_minutes="1440")
        park(stack, letters, _CAUSES)
        reading = _reading_seconds(stack)
        with (
            console(_environment(stack), Path(folder), "--read-only") as address,
            chromium(Path(folder)) as browser,
        ):
            seconds = {
                what: [_seconds(browser, address, see) for _ in range(RUNS)]
                for what, see in _SIGHTS.items()
            }
    results.figures |= {"letters": letters, "seconds": seconds, "ledger_seconds": reading}
    results.show(
        request,
        Table(
            title=f"Seconds from an address that is opened in a new tab, {letters:,} letters parked",
            headings=("until", "the first", f"median of {RUNS}"),
            rows=[
                [what, f"{spent[0]:.2f}", f"{median(spent):.2f}"] for what, spent in seconds.items()
            ],
            note=f"Each tab begins with an empty cache. The first request for letters or causes waits for the ledger's scan (alone {reading:.1f} s).",
        ),
    )
    results.leave(request)


def _reading_seconds(stack: DeployedStack) -> float:
    """How long the whole ledger takes to be read, bare."""
    started = time.perf_counter()
    request: dict[str, Any] = {"TableName": stack.outputs["StateTableName"], "ConsistentRead": True}
    while "LastEvaluatedKey" in (page := stack.dynamodb.scan(**request)):
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    return time.perf_counter() - started


def _queues(page: Page) -> None:
    page.get_by_role("link", name="Source", exact=True).wait_for()


def _letters(page: Page) -> None:
    _queues(page)
    page.get_by_label("parked letters of Source").click()
    page.locator("[data-row]").first.wait_for()


def _causes(page: Page) -> None:
    _queues(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Causes").click()
    page.get_by_role("link", name=_CAUSES[0], exact=True).wait_for()


_SIGHTS: dict[str, Callable[[Page], None]] = {
    "the first page: all queues": _queues,
    "and from there the first 200 letters": _letters,
    "and from there the causes": _causes,
}


def _seconds(browser: Browser, address: str, see: Callable[[Page], None]) -> float:
    """From the address to the sight, in a tab of its own."""
    context = browser.new_context()
    page = context.new_page()
    started = time.perf_counter()
    page.goto(address)
    see(page)
    spent = time.perf_counter() - started
    context.close()
    return spent


def _environment(stack: DeployedStack) -> dict[str, str]:
    return os.environ | stack.aws.environment() | {"PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}"}
